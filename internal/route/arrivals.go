package route

import (
	"errors"
	"fmt"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
)

// arrival is a delivery that another silo has sent.
type arrival struct {
	visitor hub.Visitor
	c       *Cluster
	d       *hub.Delivery // made in visitor
	sender  uint64        // of the lane
	lane    uint64
	key     string   // the address that names the silo
	host    *hub.Hub // its hub, if it is here
	reply   func([]byte)
	node    bool // key is a node path
	request bool
	code    byte // set: a refusal that the lane at the sender acts on
}

// Deliver implements cluster.Deliveries. It runs on the reader of the sender's connection, in order of
// arrival, and does not block. Nothing of body is kept.
func (c *Cluster) Deliver(_ transport.Peer, body []byte, reply func([]byte)) {
	c.count.arrived.Add(1)
	var e envelope
	if err := c.reads.read(body, &e); err != nil {
		c.log.Error("A silo sent a delivery that can not be read", "error", err)
		reply(c.failed(&message.Failure{Type: message.Failed, AnsweredBy: c.name, Reason: message.ReasonUnreadable, Message: err.Error()}))
		return
	}
	// The transport closes the connections that spoke to an earlier epoch, but a frame that it has read by then still
	// comes here, and what is put out stops its hubs before the transport hears of it.
	if e.Epoch != c.self.Load() || e.Epoch == 0 {
		reply([]byte{refusedEpoch})
		return
	}
	a := &arrival{c: c, reply: reply, sender: e.Sender, lane: e.Lane, request: e.Request}
	if f := a.open(&e); f != nil {
		reply(c.failed(f))
		return
	}
	if c.fenced.Load() {
		c.mu.Lock()
		blocked := c.fences.Blocks(a.sender, a.key, a.lane, c.turn.Now())
		c.fenced.Store(c.fences.Any())
		c.mu.Unlock()
		if blocked {
			a.refuse(refusedLane)
			return
		}
	}
	if a.node {
		a.toNode()
		return
	}
	a.toProcess()
}

// open makes a delivery of the envelope.
func (a *arrival) open(e *envelope) *message.Failure {
	c := a.c
	to := e.To
	f := hub.Foreign{Identity: e.Identity, From: e.From, To: to, Left: e.Left, Bound: e.Bound, By: e.By, Depth: e.Depth, Properties: e.Properties, Visited: e.Visited}
	var err error
	if f.Type, f.Message, err = c.unpack(e); err != nil {
		return &message.Failure{Type: message.Failed, Target: to.Path(), AnsweredBy: c.name, Reason: message.ReasonUnreadable, Operation: e.Type,
			Message: fmt.Sprintf("'%s' to '%s' can not be read by silo %s: %v", e.Type, to, c.name, err)}
	}
	if e.Request {
		f.Answer = a
	}
	// Only what has a target is received: a request that is has its one answer from then on.
	if err = a.find(*to); err != nil {
		return &message.Failure{Type: message.NotFound, Target: to.Path(), AnsweredBy: c.name, Reason: message.ReasonNoEntry, Message: err.Error()}
	}
	a.d = c.mesh.Receive(&a.visitor, f)
	return nil
}

// find finds the address that names the silo, and its hub. A path at which there is a hub is legal.
func (a *arrival) find(to address.Address) (err error) {
	if !hosted(to) {
		if a.host = a.c.mesh.Find(to.Path()); a.host != nil {
			a.key, a.node = to.Path(), !IsProcessAddress(to.Type())
			return nil
		}
	}
	if a.key, a.node, err = target(to); err == nil {
		a.host = a.c.mesh.Find(a.key)
	}
	return err
}

func hosted(a address.Address) bool {
	_, is := a.Host()
	return is
}

func (c *Cluster) unpack(e *envelope) (hub.WireType, any, error) {
	if e.Type == hub.Failed.Name() {
		f, err := c.codec.decodeFailure(e.Payload)
		return hub.Failed.Wire(), &hub.Notice{Failure: f}, err
	}
	t, known := c.codec.types[e.Type]
	if !known {
		return t, nil, fmt.Errorf("messages of type '%s' are not taken from other silos", e.Type)
	}
	v := t.NewRequest()
	return t, v, c.codec.decode(e.Payload, v)
}

func (c *Cluster) failed(err error) []byte {
	b, e := c.codec.encodeFailure(err)
	if e != nil {
		c.log.Error("A failure can not be carried to another silo", "error", e)
		f := *message.Classify(err)
		f.Cause = nil
		if b, e = c.codec.encodeFailure(&f); e != nil {
			return []byte{0}
		}
	}
	return append([]byte{replyFailure}, b...)
}

func headValue(b []byte) []byte { return append(b, replyValue) }

// Answer implements hub.Answerer: it sends the one outcome of a request back.
func (a *arrival) Answer(value any, err error, started bool) {
	switch {
	case a.code != 0:
		a.reply([]byte{a.code})
	case err == nil:
		b, e := a.c.codec.encode(headValue, value)
		if e != nil {
			a.reply(a.c.failed(a.c.unreadable(a.d, e)))
			return
		}
		a.reply(b.Bytes())
		free(b)
	case !started && a.turnedAway(err):
		// Its hub went down before its turn came: nothing was executed, so its sender may look again.
		a.fence()
		a.reply([]byte{refusedGoing})
	default:
		a.reply(a.c.failed(err))
	}
}

// turnedAway tells whether err is that of a target which goes down, or of its whole process.
func (a *arrival) turnedAway(err error) bool {
	var f *message.Failure
	return errors.As(err, &f) && (f.Reason == message.ReasonStopping || f.Reason == message.ReasonNoSilo) && (f.AnsweredBy == a.d.Target().Path() || f.AnsweredBy == a.c.nodes.name())
}

func (a *arrival) fence() {
	a.c.mu.Lock()
	a.c.fences.Raise(a.sender, a.key, a.lane, a.c.turn.Now())
	a.c.fenced.Store(true)
	a.c.mu.Unlock()
}

// refuse has the sender's lane look for the target again.
func (a *arrival) refuse(code byte) {
	a.fence()
	a.code = code
	if a.request {
		a.d.Fail(&message.Failure{Type: message.ShuttingDown, AnsweredBy: a.c.name, Reason: message.ReasonUnknown})
		return
	}
	a.reply([]byte{code})
}

// posted ends an arrival that was posted to a hub. Nobody awaits a post, but its sender is told that it is in
// the inbox, or why not. Of a refusal that comes later the hub tells it: once in either case.
func (a *arrival) posted() {
	if a.request {
		return
	}
	if err := a.d.Refusal(); err != nil {
		a.reply(a.c.failed(err))
		return
	}
	a.reply([]byte{replyTaken})
}

func (a *arrival) toProcess() {
	if a.host == nil {
		a.refuse(refusedAbsent)
		return
	}
	h := a.host
	if to := a.d.Target(); hosted(to) {
		h = a.c.mesh.Local(to)
	}
	switch {
	case h == nil:
		a.reject(unhosted(a.host, a.d))
	case !a.c.mesh.Offer(h, a.d):
		a.refuse(refusedGoing)
	default:
		a.posted()
	}
}

// reject answers an arrival with a failure that is final.
func (a *arrival) reject(f *message.Failure) {
	if a.request {
		a.d.Fail(f)
		return
	}
	a.reply(a.c.failed(f))
}

// toNode posts an arrival to a node hub. Where there is none, the grant may be under way, or its hub may
// be about to start or on its way down: that is for the turn to say.
func (a *arrival) toNode() {
	if a.host != nil && a.c.mesh.Offer(a.host, a.d) {
		a.posted()
		return
	}
	a.c.turn.Do(func() { a.c.admit(a) })
}

// maxParked bounds the deliveries that wait for one grant; more are refused.
const maxParked = 512

// admit decides about an arrival for a node that has no hub here yet. It runs on the turn.
func (c *Cluster) admit(a *arrival) {
	if _, granted := c.silo.Claims.Serves(a.key); granted {
		switch x, tell := c.nodes.take(a.key, a.d); {
		case tell != nil:
			c.turn.Later(func() {
				tell()
				a.posted()
			})
		case x == Answered:
			a.posted()
		default:
			a.refuse(refusedGoing)
		}
		return
	}
	if !c.silo.Claims.Claims(a.key) {
		a.refuse(refusedAbsent)
		return
	}
	if len(c.parked[a.key]) >= maxParked {
		a.reject(failure(a.d, cluster.Refusal{Reason: cluster.Overloaded, By: c.name, Detail: "too many messages wait for its grant"}))
		return
	}
	first := len(c.parked[a.key]) == 0
	c.parked[a.key] = append(c.parked[a.key], a)
	if first {
		c.silo.Claims.Await(a.key, func() {
			waiting := c.parked[a.key] // with the grant its hub has taken them
			delete(c.parked, a.key)
			for _, a := range waiting {
				a.refuse(refusedAbsent)
			}
		})
	}
}
