package budget

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Who reports a lapse.
const (
	ByCaller = "caller" // no answer reached the caller in time
	ByOwner  = "owner"  // the owner answered, early, that it will not make it in time
)

// Progress says how far a request had come when its wait lapsed.
type Progress uint8

// The progress of a request.
const (
	Unobserved Progress = iota // not known in this process
	NotStarted                 // its turn had not begun, so nothing was done
	Started                    // its turn had begun: the outcome is unknown
)

func (p Progress) String() string {
	switch p {
	case NotStarted:
		return "not started"
	case Started:
		return "started, outcome unknown"
	default:
		return "not observed"
	}
}

// Lapse says that a wait ended without an answer, and only what was observed. It never states what
// the other side did (edge.md DG-1).
type Lapse struct {
	Bound      Bound         // the step that was waited for
	By         Bound         // the bound that ended the wait
	Size       time.Duration // how long the wait could be
	Elapsed    time.Duration // how long it was
	Operation  string        // what was asked
	Target     string        // whom
	ReportedBy string        // ByCaller or ByOwner
	Progress   Progress
	Clause     string // what is known of the target, such as "STILL STARTING: gate 'X' closed for 9s"
}

func (l *Lapse) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no answer within %v", l.Elapsed.Round(time.Millisecond))
	if l.Operation != "" {
		fmt.Fprintf(&b, " to '%s'", l.Operation)
	}
	if l.Target != "" {
		fmt.Fprintf(&b, " from '%s'", l.Target)
	}
	fmt.Fprintf(&b, " (bound '%s'", l.By)
	if l.By != l.Bound {
		fmt.Fprintf(&b, " clipped '%s'", l.Bound)
	}
	fmt.Fprintf(&b, ", reported_by=%s", l.ReportedBy)
	if l.Progress != Unobserved {
		fmt.Fprintf(&b, ", %s", l.Progress)
	}
	b.WriteString(")")
	if l.Clause != "" {
		b.WriteString(": ")
		b.WriteString(l.Clause)
	}
	return b.String()
}

// Timeout matches the classifiers of package net and os.
func (l *Lapse) Timeout() bool { return true }

// Temporary says that the same question may be answered later.
func (l *Lapse) Temporary() bool { return true }

// Is makes a lapse match context.DeadlineExceeded.
func (l *Lapse) Is(target error) bool { return target == context.DeadlineExceeded }
