package content

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/hub"
)

// What was read when a lapse happened; the first word of its line.
const whatConfig = "content collection config"

// headline says what is known, and nothing about what the owner did (edge.md DG-1).
const headline = "no answer reached this reader within its budget; this is neither a refusal nor a verdict on existence, and a new request may succeed."

// keptLapses bounds the lapses that are kept for an administrator.
const keptLapses = 200

// Unreachable says that a read ended without a verdict. It is retryable by a new request; the read
// itself is over.
type Unreachable struct {
	Lapse
	cause *budget.Lapse
}

// Lapse is the record of one read that ended without a verdict: the facts of its log line.
type Lapse struct {
	At         time.Time     `json:"at"`
	Path       string        `json:"path"`
	Target     string        `json:"target"`
	What       string        `json:"what"`
	Elapsed    time.Duration `json:"-"`
	ElapsedMS  int64         `json:"elapsedMs"`
	BudgetMS   int64         `json:"budgetMs"`
	Bound      string        `json:"bound"`      // the step that was waited for
	ClippedBy  string        `json:"clippedBy"`  // the bound that ended the wait
	ReportedBy string        `json:"reportedBy"` // "owner" or "caller"
	Reader     string        `json:"reader"`
	Clause     string        `json:"clause"`
	Line       string        `json:"line"`
}

func (u *Unreachable) Error() string { return u.Line }
func (u *Unreachable) Unwrap() error { return u.cause }

// Timeout matches the classifiers of package net and os (RB-3).
func (u *Unreachable) Timeout() bool { return true }

// unreachable describes a lapse on one line, logs it and keeps it. An Admin of the root scope is told the
// same. Anybody else is told of the reader and the target only how many requests they await: the list
// names the paths that others are reading.
func (s *Service) unreachable(ctx context.Context, path, target string, began int64, l *budget.Lapse) *Unreachable {
	elapsed := time.Duration(s.mesh.Clock().Now() - began)
	rec := Lapse{
		At: time.Now().UTC(), Path: path, Target: target, What: whatConfig, Elapsed: elapsed, ElapsedMS: elapsed.Milliseconds(),
		BudgetMS: s.mesh.Bounds().Own(budget.Read).Milliseconds(), Bound: l.Bound.String(), ClippedBy: l.By.String(), ReportedBy: l.ReportedBy,
	}
	told := rec
	rec.Reader, told.Reader = readerSnapshot(s.reads)
	rec.Clause, told.Clause = s.clause(target, l)
	for _, r := range []*Lapse{&rec, &told} {
		r.Line = line(r.What, r.Target, elapsed, r.Reader, r.Clause)
	}
	s.lapses.add(rec)
	s.log.Warn("Content read timed out for "+hub.OneLine(path), "line", rec.Line, "path", path, "target", target, "elapsed_ms", rec.ElapsedMS,
		"bound", rec.Bound, "clipped_by", rec.ClippedBy, "reported_by", rec.ReportedBy, "clause", rec.Clause, "process", s.mesh.ID())
	if s.permit.Require(ctx, "", access.Administer) == nil {
		told = rec
	}
	return &Unreachable{Lapse: told, cause: l}
}

// clause is what is known of the target: the owner's own words where it answered early, else what the
// mesh hub of this process observes now (DG-3): in full, and as anybody may know it.
func (s *Service) clause(target string, l *budget.Lapse) (full, discreet string) {
	if l.ReportedBy == budget.ByOwner && l.Clause != "" {
		said := hub.OneLine(l.Clause) + "; reported_by=owner"
		return said, said
	}
	p := s.mesh.Probe(target, s.reads)
	return hub.OneLine(p.Clause()), hub.OneLine(p.Discreet().Clause())
}

// line is the diagnostic line (edge.md §1.5). Two log readers split on newlines: it never has one.
func line(what, target string, elapsed time.Duration, reader, clause string) string {
	return hub.OneLine(fmt.Sprintf("Reading %s from '%s' gave up after %.1fs — %s Reader: %s Target: %s",
		what, target, elapsed.Seconds(), headline, reader, clause))
}

// readerSnapshot observes the hub that asked: in full, and as anybody may know it. Without one it says
// so; zeros are never made up (DG-2).
func readerSnapshot(h *hub.Hub) (full, discreet string) {
	if h == nil {
		return "no reader hub", "no reader hub"
	}
	defer func() {
		if r := recover(); r != nil {
			full = fmt.Sprintf("<diagnostics unavailable: %T>", r)
			discreet = full
		}
	}()
	s := h.Snapshot()
	return s.String(), s.Discreet().String()
}

// lapses keeps the most recent ones.
type lapses struct {
	mu   sync.Mutex
	list []Lapse
}

func (l *lapses) add(rec Lapse) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) == keptLapses {
		l.list = append(l.list[:0], l.list[1:]...)
	}
	l.list = append(l.list, rec)
}

// Lapses returns the recent lapses, newest first.
func (s *Service) Lapses() []Lapse {
	s.lapses.mu.Lock()
	defer s.lapses.mu.Unlock()
	out := make([]Lapse, 0, len(s.lapses.list))
	for i := len(s.lapses.list) - 1; i >= 0; i-- {
		out = append(out, s.lapses.list[i])
	}
	return out
}
