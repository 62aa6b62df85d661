package budget

import (
	"context"
	"fmt"
	"time"
)

const (
	marginFraction = 40                     // a margin is this part of what remains …
	marginFloor    = 20 * time.Millisecond  // … but no less: timers are late on a busy process
	marginCeiling  = 250 * time.Millisecond // … and no more
	// MinInner is what must remain for an inner ask to make sense: the least margin and 5 ms of work.
	MinInner = 25 * time.Millisecond
	// MinOuter is the shortest bound of an outermost ask.
	MinOuter = 5 * time.Millisecond
)

// Clock counts nanoseconds since a mesh instance started, on the monotonic clock. Inside a
// testing/synctest bubble it runs on virtual time.
type Clock struct{ base time.Time }

// NewClock starts a clock. Its first reading is above zero, so that a zero deadline means "none".
func NewClock() Clock { return Clock{base: time.Now().Add(-time.Nanosecond)} }

// Now is the reading in nanoseconds.
func (c Clock) Now() int64 { return int64(time.Since(c.base)) }

// Time converts a reading to wall-clock time, for people.
func (c Clock) Time(now int64) time.Time { return c.base.Add(time.Duration(now)) }

// Budget is a travelling deadline. The zero value is "no deadline".
type Budget struct {
	Deadline int64 // reading of the mesh's clock; 0 is none
	Bound    Bound // the step that is being waited for
	By       Bound // the bound that set the deadline: Bound itself, or the outer one that clipped it
	Depth    uint8 // nesting of asks
}

// Margin is what an inner wait leaves to its caller (hub.md §3).
func Margin(remaining time.Duration) time.Duration {
	return min(max(remaining/marginFraction, marginFloor), marginCeiling)
}

// TooSmall refuses a step at once: less remains than an inner ask needs. Nothing was sent.
type TooSmall struct {
	Bound     Bound         // the step that was to be taken
	By        Bound         // the bound that clipped it
	Remaining time.Duration // what was left
}

func (e *TooSmall) Error() string {
	needed := MinInner
	if e.By == None {
		needed = MinOuter
	}
	return fmt.Sprintf("budget too small for '%s': %v left of bound '%s', at least %v needed; nothing was sent",
		e.Bound, e.Remaining.Round(time.Millisecond), e.By, needed)
}

// Take returns the budget of the next step: own(w) from now, or what remains minus the margin where
// that is less. It refuses with *TooSmall when too little remains. It allocates only to refuse.
func (t *Table) Take(b Budget, now int64, w Bound) (Budget, error) {
	own := int64(t.own[w])
	if b.Deadline == 0 {
		return Budget{Deadline: now + own, Bound: w, By: w, Depth: b.Depth + 1}, nil
	}
	remaining := time.Duration(b.Deadline - now)
	if b.By == None {
		return t.takeOuter(b, now, w, remaining)
	}
	if remaining < MinInner {
		return Budget{}, &TooSmall{Bound: w, By: b.By, Remaining: max(remaining, 0)}
	}
	limit := b.Deadline - int64(Margin(remaining))
	if now+own <= limit {
		return Budget{Deadline: now + own, Bound: w, By: w, Depth: b.Depth + 1}, nil
	}
	return Budget{Deadline: limit, Bound: w, By: b.By, Depth: b.Depth + 1}, nil
}

// takeOuter is Take under a deadline that is no bound of ours, such as that of a caller's context:
// nobody there needs a margin, and a wait may be as short as MinOuter.
func (t *Table) takeOuter(b Budget, now int64, w Bound, remaining time.Duration) (Budget, error) {
	if remaining < MinOuter {
		return Budget{}, &TooSmall{Bound: w, By: None, Remaining: max(remaining, 0)}
	}
	if own := now + int64(t.own[w]); own <= b.Deadline {
		return Budget{Deadline: own, Bound: w, By: w, Depth: b.Depth + 1}, nil
	}
	return Budget{Deadline: b.Deadline, Bound: w, By: None, Depth: b.Depth + 1}, nil
}

// Remaining is what is left at now; 0 when nothing is, and false when there is no deadline.
func (b Budget) Remaining(now int64) (time.Duration, bool) {
	if b.Deadline == 0 {
		return 0, false
	}
	return time.Duration(max(b.Deadline-now, 0)), true
}

type contextKey struct{}

// ContextKey is the key under which a budget travels in a context; contexts that hold one themselves
// answer it in Value.
func ContextKey() any { return contextKey{} }

// With returns a context that carries b.
func With(ctx context.Context, b Budget) context.Context {
	return context.WithValue(ctx, contextKey{}, b)
}

// From returns the budget in ctx; the zero value when there is none.
func From(ctx context.Context) Budget {
	b, _ := ctx.Value(contextKey{}).(Budget)
	return b
}

// Context returns a context that ends after the bound's own size, with a *Lapse as its cause. It is the
// one way to bound work that is not an ask.
func (t *Table) Context(parent context.Context, w Bound, operation string) (context.Context, context.CancelFunc) {
	own := t.own[w]
	return context.WithTimeoutCause(parent, own, &Lapse{Bound: w, By: w, Size: own, Elapsed: own, Operation: operation, ReportedBy: ByCaller})
}

// Until returns a context that ends after d with lapse as its cause, for a wait whose budget has
// already been taken.
func Until(parent context.Context, d time.Duration, lapse *Lapse) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(parent, max(d, 0), lapse)
}
