package claim

import (
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// batch is claims to one owner under one view.
type batch struct {
	to       membership.Member
	key      membership.Key
	self     membership.Epoch
	regs     []*registration
	pending  []wire.ClaimItem // grants under way, which are not to be taken for gone
	rounds   []uint32
	complete wire.Slots // slots for which regs is all that this silo serves; empty: says nothing
	try      int
	repeats  bool   // each of regs has failed in the round before
	done     func() // when it has been answered for good, or replaced; may be nil
}

// gather has the fresh claims and the detaches leave together, claims first.
func (c *Claimant) gather() {
	if c.armed {
		return
	}
	c.armed = true
	c.clock.After(c.config.Gather, func() {
		c.armed = false
		if c.self == 0 || c.ended {
			return
		}
		fresh, over := c.fresh, c.over
		c.fresh, c.over = nil, nil
		c.claim(fresh, 0)
		c.sendDetaches(over, c.self, 0)
	})
}

// claim starts a new round for each of regs, one batch an owner.
func (c *Claimant) claim(regs []*registration, try int) {
	by := map[membership.Epoch]*batch{}
	var order []*batch
	for _, r := range regs {
		m, ok := c.table.Owner(int(r.slot))
		if !ok || r.state == gone {
			continue
		}
		b := by[m.Epoch]
		if b == nil || len(b.regs) >= c.config.Batch {
			b = &batch{to: m, try: try, repeats: try > 0}
			by[m.Epoch] = b
			order = append(order, b)
		}
		b.regs = append(b.regs, r)
	}
	for _, b := range order {
		c.send(b)
	}
}

// batchBytes bounds the addresses of a batch, beyond which the next slot begins another: with the longest addresses
// a batch of Config.Batch items and a slot would not fit into a frame.
const batchBytes = 2 << 20

// assert claims everything that this silo serves in a member's slots, in batches of whole slots, each
// complete for its slots. Each batch has a turn of its own, so that others come between. done is called when
// all of them are through; it may be nil.
func (c *Claimant) assert(m membership.Member, done func()) {
	var parts []wire.Slots
	size, bytes := c.config.Batch, 0
	for slot := range c.slots {
		if o, ok := c.table.Owner(slot); !ok || o.Epoch != m.Epoch {
			continue
		}
		if size >= c.config.Batch || bytes >= batchBytes {
			size, bytes = 0, 0
			parts = append(parts, wire.NewSlots(c.config.Slots))
		}
		parts[len(parts)-1].Add(slot)
		size += len(c.slots[slot])
		for _, r := range c.slots[slot] {
			bytes += len(r.addr)
		}
	}
	open := len(parts)
	if open == 0 && done != nil {
		c.clock.After(0, done)
	}
	ended := func() {
		if open--; open == 0 && done != nil {
			done()
		}
	}
	c.turns(m, parts, c.view.Key(), c.self, ended)
}

// turns sends the first batch of an assertion, and the others in later turns. Under a newer view they are
// not sent: it has an assertion of its own.
func (c *Claimant) turns(m membership.Member, parts []wire.Slots, key membership.Key, self membership.Epoch, ended func()) {
	if len(parts) == 0 {
		return
	}
	if c.self != self || c.ended || c.view.Key() != key {
		for range parts {
			ended()
		}
		return
	}
	b := &batch{to: m, complete: parts[0], done: ended}
	c.gatherAll(b)
	c.send(b)
	if parts = parts[1:]; len(parts) > 0 {
		c.clock.After(0, func() { c.turns(m, parts, key, self, ended) })
	}
}

// gatherAll puts everything into a batch that is registered in the slots for which it is complete.
func (c *Claimant) gatherAll(b *batch) {
	for slot := range c.slots {
		if b.complete.Has(slot) {
			b.fill(c.slots[slot])
		}
	}
}

// fill puts everything of a slot into a batch.
func (b *batch) fill(slot []*registration) {
	for _, r := range slot {
		if r.state == claiming {
			b.pending = append(b.pending, wire.ClaimItem{Addr: r.addr, Reg: r.reg, Node: true, Phase: wire.Pending})
		} else {
			b.regs = append(b.regs, r)
		}
	}
}

// send starts a round for each registration of a batch: whatever was under way for it is replaced.
func (c *Claimant) send(b *batch) {
	b.key, b.self = c.view.Key(), c.self
	m := wire.Claim{Head: wire.Head{From: c.self, To: b.to.Epoch, Key: b.key}, Items: make([]wire.ClaimItem, len(b.regs)), CompleteFor: b.complete, UpTo: c.counter.Load()}
	b.rounds = make([]uint32, len(b.regs))
	for i, r := range b.regs {
		r.round++
		r.open = true
		b.rounds[i] = r.round
		if r.landed != b.to.Epoch {
			r.landed = 0
		}
		m.Items[i] = wire.ClaimItem{Addr: r.addr, Reg: r.reg, Node: r.node(), Phase: wire.Kept}
		c.watch.Claiming(r.addr, r.reg, r.round, b.to, b.repeats)
	}
	m.Items = append(m.Items, b.pending...)
	c.peers.Ask(b.to, m, c.config.Bound, func(a wire.Answer, err error) { c.answered(b, a, err) })
}

// current tells whether a registration of a batch is still in the round of that batch.
func (b *batch) current(i int) bool { return b.regs[i].state != gone && b.regs[i].round == b.rounds[i] }

func (b *batch) end() {
	if b.done != nil {
		b.done()
	}
}

// answered takes an owner's answer to a batch and repeats what has not landed.
func (c *Claimant) answered(b *batch, a wire.Answer, err error) {
	if c.self != b.self || c.ended {
		b.end()
		return
	}
	var again []*registration
	unmarked := !b.complete.Empty()
	switch a := a.(type) {
	case wire.Claimed:
		if len(a.Results) != len(b.regs)+len(b.pending) {
			break
		}
		unmarked = unmarked && !a.Complete.Covers(b.complete)
		behind := unmarked
		for i, r := range a.Results[:len(b.regs)] {
			if !b.current(i) {
				continue
			}
			if !c.verdict(b.regs[i], b.to, r) {
				again = append(again, b.regs[i])
				behind = behind || r.Verdict != wire.Held
			}
		}
		if behind {
			c.peers.Saw(b.to, a.Key)
		}
		c.repeat(b, again, unmarked)
		return
	case wire.WrongEpoch:
		c.peers.Saw(b.to, a.Key)
	}
	why := "no answer"
	if err != nil {
		why = err.Error()
	}
	for i, r := range b.regs {
		if b.current(i) {
			c.failed(r, b.to, why)
			again = append(again, r)
		}
	}
	c.repeat(b, again, unmarked)
}

// verdict takes an owner's word on one registration. It tells whether the round is over.
func (c *Claimant) verdict(r *registration, owner membership.Member, v wire.ClaimResult) bool {
	switch v.Verdict {
	case wire.Landed:
		c.landed(r, owner)
		return true
	case wire.Held:
		if r.state == granted { // the first claim won, and it was not this one
			c.watch.Settled(r.addr, r.reg, r.round, false)
			c.remove(r)
			c.host.StepAside(r.addr, r.reg)
			return true
		}
		c.failed(r, owner, "held by "+v.Holder.Epoch.String())
		return false
	case wire.Ended:
		// A live registration is never detached, so this is somebody else's mistake: report it.
		c.failed(r, owner, v.Verdict.String())
		return false
	}
	c.failed(r, owner, v.Verdict.String())
	return false
}

func (c *Claimant) landed(r *registration, owner membership.Member) {
	r.open = false
	c.watch.Settled(r.addr, r.reg, r.round, true)
	if !r.seen || r.told {
		c.watch.Landed(r.addr, r.reg, owner, c.clock.Now()-r.began, r.told)
	}
	r.landed, r.seen, r.told, r.tries = owner.Epoch, true, false, 0
}

func (c *Claimant) failed(r *registration, owner membership.Member, why string) {
	r.open = false
	c.watch.Settled(r.addr, r.reg, r.round, false)
	r.landed = 0
	if int(r.tries) < c.config.InitialTries {
		r.tries++
	}
	if int(r.tries) == c.config.InitialTries && !r.told {
		r.told = true
		c.watch.NotLanding(r.addr, r.reg, owner, why)
	}
}

// repeat sends again what has not landed, after a pause. A batch whose mark was not accepted is repeated
// whole while its view is the newest; a newer view has sent batches of its own.
func (c *Claimant) repeat(b *batch, again []*registration, unmarked bool) {
	if len(again) == 0 && !unmarked {
		b.end()
		return
	}
	rounds := make([]uint32, len(again))
	for i, r := range again {
		rounds[i] = r.round
	}
	c.clock.After(c.backoff(b.try), func() {
		if c.self != b.self || c.ended {
			b.end()
			return
		}
		due := again[:0]
		for i, r := range again {
			if r.state != gone && r.round == rounds[i] {
				due = append(due, r)
			}
		}
		if unmarked && c.view.Key() == b.key {
			// Complete again means everything again: what was registered meanwhile included.
			c.send(c.whole(b))
			return
		}
		b.end()
		c.claim(due, b.try+1)
	})
}

// whole is a batch for the same slots with what is registered in them now.
func (c *Claimant) whole(b *batch) *batch {
	n := &batch{to: b.to, complete: b.complete, try: b.try + 1, done: b.done}
	c.gatherAll(n)
	return n
}

func (c *Claimant) backoff(try int) time.Duration {
	return min(c.config.RetryFirst<<min(try, 16), c.config.RetryCap)
}

// detach has the end of a registration told to the owner of its slot, again until somebody has heard it.
func (c *Claimant) detach(it wire.DetachItem) {
	if c.self == 0 || c.ended {
		return
	}
	c.over = append(c.over, it)
	c.gather()
}

func (c *Claimant) sendDetaches(items []wire.DetachItem, self membership.Epoch, try int) {
	by := map[membership.Epoch]int{}
	var to []membership.Member
	var parts [][]wire.DetachItem
	for _, it := range items {
		m, ok := c.table.OwnerOf(it.Addr)
		if !ok {
			continue
		}
		n, known := by[m.Epoch]
		if !known || len(parts[n]) >= c.config.Batch {
			n = len(to)
			by[m.Epoch] = n
			to, parts = append(to, m), append(parts, nil)
		}
		parts[n] = append(parts[n], it)
	}
	for n, m := range to {
		c.sendDetach(m, parts[n], self, try)
	}
}

func (c *Claimant) sendDetach(to membership.Member, items []wire.DetachItem, self membership.Epoch, try int) {
	for _, it := range items {
		c.watch.Detaching(it.Addr, it.Reg)
	}
	m := wire.Detach{Head: wire.Head{From: self, To: to.Epoch, Key: c.view.Key()}, Items: items}
	c.peers.Ask(to, m, c.config.Bound, func(a wire.Answer, _ error) {
		again := items
		switch a := a.(type) {
		case wire.Detached:
			if len(a.Verdicts) != len(items) {
				break
			}
			again = nil
			for i, v := range a.Verdicts {
				if v != wire.Landed {
					again = append(again, items[i])
				}
			}
			if len(again) > 0 {
				c.peers.Saw(to, a.Key)
			}
		case wire.WrongEpoch:
			c.peers.Saw(to, a.Key)
		}
		if len(again) == 0 {
			return
		}
		c.clock.After(c.backoff(try), func() {
			if c.self == self && !c.ended {
				c.sendDetaches(again, self, try+1)
			}
		})
	})
}
