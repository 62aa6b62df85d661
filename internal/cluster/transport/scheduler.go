package transport

import "time"

// Scheduler is the clock of a [Network]. One that runs everything on a single goroutine makes the
// network deterministic: the network starts no goroutine, never blocks, and acts only in callbacks of
// the scheduler and in calls from outside. Callbacks of equal time must run in the order of At.
type Scheduler interface {
	// Now is the time since some fixed moment. It never goes back.
	Now() time.Duration
	// At calls f once Now has come to at, never from within At. stop tells whether it prevented that. It takes a
	// moment and not a delay: between two frames of a connection a busy process may stand still, and delays that
	// are counted from wherever it stood would bring the later frame first.
	At(at time.Duration, f func()) (stop func() bool)
}

// Timers is the scheduler of real timers, for use inside a testing/synctest bubble: make it there.
func Timers() Scheduler { return timers{time.Now()} }

type timers struct{ base time.Time }

func (t timers) Now() time.Duration { return time.Since(t.base) }

func (t timers) At(at time.Duration, f func()) func() bool {
	return time.AfterFunc(at-t.Now(), f).Stop
}
