package sim

import (
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

type nodeState uint8

const (
	loading nodeState = iota
	active
	stopping
	stopped
)

// nodeHub is the hub of a node: its row is read when it starts, and each write commits only with the
// version that it expects.
type nodeHub struct {
	p       *process
	addr    string
	reg     uint64
	epoch   uint64 // of the process when it was granted
	state   nodeState
	began   time.Duration
	version int64
	queue   []*arrival
	busy    bool
}

// startNode starts the hub of a node whose grant this process has been given.
func (p *process) startNode(addr string, reg uint64) {
	n := &nodeHub{p: p, addr: addr, reg: reg, epoch: uint64(p.silo.Self()), began: p.w.now}
	p.nodes[addr] = n
	n.queue, p.parked[addr] = p.parked[addr], nil
	delete(p.parked, addr)
	var version int64
	var is string
	p.w.table.do(p, func() { version, is = p.w.table.versions[addr], p.w.table.typeOf(addr) }, func(err error) {
		if n.state != loading {
			return
		}
		if err != nil {
			n.stop()
			return
		}
		if !p.me.Handles(is) {
			p.w.check.misplaced(p, addr)
			n.stop()
			return
		}
		n.version, n.state = version, active
		p.w.check.active(n)
		n.pump()
	})
}

func (n *nodeHub) pump() {
	if n.busy || len(n.queue) == 0 || n.state != active && n.state != stopping {
		return
	}
	if n.state == stopping {
		n.refuse()
		return
	}
	a := n.queue[0]
	n.queue = n.queue[1:]
	w := n.p.w
	if w.now > a.until {
		a.answer(answerExpired)
		n.pump()
		return
	}
	n.busy = true
	done := func(answer byte) {
		n.busy = false
		a.answer(answer)
		if n.state == stopping {
			n.ended()
			return
		}
		n.pump()
	}
	if !a.req.write {
		w.after(100*time.Microsecond, n.p, func() {
			if n.state == stopped {
				a.refuse()
				return
			}
			if n.p.silo.Isolated() {
				n.confirm(a, n.p.silo.Member.Confirm(), w.now+confirmFor, done)
				return
			}
			n.read(a, done)
		})
		return
	}
	expected, committed := n.version, false
	w.table.do(n.p, func() {
		if w.table.versions[n.addr] == expected {
			w.table.write(n.addr)
			committed = true
			w.check.executed(a.req)
		}
	}, func(err error) {
		switch {
		case err != nil: // it may have been committed
			done(answerUnknown)
			n.stop()
		case !committed:
			w.check.count("write conflicts", 1)
			n.stop()
			n.busy = false
			a.refuse()
			n.ended()
		default:
			n.version = expected + 1
			done(answerDone)
		}
	})
}

// confirmFor is how long the membership is asked whether this silo still is a member.
const confirmFor = time.Second

// confirm reads once the membership has this silo, and refuses the read when it does not say so.
func (n *nodeHub) confirm(a *arrival, c *membership.Confirmation, until time.Duration, done func(byte)) {
	select {
	case <-c.Done():
	default:
		if n.p.w.now < until {
			n.p.w.after(time.Millisecond, n.p, func() { n.confirm(a, c, until, done) })
			return
		}
	}
	switch {
	case n.state == stopped:
		a.refuse()
	case c.In() || !n.p.silo.Isolated():
		n.p.w.check.count("reads confirmed by the table", 1)
		n.read(a, done)
	default:
		n.p.w.check.count("reads refused as isolated", 1)
		done(answerUnknown)
	}
}

// read answers with what the hub holds, which must be what had been committed when the read began.
func (n *nodeHub) read(a *arrival, done func(byte)) {
	n.p.w.check.read(n, a.req)
	n.p.w.check.executed(a.req)
	done(answerDone)
}

// stop ends the hub after its running turn.
func (n *nodeHub) stop() {
	if n.state >= stopping {
		return
	}
	n.state = stopping
	if !n.busy {
		n.ended()
	}
}

// ended is the hub gone: its queue is refused, then its registration ends.
func (n *nodeHub) ended() {
	if n.state == stopped {
		return
	}
	n.gone()
	n.p.silo.Claims.Ended(n.addr, n.reg)
}

func (n *nodeHub) gone() {
	n.state = stopped
	if n.p.nodes[n.addr] == n {
		delete(n.p.nodes, n.addr)
	}
	n.p.w.check.inactive(n)
	n.refuse()
}

func (n *nodeHub) refuse() {
	queue := n.queue
	n.queue = nil
	for _, a := range queue {
		a.refuse()
	}
}

// stepAside ends the hub because another incarnation holds its address: its registration is over.
func (n *nodeHub) stepAside() {
	n.p.w.check.count("stepped aside", 1)
	if n.state >= stopping {
		return
	}
	n.state = stopping
	if !n.busy {
		n.gone()
	}
}

// kill ends the hub at once: its process is in no view any more.
func (n *nodeHub) kill() {
	if n.state < stopped {
		n.gone()
	}
}
