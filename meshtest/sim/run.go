package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"time"
)

// Options say what is run.
type Options struct {
	Seed uint64
	// Schedule replaces the disturbances that the seed draws; nil leaves them.
	Schedule   []Disturbance
	Silos      int  // at the start; 0 draws 2 to 5, and more may join up to 8
	NoUnsure   bool // no grants while a member is missing
	NoFailover bool
	Trace      string // an address of which everything is written to TraceTo
	TraceTo    io.Writer
}

// Result is what a run showed.
type Result struct {
	Seed       uint64
	Schedule   []Disturbance
	Violations map[string]int
	First      map[string]string // the first of each
	Counts     map[string]int
	Repaired   time.Duration // after the last disturbance; negative where it was not
	Requests   int
}

// Failed tells whether anything was violated.
func (r Result) Failed() bool { return len(r.Violations) > 0 }

// String lists the violations, one a line.
func (r Result) String() string {
	var b strings.Builder
	names := make([]string, 0, len(r.Violations))
	for n := range r.Violations {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		fmt.Fprintf(&b, "seed %d: %s (%d times): %s\n", r.Seed, n, r.Violations[n], r.First[n])
	}
	return b.String()
}

const (
	maxSilos = 8
	warm     = 1500 * time.Millisecond
	loadEnd  = 14 * time.Second
	rest     = 15 * time.Second
)

// Schedule draws the disturbances of a seed.
func Schedule(seed uint64) []Disturbance {
	r := rand.New(rand.NewPCG(seed, 4))
	draw := func(at time.Duration) Disturbance {
		return Disturbance{At: at, Kind: Kind(r.IntN(int(kinds))), For: between(r, 100*time.Millisecond, 4*time.Second), A: r.Uint32(), B: r.Uint32(), Flag: r.IntN(2) == 0}
	}
	var out []Disturbance
	for range 2 + r.IntN(9) {
		d := draw(between(r, 2*time.Second, 12*time.Second))
		out = append(out, d)
		if r.IntN(3) == 0 { // and another right behind it
			out = append(out, draw(d.At+between(r, 0, 60*time.Millisecond)))
		}
	}
	slices.SortStableFunc(out, func(a, b Disturbance) int { return int(a.At - b.At) })
	return out
}

func (w *world) add(name string) {
	w.names = append(w.names, name)
	w.start(name)
}

func (w *world) resting() bool { return w.now >= loadEnd }

// Run runs one seed.
func Run(o Options) Result {
	if o.Schedule == nil {
		o.Schedule = Schedule(o.Seed)
	}
	w := newWorld(o)
	silos := 2 + w.loadRand.IntN(4)
	if o.Silos > 0 {
		silos = o.Silos
	}
	for i := range silos {
		name := fmt.Sprintf("s%d", i)
		w.names = append(w.names, name)
		w.after(between(w.loadRand, 0, 300*time.Millisecond), nil, func() { w.start(name) })
	}
	w.run(warm + time.Duration(o.Silos)*50*time.Millisecond)
	w.load()
	w.shift()
	var undo []func()
	for _, d := range o.Schedule {
		w.at(d.At, nil, func() { w.strike(d, loadEnd, &undo) })
	}
	w.run(loadEnd)
	w.heal(undo)
	repaired := w.settleDown()
	w.quiet()
	w.roundUp()
	return Result{Seed: o.Seed, Schedule: o.Schedule, Violations: w.check.violations, First: w.check.first, Counts: w.check.counts, Repaired: repaired, Requests: len(w.requests)}
}

var (
	roaming = []string{"portal/c0", "portal/c1", "portal/c2", "portal/c3", "portal/c4", "portal/c5"}
	nodes   = []string{"acme/n0", "acme/n1", "acme/n2", "acme/n3", "acme/n4", "acme/n5", "acme/n6", "acme/n7"}
)

// runs tells whether a process acts now.
func (p *process) acts() bool { return p != nil && p.paused <= p.w.now }

func (w *world) pick() *process {
	a := w.alive()
	n := w.loadRand.Uint32() // drawn even for nobody, so that the load does not depend on who is there
	if len(a) == 0 {
		return nil
	}
	return a[int(n)%len(a)]
}

// load asks, registers, disposes and stops hubs until the end of the disturbances.
func (w *world) load() {
	r := w.loadRand
	addr := func() string {
		switch n := r.IntN(10); {
		case n == 0:
			return fmt.Sprintf("portal/ghost%d", r.IntN(5))
		case n < 3:
			return roaming[r.IntN(len(roaming))]
		case n < 6:
			return fmt.Sprintf("mesh/%d-%d", r.IntN(len(w.procs)+1), r.IntN(3))
		default:
			return nodes[r.IntN(len(nodes))]
		}
	}
	for t := w.now; t < loadEnd; t += between(r, 2*time.Millisecond, 25*time.Millisecond) {
		w.at(t, nil, func() {
			p, a, write, burst := w.pick(), addr(), r.IntN(2) == 0, 1
			if r.IntN(8) == 0 {
				burst = 4 // to one address, so that order matters
			}
			if p.acts() {
				for range burst {
					p.submit(a, write && isNode(a), nil)
				}
			}
		})
	}
	for t := w.now; t < loadEnd; t += between(r, 20*time.Millisecond, 250*time.Millisecond) {
		w.at(t, nil, w.roam)
	}
	for t := w.now; t < loadEnd; t += between(r, 10*time.Millisecond, 80*time.Millisecond) {
		w.at(t, nil, w.circuit)
	}
	for t := w.now; t < loadEnd; t += between(r, 20*time.Millisecond, 200*time.Millisecond) {
		w.at(t, nil, func() {
			p, n := w.pick(), r.Uint32()
			if !p.acts() {
				return
			}
			if hubs := p.sortedNodes(); len(hubs) > 0 {
				if h := hubs[int(n)%len(hubs)]; h.state == active {
					h.stop() // idle
				}
			}
		})
	}
}

// roam closes a circuit at one silo, or opens it at another.
func (w *world) roam() {
	r := w.loadRand
	a, again, p := roaming[r.IntN(len(roaming))], r.IntN(3) == 0, w.pick()
	for _, q := range w.procs {
		if !q.dead && q.hubs[a] != nil {
			if q.acts() {
				q.dispose(a)
				if again {
					q.register(a)
				}
			}
			return
		}
	}
	if p.acts() {
		p.register(a)
	}
}

// circuit opens a hub that lives for a moment or for a while, and asks for it from elsewhere.
func (w *world) circuit() {
	r := w.loadRand
	p, q, id := w.pick(), w.pick(), w.circuits
	life, ask := between(r, 0, 4*time.Millisecond), between(r, 0, 40*time.Millisecond)
	if r.IntN(3) > 0 {
		life = between(r, 50*time.Millisecond, 4*time.Second)
	}
	w.circuits++
	if !p.acts() {
		return
	}
	a := fmt.Sprintf("portal/b%d", id)
	p.register(a)
	w.after(life, p, func() { p.dispose(a) })
	if q != nil {
		w.after(ask, q, func() { q.submit(a, false, nil) })
	}
}

// joined asks for the hubs of a silo that has just joined, from everywhere.
func (w *world) joined(p *process) {
	for _, q := range w.alive() {
		if q == p {
			continue
		}
		for i := range 3 {
			w.after(between(w.procRand, 0, 60*time.Millisecond), q, func() { q.submit(fmt.Sprintf("mesh/%d-%d", p.id, i), false, nil) })
		}
	}
}

// heal ends every disturbance.
func (w *world) heal(undo []func()) {
	for _, u := range undo {
		u()
	}
	for _, n := range w.names {
		if p := w.current[n]; p != nil && p.paused > w.now {
			p.paused = w.now
			w.resume(p)
		}
	}
}

// settleDown waits until everything is right and stays so, and says how long that took.
func (w *world) settleDown() time.Duration {
	begin, repaired, last := w.now, time.Duration(-1), ""
	for w.now < begin+rest {
		w.run(w.now + 20*time.Millisecond)
		if s := w.check.wrong(); s != "" {
			repaired, last = -1, s
		} else if repaired < 0 {
			repaired = w.now - begin
		}
	}
	if repaired < 0 {
		w.check.bad(notRepaired, "%s", last)
	}
	return repaired
}

// quiet holds the cluster against silence: with nothing to do, no directory message is sent.
func (w *world) quiet() {
	before := w.sent
	w.run(w.now + 5*time.Second)
	for k, n := range w.sent {
		if d := n - before[k]; d > 0 {
			w.check.bad(staticTraffic, "%d of kind %d", d, k)
		}
	}
}

// roundUp asks every live hub from every silo, then looks at the entries.
func (w *world) roundUp() {
	w.strangers()
	for _, p := range w.alive() {
		for _, q := range w.alive() {
			for _, a := range q.sortedHubs() {
				p.submit(a, false, func(r *request) {
					if r.end != endDone {
						w.check.bad(unreachable, "%s at %s from %s: %s %s", a, q.name, p.name, r.end, r.refusal.Detail)
					}
				})
			}
		}
		for _, a := range nodes {
			p.submit(a, true, w.check.served)
		}
		p.submit("portal/nobody", false, func(r *request) {
			if r.end != "no-entry" {
				w.check.bad(missedNobody, "%s from %s: %s", r.addr, p.name, r.end)
			}
		})
	}
	w.run(w.now + 4*time.Second)
	w.check.entries()
	w.check.placements()
	for _, r := range w.requests {
		if !r.over && !r.from.dead {
			w.check.bad(notAnswered, "%s from %s", r.addr, r.from.name)
		}
	}
}
