package clustertest

import (
	"container/heap"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/turn"
)

// Clock is virtual time. Nothing runs by itself: [Clock.Run] lets time pass and runs what is due, in
// order of time and, within one moment, in the order in which it was asked for. It is for one goroutine.
type Clock struct {
	now    time.Duration
	seq    int
	timers timers
}

var _ turn.Clock = (*Clock)(nil)

type timer struct {
	at    time.Duration
	seq   int
	f     func() // nil: stopped
	index int
}

// Now implements [turn.Clock].
func (c *Clock) Now() time.Duration { return c.now }

// After implements [turn.Clock].
func (c *Clock) After(d time.Duration, f func()) (stop func()) {
	c.seq++
	t := &timer{at: c.now + max(d, 0), seq: c.seq, f: f}
	heap.Push(&c.timers, t)
	return func() {
		if t.f != nil {
			t.f = nil
			heap.Remove(&c.timers, t.index)
		}
	}
}

// Run lets d pass. What is asked for meanwhile and falls due runs as well.
func (c *Clock) Run(d time.Duration) {
	end := c.now + d
	for len(c.timers) > 0 && c.timers[0].at <= end {
		t := heap.Pop(&c.timers).(*timer)
		c.now = max(c.now, t.at)
		f := t.f
		t.f = nil
		f()
	}
	c.now = end
}

// Flush runs what is due at this moment.
func (c *Clock) Flush() { c.Run(0) }

// Freeze lets d pass in which nothing runs, as in a process that is suspended. What fell due meanwhile
// runs with the next [Clock.Run].
func (c *Clock) Freeze(d time.Duration) { c.now += d }

// Do runs f at once. It makes the clock a turn for what wants one.
func (c *Clock) Do(f func()) { f() }

// Timers is the number of timers that have not run.
func (c *Clock) Timers() int { return len(c.timers) }

// timers is a heap in order of time, then of asking.
type timers []*timer

func (h timers) Len() int { return len(h) }
func (h timers) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}

func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *timers) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *timers) Pop() any {
	old := *h
	t := old[len(old)-1]
	*h = old[:len(old)-1]
	return t
}

// Next lets time pass to the next timer and runs what is due then, if that is no later than end.
func (c *Clock) Next(end time.Duration) bool {
	if len(c.timers) == 0 || c.timers[0].at > end {
		return false
	}
	c.Run(max(0, c.timers[0].at-c.now))
	return true
}
