package directory

import (
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// Claim decides a batch of claims. answer is called once, on the turn: at once where no grant needs the
// members' word, else when the last of them is decided.
func (o *Owner) Claim(m wire.Claim, answer func(wire.Claimed)) {
	a := wire.Claimed{Results: make([]wire.ClaimResult, len(m.Items))}
	known, open := o.view.Has(m.From), 1
	end := func() {
		if open--; open == 0 {
			a.Key = o.view.Key()
			answer(a)
		}
	}
	for i, it := range m.Items {
		n := SlotOf(it.Addr, o.config.Slots)
		s := &o.slots[n]
		e := wire.Entry{Epoch: m.From, Reg: it.Reg, Node: it.Node}
		switch {
		case !known:
			a.Results[i].Verdict = wire.UnknownEpoch
		case !s.owned:
			a.Results[i].Verdict = wire.Elsewhere
		case it.Phase == wire.Pending:
		case !it.Node || it.Phase == wire.Kept:
			a.Results[i] = o.install(s, it.Addr, e)
			if a.Results[i].Verdict == wire.Held {
				o.verify(n, it.Addr, a.Results[i].Holder)
			}
		default:
			open++
			o.grant(n, it.Addr, e, func(r wire.ClaimResult) {
				a.Results[i] = r
				end()
			})
		}
	}
	if known {
		a.Complete = o.complete(m)
	}
	end()
}

// complete accepts the mark that a claim's items are everything the claimant serves in some slots. A
// mark that was made under a view older than the one that gave the slot says nothing.
func (o *Owner) complete(m wire.Claim) wire.Slots {
	if m.CompleteFor.Empty() {
		return nil
	}
	accepted := wire.NewSlots(o.config.Slots)
	for i := range o.slots {
		s := &o.slots[i]
		if s.owned && m.CompleteFor.Has(i) && !m.Key.Before(s.acquired) {
			accepted.Add(i)
			o.strike(s, m.From)
		}
	}
	o.prune(m, accepted)
	return accepted
}

// prune removes the entries of a silo that it does not name any more where it has named all. They are
// of registrations whose detach went to another owner while this one was taken for gone. A registration that is
// younger than the mark has overtaken it.
func (o *Owner) prune(m wire.Claim, slots wire.Slots) {
	named := make(map[string]bool, len(m.Items))
	for _, it := range m.Items {
		named[it.Addr] = true
	}
	for i := range o.slots {
		if !slots.Has(i) {
			continue
		}
		for a, e := range o.slots[i].entries {
			if e.Epoch == m.From && e.Reg <= m.UpTo && !named[a] {
				delete(o.slots[i].entries, a)
				o.counts.Pruned++
			}
		}
	}
}

// verify asks the incumbent of a refused claim whether it still serves the address, once. If it does
// not, its entry goes and the claimant's next attempt lands.
func (o *Owner) verify(n int, addr string, holder wire.Entry) {
	m, ok := o.view.Member(holder.Epoch)
	if !ok {
		return
	}
	o.counts.Verified++
	q := wire.Locate{Head: wire.Head{From: o.self, To: m.Epoch, Key: o.view.Key()}, Items: []wire.LocateItem{{Addr: addr}}}
	o.peers.Ask(m, q, o.config.LocateBound, func(a wire.Answer, _ error) {
		is, ok := a.(wire.Located)
		if !ok || len(is.Items) != 1 {
			return
		}
		it := is.Items[0]
		if (it.Status == wire.Serving || it.Status == wire.Claiming) && it.Reg == holder.Reg {
			return
		}
		o.refute(n, addr, holder)
	})
}

// refute removes an entry that its own incarnation has denied, and no other.
func (o *Owner) refute(n int, addr string, e wire.Entry) {
	if old, ok := o.slots[n].entries[addr]; ok && old.Epoch == e.Epoch && old.Reg == e.Reg {
		delete(o.slots[n].entries, addr)
		o.counts.Refuted++
	}
}

// grant decides the first claim of a node hub. In a settled slot the first claim wins. In an unsettled
// one the members that have not told what they serve are asked first, exclusively for this slot.
func (o *Owner) grant(n int, addr string, e wire.Entry, done func(wire.ClaimResult)) {
	s := &o.slots[n]
	if old, ok := s.entries[addr]; ok && old.Epoch != e.Epoch && o.view.Has(old.Epoch) {
		o.counts.Held++
		done(wire.ClaimResult{Verdict: wire.Held, Holder: old})
		return
	}
	if s.settled {
		done(o.install(s, addr, e))
		return
	}
	acquired, self := s.acquired, o.self
	item := wire.LocateItem{Addr: addr, Exclusive: true, Slot: n, Acquired: acquired}
	o.locator.Locate(item, func() []membership.Member { return o.waiting(n) }, func(f Found) {
		s := &o.slots[n]
		switch {
		case !s.owned || s.acquired != acquired || o.self != self:
			done(wire.ClaimResult{Verdict: wire.Elsewhere})
			return
		case !o.view.Has(e.Epoch):
			done(wire.ClaimResult{Verdict: wire.UnknownEpoch})
			return
		}
		if f.Entry != nil && o.view.Has(f.Entry.Epoch) {
			o.install(s, addr, *f.Entry)
		}
		done(o.decide(s, addr, e, f))
	})
}

// decide ends a grant in a slot whose members have been asked.
func (o *Owner) decide(s *slot, addr string, e wire.Entry, f Found) wire.ClaimResult {
	missing := false
	for _, m := range f.Missing {
		missing = missing || s.waiting[m.Epoch]
	}
	if s.settled || !missing {
		return o.install(s, addr, e)
	}
	if old, ok := s.entries[addr]; ok && old.Epoch != e.Epoch {
		o.counts.Held++
		return wire.ClaimResult{Verdict: wire.Held, Holder: old}
	}
	if o.config.UnsureAfter == 0 || f.Busy || o.clock.Now()-s.since < o.config.UnsureAfter {
		return wire.ClaimResult{Verdict: wire.Unsettled}
	}
	e.Unsure = true
	r := o.install(s, addr, e)
	if r.Verdict == wire.Landed {
		o.counts.Unsure++
	}
	return r
}

// waiting lists the members that have not told what they serve in a slot.
func (o *Owner) waiting(n int) []membership.Member {
	var out []membership.Member
	for _, m := range o.view.Members() {
		if o.slots[n].waiting[m.Epoch] {
			out = append(out, m)
		}
	}
	return out
}

// Lookup says who serves an address. A miss is located before it is a negative answer; where a member
// is missing it is no answer. answer is called once, on the turn.
func (o *Owner) Lookup(m wire.Lookup, answer func(wire.Answer)) {
	n := SlotOf(m.Addr, o.config.Slots)
	s := &o.slots[n]
	if !s.owned {
		answer(wire.NotOwner{Key: o.view.Key()})
		return
	}
	o.counts.Lookups++
	if m.Stale != nil {
		o.refute(n, m.Addr, *m.Stale)
	}
	if e, ok := s.entries[m.Addr]; ok && o.view.Has(e.Epoch) {
		o.counts.Hits++
		answer(wire.Hit{Entry: e})
		return
	}
	// A silo that the asker knows and this one does not might serve it.
	if o.view.Key().Before(m.Key) {
		answer(wire.NotOwner{Key: o.view.Key()})
		return
	}
	o.counts.Located++
	self := o.self
	o.locator.Locate(wire.LocateItem{Addr: m.Addr}, o.view.Members, func(f Found) {
		if !o.slots[n].owned || o.self != self {
			answer(wire.NotOwner{Key: o.view.Key()})
			return
		}
		answer(o.located(n, m.Addr, f))
	})
}

// restored tells the holder of an entry that had been lost, so that it is not lost in silence.
func (o *Owner) restored(addr string, e wire.Entry) {
	if m, ok := o.view.Member(e.Epoch); ok {
		h := wire.Head{From: o.self, To: m.Epoch, Key: o.view.Key()}
		o.peers.Ask(m, wire.Restored{Head: h, Addr: addr, Reg: e.Reg}, o.config.RequestBound, func(wire.Answer, error) {})
	}
}

// located ends a lookup whose members have been asked.
func (o *Owner) located(n int, addr string, f Found) wire.Answer {
	s := &o.slots[n]
	if f.Entry != nil && o.view.Has(f.Entry.Epoch) {
		before := o.counts.Installed
		o.install(s, addr, *f.Entry)
		if o.counts.Installed > before {
			o.counts.Restored++
			o.restored(addr, *f.Entry)
		}
	}
	if e, ok := s.entries[addr]; ok && o.view.Has(e.Epoch) {
		return wire.Hit{Entry: e}
	}
	var missing []string
	for _, m := range f.Missing {
		if o.view.Has(m.Epoch) {
			missing = append(missing, m.Name)
		}
	}
	if len(missing) > 0 {
		o.counts.Unknowns++
		why := wire.WhyMissing
		if f.Busy {
			why = wire.WhyBusy
		}
		return wire.Unknown{Missing: missing, Why: why}
	}
	o.counts.Negatives++
	age, closed := o.guards.closed(addr, o.clock.Now())
	if f.Closed && (!closed || f.Age < age) {
		age, closed = f.Age, true
	}
	if closed {
		return wire.Closed{Asked: f.Asked, Age: age}
	}
	return wire.NotHere{Asked: f.Asked}
}
