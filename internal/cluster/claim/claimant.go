package claim

import (
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/directory"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/turn"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// Host is the process whose addresses are claimed.
type Host interface {
	// Serving returns the registration under which a process hub is served here: the local route,
	// which is written before the first claim.
	Serving(addr string) (reg uint64, ok bool)
	// Granted says that this silo now serves a node: its hub is to be started, or
	// [Claimant.Ended] called. Deliveries that come in find the grant from here on.
	Granted(addr string, reg uint64)
	// StepAside says that another incarnation holds a node hub that this silo serves: it must stop,
	// and its callers try again.
	StepAside(addr string, reg uint64)
}

// Observer is told what becomes of claims, on the turn. Each call is one event of one registration.
type Observer interface {
	// Claiming: a claim of a registration leaves for an owner, in a round of its own. again says that
	// it repeats a round that has failed; otherwise a trigger replaces whatever round was under way.
	Claiming(addr string, reg uint64, round uint32, owner membership.Member, again bool)
	// Settled: the round is over, landed or not; an older round never is, it was replaced.
	Settled(addr string, reg uint64, round uint32, landed bool)
	// Detaching: the end of a registration leaves for an owner.
	Detaching(addr string, reg uint64)
	// Landed: the first landing of a registration, how long after it began, and whether its initial
	// budget had been exhausted.
	Landed(addr string, reg uint64, owner membership.Member, after time.Duration, late bool)
	// NotLanding: a claim has not landed within its initial budget. It is told once until it lands.
	NotLanding(addr string, reg uint64, owner membership.Member, why string)
	// Lost: the slot owner no longer had a claim that it had acknowledged; asking has made it again.
	Lost(addr string, reg uint64, owner membership.Member)
}

// Config sizes the claims.
type Config struct {
	Slots         int
	Gather        time.Duration // how long claims and detaches are gathered into batches
	Bound         time.Duration // an owner's answer to a batch
	RetryFirst    time.Duration // before the first repetition; doubled at each
	RetryCap      time.Duration
	InitialTries  int           // attempts after which a claim that does not land is reported
	ConnectionLag time.Duration // from a peer's new connection to the claims in its slots
	Batch         int           // items of a batch, beyond which the next slot begins another
	ClosedFor     time.Duration // how long a released process address is remembered here
	Closed        int           // how many are
	GrantFirst    time.Duration // before the first repetition of a node hub's first claim
	GrantCap      time.Duration
	GrantOthers   time.Duration // silence of the slot's owner after which the others are asked who serves the node
	GrantTries    int           // repetitions after which a node hub's first claim is given up
}

// Defaults returns the sizes of protocol.md §7.
func Defaults() Config {
	return Config{
		Slots: directory.DefaultSlots, Gather: time.Millisecond, Bound: 2 * time.Second,
		RetryFirst: 100 * time.Millisecond, RetryCap: 2 * time.Second, InitialTries: 6,
		ConnectionLag: 30 * time.Millisecond, Batch: 1000, ClosedFor: 10 * time.Minute, Closed: 65_536,
		GrantFirst: 5 * time.Millisecond, GrantCap: 500 * time.Millisecond, GrantOthers: 200 * time.Millisecond, GrantTries: 10,
	}
}

// Claimant is the registrations of one silo. Every method runs on the turn unless it says otherwise.
//
// A process hub is claimed until its handle is disposed of, however often that fails. A node hub is claimed
// first for its grant ([Claimant.Activate]), then like a process hub until it has ended, or another incarnation
// holds it.
//
// A grant counts only from the present owner of the slot, with a view as new as this silo's: an owner that is a
// view behind may still lose the slot and regain it without the entry. It is asked for again while the owner
// can not say, every third time with a question to everybody besides, which ends it where somebody serves the
// node. After [Config.GrantTries] repetitions the claim is given up: its end is told to the owner, which may
// have granted it, and who waits is told why.
//
// With an eviction the silo has no epoch and nothing is claimed: grants and node hubs are forgotten, process hubs
// stay registered and are claimed with the next view.
type Claimant struct {
	clock  turn.Clock
	peers  directory.Peers
	host   Host
	watch  Observer
	config Config

	view  *membership.View
	table *directory.Table
	self  membership.Epoch // 0: in no view, nothing is claimed
	ended bool             // the silo stops: nothing leaves any more

	counter atomic.Uint64
	regs    map[string]*registration
	nodes   int               // of them: node hubs, granted or claiming
	slots   [][]*registration // the same by slot, in an order that only what happens determines
	fresh   []*registration   // their first claim waits for the next batch
	over    []wire.DetachItem // detaches that wait for the next batch
	armed   bool
	lines   map[membership.Epoch]*line
	closed  closedList
}

// line is the re-assertions to one peer on account of its connections: one under way, one pending.
type line struct{ due, again, busy bool }

// registration is one address that this silo serves or claims.
type registration struct {
	addr   string
	reg    uint64
	began  time.Duration
	slot   int32
	index  int32 // in slots[slot]
	round  uint32
	landed membership.Epoch // the owner that acknowledged the round; 0: none
	tries  uint8            // failed attempts since it last landed
	state  state
	open   bool // a round is under way
	told   bool // that it does not land
	seen   bool // it has landed before
	// entered: a handle has been attached; a second time has no effect
	entered bool
	grant   *grant
}

type state uint8

const (
	process  state = iota // a process hub
	claiming              // a node hub whose grant is under way
	granted               // a node hub that is served here
	gone                  // disposed, or stepped aside
)

func (r *registration) node() bool {
	return r.state == claiming || r.state == granted || r.grant != nil
}

// New returns a claimant without registrations and without a view.
func New(c turn.Clock, p directory.Peers, h Host, o Observer, cfg Config) *Claimant {
	return &Claimant{clock: c, peers: p, host: h, watch: o, config: cfg, regs: map[string]*registration{},
		slots: make([][]*registration, cfg.Slots), lines: map[membership.Epoch]*line{}, closed: newClosedList(cfg.Closed)}
}

// Len is the number of registrations.
func (c *Claimant) Len() int { return len(c.regs) }

// Nodes is the number of node hubs that are served here, or whose grant is under way.
func (c *Claimant) Nodes() int { return c.nodes }

// Landed tells how many registrations have been acknowledged by the present owner of their slot. All
// of them means that this silo's claims are in.
func (c *Claimant) Landed() int {
	n := 0
	for _, r := range c.regs {
		if m, ok := c.table.Owner(int(r.slot)); ok && r.landed == m.Epoch {
			n++
		}
	}
	return n
}

// Counts are the registrations by state.
type Counts struct {
	Processes       int `json:"processes"`       // process hubs
	ProcessesLanded int `json:"processesLanded"` // of these, acknowledged by the present owner of their slot
	Claiming        int `json:"claiming"`        // node hubs whose grant is under way
	Granted         int `json:"granted"`         // node hubs that are served here
	GrantedLanded   int `json:"grantedLanded"`   // of these, acknowledged by the present owner of their slot
}

// Counts counts the registrations.
func (c *Claimant) Counts() (n Counts) {
	for _, r := range c.regs {
		landed := 0
		if m, ok := c.table.Owner(int(r.slot)); ok && r.landed == m.Epoch {
			landed = 1
		}
		switch r.state {
		case process:
			n.Processes++
			n.ProcessesLanded += landed
		case claiming:
			n.Claiming++
		case granted:
			n.Granted++
			n.GrantedLanded += landed
		}
	}
	return n
}

// State describes one registration, for diagnosis.
type State struct {
	Reg    uint64           `json:"registration"`
	Node   bool             `json:"node"`
	Phase  string           `json:"phase"` // "process", "claiming", "granted"
	Round  uint32           `json:"round"`
	Landed membership.Epoch `json:"-"`      // as Owner
	Owner  string           `json:"landed"` // the slot owner that has acknowledged it; "" where none has
	Tries  int              `json:"tries"`  // failed attempts since it last landed
}

// State returns the registration of an address.
func (c *Claimant) State(addr string) (State, bool) {
	r := c.regs[addr]
	if r == nil {
		return State{}, false
	}
	s := State{Reg: r.reg, Node: r.node(), Phase: [...]string{"process", "claiming", "granted", "gone"}[r.state],
		Round: r.round, Landed: r.landed, Tries: int(r.tries)}
	if r.landed != 0 {
		s.Owner = r.landed.String()
	}
	return s, true
}

// add enters a registration; what was registered at the address before is superseded by it.
func (c *Claimant) add(r *registration) {
	if old := c.regs[r.addr]; old != nil {
		c.remove(old)
	}
	r.began = c.clock.Now()
	r.slot = int32(directory.SlotOf(r.addr, c.config.Slots))
	r.index = int32(len(c.slots[r.slot]))
	c.slots[r.slot] = append(c.slots[r.slot], r)
	c.regs[r.addr] = r
	if r.grant != nil {
		c.nodes++
	}
}

func (c *Claimant) remove(r *registration) {
	r.state = gone
	if c.regs[r.addr] != r {
		return
	}
	delete(c.regs, r.addr)
	if r.grant != nil {
		c.nodes--
	}
	list := c.slots[r.slot]
	last := list[len(list)-1]
	list[r.index], last.index = last, r.index
	list[len(list)-1] = nil
	c.slots[r.slot] = list[:len(list)-1]
}

// Apply makes a newer view count: every registration is claimed at the owner that the view gives it, in
// one batch to each owner, even an empty one, with the mark that the batch is complete.
func (c *Claimant) Apply(v *membership.View, t *directory.Table, self membership.Epoch) {
	c.view, c.table, c.self = v, t, self
	for e := range c.lines {
		if !v.Has(e) {
			delete(c.lines, e)
		}
	}
	c.fresh = nil // all of them are in the batches below
	c.regrant()
	for _, m := range v.Members() {
		c.assert(m, nil)
	}
}

// Evict stops claiming: this silo is in no view any more. Process hubs stay registered and are claimed
// again with the next view; node hubs are forgotten, whoever serves them must stop them.
func (c *Claimant) Evict() {
	c.self, c.view, c.table = 0, nil, nil
	clear(c.lines)
	c.over = nil
	for _, list := range c.slots {
		for i := len(list) - 1; i >= 0; i-- {
			r := list[i]
			r.round++ // answers that are still under way belong to a life that is over
			r.landed = 0
			if r.state != process {
				c.remove(r)
				r.grant.end(Outcome{Why: WhyEvicted})
			}
		}
	}
}

// Stop ends claiming for good: after it neither attach nor detach is issued (C17).
func (c *Claimant) Stop() { c.ended = true }

// Accepted notes that a peer has opened a new connection to this silo. What it may have lost while it
// was cut off or frozen is claimed again: its slots, a moment later, one batch under way and one pending.
func (c *Claimant) Accepted(from membership.Epoch) {
	if c.self == 0 || c.ended || !c.view.Has(from) {
		return
	}
	ln := c.lines[from]
	if ln == nil {
		ln = &line{}
		c.lines[from] = ln
	}
	if ln.busy {
		ln.again = true
		return
	}
	c.arm(from, ln)
}

func (c *Claimant) arm(to membership.Epoch, ln *line) {
	if ln.due {
		return
	}
	ln.due = true
	c.clock.After(c.config.ConnectionLag, func() {
		ln.due = false
		m, ok := c.view.Member(to)
		if !ok || c.lines[to] != ln || c.ended {
			return
		}
		ln.busy = true
		c.assert(m, func() {
			ln.busy = false
			if ln.again && c.lines[to] == ln {
				ln.again = false
				c.arm(to, ln)
			}
		})
	})
}

// Locate says what this silo knows of an address, to a member that asks everybody.
func (c *Claimant) Locate(from membership.Epoch, it wire.LocateItem) wire.LocatedItem {
	if it.Exclusive {
		if m, ok := c.table.Owner(it.Slot); !ok || m.Epoch != from || c.view.Key().Before(it.Acquired) {
			return wire.LocatedItem{Status: wire.NotYours}
		}
	}
	r := c.regs[it.Addr]
	switch {
	case r != nil && r.state == granted:
		return wire.LocatedItem{Status: wire.Serving, Reg: r.reg, Node: true}
	case r != nil && r.state == claiming:
		return wire.LocatedItem{Status: wire.Claiming, Reg: r.reg, Node: true}
	}
	if reg, ok := c.host.Serving(it.Addr); ok {
		return wire.LocatedItem{Status: wire.Serving, Reg: reg}
	}
	if age, ok := c.closed.age(it.Addr, c.clock.Now()); ok {
		return wire.LocatedItem{Status: wire.ClosedHere, Age: age}
	}
	return wire.LocatedItem{Status: wire.None}
}

// Restored notes that the slot owner had lost a claim, and has it again by asking. Only a claim that it
// had acknowledged, with none under way, was lost.
func (c *Claimant) Restored(m wire.Restored) {
	r := c.regs[m.Addr]
	if r == nil || r.reg != m.Reg || r.open || r.landed != m.From {
		return
	}
	if owner, ok := c.table.Owner(int(r.slot)); ok && owner.Epoch == m.From {
		c.watch.Lost(r.addr, r.reg, owner)
	}
}

// SlotQuery lists everything that this silo serves in the slots that the asker has gained, for those
// that this silo's own view gives it as well.
func (c *Claimant) SlotQuery(m wire.SlotQuery) wire.Answer {
	a := wire.SlotIs{Key: c.view.Key(), Slots: wire.NewSlots(c.config.Slots)}
	for _, g := range m.Slots {
		if o, ok := c.table.Owner(g.Slot); !ok || o.Epoch != m.From || c.view.Key().Before(g.Acquired) {
			continue
		}
		a.Slots.Add(g.Slot)
		for _, r := range c.slots[g.Slot] {
			if r.state != claiming {
				a.Items = append(a.Items, wire.ClaimItem{Addr: r.addr, Reg: r.reg, Node: r.node(), Phase: wire.Kept})
			}
		}
	}
	return a
}
