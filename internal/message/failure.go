package message

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrorType classifies a failure (messaging.md §1.3). ShuttingDown is the only verdict to ride out: ask
// again, never tear down. Its numbers are part of the wire.
type ErrorType uint8

// The error types.
const (
	Unknown ErrorType = iota
	Exception
	NotFound
	Rejected
	Ignored
	Failed
	CompilationFailed
	CompilationInProgress
	StartupScriptFailed
	RoutingLoop
	Unauthorized
	Forbidden
	ShuttingDown
)

var errorTypeNames = [...]string{
	"Unknown", "Exception", "NotFound", "Rejected", "Ignored", "Failed", "CompilationFailed",
	"CompilationInProgress", "StartupScriptFailed", "RoutingLoop", "Unauthorized", "Forbidden", "ShuttingDown",
}

func (t ErrorType) String() string {
	if int(t) < len(errorTypeNames) {
		return errorTypeNames[t]
	}
	return fmt.Sprintf("ErrorType(%d)", uint8(t))
}

// Reasons of a refusal (architecture.md, decision 2). A refusal says that nothing was queued.
const (
	ReasonNoEntry     = "no-entry"    // nobody serves the address
	ReasonReleased    = "released"    // its owner let go of it
	ReasonStarting    = "starting"    // a gate is closed
	ReasonStopping    = "stopping"    // the hub or its process is going down
	ReasonOverloaded  = "overloaded"  // a bounded queue is full
	ReasonBudget      = "budget"      // too little is left of the caller's budget
	ReasonSelfAsk     = "self-ask"    // a turn asked its own hub
	ReasonInit        = "init-failed" // the hub's start failed
	ReasonUnhandled   = "unhandled"   // no handler took the request
	ReasonNoIdentity  = "no-identity" // a post without identity
	ReasonLoop        = "loop"        // the delivery came back to a hub it had visited
	ReasonPanic       = "panic"       // the handler panicked
	ReasonUnavailable = "unavailable" // what is needed to answer is away
	ReasonUnknown     = "unknown"     // who serves the address could not be found out
	ReasonLost        = "lost"        // the connection broke after the message had been sent
	ReasonIsolated    = "isolated"    // the silo does not know whether it still is one, and others may serve in its place
	ReasonNoSilo      = "no-silo"     // no silo handles the node's type
	ReasonUnreadable  = "unreadable"  // the message could not be carried to another silo
)

// Failure is the typed answer that is not a reply. It crosses hub and silo boundaries; Cause stays
// inside the process and is reachable by errors.As.
type Failure struct {
	Type    ErrorType
	Message string

	Target     string // address that was asked
	DeliveryID string
	Operation  string // name of the message type
	AnsweredBy string // who says so: an address or a silo
	Reason     string // one of the Reason constants, or ""
	// TargetUnserved may be set by a router only: a complete locate found nobody serving the target.
	TargetUnserved bool
	// OutcomeUnknown says that the request may have been executed.
	OutcomeUnknown bool
	RetryAfter     time.Duration // a hint; 0 is "none"
	NodeTypePath   string        // the type node that is to blame, for compile verdicts

	Cause error
}

func (f *Failure) Error() string {
	var b strings.Builder
	b.WriteString(f.Message)
	if f.Message == "" {
		b.WriteString(f.Type.String())
		if f.Cause != nil {
			b.WriteString(": ")
			b.WriteString(f.Cause.Error())
		}
	}
	if f.AnsweredBy != "" {
		fmt.Fprintf(&b, " [answered_by=%s reason=%s]", f.AnsweredBy, f.Reason)
	}
	return b.String()
}

// Unwrap returns the cause, which exists only inside the process that failed.
func (f *Failure) Unwrap() error { return f.Cause }

// Transient tells whether the same request may succeed later without anybody's doing.
func (f *Failure) Transient() bool { return f.Type == ShuttingDown }

// Disposing marks an error chain as caused by a hub that is going down; it is classified as
// ShuttingDown at any depth up to 16 (messaging.md §1.5). The phrase "is shutting down" is a contract.
type Disposing struct{ Address string }

func (e *Disposing) Error() string { return fmt.Sprintf("hub '%s' is shutting down", e.Address) }

// maxChain is how deep an error chain is searched (messaging.md §1.5).
const maxChain = 16

// Classify turns what a handler returned into a failure: a Failure stays, a chain with Disposing is
// ShuttingDown, everything else is Unknown with its text.
func Classify(err error) *Failure {
	if f, ok := find[*Failure](err); ok {
		return f
	}
	if d, ok := find[*Disposing](err); ok {
		return &Failure{Type: ShuttingDown, Message: d.Error(), AnsweredBy: d.Address, Reason: ReasonStopping, Cause: err}
	}
	return &Failure{Type: Unknown, Message: err.Error(), Cause: err}
}

// find searches a chain breadth-limited: every branch of a join counts, at most maxChain deep.
func find[T error](err error) (T, bool) {
	var zero T
	var walk func(err error, depth int) (T, bool)
	walk = func(err error, depth int) (T, bool) {
		if err == nil || depth > maxChain {
			return zero, false
		}
		if t, ok := err.(T); ok {
			return t, true
		}
		switch u := err.(type) {
		case interface{ Unwrap() error }:
			return walk(u.Unwrap(), depth+1)
		case interface{ Unwrap() []error }:
			for _, e := range u.Unwrap() {
				if t, ok := walk(e, depth+1); ok {
					return t, true
				}
			}
		}
		return zero, false
	}
	return walk(err, 0)
}

// IsTransient tells whether err carries a failure that says "ask again".
func IsTransient(err error) bool {
	var f *Failure
	return errors.As(err, &f) && f.Transient()
}

// TypeOf returns the error type that err carries, and false when it carries none.
func TypeOf(err error) (ErrorType, bool) {
	var f *Failure
	if errors.As(err, &f) {
		return f.Type, true
	}
	return Unknown, false
}
