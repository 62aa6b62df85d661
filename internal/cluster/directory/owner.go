package directory

import (
	"slices"
	"strings"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/turn"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// Owner is the slots that this silo owns, and their entries. Every method runs on the turn.
//
// A slot that a view gives to this silo is unsettled: its former owner may have granted what this one does not
// know. Every member is waited for, this silo included, and so it is again where the timeline of the views has
// changed. It settles when nobody is waited for any more. A member is not
//   - once it has claimed all that it serves there and said so ([wire.Claim.CompleteFor]), under a view no older
//     than the one that gave the slot; what else is held of it there is removed;
//   - once it has answered a slot query, which goes out 30 ms after the gain and every 300 ms to whoever is missing;
//   - once it is in no view.
//
// It settles at once by the [wire.HandOver] of a former owner that was settled; one of an unsettled owner is only
// merged. Entries and guards are handed over when a view takes the slot, and then forgotten.
//
// An unsettled slot answers lookups as a settled one does, and takes what silos say they hold. A new grant waits for
// a locate to those that are waited for: where one is missing nothing is granted, until the slot has been
// unsettled for [Config.UnsureAfter], 2 s. Then it is, marked [wire.Entry.Unsure]: a partial cut must not stop
// a node for longer, and a second activation is fenced by the version of its row.
//
// Evict drops all of it: a silo in no view owns nothing.
type Owner struct {
	clock   turn.Clock
	peers   Peers
	locator *Locator
	config  Config

	view  *membership.View
	table *Table
	self  membership.Epoch // 0 while this silo is in no view
	slots []slot
	// guards of all owned slots
	guards  *guards
	queries func() // stops the next slot query; nil while none is due
	counts  Counts
}

// slot is one slot. Its zero value is NotOwner.
type slot struct {
	owned    bool
	settled  bool
	acquired membership.Key            // of the view that gave it, or that made it unsettled again
	since    time.Duration             // when that view was applied here
	waiting  map[membership.Epoch]bool // members that have not told what they serve
	entries  map[string]wire.Entry
}

// Counts are sums since the start.
type Counts struct {
	Installed         int64 `json:"installed"` // what became of claims and entries
	Removed           int64 `json:"removed"`
	Refuted           int64 `json:"refuted"`
	Held              int64 `json:"held"`
	Ended             int64 `json:"ended"`
	Lookups           int64 `json:"lookups"`
	Hits              int64 `json:"hits"`
	Negatives         int64 `json:"negatives"`
	Unknowns          int64 `json:"unknowns"`
	Located           int64 `json:"located"`  // lookups that had to ask the members
	Restored          int64 `json:"restored"` // entries that this brought back
	Pruned            int64 `json:"pruned"`   // entries that a silo which had named all did not name
	Unsure            int64 `json:"unsure"`   // grants while a member was missing
	SettledByAnswers  int64 `json:"settledByAnswers"`
	SettledByHandOver int64 `json:"settledByHandOver"`
	Verified          int64 `json:"verified"`
}

// NewOwner returns an owner of no slots. The locator is shared with whoever else asks members; it takes no word of
// what the owner knows to have ended.
func NewOwner(c turn.Clock, p Peers, l *Locator, cfg Config) *Owner {
	o := &Owner{clock: c, peers: p, locator: l, config: cfg, slots: make([]slot, cfg.Slots), guards: newGuards(cfg.Guards)}
	l.ended = func(addr string, e wire.Entry) bool { return o.guards.refuses(incarnation{addr, e.Epoch}, e.Reg) }
	return o
}

// Counts returns the sums.
func (o *Owner) Counts() Counts { return o.counts }

// Owned is the number of slots that this silo owns, and how many of them are settled.
func (o *Owner) Owned() (owned, settled int) {
	for i := range o.slots {
		if o.slots[i].owned {
			owned++
			if o.slots[i].settled {
				settled++
			}
		}
	}
	return owned, settled
}

// Size is the number of entries in the owned slots.
func (o *Owner) Size() (n int) {
	for i := range o.slots {
		n += len(o.slots[i].entries)
	}
	return n
}

// SlotState is one slot as seen by its owner.
type SlotState struct {
	Owned, Settled bool
	Acquired       membership.Key
	Waiting        []membership.Epoch
	Entries        int
}

// Slot describes a slot.
func (o *Owner) Slot(n int) SlotState {
	s := &o.slots[n]
	st := SlotState{Owned: s.owned, Settled: s.settled, Acquired: s.acquired, Entries: len(s.entries)}
	for _, m := range o.view.Members() {
		if s.waiting[m.Epoch] {
			st.Waiting = append(st.Waiting, m.Epoch)
		}
	}
	return st
}

// Entry returns the entry of an address where this silo owns its slot.
func (o *Owner) Entry(addr string) (wire.Entry, bool) {
	e, ok := o.slots[SlotOf(addr, o.config.Slots)].entries[addr]
	return e, ok
}

// Closed tells whether a process address of an owned slot was released, and how long ago.
func (o *Owner) Closed(addr string) (time.Duration, bool) {
	return o.guards.closed(addr, o.clock.Now())
}

// Entries calls yield for each entry of the owned slots, in no order.
func (o *Owner) Entries(yield func(addr string, e wire.Entry) bool) {
	for i := range o.slots {
		for a, e := range o.slots[i].entries {
			if !yield(a, e) {
				return
			}
		}
	}
}

// Lose takes one entry of a process hub out of each settled or unsettled slot that choose names, as a
// fault would, and returns the addresses. It is for simulations.
func (o *Owner) Lose(choose func(slot int) bool) []string {
	var lost []string
	for i := range o.slots {
		if !choose(i) {
			continue
		}
		first := ""
		for a, e := range o.slots[i].entries {
			if !e.Node && (first == "" || a < first) {
				first = a
			}
		}
		if first != "" {
			delete(o.slots[i].entries, first)
			lost = append(lost, first)
		}
	}
	return lost
}

// Apply makes a newer view count. self is this silo's epoch in it. Slots that are gained start
// unsettled and wait for every member; slots that are kept drop what departed; slots that are lost are
// handed over.
func (o *Owner) Apply(v *membership.View, t *Table, self membership.Epoch) {
	// Between two timelines views may be missing: what this silo kept may have had another owner.
	broken := o.view != nil && o.view.Key().Timeline != v.Key().Timeline
	o.view, o.table, o.self = v, t, self
	gained := false
	lost := map[int]bool{}
	for i := range o.slots {
		s := &o.slots[i]
		m, ok := t.Owner(i)
		mine := ok && m.Epoch == self
		switch {
		case s.owned && !mine:
			lost[i] = true
		case !s.owned && mine:
			*s = slot{owned: true, entries: map[string]wire.Entry{}}
			o.unsettle(s)
			gained = true
		case s.owned:
			if broken {
				o.unsettle(s)
				gained = true
			}
			o.purge(s)
		}
	}
	o.lose(lost)
	if gained && o.queries == nil {
		o.queries = o.clock.After(o.config.QueryAfter, o.query)
	}
}

// unsettle begins a slot anew, with the entries that it has: every member is waited for.
func (o *Owner) unsettle(s *slot) {
	s.settled, s.acquired, s.since = false, o.view.Key(), o.clock.Now()
	s.waiting = make(map[membership.Epoch]bool, len(o.view.Members()))
	for _, m := range o.view.Members() {
		s.waiting[m.Epoch] = true
	}
}

// purge drops what belongs to departed silos.
func (o *Owner) purge(s *slot) {
	for a, e := range s.entries {
		if !o.view.Has(e.Epoch) {
			delete(s.entries, a)
			o.counts.Removed++
		}
	}
	for e := range s.waiting {
		if !o.view.Has(e) {
			delete(s.waiting, e)
		}
	}
	o.settle(s)
}

// Evict forgets everything: this silo is in no view any more.
func (o *Owner) Evict() {
	o.self = 0
	clear(o.slots)
	o.guards = newGuards(o.config.Guards)
	if o.queries != nil {
		o.queries()
		o.queries = nil
	}
}

func (o *Owner) settle(s *slot) {
	if s.owned && !s.settled && len(s.waiting) == 0 {
		s.settled, s.waiting = true, nil
		o.counts.SettledByAnswers++
	}
}

// strike notes that a member has told everything that it serves in a slot.
func (o *Owner) strike(s *slot, e membership.Epoch) {
	delete(s.waiting, e)
	o.settle(s)
}

// lose hands lost slots to their new owners and forgets them.
func (o *Owner) lose(lost map[int]bool) {
	if len(lost) == 0 {
		return
	}
	guards := o.guards.take(lost, o.config.Slots, o.clock.Now())
	var leaving []farewell
	for i := range o.slots {
		if !lost[i] {
			continue
		}
		s := o.slots[i]
		o.slots[i] = slot{}
		to, ok := o.table.Owner(i)
		if !ok {
			continue
		}
		leaving = append(leaving, farewell{to, s.entries, wire.HandOver{Slot: i, Settled: s.settled, Guards: guards[i]}})
	}
	o.part(leaving, o.view.Key(), o.self)
}

// farewell is a slot that is to be handed over.
type farewell struct {
	to      membership.Member
	entries map[string]wire.Entry
	m       wire.HandOver
}

// farewells is about how many entries one turn hands over.
const farewells = 20_000

// part hands some slots over, and the others in later turns, so that others come between.
func (o *Owner) part(leaving []farewell, key membership.Key, self membership.Epoch) {
	if o.self != self {
		return
	}
	for sent := 0; sent < farewells && len(leaving) > 0; leaving = leaving[1:] {
		f := leaving[0]
		sent += 1 + len(f.entries)
		f.m.Entries = make([]wire.AddressedEntry, 0, len(f.entries))
		for a, e := range f.entries {
			f.m.Entries = append(f.m.Entries, wire.AddressedEntry{Addr: a, Entry: e})
		}
		slices.SortFunc(f.m.Entries, func(a, b wire.AddressedEntry) int { return strings.Compare(a.Addr, b.Addr) })
		o.handOver(f.to, f.m, key, 0)
	}
	if len(leaving) > 0 {
		o.clock.After(0, func() { o.part(leaving, key, self) })
	}
}

// maxHandOver is how often a hand-over is repeated to a new owner that does not know yet that it is.
const maxHandOver = 4

func (o *Owner) handOver(to membership.Member, m wire.HandOver, key membership.Key, try int) {
	self := o.self
	m.Head = wire.Head{From: self, To: to.Epoch, Key: key}
	o.peers.Ask(to, m, o.config.RequestBound, func(a wire.Answer, _ error) {
		no, refused := a.(wire.NotOwner)
		if !refused || o.self != self {
			return // lost, or the new owner waits for the members' own word instead
		}
		o.peers.Saw(to, no.Key)
		if no.Key.Before(key) && try < maxHandOver {
			o.clock.After(5*time.Millisecond<<try, func() {
				if o.self == self {
					o.handOver(to, m, key, try+1)
				}
			})
		}
	})
}

// HandOver takes a slot's content from its former owner.
func (o *Owner) HandOver(m wire.HandOver) wire.Answer {
	if m.Slot >= len(o.slots) || !o.slots[m.Slot].owned || m.Key.Before(o.slots[m.Slot].acquired) {
		return wire.NotOwner{Key: o.view.Key()}
	}
	s, now := &o.slots[m.Slot], o.clock.Now()
	for _, g := range m.Guards {
		if SlotOf(g.Addr, o.config.Slots) == m.Slot {
			_, served := s.entries[g.Addr]
			o.guards.put(incarnation{g.Addr, g.Epoch}, guard{reg: g.Reg, closed: g.Closed && !served, begun: now - g.Age, until: now + min(g.Left, o.config.TombstoneFor)}, now)
		}
	}
	for _, e := range m.Entries {
		if o.view.Has(e.Epoch) && SlotOf(e.Addr, o.config.Slots) == m.Slot {
			o.install(s, e.Addr, e.Entry)
		}
	}
	if m.Settled && !s.settled {
		s.settled, s.waiting = true, nil
		o.counts.SettledByHandOver++
	}
	return wire.OK{}
}

// install merges one entry. With Held it returns the incumbent.
func (o *Owner) install(s *slot, addr string, e wire.Entry) wire.ClaimResult {
	if o.guards.refuses(incarnation{addr, e.Epoch}, e.Reg) {
		o.counts.Ended++
		return wire.ClaimResult{Verdict: wire.Ended}
	}
	if old, ok := s.entries[addr]; ok {
		if old.Epoch == e.Epoch {
			if e.Reg > old.Reg {
				s.entries[addr] = e
				o.guards.reopen(addr)
			}
			return wire.ClaimResult{Verdict: wire.Landed}
		}
		if o.view.Has(old.Epoch) {
			o.counts.Held++
			return wire.ClaimResult{Verdict: wire.Held, Holder: old}
		}
	}
	s.entries[addr] = e
	o.guards.reopen(addr)
	o.counts.Installed++
	return wire.ClaimResult{Verdict: wire.Landed}
}

// Detach removes the entries of registrations that have ended, and remembers their end.
func (o *Owner) Detach(m wire.Detach) wire.Answer {
	a := wire.Detached{Key: o.view.Key(), Verdicts: make([]wire.Verdict, len(m.Items))}
	now := o.clock.Now()
	for i, it := range m.Items {
		s := &o.slots[SlotOf(it.Addr, o.config.Slots)]
		if !s.owned {
			a.Verdicts[i] = wire.Elsewhere
			continue
		}
		if e, ok := s.entries[it.Addr]; ok && e.Epoch == m.From && e.Reg <= it.Reg {
			delete(s.entries, it.Addr)
			o.counts.Removed++
		}
		kept := o.config.TombstoneFor
		if it.Node {
			kept = o.config.GuardFor
		}
		_, served := s.entries[it.Addr] // by a later registration, which is not to look released when it dies
		o.guards.put(incarnation{it.Addr, m.From}, guard{reg: it.Reg, closed: !it.Node && !served, begun: now, until: now + kept}, now)
	}
	return a
}

// Sweep forgets the ends of registrations whose time is over: new ones push them out, but perhaps none come.
// Nothing depends on when it is called.
func (o *Owner) Sweep() { o.guards.expire(o.clock.Now()) }

// Remembered is the number of registrations of the owned slots whose end is remembered.
func (o *Owner) Remembered() int { return len(o.guards.at) }

// query asks the members that have not told yet what they serve in unsettled slots, again and again
// until every slot is settled.
func (o *Owner) query() {
	o.queries = nil
	need := map[membership.Epoch][]wire.Gained{}
	for i := range o.slots {
		s := &o.slots[i]
		if !s.owned || s.settled {
			continue
		}
		for e := range s.waiting {
			need[e] = append(need[e], wire.Gained{Slot: i, Acquired: s.acquired})
		}
	}
	if len(need) == 0 {
		return
	}
	for _, m := range o.view.Members() {
		if gained := need[m.Epoch]; gained != nil {
			o.ask(m, gained)
		}
	}
	o.queries = o.clock.After(o.config.QueryEvery, o.query)
}

func (o *Owner) ask(m membership.Member, gained []wire.Gained) {
	self := o.self
	q := wire.SlotQuery{Head: wire.Head{From: self, To: m.Epoch, Key: o.view.Key()}, Slots: gained}
	o.peers.Ask(m, q, o.config.RequestBound, func(a wire.Answer, _ error) {
		if o.self != self {
			return
		}
		is, ok := a.(wire.SlotIs)
		if !ok {
			if w, wrong := a.(wire.WrongEpoch); wrong {
				o.peers.Saw(m, w.Key)
			}
			return
		}
		if !o.view.Has(m.Epoch) {
			return
		}
		current := map[int]bool{}
		for _, g := range gained {
			s := &o.slots[g.Slot]
			current[g.Slot] = s.owned && s.acquired == g.Acquired
			if !is.Slots.Has(g.Slot) {
				o.peers.Saw(m, is.Key)
			}
		}
		for _, it := range is.Items {
			if n := SlotOf(it.Addr, o.config.Slots); current[n] {
				o.install(&o.slots[n], it.Addr, wire.Entry{Epoch: m.Epoch, Reg: it.Reg, Node: it.Node})
			}
		}
		for _, g := range gained {
			if current[g.Slot] && is.Slots.Has(g.Slot) {
				o.strike(&o.slots[g.Slot], m.Epoch)
			}
		}
	})
}
