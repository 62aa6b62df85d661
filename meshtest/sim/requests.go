package sim

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
	"github.com/hubmesh/hubmesh/internal/route"
)

// request is one message from a process to an address, and its one outcome.
type request struct {
	id      int
	from    *process
	addr    string
	node    bool
	write   bool
	seq     int // order of the sender's messages to this address
	began   time.Duration
	until   time.Duration
	view    *membership.View // what the sender knew when it asked
	over    bool
	end     string
	refusal cluster.Refusal
	then    func(*request)
	runs    int
}

// Outcomes of a request, beside the reasons of a refusal.
const (
	endDone    = "done"
	endLapsed  = "lapsed"
	endLost    = "lost"
	endUnknown = "commit-unknown"
	endExpired = "expired"
)

// Answers to a delivery.
const (
	answerDone byte = iota
	answerUnknown
	answerExpired
	answerDenied   // this incarnation does not serve it
	answerStopping // its hub is on its way down and still holds the address
	answerOldLane  // an older message of this lane was refused
	answerAnother  // another incarnation was meant
)

// budget is what a request has.
const budget = 3 * time.Second

func isNode(addr string) bool { return strings.HasPrefix(addr, "acme/") }

// submit sends a request from a process of this world.
func (p *process) submit(addr string, write bool, then func(*request)) *request {
	w := p.w
	p.seqs[addr]++
	r := &request{id: len(w.requests), from: p, addr: addr, node: isNode(addr), write: write, seq: p.seqs[addr],
		began: w.now, until: w.now + budget, view: p.view, then: then}
	w.requests = append(w.requests, r)
	w.at(r.until, p, func() {
		if !r.over {
			w.check.lapsed(r, p.lanes[addr].Describe())
			r.finish(endLapsed)
		}
	})
	l := p.lanes[addr]
	if l == nil {
		l = route.NewLane[*request](carrier{p}, addr, r.node)
		p.lanes[addr] = l
	}
	l.Submit(r)
	return r
}

func (r *request) finish(end string) {
	if r.over {
		return
	}
	r.over, r.end = true, end
	r.from.w.check.finished(r)
	if r.then != nil {
		r.then(r)
	}
}

// carrier is a process as its lanes see it.
type carrier struct{ p *process }

var _ route.Carrier[*request] = carrier{}

func (c carrier) After(d time.Duration, f func()) { c.p.w.after(d, c.p, f) }
func (c carrier) Over(r *request) bool            { return r.over }
func (c carrier) Until(r *request) time.Duration  { return r.until }
func (c carrier) Reachable(e wire.Entry) bool     { return c.p.silo.View().Has(e.Epoch) }
func (c carrier) Lose(r *request)                 { r.finish(endLost) }
func (c carrier) Lane() uint64                    { c.p.lane++; return c.p.lane }
func (c carrier) Resolve(q cluster.Question, done func(cluster.Resolution)) {
	c.p.w.after(0, c.p, func() { c.p.silo.Resolve(q, done) })
}

// Refuse ends a request with what the resolution said, after it has been held against what is true.
func (c carrier) Refuse(r *request, f cluster.Refusal) {
	if r.over {
		return
	}
	c.p.w.check.refused(r, f)
	r.refusal = f
	r.finish(f.Reason.String())
}

// Send delivers a request to an incarnation, this one included.
func (c carrier) Send(to wire.Entry, lane uint64, i *route.Item[*request]) {
	p, w, r, done := c.p, c.p.w, i.Message(), i.Returned
	if to.Epoch == p.silo.Self() && to.Epoch != 0 {
		w.after(0, p, func() {
			p.arrive(p, uint64(to.Epoch), lane, r, r.until, func(a byte) { w.after(0, p, func() { c.answered(r, to, a, done) }) })
		})
		return
	}
	m, ok := p.silo.View().Member(to.Epoch)
	if !ok {
		w.after(0, p, func() { done(route.Unsent) })
		return
	}
	class := transport.Read
	if r.write {
		class = transport.Write
	}
	b := binary.BigEndian.AppendUint64(nil, uint64(to.Epoch))
	b = binary.BigEndian.AppendUint64(b, lane)
	b = binary.BigEndian.AppendUint64(b, uint64(r.id))
	b = binary.BigEndian.AppendUint64(b, uint64(max(r.until-w.now, 0)))
	peer := transport.Peer{Name: m.Name, Epoch: uint64(m.Epoch), Addr: m.Addr}
	p.mem.Call(peer, transport.Request{Kind: uint8(wire.KindDeliver), Class: class, Body: b}, func(a transport.Answer) {
		switch a.Err.(type) {
		case nil:
			c.answered(r, to, a.Body[0], done)
		case *transport.NotSentError:
			p.silo.Doubt(r.addr, to)
			done(route.Unsent)
		default:
			p.silo.Doubt(r.addr, to)
			done(route.Lost)
		}
	})
}

func (c carrier) answered(r *request, to wire.Entry, a byte, done func(route.Disposition)) {
	switch a {
	case answerDone:
		r.finish(endDone)
	case answerUnknown:
		r.finish(endUnknown)
	case answerExpired:
		r.finish(endExpired)
	case answerOldLane, answerStopping:
		done(route.Deferred)
		return
	default:
		c.p.silo.Doubt(r.addr, to)
		done(route.Denied)
		return
	}
	done(route.Answered)
}

// arrival is a request at the process that it was sent to.
type arrival struct {
	req   *request
	until time.Duration
	from  uint64 // who sent it
	lane  uint64
	p     *process
	reply func(byte)
}

func (a *arrival) answer(b byte) { a.reply(b) }

// refuse says that this incarnation does not serve it, and fences what follows it on its lane.
func (a *arrival) refuse() {
	a.refuseWith(answerDenied)
}

func (a *arrival) refuseWith(b byte) {
	a.p.fences.Raise(a.from, a.req.addr, a.lane, a.p.w.now)
	a.reply(b)
}

// Deliver implements cluster.Deliveries.
func (p *process) Deliver(from transport.Peer, body []byte, reply func([]byte)) {
	epoch := binary.BigEndian.Uint64(body)
	lane := binary.BigEndian.Uint64(body[8:])
	r := p.w.requests[binary.BigEndian.Uint64(body[16:])]
	left := time.Duration(binary.BigEndian.Uint64(body[24:]))
	p.arrive(r.from, epoch, lane, r, p.w.now+left, func(a byte) { reply([]byte{a}) })
}

func (p *process) arrive(from *process, epoch, lane uint64, r *request, until time.Duration, reply func(byte)) {
	if epoch != uint64(p.silo.Self()) || epoch == 0 {
		reply(answerAnother)
		return
	}
	a := &arrival{req: r, until: until, from: uint64(from.id), lane: lane, p: p, reply: reply}
	if p.fences.Blocks(a.from, r.addr, lane, p.w.now) {
		reply(answerOldLane)
		return
	}
	if !r.node {
		switch {
		case p.hubs[r.addr] == nil:
			a.refuse()
		case p.w.now > until:
			a.answer(answerExpired)
		default:
			p.w.check.executed(r)
			p.w.after(200*time.Microsecond, p, func() { a.answer(answerDone) })
		}
		return
	}
	switch n := p.nodes[r.addr]; {
	case n != nil && n.state < stopping:
		n.queue = append(n.queue, a)
		n.pump()
	case n != nil:
		a.refuseWith(answerStopping)
	case p.silo.Claims.Claims(r.addr):
		p.park(a)
	default:
		a.refuse()
	}
}

// park keeps a delivery until this process knows whether it has the grant.
func (p *process) park(a *arrival) {
	addr := a.req.addr
	first := len(p.parked[addr]) == 0
	p.parked[addr] = append(p.parked[addr], a)
	if !first {
		return
	}
	p.silo.Claims.Await(addr, func() {
		// With the grant the hub has taken them; without it they are refused.
		waiting := p.parked[addr]
		delete(p.parked, addr)
		for _, a := range waiting {
			a.refuse()
		}
	})
}
