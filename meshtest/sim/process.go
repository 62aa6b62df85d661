package sim

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/claim"
	"github.com/hubmesh/hubmesh/internal/cluster/directory"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/route"
)

// process is one silo: the product's own, over the simulated network, with model hubs above.
type process struct {
	w       *world
	name    string
	addr    string
	id      int
	me      membership.Member
	ballast int             // beyond its node hubs, when silos are compared
	unread  map[string]bool // nodes whose type could not be read last
	dead    bool
	leaving bool
	paused  time.Duration // until
	resumed time.Duration // when it last was

	mem    *transport.Memory
	silo   *cluster.Silo
	hubs   map[string]*processHub
	nodes  map[string]*nodeHub
	parked map[string][]*arrival
	lanes  map[string]*route.Lane[*request]
	lane   uint64
	fences route.Fences
	seqs   map[string]int
	view   *membership.View
	epoch  membership.Epoch
}

// processHub is a hub that this process has registered.
type processHub struct {
	handle *claim.Handle
	began  time.Duration
}

// clock is a process's turn: everything that happens to a process happens one after the other.
type clock struct{ p *process }

func (c clock) Now() time.Duration { return c.p.w.now }
func (c clock) After(d time.Duration, f func()) (stop func()) {
	return c.p.w.after(d, c.p, f)
}

// threads lets a goroutine do something on the turn: a moment later, because it may be preempted.
type threads struct{ p *process }

func (t threads) Do(f func()) {
	w := t.p.w
	if w.procRand.IntN(4) > 0 {
		f()
		return
	}
	w.after(between(w.procRand, 10*time.Microsecond, 5*time.Millisecond), t.p, f)
}

// network counts and traces what a process sends.
type network struct {
	*transport.Memory
	p *process
}

func (n network) Call(to transport.Peer, r transport.Request, done func(transport.Answer)) {
	if r.Class == transport.Control {
		n.p.w.sent[r.Kind]++
	}
	n.p.w.trace.message(n.p, to, r, nil)
	n.Memory.Call(to, r, done)
}

// handler traces what a process answers.
type handler struct{ p *process }

func (h handler) Handle(from transport.Peer, r transport.Request, reply func([]byte)) {
	if h.p.w.trace != nil {
		r.Body = bytes.Clone(r.Body) // it is its sender's again when the answer comes
	}
	h.p.silo.Handle(from, r, func(body []byte) {
		h.p.w.trace.message(h.p, from, r, body)
		reply(body)
	})
}

func (h handler) Accepted(from transport.Peer)          { h.p.silo.Accepted(from) }
func (h handler) Broken(to transport.Peer, cause error) { h.p.silo.Broken(to, cause) }

func (w *world) start(name string) *process {
	p := &process{w: w, name: name, addr: name + ":1", id: len(w.procs), hubs: map[string]*processHub{}, nodes: map[string]*nodeHub{},
		parked: map[string][]*arrival{}, lanes: map[string]*route.Lane[*request]{}, seqs: map[string]int{}, unread: map[string]bool{}}
	p.me = membership.Member{Name: name, Addr: p.addr, Types: w.place.types()}
	p.ballast = w.place.ballast()
	w.procs = append(w.procs, p)
	w.current[name] = p
	p.mem = w.net.Join(transport.Peer{Name: name, Addr: p.addr}, handler{p})
	p.silo = cluster.NewSilo(cluster.Parts{
		Clock: clock{p}, Do: func(f func()) { f() }, Table: client{w.table, p}, Host: p, Watch: watcher{w.check, p}, Deliver: p,
		Rand: rand.New(rand.NewPCG(w.opts.Seed, uint64(1000+p.id))), Log: slog.New(slog.DiscardHandler),
		Me: p.me, Config: config(w.opts, w.slots), Pace: membership.DefaultPace(), Timing: membership.DefaultTiming(),
	})
	p.silo.Use(network{p.mem, p})
	w.after(between(w.procRand, time.Millisecond, 50*time.Millisecond), p, p.silo.Start)
	for i := range 3 {
		p.register(fmt.Sprintf("mesh/%d-%d", p.id, i))
	}
	return p
}

func config(o Options, n int) cluster.Config {
	c := cluster.Defaults()
	c.Directory.Slots, c.Claims.Slots = n, n
	c.Placement = sizes(c.Placement)
	if o.NoUnsure {
		c.Directory.UnsureAfter = 0
	}
	return c
}

// crash ends a process without a word.
func (p *process) crash() {
	if p.dead {
		return
	}
	p.dead = true
	for _, n := range p.sortedNodes() {
		p.w.check.inactive(n)
	}
	p.w.net.Crash(p.name)
}

// leave takes a process out of the cluster in order.
func (p *process) leave() {
	if p.leaving || p.dead || p.silo.Member.Phase() != membership.Up {
		return
	}
	p.leaving = true
	p.silo.Member.Leave(func(v *membership.View) {
		p.silo.Apply(v)
		for _, n := range p.sortedNodes() {
			n.stop()
		}
		for _, a := range p.sortedHubs() {
			p.dispose(a)
		}
		p.w.after(500*time.Millisecond, p, func() {
			p.silo.Member.Gone(func(error) { p.crash() })
		})
	})
}

func (p *process) sortedHubs() []string {
	out := make([]string, 0, len(p.hubs))
	for a := range p.hubs {
		out = append(out, a)
	}
	slices.Sort(out)
	return out
}

func (p *process) sortedNodes() []*nodeHub {
	keys := make([]string, 0, len(p.nodes))
	for a := range p.nodes {
		keys = append(keys, a)
	}
	slices.Sort(keys)
	out := make([]*nodeHub, len(keys))
	for i, k := range keys {
		out[i] = p.nodes[k]
	}
	return out
}

// register starts a process hub: the local route first, then the claim.
func (p *process) register(addr string) {
	if p.hubs[addr] != nil || p.leaving {
		return
	}
	h := &processHub{handle: p.silo.Claims.Handle(threads{p}, addr), began: p.w.now}
	p.hubs[addr] = h
	p.w.trace.about(p, addr, "registered as %d", h.handle.Reg())
	h.handle.Attach()
}

// dispose ends a process hub: the local route first, then the detach.
func (p *process) dispose(addr string) {
	if h := p.hubs[addr]; h != nil {
		delete(p.hubs, addr)
		p.w.trace.about(p, addr, "disposed %d", h.handle.Reg())
		h.handle.Dispose()
	}
}

// Serving implements claim.Host.
func (p *process) Serving(addr string) (uint64, bool) {
	if h := p.hubs[addr]; h != nil {
		return h.handle.Reg(), true
	}
	return 0, false
}

// Stopping implements cluster.Host.
func (p *process) Stopping(addr string) bool {
	n := p.nodes[addr]
	return n != nil && n.state >= stopping
}

// Granted implements claim.Host.
func (p *process) Granted(addr string, reg uint64) { p.startNode(addr, reg) }

// StepAside implements claim.Host.
func (p *process) StepAside(addr string, reg uint64) {
	if n := p.nodes[addr]; n != nil && n.reg == reg {
		n.stepAside()
	}
}

// Evicted implements cluster.Host.
func (p *process) Evicted() {
	for _, n := range p.sortedNodes() {
		n.kill()
	}
}

// Applied implements cluster.Host.
func (p *process) Applied(v *membership.View) {
	p.view = v
	if p.w.trace != nil {
		owner, _ := p.silo.Table().OwnerOf(p.w.trace.addr)
		p.w.trace.note(p, "view %v, its slot is with %s", v, owner.Name)
	}
	if self := p.silo.Self(); self != p.epoch {
		p.epoch = self
		if self != 0 && !p.w.resting() {
			p.w.joined(p)
		}
	}
}

func (p *process) slotOf(addr string) int { return directory.SlotOf(addr, p.w.slots) }
