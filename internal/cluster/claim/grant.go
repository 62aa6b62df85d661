package claim

import (
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// Outcome ends an activation's claim.
type Outcome struct {
	Granted bool
	Reg     uint64      // with Granted: the registration under which this silo serves the node
	Holder  *wire.Entry // another silo serves it
	Why     string      // neither: one of the Why constants or the last trouble
}

// Why a grant was not had.
const (
	WhyEvicted  = "evicted"
	WhyStopping = "stopping"
	WhyEnded    = "detached"
	WhyUnknown  = "holder-unknown" // the holder is in no view of this silo
)

// grant is the first claim of a node hub.
type grant struct {
	waiting []func(Outcome)
	find    Elsewhere
}

func (g *grant) end(o Outcome) {
	if g == nil {
		return
	}
	waiting := g.waiting
	g.waiting = nil
	for _, f := range waiting {
		f(o)
	}
}

// Elsewhere finds who serves an address by asking all members: what a claimant does while the owner of
// the slot cannot be asked.
type Elsewhere func(addr string, done func(*wire.Entry))

// Activate asks for the grant of a node hub: whoever asks for one address waits for the same. done is
// called once, on the turn. While it is under way this silo is claiming, and deliveries for the address
// are to be parked; with Granted it serves the node until [Claimant.Ended].
func (c *Claimant) Activate(addr string, find Elsewhere, done func(Outcome)) {
	switch r := c.regs[addr]; {
	case c.self == 0 || c.ended:
		done(Outcome{Why: WhyStopping})
	case r != nil && r.state == granted:
		done(Outcome{Granted: true, Reg: r.reg})
	case r != nil && r.state == claiming:
		r.grant.waiting = append(r.grant.waiting, done)
	default:
		r := &registration{addr: addr, reg: c.counter.Add(1), state: claiming, grant: &grant{waiting: []func(Outcome){done}}}
		c.add(r)
		c.ask(r, find, 0)
	}
}

// Serves tells whether this silo holds the grant of a node hub, and Claims whether it is asking for it.
func (c *Claimant) Serves(addr string) (uint64, bool) {
	if r := c.regs[addr]; r != nil && r.state == granted {
		return r.reg, true
	}
	return 0, false
}

// Claims tells whether the grant of a node hub is under way, so that deliveries park.
func (c *Claimant) Claims(addr string) bool {
	r := c.regs[addr]
	return r != nil && r.state == claiming
}

// Await calls done when the grant of a node hub that is under way has ended, had or not: at once where none is.
// With the grant, [Host.Granted] comes first. It is for what parks, which waits as long as the claim does.
func (c *Claimant) Await(addr string, done func()) {
	if r := c.regs[addr]; r != nil && r.state == claiming {
		r.grant.waiting = append(r.grant.waiting, func(Outcome) { done() })
		return
	}
	done()
}

// Ended says that a node hub of this silo has stopped, or will not start: it serves the address no more.
func (c *Claimant) Ended(addr string, reg uint64) {
	r := c.regs[addr]
	if r == nil || r.reg != reg || r.state == process {
		return
	}
	c.remove(r)
	r.grant.end(Outcome{Why: WhyStopping})
	c.detach(wire.DetachItem{Addr: addr, Reg: reg, Node: true})
}

// regrant begins the round of every grant under way anew: the owner may be another one.
func (c *Claimant) regrant() {
	for _, list := range c.slots {
		for _, r := range list {
			if r.state == claiming {
				c.ask(r, r.grant.find, 0)
			}
		}
	}
}

func (c *Claimant) ask(r *registration, find Elsewhere, try int) {
	r.grant.find = find
	r.round++
	round, self := r.round, c.self
	owner, ok := c.table.Owner(int(r.slot))
	if !ok {
		c.giveUp(r, "no slot owner")
		return
	}
	c.watch.Claiming(r.addr, r.reg, round, owner, try > 0)
	if try == 0 && find != nil {
		c.clock.After(c.config.GrantOthers, func() { c.others(r, round, self) })
	}
	m := wire.Claim{Head: wire.Head{From: self, To: owner.Epoch, Key: c.view.Key()}, Items: []wire.ClaimItem{{Addr: r.addr, Reg: r.reg, Node: true, Phase: wire.Wanted}}}
	c.peers.Ask(owner, m, c.config.Bound, func(a wire.Answer, err error) {
		if r.state != claiming || r.round != round || c.self != self || c.ended {
			return
		}
		switch a := a.(type) {
		case wire.Claimed:
			if len(a.Results) == 1 {
				c.granted(r, owner, a, try)
				return
			}
		case wire.WrongEpoch:
			c.peers.Saw(owner, a.Key)
			c.askAgain(r, owner, try, "wrong epoch")
			return
		}
		why := "no answer"
		if err != nil {
			why = err.Error()
		}
		c.askAgain(r, owner, try, why)
	})
}

func (c *Claimant) granted(r *registration, owner membership.Member, a wire.Claimed, try int) {
	v := a.Results[0]
	switch v.Verdict {
	case wire.Landed:
		if m, ok := c.table.Owner(int(r.slot)); !ok || m.Epoch != owner.Epoch {
			c.askAgain(r, owner, try, "the slot has moved")
			return
		}
		if a.Key.Before(c.view.Key()) {
			// Granted in an older view. The owner may lose the slot and regain it, without the entry, in
			// views that it has still to see, and this silo may have told it already that it serves
			// nothing there: only a grant in a view as new as the claimant's counts.
			c.peers.Saw(owner, a.Key)
			c.askAgain(r, owner, try, "the slot owner is a view behind")
			return
		}
		r.state = granted
		c.landed(r, owner)
		c.host.Granted(r.addr, r.reg)
		r.grant.end(Outcome{Granted: true, Reg: r.reg})
	case wire.Held:
		c.watch.Settled(r.addr, r.reg, r.round, false)
		c.remove(r)
		if !c.view.Has(v.Holder.Epoch) {
			r.grant.end(Outcome{Why: WhyUnknown})
			return
		}
		h := v.Holder
		r.grant.end(Outcome{Holder: &h})
	case wire.Ended:
		c.watch.Settled(r.addr, r.reg, r.round, false)
		c.remove(r)
		r.grant.end(Outcome{Why: WhyEnded})
	default:
		c.peers.Saw(owner, a.Key)
		c.askAgain(r, owner, try, v.Verdict.String())
	}
}

// askAgain repeats a grant's claim after a pause. Now and then everybody is asked meanwhile: while the
// owner cannot be, somebody may serve the node already.
func (c *Claimant) askAgain(r *registration, owner membership.Member, try int, why string) {
	c.watch.Settled(r.addr, r.reg, r.round, false)
	if try >= c.config.GrantTries {
		c.giveUp(r, why)
		return
	}
	round, self, find := r.round, c.self, r.grant.find
	if try%3 == 1 && find != nil {
		c.others(r, round, self)
	}
	c.clock.After(min(c.config.GrantFirst<<min(try, 16), c.config.GrantCap), func() {
		if r.state == claiming && r.round == round && c.self == self && !c.ended {
			c.ask(r, find, try+1)
		}
	})
}

// others asks everybody whether somebody serves the node already, while the slot's owner does not answer: one that
// stands still must not keep what others serve.
func (c *Claimant) others(r *registration, round uint32, self membership.Epoch) {
	still := func() bool { return r.state == claiming && r.round == round && c.self == self && !c.ended }
	if !still() {
		return
	}
	r.grant.find(r.addr, func(e *wire.Entry) {
		if e == nil || e.Epoch == c.self || !still() {
			return
		}
		c.remove(r)
		c.detach(wire.DetachItem{Addr: r.addr, Reg: r.reg, Node: true})
		r.grant.end(Outcome{Holder: e})
	})
}

func (c *Claimant) giveUp(r *registration, why string) {
	c.remove(r)
	c.detach(wire.DetachItem{Addr: r.addr, Reg: r.reg, Node: true})
	r.grant.end(Outcome{Why: why})
}
