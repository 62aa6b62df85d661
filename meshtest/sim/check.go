package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
	"github.com/hubmesh/hubmesh/internal/route"
)

// The violations that a run can have.
const (
	notRepaired    = "not repaired after 15 s of rest"
	unreachable    = "a live process hub was not reached"
	notServed      = "a node was not served"
	wrongSilo      = "a node was placed on a silo that does not handle its type"
	wrongLoad      = "a silo counts other node hubs than it has"
	falseNoSilo    = "told that no silo handles a type that one does"
	falseNoEntry   = "told not here of a live address"
	falseReleased  = "told closed of a live address"
	missedNobody   = "an address that nobody serves was not refused as such"
	twoActive      = "a node was active twice within one view"
	staticTraffic  = "a static cluster sent directory messages"
	reordered      = "messages to one address were executed out of order"
	executedTwice  = "a message was executed twice"
	staleEntry     = "an entry names a registration that is gone"
	claimOvertaken = "a claim left after its own detach"
	twoClaims      = "a claim was repeated while another of its address was in flight"
	refusedLive    = "a live registration was refused as detached"
	late           = "an answer came after its budget"
	notAnswered    = "a request had no outcome"
	staleRead      = "a silo that was put out answered with what had been overtaken"
)

// checker holds a run against what must be true.
type checker struct {
	w          *world
	violations map[string]int
	first      map[string]string
	counts     map[string]int
	running    map[string][]*nodeHub // node hubs that are active, by address
	last       map[lastKey]int       // sequence number of the last executed
	detached   map[registrationKey]bool
	rounds     map[registrationKey]round
	lost       map[string]bool // addresses whose entry was taken away on purpose
}

type lastKey struct {
	from *process
	addr string
}

type registrationKey struct {
	p    *process
	addr string
	reg  uint64
}

type round struct {
	n    uint32
	open bool
}

func newChecker(w *world) *checker {
	return &checker{w: w, violations: map[string]int{}, first: map[string]string{}, counts: map[string]int{},
		running: map[string][]*nodeHub{}, last: map[lastKey]int{}, detached: map[registrationKey]bool{}, rounds: map[registrationKey]round{}, lost: map[string]bool{}}
}

func (c *checker) bad(what, format string, args ...any) {
	c.violations[what]++
	if c.first[what] == "" {
		c.first[what] = fmt.Sprintf("t=%v: ", c.w.now) + fmt.Sprintf(format, args...)
	}
}

func (c *checker) count(what string, n int) { c.counts[what] += n }

// executed notes that a request took effect.
func (c *checker) executed(r *request) {
	if r.runs++; r.runs > 1 {
		c.bad(executedTwice, "%s from %s", r.addr, r.from.name)
	}
	k := lastKey{r.from, r.addr}
	switch {
	case r.over: // its caller has been told "lost", or has lapsed
		c.count("late effects", 1)
		if r.write {
			c.count("late effects of writes", 1)
		}
	case c.last[k] > r.seq:
		c.bad(reordered, "%s from %s: %d after %d", r.addr, r.from.name, r.seq, c.last[k])
	default:
		c.last[k] = r.seq
	}
}

// read holds what a read gives against what had been committed when it began. A silo that is in no view any
// more gives nothing old. One that is may: the last commit of its predecessor can land after it has read the
// row, and what tells it, the feed of the store, is not simulated.
func (c *checker) read(n *nodeHub, r *request) {
	t := c.w.table
	held, newest := n.version, t.versions[n.addr]
	switch {
	case held == newest || held == newest-1 && t.written[n.addr] >= r.began:
	case uint64(t.rows.Epoch(n.p.name)) == n.epoch:
		c.count("reads overtaken by a late commit of the predecessor", 1)
	default:
		c.bad(staleRead, "%s at %s, which is not in the table: version %d of %d, written at %v, asked at %v", n.addr, n.p.name, held, newest, t.written[n.addr], r.began)
	}
}

func (c *checker) finished(r *request) {
	c.count("end: "+r.end, 1)
	if c.w.now > r.until && r.from.resumed <= r.until { // a frozen process answers when it runs again
		c.bad(late, "%s: %s after %v", r.addr, r.end, c.w.now-r.began)
	}
}

func (c *checker) lapsed(r *request, l route.LaneState) {
	c.count("lapsed while "+l.State, 1)
}

// refused holds a negative answer against what is true: a live process hub that was registered before
// the question, on a silo that both the asker's views and the table have, must not be denied.
func (c *checker) refused(r *request, f cluster.Refusal) {
	if f.Reason == cluster.NoSilo {
		c.noSilo(r)
	}
	if r.node || f.Reason != cluster.NoEntry && f.Reason != cluster.Released {
		return
	}
	for _, q := range c.w.procs {
		self := q.silo.Self()
		h := q.hubs[r.addr]
		if q.dead || self == 0 || q.leaving || h == nil || h.began > r.began {
			continue
		}
		if !r.from.silo.View().Has(self) || !r.view.Has(self) || c.w.table.rows.Epoch(q.name) != self {
			continue
		}
		what := falseNoEntry
		if f.Reason == cluster.Released {
			what = falseReleased
		}
		c.bad(what, "%s asked by %s at %v: served at %s since %v", r.addr, r.from.name, r.began, q.name, h.began)
	}
}

// active notes that a node hub serves. Two of them while both silos are in the newest view is a fault.
func (c *checker) active(n *nodeHub) {
	for _, o := range c.running[n.addr] {
		if o.p.dead || o.state >= stopping {
			continue
		}
		a, b := c.w.table.rows.Epoch(n.p.name), c.w.table.rows.Epoch(o.p.name)
		inView := uint64(a) == n.epoch && uint64(b) == o.epoch && uint64(n.p.silo.Self()) == n.epoch && uint64(o.p.silo.Self()) == o.epoch
		switch {
		case !inView:
			c.count("active twice, one evicted", 1)
		case c.unsure() > 0 || c.w.table.failed:
			c.count("active twice after an unsure grant or a failover", 1)
		default:
			c.bad(twoActive, "%s at %s and %s", n.addr, o.p.name, n.p.name)
		}
	}
	c.running[n.addr] = append(c.running[n.addr], n)
}

func (c *checker) unsure() (n int64) {
	for _, p := range c.w.procs {
		n += p.silo.Owner.Counts().Unsure
	}
	return n
}

func (c *checker) inactive(n *nodeHub) {
	if i := slices.Index(c.running[n.addr], n); i >= 0 {
		c.running[n.addr] = slices.Delete(c.running[n.addr], i, i+1)
	}
}

// watcher hears of one process's claims.
type watcher struct {
	c *checker
	p *process
}

func (o watcher) Claiming(addr string, reg uint64, n uint32, _ membership.Member, again bool) {
	k := registrationKey{o.p, addr, reg}
	if o.c.detached[k] {
		o.c.bad(claimOvertaken, "%s of %s, registration %d", addr, o.p.name, reg)
	}
	if again && o.c.rounds[k].open {
		o.c.bad(twoClaims, "%s of %s: round %d while %d is under way", addr, o.p.name, n, o.c.rounds[k].n)
	}
	o.c.rounds[k] = round{n, true}
}

func (o watcher) Settled(addr string, reg uint64, n uint32, _ bool) {
	k := registrationKey{o.p, addr, reg}
	if o.c.rounds[k].n != n {
		o.c.bad(twoClaims, "%s of %s: an answer to round %d counts during %d", addr, o.p.name, n, o.c.rounds[k].n)
	}
	o.c.rounds[k] = round{n, false}
}

func (o watcher) Landed(string, uint64, membership.Member, time.Duration, bool) {
	o.c.count("claims landed", 1)
}

func (o watcher) NotLanding(addr string, reg uint64, _ membership.Member, why string) {
	o.c.count("claims that did not land at first", 1)
	if h := o.p.hubs[addr]; h != nil && h.handle.Reg() == reg && why == wire.Ended.String() {
		o.c.bad(refusedLive, "%s of %s", addr, o.p.name)
	}
}

func (o watcher) Lost(string, uint64, membership.Member) { o.c.count("lost claims made again", 1) }

func (o watcher) Detaching(addr string, reg uint64) {
	o.c.detached[registrationKey{o.p, addr, reg}] = true
}

// wrong names the first thing that is not as it should be, or "".
func (c *checker) wrong() string {
	w := c.w
	if len(w.alive()) == 0 && !c.anybodyLeaving() {
		return ""
	}
	v := w.table.rows.View()
	for _, n := range w.names {
		p := w.current[n]
		e := w.table.rows.Epoch(n)
		if p == nil || p.dead {
			if e != 0 {
				return "the dead " + n + " is in the table"
			}
			continue
		}
		if p.leaving {
			return n + " is leaving"
		}
		if p.silo.Self() == 0 || e != p.silo.Self() || p.silo.View().Key() != v.Key() {
			return fmt.Sprintf("%s has view %v, the table %v", n, p.silo.View(), v)
		}
	}
	for _, p := range w.alive() {
		if s := c.wrongClaims(p); s != "" {
			return s
		}
	}
	return ""
}

func (c *checker) anybodyLeaving() bool {
	for _, p := range c.w.current {
		if p != nil && !p.dead {
			return true
		}
	}
	return false
}

// wrongClaims names the first thing of a process that its slot owners do not know, or a slot of it that
// is not settled.
func (c *checker) wrongClaims(p *process) string {
	check := func(addr string) string {
		m, _ := p.silo.Table().OwnerOf(addr)
		e, ok := c.w.current[m.Name].silo.Owner.Entry(addr)
		if !ok && c.lost[addr] {
			return "" // comes back when somebody asks
		}
		if !ok || e.Epoch != p.silo.Self() {
			return fmt.Sprintf("%s of %s is not known at %s: %v", addr, p.name, m.Name, e)
		}
		return ""
	}
	for _, a := range p.sortedHubs() {
		if s := check(a); s != "" {
			return s
		}
	}
	for _, n := range p.sortedNodes() {
		if n.state < stopping {
			if s := check(n.addr); s != "" {
				return s
			}
		}
	}
	for i := range c.w.slots {
		if st := p.silo.Owner.Slot(i); st.Owned && !st.Settled {
			return fmt.Sprintf("slot %d of %s is unsettled and waits for %v", i, p.name, st.Waiting)
		}
	}
	return ""
}

// entries holds every entry against what is served.
func (c *checker) entries() {
	for _, p := range c.w.alive() {
		for a, e := range p.silo.Owner.Entries {
			if !c.serves(a, e) {
				c.bad(staleEntry, "%s: %v at %s", a, e, p.name)
			}
		}
	}
}

func (c *checker) serves(addr string, e wire.Entry) bool {
	for _, q := range c.w.procs {
		if q.dead || q.silo.Self() != e.Epoch {
			continue
		}
		if h := q.hubs[addr]; h != nil && h.handle.Reg() == e.Reg {
			return true
		}
		if n := q.nodes[addr]; n != nil && n.reg == e.Reg && n.state < stopped {
			return true
		}
		if q.silo.Claims.Claims(addr) {
			return true // granted, and the word of it is on its way
		}
	}
	return false
}
