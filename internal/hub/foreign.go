package hub

import (
	"context"
	"reflect"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/lifecycle"
	"github.com/hubmesh/hubmesh/internal/message"
)

// maker returns a function that makes an empty T, where T is a pointer.
func maker[T any]() func() any {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer {
		return nil
	}
	elem := t.Elem()
	return func() any { return reflect.New(elem).Interface() }
}

// WireType is a message type as whoever carries messages between processes sees it.
type WireType struct{ info *typeInfo }

// Wire returns the type as it is on the wire.
func (t *Type[Req, Resp]) Wire() WireType { return WireType{&t.typeInfo} }

// Wire returns the delivery's type as it is on the wire.
func (d *Delivery) Wire() WireType { return WireType{d.info} }

// Name is the name on the wire.
func (w WireType) Name() string { return w.info.name }

// Flags are the flags of the type.
func (w WireType) Flags() message.Flags { return w.info.flags }

// NewRequest makes an empty request to decode into; nil where the type cannot travel.
func (w WireType) NewRequest() any {
	if w.info.request == nil {
		return nil
	}
	return w.info.request()
}

// NewReply makes an empty reply to decode into; nil where the type cannot travel.
func (w WireType) NewReply() any {
	if w.info.reply == nil {
		return nil
	}
	return w.info.reply()
}

// To is the address that the delivery is for. It must not be changed.
func (d *Delivery) To() *address.Address { return d.to }

// From is the address of the hub that sent the delivery, or nil. It must not be changed.
func (d *Delivery) From() *address.Address { return d.from }

// Awaited tells whether somebody in this process or behind it waits for an answer to the delivery. A
// delivery that nobody ever awaited is not.
func (d *Delivery) Awaited() bool { return d.slot != nil && d.slot.open(d.gen) }

// IsRequest tells whether an answer to the delivery was wanted.
func (d *Delivery) IsRequest() bool { return d.slot != nil }

// Properties returns the properties set by [WithProperty]. The map must not be changed.
func (d *Delivery) Properties() map[string]string {
	if r := d.extra.Load(); r != nil {
		return r.properties
	}
	return nil
}

// Refusal is why a delivery that nobody awaits was refused until now, or nil. Whoever has posted it asks once:
// of a refusal that comes later its sender's hub is told.
func (d *Delivery) Refusal() error { return d.refusal() }

// Foreign is a message that has come from another process.
type Foreign struct {
	Type       WireType
	Message    any
	Identity   *message.Identity
	From       *address.Address // nil: from outside any hub
	To         *address.Address
	Left       time.Duration // what its sender still waits; 0 is no bound
	Bound, By  budget.Bound
	Depth      uint8
	Properties map[string]string
	Visited    []string
	Answer     Answerer // nil: nobody awaits
}

// Answerer waits for the outcome of a request from another process.
type Answerer interface {
	// Answer gets the one outcome, on whatever goroutine brings it about; started says that a handler had
	// begun.
	Answer(value any, err error, started bool)
}

// Visitor is the room for a delivery from another process, so that it can be a part of what its carrier
// keeps of it. It is used once, since a handler may keep the delivery.
type Visitor struct {
	d        Delivery
	mesh     *Mesh
	answerer Answerer
}

// Receive makes a delivery of a message from another process, in v. A request lapses here when its
// sender's time is over, with what this process knows of it. The delivery is then to be offered to a hub,
// or failed.
func (m *Mesh) Receive(v *Visitor, f Foreign) *Delivery {
	now := m.clock.Now()
	v.mesh, v.answerer = m, f.Answer
	d := &v.d
	d.msg, d.info, d.who, d.from, d.to, d.posted, d.foreign = f.Message, f.Type.info, f.Identity, f.From, f.To, now, true
	if f.Left > 0 {
		d.budget = budget.Budget{Deadline: now + int64(f.Left), Bound: f.Bound, By: f.By, Depth: f.Depth}
	}
	if len(f.Properties) > 0 || len(f.Visited) > 0 {
		r := d.rare()
		r.properties, r.visited = f.Properties, f.Visited
	}
	if f.Answer == nil {
		return d
	}
	s, gen := m.slots.take()
	d.slot, d.gen = s, gen
	s.visitor = v
	s.cur.Store(d)
	s.state.Store(uint64(gen)<<stageBits | phasePending)
	if d.budget.Deadline != 0 {
		s.deadline.Store(d.budget.Deadline)
		m.sweeper.arm(d.budget.Deadline)
	}
	return d
}

// settle hands the outcome of a request on and gives its slot back.
func (v *Visitor) settle(st uint64, val any, err error) {
	m, started := v.mesh, st&startedBit != 0
	switch st & phaseMask {
	case phaseReplied:
		err = nil
	case phaseLapsed:
		err = m.ownLapse(&v.d, started)
	case phaseCancelled:
		if err == nil {
			err = context.Canceled
		}
	}
	m.slots.release(v.d.slot)
	v.answerer.Answer(val, err, started)
}

// ownLapse is the lapse of a request that came from elsewhere, told by the owner.
func (m *Mesh) ownLapse(d *Delivery, started bool) error {
	err := m.lapsed(d, started)
	if l, ok := err.(*budget.Lapse); ok {
		l.ReportedBy = budget.ByOwner
	}
	return err
}

// Offer posts a delivery to a hub unless that hub is on its way down or gone: then it is false, nothing
// was queued, and the delivery waits for another verdict. A quick handler of an idle hub runs at once, on
// the caller's goroutine.
func (m *Mesh) Offer(h *Hub, d *Delivery) bool {
	if !h.takes() {
		return false
	}
	if d.slot != nil && h.kind.quickFor(d.info) && h.quickVisit(d) {
		return true
	}
	return h.accept(d)
}

// Queue is Offer for who holds a lock that others wait for: it only queues, so that no handler runs on the
// caller's goroutine, and nobody is told anything: tell, where it is not nil, does that and is to be called
// without the lock.
func (m *Mesh) Queue(h *Hub, d *Delivery) (tell func(), taken bool) {
	if !h.takes() {
		return nil, false
	}
	return h.queue(d)
}

// takes tells whether a hub is neither on its way down nor gone.
func (h *Hub) takes() bool {
	flags := h.flags.Load()
	return flags&flagGone == 0 && lifecycle.Level(flags&levelMask) < lifecycle.DisposeHostedHubs
}

// quickVisit handles a request in a quick turn and answers it, if the hub is idle and open. Its caller
// brings the messages of many, so it does not wait for the quick turn of another caller.
func (h *Hub) quickVisit(d *Delivery) bool {
	if !d.slot.begin(d.gen) {
		h.mesh.stats.expired.Add(1)
		return true // its caller has gone
	}
	if !h.takeQuick(0) {
		d.slot.unbegin(d.gen)
		return false
	}
	d.hub = h
	v, err := h.quickRun(d)
	switch err {
	case nil:
		d.answer(v)
	case ErrNotQuick:
		d.slot.unbegin(d.gen)
		return false
	default:
		d.fail(h.failure(err))
	}
	return true
}
