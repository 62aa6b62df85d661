package transport

import "time"

// Scheduler is the clock of a [Network]. One that runs everything on a single goroutine makes the
// network deterministic: the network starts no goroutine, never blocks, and acts only in callbacks of
// the scheduler and in calls from outside. Callbacks of equal time must run in the order of After.
type Scheduler interface {
	// Now is the time since some fixed moment. It never goes back.
	Now() time.Duration
	// After calls f once d has passed, never from within After. stop tells whether it prevented that.
	After(d time.Duration, f func()) (stop func() bool)
}

// Timers is the scheduler of real timers, for use inside a testing/synctest bubble: make it there.
func Timers() Scheduler { return timers{time.Now()} }

type timers struct{ base time.Time }

func (t timers) Now() time.Duration { return time.Since(t.base) }

func (t timers) After(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
