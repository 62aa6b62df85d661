package cluster

import (
	"fmt"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/directory"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// Placement sizes where node hubs are placed (decision 3).
type Placement struct {
	// Bound is how long the chosen silo is waited for, its claim included, and never more than half of what is
	// left of the request: another silo can then still be asked.
	Bound time.Duration
	// A silo is much more loaded than another that serves L node hubs when it serves more than Factor·L, and at
	// least Margin more.
	Factor, Margin int

	Look   time.Duration // how often a silo compares itself with the others
	Steady int           // how many looks in a row must find it much more loaded before it hands over
	Batch  int           // node hubs that are handed over at a look
	Pause  time.Duration // from the end of one hand-over to the next
}

// DefaultPlacement leaves small clusters placed by their callers: a silo with fewer than 256 node hubs is never
// much more loaded.
func DefaultPlacement() Placement {
	return Placement{Bound: 500 * time.Millisecond, Factor: 2, Margin: 256,
		Look: time.Second, Steady: 5, Batch: 100, Pause: time.Minute}
}

// Much tells whether a silo with load node hubs is much more loaded than one with least.
func (p Placement) Much(load, least int) bool {
	return load > p.Factor*least && load-least >= p.Margin
}

// Excess is how many node hubs have to move from a silo with load node hubs to one with least until it is not
// much more loaded any more.
func (p Placement) Excess(load, least int) int {
	if !p.Much(load, least) {
		return 0
	}
	byFactor := (load - p.Factor*least + p.Factor) / (p.Factor + 1)
	byMargin := (load-least-p.Margin)/2 + 1
	return min(byFactor, byMargin)
}

// Judge is what a silo thinks of the others: [membership.Detector].
type Judge interface {
	// Suspected tells whether a peer does not answer.
	Suspected(e membership.Epoch) bool
	// Load is how many node hubs a peer serves; false where that is not known.
	Load(e membership.Epoch) (int, bool)
	// Placed notes that a node hub was placed at a peer.
	Placed(e membership.Epoch)
}

// stranger knows nobody.
type stranger struct{}

func (stranger) Suspected(membership.Epoch) bool   { return false }
func (stranger) Load(membership.Epoch) (int, bool) { return 0, false }
func (stranger) Placed(membership.Epoch)           {}

// Placements are sums since the start of node hubs that were placed on another silo than their caller's, by
// reason, and of what became of that.
type Placements struct {
	ByType     int64 // this silo does not handle the type
	ByLoad     int64 // this silo is much more loaded
	ByLeaving  int64 // this silo is leaving
	Failed     int64 // the chosen silo refused or did not answer: another was asked
	NoSilo     int64 // no silo handles the type
	Taken      int64 // other silos chose this one
	HandedOver int64 // ended here because this silo is much more loaded
}

// placing is the part of a resolution that places a node hub.
type placing struct {
	nobody   bool   // the slot owner has said that nobody serves it
	read     bool   // the row was looked at
	exists   bool   // and is there
	nodeType string // with exists
	tried    []membership.Epoch
	missing  []string // names of those tried that did not serve it
	why      string   // what the last of them said
}

func (p *placing) was(e membership.Epoch) bool {
	for _, t := range p.tried {
		if t == e {
			return true
		}
	}
	return false
}

// place has a node that nobody serves claimed: by this silo, unless it is much more loaded than another,
// does not handle the type, or leaves. Whoever is chosen claims it as for a caller of its own, so a choice that
// is wrong, late or made twice costs a detour and never a second activation.
func (k *Core) place(r *resolving) {
	switch {
	case r.Placed && k.leaving:
		r.refuse(Stopping, k.name(), wire.WhyLeaving)
		return
	case r.Placed, !k.typed && !k.leaving && k.host.Load() < k.config.Placement.Margin:
		k.activate(r)
		return
	case k.leaving && !r.nobody:
		k.lookup(r)
		return
	}
	if !r.read {
		if to, _ := k.choose(r); !k.typed && to.Epoch == k.self {
			k.activate(r)
			return
		}
		r.read = true
		k.host.TypeOf(r.Addr, func(nodeType string, ok bool) {
			r.nodeType, r.exists = nodeType, ok
			k.step(r)
		})
		return
	}
	if !r.exists && !k.leaving {
		// Whoever looks for it says why it can not be started.
		k.activate(r)
		return
	}
	to, why := k.choose(r)
	switch {
	case !r.exists:
		k.unplaced(r, Stopping)
	case to.Epoch == k.self:
		k.activate(r)
	case to.Epoch != 0:
		k.placeAt(r, to)
	default:
		k.unplaced(r, why)
	}
}

// unplaced ends or repeats a resolution for which no silo is left.
func (k *Core) unplaced(r *resolving, why Reason) {
	switch {
	case len(r.tried) == 0 && !r.nobody:
		k.lookup(r) // one that is served already needs no place
	case len(r.tried) > 0:
		missing := r.missing
		r.tried, r.missing = nil, nil
		k.again(r, 10*time.Millisecond<<min(r.tries, 5), Unknown, "no silo took it: "+r.why, missing...)
	case why == NoSilo && k.typed:
		k.counts.Placements.NoSilo++
		r.refuse(NoSilo, k.name(), fmt.Sprintf("no silo handles nodes of type '%s'", r.nodeType))
	case k.leaving:
		r.nobody = false
		k.again(r, time.Millisecond, Stopping, "nobody serves it, and this silo is leaving")
	default:
		r.refuse(Unknown, k.name(), fmt.Sprintf("the silos that handle nodes of type '%s' do not answer", r.nodeType), k.suspected(r)...)
	}
}

// choose returns the silo that is to serve a node, or none and whether that is for want of one that handles
// its type. Among several it is the same for all who choose.
func (k *Core) choose(r *resolving) (to membership.Member, why Reason) {
	p, own := k.config.Placement, false
	least, why := -1, NoSilo
	usable := func(m membership.Member) bool {
		return m.Epoch != k.self && k.handles(m, r) && !k.judge.Suspected(m.Epoch) && !r.was(m.Epoch)
	}
	for _, m := range k.view.Members() {
		if k.handles(m, r) {
			own, why = own || m.Epoch == k.self, Unknown
		}
		if load, known := k.judge.Load(m.Epoch); known && usable(m) && (least < 0 || load < least) {
			least = load
		}
	}
	if own && (least < 0 || !p.Much(k.host.Load(), least)) {
		m, _ := k.view.Member(k.self)
		return m, 0
	}
	var best uint64
	for _, m := range k.view.Members() {
		if !usable(m) {
			continue
		}
		if load, known := k.judge.Load(m.Epoch); least >= 0 && (!known || p.Much(load, least)) {
			continue
		}
		if rank := directory.Rank(m.Name, r.Addr); to.Epoch == 0 || rank > best {
			to, best = m, rank
		}
	}
	return to, why
}

// handles tells whether a member may serve the node of a resolution.
func (k *Core) handles(m membership.Member, r *resolving) bool {
	return !m.Leaving && (!r.exists || m.Handles(r.nodeType))
}

// suspected names the members that could serve the node if they answered.
func (k *Core) suspected(r *resolving) (names []string) {
	for _, m := range k.view.Members() {
		if k.handles(m, r) && m.Epoch != k.self {
			names = append(names, m.Name)
		}
	}
	return names
}

// placeAt asks another silo to serve a node.
func (k *Core) placeAt(r *resolving, to membership.Member) {
	now := k.clock.Now()
	bound := min(k.config.Placement.Bound, (r.Until-now)/2)
	if bound <= 0 {
		r.refuse(Unknown, k.name(), "too little time is left to place it")
		return
	}
	self, _ := k.view.Member(k.self)
	switch {
	case k.leaving:
		k.counts.Placements.ByLeaving++
	case !k.handles(self, r):
		k.counts.Placements.ByType++
	default:
		k.counts.Placements.ByLoad++
	}
	k.judge.Placed(to.Epoch)
	r.tried = append(r.tried, to.Epoch)
	k.Ask(to, wire.Place{Head: wire.Head{From: k.self, To: to.Epoch, Key: k.view.Key()}, Addr: r.Addr}, bound, func(a wire.Answer, err error) {
		if k.self == 0 {
			r.refuse(Starting, k.name(), "this silo was put out of the cluster and joins anew")
			return
		}
		why := "no answer"
		switch a := a.(type) {
		case wire.Hit:
			k.got(r, a.Entry)
			return
		case wire.Unknown:
			why = a.Why
		case wire.WrongEpoch:
			k.Saw(to, a.Key)
			why = "it has started anew"
		default:
			if err != nil {
				why = err.Error()
			}
		}
		k.counts.Placements.Failed++
		r.why, r.missing = to.Name+": "+why, append(r.missing, to.Name)
		k.step(r)
	})
}

// placed serves a node that another silo has placed here, or says who serves it, or why not.
func (k *Core) placed(m wire.Place, answer func(wire.Answer)) {
	k.counts.Placements.Taken++
	q := Question{Addr: m.Addr, Node: true, Placed: true, Until: k.clock.Now() + k.config.Placement.Bound}
	k.Resolve(q, func(r Resolution) {
		if r.Entry == nil {
			answer(wire.Unknown{Why: r.Refusal.Detail, Missing: r.Refusal.Missing})
			return
		}
		answer(wire.Hit{Entry: *r.Entry})
	})
}

// shedding is where a silo stands that may be much more loaded than others.
type shedding struct {
	looks int           // in a row that found it much more loaded
	busy  bool          // the host looks for what it can end
	quota int           // what is left of the present hand-over
	rest  time.Duration // no other begins before
}

// Surplus is how many node hubs this silo is to hand over now; after an answer but 0, [Core.HandedOver] is to be
// called. It is asked once a [Placement.Look]. A hand-over
// begins when the silo has been much more loaded for some looks, moves no more than takes it out of that, and
// is followed by a pause: what it moved shows up elsewhere only when somebody asks for it.
func (k *Core) Surplus() int {
	p, s := k.config.Placement, &k.shed
	own, least := k.host.Load(), k.leastLike()
	if k.self == 0 || k.leaving || least < 0 || !p.Much(own, least) {
		s.looks, s.quota = 0, 0
		return 0
	}
	if s.busy {
		return 0
	}
	if s.quota == 0 {
		if s.looks++; s.looks < p.Steady || k.clock.Now() < s.rest {
			return 0
		}
		s.quota = p.Excess(own, least)
	}
	s.busy = true
	return min(p.Batch, s.quota)
}

// HandedOver notes how many node hubs have ended on account of [Core.Surplus].
func (k *Core) HandedOver(n int) {
	s := &k.shed
	s.busy = false
	k.counts.Placements.HandedOver += int64(n)
	if s.quota = max(0, s.quota-n); s.quota == 0 {
		s.looks, s.rest = 0, k.clock.Now()+k.config.Placement.Pause
	}
}

// leastLike is the least load among the silos that handle every type that this one does; -1 for none. What
// only this silo can serve would come back to it.
func (k *Core) leastLike() int {
	self, least := membership.Member{}, -1
	if m, ok := k.view.Member(k.self); ok {
		self = m
	}
	for _, m := range k.view.Members() {
		if m.Epoch == k.self || m.Leaving || !covers(m, self) {
			continue
		}
		if load, known := k.judge.Load(m.Epoch); known && (least < 0 || load < least) {
			least = load
		}
	}
	return least
}

// covers tells whether m handles every type that o does.
func covers(m, o membership.Member) bool {
	if m.Types == nil || o.Types == nil {
		return m.Types == nil
	}
	for _, t := range o.Types {
		if !m.Handles(t) {
			return false
		}
	}
	return true
}
