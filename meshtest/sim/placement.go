package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster"
)

// nodeTypes are the types that nodes have.
var nodeTypes = []string{"T0", "T1", "T2"}

// placement is what a run draws for where node hubs are to be: in half of the runs silos handle some types only,
// and in half of them some are more loaded than their node hubs say.
type placement struct {
	r             *rand.Rand
	typed, loaded bool
}

// retyped is how long after a node was created anew with another type a silo may still act on the former one: a
// request's budget, the longest pause in the middle of it, and what was under way.
const retyped = budget + 4*time.Second + time.Second

func newPlacement(seed uint64) placement {
	r := rand.New(rand.NewPCG(seed, 5))
	return placement{r: r, typed: r.IntN(2) == 0, loaded: r.IntN(2) == 0}
}

// sizes are so small that a few nodes make a silo much more loaded.
func sizes(p cluster.Placement) cluster.Placement {
	p.Margin, p.Look, p.Steady, p.Batch, p.Pause = 3, 300*time.Millisecond, 2, 2, time.Second
	return p
}

// types draws the types that a silo handles; nil is all of them.
func (p *placement) types() []string {
	n := p.r.IntN(1 << len(nodeTypes))
	if !p.typed || n == 0 {
		return nil
	}
	var out []string
	for i, t := range nodeTypes {
		if n>>i&1 == 1 {
			out = append(out, t)
		}
	}
	return out
}

// ballast draws what a silo counts beyond its node hubs.
func (p *placement) ballast() int {
	n := p.r.IntN(16)
	if !p.loaded || p.r.IntN(2) == 0 {
		return 0
	}
	return n
}

// shift changes loads and types until the end of the disturbances. A node is of another type when it was deleted
// and created anew: its hub hears of it and ends.
func (w *world) shift() {
	r := w.place.r
	for t := w.now; t < loadEnd; t += between(r, 300*time.Millisecond, 1500*time.Millisecond) {
		w.at(t, nil, func() {
			n, load := r.Uint32(), w.place.ballast()
			if a := w.alive(); len(a) > 0 {
				a[int(n)%len(a)].ballast = load
			}
		})
	}
	for t := w.now; w.place.typed && t < loadEnd; t += between(r, time.Second, 4*time.Second) {
		w.at(t, nil, func() {
			addr, to := nodes[r.IntN(len(nodes))], nodeTypes[r.IntN(len(nodeTypes))]
			if w.table.down > 0 || to == w.table.typeOf(addr) {
				return
			}
			w.table.types[addr], w.table.retyped[addr] = to, w.now
			for _, p := range w.procs {
				w.after(between(r, time.Millisecond, 20*time.Millisecond), p, func() {
					if n := p.nodes[addr]; n != nil && n.began <= w.table.retyped[addr] {
						n.stop()
					}
				})
			}
		})
	}
}

func (t *table) typeOf(addr string) string {
	if is, ok := t.types[addr]; ok {
		return is
	}
	return nodeTypes[int(addr[len(addr)-1])%len(nodeTypes)]
}

// Load implements cluster.Host.
func (p *process) Load() int { return p.silo.Claims.Nodes() + p.ballast }

// TypeOf implements cluster.Host.
func (p *process) TypeOf(addr string, done func(string, bool)) {
	var is string
	p.w.check.count("types read before a placement", 1)
	p.w.table.do(p, func() { is = p.w.table.typeOf(addr) }, func(err error) {
		if err != nil {
			p.unread[addr] = true
		} else {
			delete(p.unread, addr)
		}
		done(is, err == nil)
	})
}

// HandOver implements cluster.Host. During the rest it would be traffic of its own.
func (p *process) HandOver(n int, done func(int)) {
	ended := 0
	for _, h := range p.sortedNodes() {
		if n > 0 && !p.w.resting() && h.state == active && !h.busy && len(h.queue) == 0 {
			p.w.check.count("handed over", 1)
			h.stop()
			n--
			ended++
		}
	}
	done(ended)
}

// handled tells whether some silo that stays handles the type of a node.
func (w *world) handled(addr string) bool {
	for _, p := range w.alive() {
		if p.me.Handles(w.table.typeOf(addr)) {
			return true
		}
	}
	return false
}

func (w *world) retypedLately(addr string) bool {
	at, ok := w.table.retyped[addr]
	return ok && w.now-at < retyped
}

// misplaced notes that a silo was chosen for a node whose type it does not handle.
func (c *checker) misplaced(p *process, addr string) {
	c.count("placed before its type was known", 1)
	if !c.w.retypedLately(addr) && !p.unread[addr] {
		c.bad(wrongSilo, "%s at %s", addr, p.name)
	}
}

// noSilo holds a refusal for want of a silo against the view of who refuses.
func (c *checker) noSilo(r *request) {
	if c.w.retypedLately(r.addr) {
		return
	}
	for _, m := range r.from.silo.View().Members() {
		if !m.Leaving && m.Handles(c.w.table.typeOf(r.addr)) {
			c.bad(falseNoSilo, "%s from %s: %s handles it", r.addr, r.from.name, m.Name)
		}
	}
}

// served holds the outcome of a request to a node, when all is well, against whether any silo handles its type.
func (c *checker) served(r *request) {
	handled := c.w.handled(r.addr)
	switch {
	case handled && r.end != endDone:
		c.bad(notServed, "%s from %s: %s %s", r.addr, r.from.name, r.end, r.refusal.Detail)
	case !handled && r.end != cluster.NoSilo.String() && r.end != endDone:
		c.bad(notServed, "%s from %s, whose type nobody handles: %s %s", r.addr, r.from.name, r.end, r.refusal.Detail)
	case !handled && r.end != endDone && c.w.now-r.began > inMoments:
		c.bad(notServed, "%s from %s: refused only after %v: %s %s", r.addr, r.from.name, c.w.now-r.began, r.end, r.refusal.Detail)
	}
}

// strangers asks for nodes that nobody serves through one silo each that does not handle the type, where there is
// one: nobody else asks, so it has to be placed.
func (w *world) strangers() {
	for _, p := range w.alive() {
		for _, n := range p.sortedNodes() {
			n.stop()
		}
	}
	w.run(w.now + time.Second)
	for i, a := range nodes {
		var askers []*process
		for _, p := range w.alive() {
			if !p.me.Handles(w.table.typeOf(a)) {
				askers = append(askers, p)
			}
		}
		if len(askers) > 0 {
			w.check.count("nodes that had to be placed", 1)
			askers[i%len(askers)].submit(a, true, w.check.served)
		}
	}
	w.run(w.now + time.Second)
}

// inMoments bounds a refusal that waits for nobody, on a network that takes up to 40 ms now and then: a read, a
// lookup, and the rounds of a locate before it.
const inMoments = 500 * time.Millisecond

// placements sums what the silos have counted.
func (c *checker) placements() {
	for _, p := range c.w.procs {
		if is := p.silo.Claims.Counts(); p.silo.Claims.Nodes() != is.Claiming+is.Granted && !p.dead {
			c.bad(wrongLoad, "%s counts %d node hubs and has %+v", p.name, p.silo.Claims.Nodes(), is)
		}
		n := p.silo.Counts().Placements
		for what, n := range map[string]int64{"type": n.ByType, "load": n.ByLoad, "leaving": n.ByLeaving} {
			c.count(fmt.Sprintf("placed elsewhere: %s", what), int(n))
		}
		c.count("placements that failed", int(n.Failed))
		c.count("placements that were taken", int(n.Taken))
	}
}
