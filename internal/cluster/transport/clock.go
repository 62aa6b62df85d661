package transport

import (
	"container/heap"
	"sync"
	"time"
)

// Clock is the [Scheduler] of a [Network] in real time: everything runs on one goroutine, in its order.
// Close it.
type Clock struct {
	base time.Time
	wake chan struct{}
	end  chan struct{}
	done chan struct{}

	mu   sync.Mutex
	made uint64
	due  dues
}

// due is a callback that is to come; made orders those of the same time.
type due struct {
	at   time.Duration
	made uint64
	f    func() // nil: stopped
}

type dues []*due

func (d dues) Len() int { return len(d) }
func (d dues) Less(i, j int) bool {
	return d[i].at < d[j].at || d[i].at == d[j].at && d[i].made < d[j].made
}
func (d dues) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *dues) Push(x any)   { *d = append(*d, x.(*due)) } //nolint:forcetypeassert // heap pushes what it is given
func (d *dues) Pop() any {
	old := *d
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*d = old[:len(old)-1]
	return last
}

// NewClock starts a clock.
func NewClock() *Clock {
	c := &Clock{base: time.Now(), wake: make(chan struct{}, 1), end: make(chan struct{}), done: make(chan struct{})}
	go c.run()
	return c
}

// Close ends the clock: what is to come never does. It waits for a callback that runs, and must not be called
// by one.
func (c *Clock) Close() {
	close(c.end)
	<-c.done
}

// Now implements Scheduler.
func (c *Clock) Now() time.Duration { return time.Since(c.base) }

// At implements Scheduler.
func (c *Clock) At(at time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	c.made++
	one := &due{at: at, made: c.made, f: f}
	heap.Push(&c.due, one)
	first := c.due[0] == one
	c.mu.Unlock()
	if first {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		was := one.f != nil
		one.f = nil
		return was
	}
}

// next takes the callback whose time has come, or tells how long it is until the first one.
func (c *Clock) next() (f func(), wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.due) > 0 {
		one := c.due[0]
		if one.f != nil {
			if wait = one.at - c.Now(); wait > 0 {
				return nil, wait
			}
		}
		heap.Pop(&c.due)
		if f, one.f = one.f, nil; f != nil {
			return f, 0
		}
	}
	return nil, time.Hour
}

func (c *Clock) run() {
	defer close(c.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-c.end:
			return
		default:
		}
		f, wait := c.next()
		if f != nil {
			f()
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-c.wake:
		case <-c.end:
			return
		}
	}
}
