package claim

import "github.com/hubmesh/hubmesh/internal/cluster/wire"

// Turn lets a goroutine do something on the turn.
type Turn interface{ Do(f func()) }

// Handle is one registration of a process hub. Its methods may be called from any goroutine; each has an
// effect once.
type Handle struct {
	claimant *Claimant
	turn     Turn
	ledger   ledger
	r        registration
}

// Handle returns a registration of addr that has claimed nothing yet. It may be called off the turn.
// The local route is to be written with its number before [Handle.Attach].
func (c *Claimant) Handle(t Turn, addr string) *Handle {
	return &Handle{claimant: c, turn: t, r: registration{addr: addr, reg: c.counter.Add(1), state: process}}
}

// Reg is the registration's number.
func (h *Handle) Reg() uint64 { return h.r.reg }

// Attach has the address claimed, now and with every view until [Handle.Dispose]. After Dispose it
// does nothing.
func (h *Handle) Attach() {
	if !h.ledger.enter() {
		return
	}
	h.turn.Do(func() {
		h.claimant.register(&h.r)
		if h.ledger.leave() {
			h.claimant.release(&h.r)
		}
	})
}

// Dispose ends the registration. The local route is to be removed before.
func (h *Handle) Dispose() {
	if h.ledger.dispose() {
		h.turn.Do(func() { h.claimant.release(&h.r) })
	}
}

// register enters a process hub, once, and has it claimed with the next batch. A goroutine that was
// held up before the turn may bring a registration that a later one of its address has overtaken.
func (c *Claimant) register(r *registration) {
	if r.entered {
		return
	}
	r.entered = true
	if now := c.regs[r.addr]; now != nil && now.reg > r.reg {
		r.state = gone
		return
	}
	c.add(r)
	if c.self != 0 && !c.ended {
		c.fresh = append(c.fresh, r)
		c.gather()
	}
}

// release ends a registration and tells its slot owner, even where no claim has left yet: the local
// route was there to be found by a locate, which enters what it finds.
func (c *Claimant) release(r *registration) {
	c.remove(r)
	c.closed.put(r.addr, c.clock.Now(), c.config.ClosedFor)
	c.detach(wire.DetachItem{Addr: r.addr, Reg: r.reg})
}
