package route

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
)

// parcel is a delivery on its lane.
type parcel struct {
	item Item[*parcel]
	d    *hub.Delivery
	ch   *channel
	// body is its envelope, but for what [seal] writes. Where the lane goes elsewhere it is packed before
	// the lane is locked, so that those who send to one address pack side by side. It is the parcel's
	// until it is sent, and then given back. nil: not packed, or sent.
	body *bytes.Buffer
	name string // of the silo that it was sent to last
}

const (
	hopFloor = 40 * time.Millisecond // what a hop leaves to its caller at least …
	hopPart  = 5                     // … but at most this part of what remains
	hopLeast = 5 * time.Millisecond  // with less left for the owner nothing is sent
)

// hop is what a wait on another silo leaves to its caller, so that the owner's own lapse, with what it
// knows, is there first: the margin of a nested ask with twice its floor, and never so much that a small
// budget starves.
func hop(left time.Duration) time.Duration {
	return min(left/hopPart, max(budget.Margin(left), hopFloor))
}

// leave sends a parcel to another silo. The channel is locked.
func (p *parcel) leave(to wire.Entry, lane uint64) {
	c := p.ch.c
	m, ok := c.view.Load().Member(to.Epoch)
	if !ok {
		p.ch.end(&p.item, Unsent)
		return
	}
	p.name = m.Name
	if f := p.seal(lane); f != nil {
		p.ch.later(func() { c.mesh.Refuse(p.d, f) })
		p.ch.end(&p.item, Answered)
		return
	}
	class := transport.Write
	if p.d.Flags().Has(message.Safe) {
		class = transport.Read
	}
	c.count.sent.Add(1)
	c.net.Call(transport.Peer{Name: m.Name, Epoch: uint64(m.Epoch), Addr: m.Addr},
		transport.Request{Kind: uint8(wire.KindDeliver), Class: class, Body: p.body.Bytes()}, p.answered)
	free(p.body)
	p.body = nil
}

// answered takes the answer of another silo, or what stands for it.
func (p *parcel) answered(a transport.Answer) {
	x := p.outcome(a)
	p.ch.with(func() { p.item.Returned(x) })
}

// seal completes the envelope, or says why it can not leave.
func (p *parcel) seal(lane uint64) (f *message.Failure) {
	c, d := p.ch.c, p.d
	if p.body == nil {
		if p.body, f = c.pack(d); f != nil {
			return f
		}
	}
	var leave time.Duration
	if left, bounded := d.Budget().Remaining(c.mesh.Clock().Now()); bounded {
		if leave = left - hop(left); leave < hopLeast {
			return &message.Failure{Type: message.ShuttingDown, Target: d.Target().Path(), AnsweredBy: c.name, Reason: message.ReasonBudget,
				Message: fmt.Sprintf("%v are left to ask '%s' on another silo; nothing was sent", left.Round(time.Millisecond), d.Target())}
		}
	}
	seal(p.body.Bytes(), uint64(p.item.to.Epoch), lane, leave)
	return nil
}

// pack encodes a delivery, or says why it can not travel. The buffer is the caller's, to be given back
// with [free].
func (c *Cluster) pack(d *hub.Delivery) (*bytes.Buffer, *message.Failure) {
	e := envelope{Sender: c.sender, To: d.To(), From: d.From(), Type: d.TypeName(),
		Request: d.IsRequest(), Identity: d.Identity(), Properties: d.Properties(), Visited: d.Visited()}
	if b := d.Budget(); b.Deadline != 0 {
		e.Bound, e.By, e.Depth = b.Bound, b.By, b.Depth
	}
	if n, ok := d.Message().(*hub.Notice); ok {
		var err error
		if e.Payload, err = c.codec.encodeFailure(n.Failure); err != nil {
			return nil, c.unreadable(d, err)
		}
		return bytes.NewBuffer(e.append(nil)), nil
	}
	if _, known := c.codec.types[e.Type]; !known {
		return nil, c.unreadable(d, fmt.Errorf("messages of type '%s' do not leave their process", e.Type))
	}
	body, err := c.codec.encode(e.append, d.Message())
	if err != nil {
		return nil, c.unreadable(d, err)
	}
	return body, nil
}

// outcome takes the answer of another silo, or what stands for it.
func (p *parcel) outcome(a transport.Answer) Disposition {
	c, d := p.ch.c, p.d
	if a.Err != nil {
		return p.undelivered(a.Err)
	}
	if len(a.Body) == 0 {
		c.mesh.Refuse(d, c.unreadable(d, errEnvelope))
		return Answered
	}
	switch body := a.Body[1:]; a.Body[0] {
	case replyTaken:
		return Answered
	case replyValue:
		v := d.Wire().NewReply()
		if err := c.codec.decode(body, v); err != nil {
			c.mesh.Refuse(d, c.unreadable(d, err))
		} else {
			d.Answer(v)
		}
		return Answered
	case replyFailure:
		f, err := c.codec.decodeFailure(body)
		if err != nil {
			f = c.unreadable(d, err)
		}
		c.mesh.Refuse(d, f)
		return Answered
	case refusedGoing, refusedLane:
		return Deferred
	case refusedAbsent, refusedEpoch:
		p.forget()
		return Denied
	}
	c.mesh.Refuse(d, c.unreadable(d, errEnvelope))
	return Answered
}

// forget has the next resolution ask again.
func (p *parcel) forget() {
	c := p.ch.c
	c.turn.Do(func() { c.silo.Doubt(p.ch.key, p.item.to) })
}

// undelivered says what becomes of a message whose silo gave no answer.
func (p *parcel) undelivered(err error) Disposition {
	c, d := p.ch.c, p.d
	var unsent *transport.NotSentError
	var large *transport.TooLargeError
	switch {
	case errors.As(err, &large):
		c.mesh.Refuse(d, c.unreadable(d, large))
		return Answered
	case errors.As(err, &unsent) && unsent.Reason == transport.Overloaded:
		c.refuse(d, cluster.Refusal{Reason: cluster.Overloaded, By: c.name, Detail: "too much waits to be sent to the silo " + p.name})
		return Answered
	case errors.As(err, &unsent):
		p.forget()
		return Unsent
	}
	p.forget()
	c.count.lost.Add(1)
	if d.IsRequest() {
		c.mesh.Refuse(d, lost(c.name, d, err))
	}
	return Lost
}
