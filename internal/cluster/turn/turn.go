// Package turn runs a state machine one step at a time.
//
// The machines of a silo (views, slots, claims, locate) have no goroutine, no lock and no clock of
// their own. They are stepped on one [Turn]: whoever has an event for them enters it, and timers fire
// on it. [Loop] is the turn of a real process, a mutex and the runtime's timers; a simulation has its
// own, whose clock stands still between events. Nothing on a turn may block.
package turn

import (
	"sync"
	"time"
)

// Clock is the time of a turn.
type Clock interface {
	// Now is the time since some fixed moment, on a clock that does not jump.
	Now() time.Duration
	// After runs f on the turn once d has passed, never before After has returned. What is due at once, with a
	// d of 0, runs in the order of After: what a silo asks itself is in order, as on a connection. stop keeps f
	// from running where it has not begun; it must be called on the turn.
	After(d time.Duration, f func()) (stop func())
}

// Loop is the turn of a real process. It is safe for concurrent use; its zero value is not usable.
type Loop struct {
	mu      sync.Mutex
	base    time.Time
	timers  map[*timer]struct{} // those that have not fired
	atOnce  []*timer            // those without a delay, in their order; each has a goroutine that runs the first
	firing  sync.WaitGroup
	later   []func() // to be done when the present turn has ended
	stopped bool
}

type timer struct {
	t *time.Timer // nil: without a delay
	f func()
}

var _ Clock = (*Loop)(nil)

// New returns a turn whose clock starts now.
func New() *Loop { return &Loop{base: time.Now(), timers: map[*timer]struct{}{}} }

// Do runs f on the turn. It must not be called on the turn.
func (l *Loop) Do(f func()) {
	l.mu.Lock()
	defer l.leave()
	f()
}

// Later has f run when the present turn has ended, by whoever was on it. It must be called on the turn.
func (l *Loop) Later(f func()) { l.later = append(l.later, f) }

// leave ends a turn, and does what was left for after it.
func (l *Loop) leave() {
	later := l.later
	l.later = nil
	l.mu.Unlock()
	for _, f := range later {
		f()
	}
}

// Now implements [Clock]. It may be called from anywhere.
func (l *Loop) Now() time.Duration { return time.Since(l.base) }

// After implements [Clock]. After [Loop.Stop] nothing that was asked for runs.
func (l *Loop) After(d time.Duration, f func()) (stop func()) {
	if l.stopped {
		return func() {}
	}
	t := &timer{f: f}
	l.timers[t] = struct{}{}
	l.firing.Add(1)
	if d <= 0 {
		// The goroutines of timers that fire together enter the turn in any order.
		l.atOnce = append(l.atOnce, t)
		go l.fire(nil)
	} else {
		t.t = time.AfterFunc(d, func() { l.fire(t) })
	}
	return func() { l.cancel(t) }
}

// fire runs a timer, or the first of those without a delay.
func (l *Loop) fire(t *timer) {
	defer l.firing.Done()
	l.mu.Lock()
	defer l.leave()
	if t == nil {
		t = l.atOnce[0]
		l.atOnce[0] = nil
		l.atOnce = l.atOnce[1:]
	}
	if _, waits := l.timers[t]; waits {
		delete(l.timers, t)
		t.f()
	}
}

func (l *Loop) cancel(t *timer) {
	if _, waits := l.timers[t]; !waits {
		return
	}
	delete(l.timers, t)
	if t.t != nil && t.t.Stop() {
		l.firing.Done()
	}
}

// Stop ends the turn: no timer runs any more when it returns. It must not be called on the turn.
func (l *Loop) Stop() {
	l.mu.Lock()
	l.stopped = true
	for t := range l.timers {
		l.cancel(t)
	}
	l.mu.Unlock()
	l.firing.Wait()
}
