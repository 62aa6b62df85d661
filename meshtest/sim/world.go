package sim

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/transport"
)

// event is something that happens at a time.
type event struct {
	at  time.Duration
	seq uint64
	f   func()
}

type events []*event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(*event)) }
func (q *events) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return e
}

// world is one run.
type world struct {
	now   time.Duration
	seq   uint64
	queue events
	// One source of randomness each, so that leaving out a disturbance does not change the load.
	tableRand, loadRand, procRand *rand.Rand

	opts     Options
	place    placement
	slots    int // few, so that each holds several addresses
	net      *transport.Network
	slow     int // disturbances of the network that are on
	lossy    int
	sent     [32]int // directory messages that were sent, by kind
	table    *table
	procs    []*process          // all that ever were
	current  map[string]*process // the newest of each name
	names    []string
	requests []*request
	circuits int
	check    *checker
	trace    *tracer // nil: nothing is traced
}

func newWorld(o Options) *world {
	w := &world{opts: o, place: newPlacement(o.Seed), slots: max(16, 4*o.Silos), current: map[string]*process{},
		tableRand: rand.New(rand.NewPCG(o.Seed, 1)),
		loadRand:  rand.New(rand.NewPCG(o.Seed, 2)),
		procRand:  rand.New(rand.NewPCG(o.Seed, 3)),
	}
	w.net = transport.NewNetwork(w, o.Seed)
	w.net.SetOvertaking(o.Seed%4 == 3) // in a quarter of the seeds the protocol has to do without order
	w.table = newTable(w)
	w.check = newChecker(w)
	if o.Trace != "" {
		w.trace = &tracer{w, o.TraceTo, o.Trace}
	}
	return w
}

// Now implements transport.Scheduler.
func (w *world) Now() time.Duration { return w.now }

// At implements transport.Scheduler: everything happens on one goroutine, in order of time.
func (w *world) At(at time.Duration, f func()) (stop func() bool) {
	w.seq++
	e := &event{at: max(at, w.now), seq: w.seq, f: f}
	heap.Push(&w.queue, e)
	return func() bool {
		waited := e.f != nil
		e.f = nil
		return waited
	}
}

// at has f happen at a time, to p if it is given: a dead process misses it, a paused one is late.
func (w *world) at(t time.Duration, p *process, f func()) (stop func()) {
	var s func() bool
	if p != nil {
		s = p.mem.After(t-w.now, f)
	} else {
		s = w.At(t, f)
	}
	return func() { s() }
}

func (w *world) after(d time.Duration, p *process, f func()) (stop func()) {
	return w.at(w.now+max(d, 0), p, f)
}

// run lets everything happen up to a time.
func (w *world) run(until time.Duration) {
	for len(w.queue) > 0 && w.queue[0].at <= until {
		e := heap.Pop(&w.queue).(*event)
		w.now = e.at
		if f := e.f; f != nil {
			e.f = nil
			f()
		}
	}
	w.now = until
}

// pause freezes a process: what should happen to it happens at its end, in the same order.
func (w *world) pause(p *process, d time.Duration) {
	p.paused = max(p.paused, w.now+d)
	w.net.Hold(p.name)
	w.after(d, nil, func() { w.resume(p) })
}

func (w *world) resume(p *process) {
	if p.paused <= w.now && !p.dead {
		p.resumed = w.now
		w.net.Release(p.name)
	}
}

// between draws from [a, b].
func between(r *rand.Rand, a, b time.Duration) time.Duration {
	return a + time.Duration(r.Int64N(int64(b-a)+1))
}

// alive lists the processes that run and do not leave.
func (w *world) alive() []*process {
	var out []*process
	for _, n := range w.names {
		if p := w.current[n]; p != nil && !p.dead && !p.leaving {
			out = append(out, p)
		}
	}
	return out
}
