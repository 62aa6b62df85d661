package cluster

import (
	"slices"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/cluster/claim"
	"github.com/hubmesh/hubmesh/internal/cluster/directory"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/turn"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// Caller sends requests to other silos.
type Caller interface {
	// Call sends m to one incarnation of a silo. done is called on the turn, once, never before Call
	// has returned and no later than within, with the answer or with why there is none.
	Call(to membership.Member, m wire.Request, within time.Duration, done func(wire.Answer, error))
}

// Host is the process whose hubs this silo makes reachable. Its methods are called on the turn and must
// not block.
type Host interface {
	claim.Host
	// Stopping tells whether a node hub is on its way down here: it takes nothing more, and its
	// registration has not ended yet.
	Stopping(addr string) bool
	// Load is how many node hubs this silo counts as serving, when silos are compared.
	Load() int
	// TypeOf finds the type of a node, for its placement; ok is false where there is no such node, or it could not
	// be read. done is called once, on the turn, never before TypeOf has returned.
	TypeOf(addr string, done func(nodeType string, ok bool))
	// HandOver asks for the end of up to n node hubs that are not used, the longest unused first: their next
	// callers place them elsewhere. done is called once, on the turn, perhaps before HandOver returns, with how many
	// have ended.
	HandOver(n int, done func(ended int))
	// Evicted says that this silo is in no view any more: every node hub is to be killed at once.
	Evicted()
	// Applied says that a newer view counts.
	Applied(v *membership.View)
}

// Config sizes a silo's part of the cluster.
type Config struct {
	Directory    directory.Config
	Claims       claim.Config
	LookupBound  time.Duration // the slot owner's answer to a lookup, its locate included
	ViewBound    time.Duration // a peer's answer to an exchange of views
	ResolveTries int           // how often a resolution asks again, inside its budget
	Cache        int           // remembered answers; beyond it any one goes
	Placement    Placement
	Observe      time.Duration // another silo's answer to what it has observed: the bound "observe"
}

// Defaults returns the sizes of protocol.md §7.
func Defaults() Config {
	bounds := budget.Defaults()
	return Config{Observe: bounds.Own(budget.Observe), Directory: directory.Defaults(), Claims: claim.Defaults(), LookupBound: 2 * time.Second,
		ViewBound: 500 * time.Millisecond, ResolveTries: 12, Cache: 262_144, Placement: DefaultPlacement()}
}

// Core is one silo's view, slots, claims and resolution, stepped on one turn. It has no goroutine, no
// lock and no clock of its own.
type Core struct {
	clock  turn.Clock
	caller Caller
	host   Host
	config Config

	self    membership.Epoch // 0: in no view
	leaving bool
	view    *membership.View
	typed   bool // some member of the view handles listed types only
	table   *directory.Table

	Locator *directory.Locator
	Owner   *directory.Owner
	Claims  *claim.Claimant

	judge   Judge
	shed    shedding
	cache   map[string]wire.Entry
	getting bool // a view is being fetched from a peer
	pushing map[membership.Epoch]*push
	counts  Counts
	explain func(addr string) wire.Answer
	follow  func(addrs []string, answer func(wire.Answer))
}

// push is a view on its way to one peer. There is one at a time for each.
type push struct {
	key  membership.Key // of the view that was sent
	more bool           // the peer was seen behind a view that is newer still
}

// Counts are sums since the start.
type Counts struct {
	Views          int64 `json:"views"`
	ViewsFetched   int64 `json:"viewsFetched"`
	ViewsPushed    int64 `json:"viewsPushed"`
	Resolutions    int64 `json:"resolutions"`
	FromCache      int64 `json:"fromCache"`
	AskedEverybody int64 `json:"askedEverybody"` // resolutions whose slot owner could not say

	Placements Placements `json:"-"` // they are told by themselves
}

// New returns a core that is in no view.
func New(c turn.Clock, caller Caller, host Host, watch claim.Observer, cfg Config) *Core {
	k := &Core{clock: c, caller: caller, host: host, config: cfg, judge: stranger{}, cache: map[string]wire.Entry{}, pushing: map[membership.Epoch]*push{}}
	k.Locator = directory.NewLocator(c, k, cfg.Directory)
	k.Owner = directory.NewOwner(c, k, k.Locator, cfg.Directory)
	k.Claims = claim.New(c, k, host, watch, cfg.Claims)
	k.explain = func(string) wire.Answer { return wire.Explained{} }
	k.follow = func(_ []string, answer func(wire.Answer)) { answer(wire.OK{}) }
	return k
}

// Self is this silo's epoch, 0 while it is in no view.
func (k *Core) Self() membership.Epoch { return k.self }

// View is the newest view that was applied; nil before the first.
func (k *Core) View() *membership.View { return k.view }

// Table says who owns which slot in that view; nil before the first.
func (k *Core) Table() *directory.Table { return k.table }

// Counts returns the sums.
func (k *Core) Counts() Counts { return k.counts }

// Joined gives this silo the epoch under which it stands in the membership, and the view that says so.
func (k *Core) Joined(self membership.Epoch, v *membership.View) {
	k.self = self
	if k.view.Key().Before(v.Key()) {
		k.apply(v)
		return
	}
	k.apply(k.view) // a later one has been seen already, and counts now
}

// Apply takes a view from wherever it came. Only a newer one counts.
func (k *Core) Apply(v *membership.View) {
	if v != nil && k.view.Key().Before(v.Key()) {
		k.apply(v)
	}
}

func (k *Core) apply(v *membership.View) {
	k.counts.Views++
	k.typed = slices.ContainsFunc(v.Members(), func(m membership.Member) bool { return m.Types != nil })
	k.view, k.table = v, directory.NewTable(v, k.config.Directory.Slots)
	for a, e := range k.cache {
		if !v.Has(e.Epoch) {
			delete(k.cache, a)
		}
	}
	if k.self != 0 && !v.Has(k.self) {
		k.evict()
	}
	k.Locator.Apply(v, k.self)
	if k.self != 0 {
		m, _ := v.Member(k.self)
		k.leaving = m.Leaving
		k.Owner.Apply(v, k.table, k.self)
		k.Claims.Apply(v, k.table, k.self)
	}
	k.host.Applied(v)
}

// evict ends this incarnation: its epoch first, so that nothing is answered in its name, then its node hubs, its
// slots and its grants. Process hubs stay registered, the remembered answers about others stay good. Whoever
// feeds the core joins anew, and [Core.Joined] brings the next epoch.
func (k *Core) evict() {
	k.self = 0
	k.host.Evicted()
	k.Owner.Evict()
	k.Claims.Evict()
}

// Stop ends the core: nothing leaves any more.
func (k *Core) Stop() {
	k.Claims.Stop()
	k.Owner.Evict()
	k.self = 0
}

// Ask implements [directory.Peers]. A request of a silo to itself takes the same way but the network.
func (k *Core) Ask(to membership.Member, m wire.Request, within time.Duration, done func(wire.Answer, error)) {
	if to.Epoch == k.self && k.self != 0 {
		k.clock.After(0, func() {
			k.Handle(m, func(a wire.Answer) { k.clock.After(0, func() { done(a, nil) }) })
		})
		return
	}
	k.caller.Call(to, m, within, done)
}

// Saw implements [directory.Peers]: the side whose view is older gets the newer one from the other. Every
// answer of a peer that is behind calls it, so one view is fetched at a time, and one is pushed at a time to
// each peer.
func (k *Core) Saw(from membership.Member, theirs membership.Key) {
	mine := k.view.Key()
	switch {
	case from.Epoch == k.self:
	case mine.Before(theirs):
		if k.getting {
			return
		}
		k.getting = true
		k.counts.ViewsFetched++
		k.caller.Call(from, wire.ViewGet{}, k.config.ViewBound, func(a wire.Answer, _ error) {
			k.getting = false
			if is, ok := a.(wire.ViewIs); ok {
				k.Apply(is.View)
			}
		})
	case theirs.Before(mine):
		if p := k.pushing[from.Epoch]; p != nil {
			p.more = p.more || p.key.Before(mine)
			return
		}
		k.push(from)
	}
}

// push gives a peer the view, and then the newest one if the peer was seen behind that meanwhile. A push that
// was not answered is not repeated: the next sighting makes another.
func (k *Core) push(to membership.Member) {
	p := &push{key: k.view.Key()}
	k.pushing[to.Epoch] = p
	k.counts.ViewsPushed++
	k.caller.Call(to, wire.ViewPush{View: k.view}, k.config.ViewBound, func(_ wire.Answer, err error) {
		delete(k.pushing, to.Epoch)
		if p.more && err == nil {
			k.push(to)
		}
	})
}

// Handle answers a request of a peer, other than a ping. answer is called once, on the turn.
func (k *Core) Handle(m wire.Request, answer func(wire.Answer)) {
	switch m := m.(type) {
	case wire.Hello:
		answer(wire.OK{})
	case wire.Explain:
		answer(k.explain(m.Addr))
	case wire.ViewGet:
		answer(wire.ViewIs{View: k.view})
	case wire.ViewPush:
		k.Apply(m.View)
		answer(wire.OK{})
	case wire.Claim:
		if k.meant(m.Head, answer) {
			k.Owner.Claim(m, func(a wire.Claimed) { answer(a) })
		}
	case wire.Detach:
		if k.meant(m.Head, answer) {
			answer(k.Owner.Detach(m))
		}
	case wire.Lookup:
		if k.meant(m.Head, answer) {
			k.Owner.Lookup(m, answer)
		}
	case wire.Place:
		if k.meant(m.Head, answer) {
			k.placed(m, answer)
		}
	case wire.Locate:
		if k.meant(m.Head, answer) {
			a := wire.Located{Key: k.view.Key(), Items: make([]wire.LocatedItem, len(m.Items))}
			for i, it := range m.Items {
				a.Items[i] = k.Claims.Locate(m.From, it)
			}
			answer(a)
		}
	case wire.Committed:
		if k.meant(m.Head, answer) {
			k.follow(m.Addrs, answer)
		}
	case wire.SlotQuery:
		if k.meant(m.Head, answer) {
			answer(k.Claims.SlotQuery(m))
		}
	case wire.Restored:
		if k.meant(m.Head, answer) {
			k.Claims.Restored(m)
			answer(wire.OK{})
		}
	case wire.HandOver:
		if k.meant(m.Head, answer) {
			answer(k.Owner.HandOver(m))
		}
	}
}

// meant tells whether a request is for this incarnation, and answers it where it is not.
func (k *Core) meant(h wire.Head, answer func(wire.Answer)) bool {
	if k.self != 0 && h.To == k.self {
		return true
	}
	answer(wire.WrongEpoch{Key: k.view.Key()})
	return false
}
