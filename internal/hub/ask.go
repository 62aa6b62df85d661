package hub

import (
	"context"
	"fmt"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
)

// staleAfter is when a waiting request is reported as stale (messaging.md §1.4).
const staleAfter = 30 * time.Second

// Ask sends a request to the hub at an address (path form, or full form with hosts) and awaits its
// reply within the bound "request" or what is left of the caller's budget. The caller is who ctx says:
// the turn, the [Scope] or the identity in it. It fails with *message.Failure, *budget.Lapse,
// *budget.TooSmall, or the context's own error when ctx ends first.
func (t *Type[Req, Resp]) Ask(ctx context.Context, m *Mesh, to string, req Req) (Resp, error) {
	return t.AskWithin(ctx, m, to, req, budget.Request)
}

// AskWithin is Ask within another bound.
func (t *Type[Req, Resp]) AskWithin(ctx context.Context, m *Mesh, to string, req Req, w budget.Bound) (Resp, error) {
	v, err := m.ask(ctx, &t.typeInfo, to, nil, req, w)
	return typed[Resp](&t.typeInfo, v, err)
}

// AskHub is Ask of a hub that is at hand.
func (t *Type[Req, Resp]) AskHub(ctx context.Context, h *Hub, req Req) (Resp, error) {
	v, err := h.mesh.ask(ctx, &t.typeInfo, "", h, req, budget.Request)
	return typed[Resp](&t.typeInfo, v, err)
}

// AskFrom is AskWithin in the name of a process hub, to which the request and its waiting count: it is
// what the sender's snapshot shows, and it fails when that hub goes down.
func (t *Type[Req, Resp]) AskFrom(ctx context.Context, from *Hub, to string, req Req, w budget.Bound) (Resp, error) {
	v, err := from.mesh.ask(&sender{Context: ctx, hub: from}, &t.typeInfo, to, nil, req, w)
	return typed[Resp](&t.typeInfo, v, err)
}

// sender is a context in whose asks a process hub is the sender.
type sender struct {
	context.Context
	hub *Hub
}

func typed[Resp any](info *typeInfo, v any, err error) (Resp, error) {
	if r, ok := v.(Resp); ok && err == nil {
		return r, nil
	}
	var zero Resp
	if err == nil && v != nil {
		err = unexpected(info, v)
	}
	return zero, err
}

// caller is who asks, as read from a context.
type caller struct {
	who    *message.Identity
	budget budget.Budget
	turn   *Delivery // the turn in which the ask is made
	scope  *Scope
	hub    *Hub // the sender
	done   <-chan struct{}
}

func (m *Mesh) caller(ctx context.Context, now int64) caller {
	switch c := ctx.(type) {
	case *Delivery:
		return caller{who: c.who, budget: c.budget, turn: c, hub: c.hub}
	case *Scope:
		return c.caller(m, now)
	case *sender:
		in := m.caller(c.Context, now)
		in.hub = c.hub
		return in
	}
	who, below, peeled := message.Peel(ctx)
	if peeled && below == context.Background() {
		return caller{who: who}
	}
	c := caller{who: message.IdentityFrom(ctx), budget: budget.From(ctx), done: ctx.Done()}
	if d, ok := ctx.Value(deliveryKey{}).(*Delivery); ok {
		c.turn, c.hub = d, d.hub
	}
	if at, ok := ctx.Deadline(); ok {
		deadline := now + int64(time.Until(at))
		if c.budget.Deadline == 0 || deadline < c.budget.Deadline {
			c.budget.Deadline, c.budget.Bound, c.budget.By = deadline, budget.None, budget.None
		}
	}
	return c
}

// identify applies the rule of messaging.md §1.6: the caller's identity, else the system's for hubs
// that are declared so, else a failure.
func (m *Mesh) identify(c *caller, info *typeInfo) *message.Failure {
	if c.who != nil && c.who.Subject != "" {
		return nil
	}
	c.who = nil
	if info.flags&(message.System|message.Ignorable) != 0 {
		return nil
	}
	if c.hub != nil && c.hub.kind.System {
		c.who = message.SystemIdentity()
		return nil
	}
	sender := "outside"
	if c.hub != nil {
		sender = c.hub.addr.Path()
	}
	m.log.Error("AccessContext must never be null", "operation", info.name, "sender", sender)
	return &message.Failure{Type: message.Rejected, Operation: info.name, Reason: message.ReasonNoIdentity,
		Message: fmt.Sprintf("'%s' was posted without an identity; pass a context that carries one", info.name)}
}

func (m *Mesh) ask(ctx context.Context, info *typeInfo, to string, h *Hub, msg any, w budget.Bound) (any, error) {
	now := m.clock.Now()
	c := m.caller(ctx, now)
	if f := m.identify(&c, info); f != nil {
		return nil, f
	}
	b, err := m.bounds.Take(c.budget, now, w)
	if err != nil {
		return nil, err
	}
	d := &Delivery{msg: msg, info: info, who: c.who, budget: b, posted: now}
	if c.hub != nil {
		d.from = &c.hub.addr
	}
	if h == nil {
		if h, err = m.locate(d, to); err != nil {
			return nil, err
		}
	} else {
		d.to = &h.addr
	}
	if t := c.turn; t != nil {
		if t.hub.flags.Load()&flagQuick != 0 && t.hub.cur.Load() == t {
			return nil, &message.Failure{Type: message.Failed, Operation: info.name, Target: d.to.Path(), AnsweredBy: t.hub.addr.Path(),
				Reason: message.ReasonSelfAsk, Message: "a quick turn may not ask"}
		}
		if h != nil && t.hub == h && h.cur.Load() == t {
			return nil, &message.Failure{Type: message.Failed, Operation: info.name, Target: h.addr.Path(), AnsweredBy: h.addr.Path(),
				Reason: message.ReasonSelfAsk, Message: "a turn may not ask its own hub: it would wait for itself"}
		}
	}
	if h != nil && h.kind.quickFor(info) {
		if v, err, ok := h.quickTurn(d); ok {
			return v, err
		}
	}
	return m.await(ctx, &c, d, h)
}

// await posts a request and waits for its one outcome.
func (m *Mesh) await(ctx context.Context, c *caller, d *Delivery, h *Hub) (any, error) {
	s, gen := m.slots.take()
	d.slot, d.gen = s, gen
	s.cur.Store(d)
	if c.hub != nil {
		s.owner.Store(c.hub)
		if c.hub.flags.Load()&flagAsked == 0 {
			c.hub.mu.Lock()
			c.hub.setFlags(flagAsked, 0)
			c.hub.mu.Unlock()
		}
	}
	if c.scope != nil {
		s.scope.Store(c.scope)
	}
	s.state.Store(uint64(gen)<<stageBits | phasePending)
	s.deadline.Store(d.budget.Deadline)
	m.sweeper.arm(min(d.budget.Deadline, d.posted+int64(staleAfter)))
	if c.turn != nil {
		c.turn.inner.Add(1)
		defer c.turn.inner.Add(-1)
	}
	// Whatever ends callers sets its mark first and then walks the slots; here the slot is published
	// first and then the marks are read, so one of the two sees the other.
	if c.scope != nil && c.scope.ended.Load() {
		s.complete(gen, phaseCancelled, nil, c.scope.reason())
	}
	if c.hub != nil && c.hub.flags.Load()&levelMask >= levelShutDown {
		s.complete(gen, phaseFailed, nil, c.hub.disposing())
	}
	if h != nil {
		m.deliver(h, d)
	} else {
		m.route(d)
	}
	if c.done == nil {
		<-s.wake
	} else {
		select {
		case <-s.wake:
		case <-c.done:
			if ctx.Err() == context.DeadlineExceeded && s.complete(gen, phaseLapsed, nil, nil) {
				<-s.wake // the context's deadline is a lapse like any other, with its diagnosis
				break
			}
			s.complete(gen, phaseCancelled, nil, ctx.Err())
			<-s.wake
		}
	}
	st := s.state.Load()
	val, err := s.val, s.err
	m.slots.release(s)
	switch st & phaseMask {
	case phaseReplied:
		return val, nil
	case phaseLapsed:
		return nil, m.lapsed(d, st&startedBit != 0)
	case phaseCancelled:
		if err == nil {
			err = context.Canceled
		}
	}
	return nil, err
}

// lapsed describes a wait that ended without an answer, with what this process knows of the target.
func (m *Mesh) lapsed(d *Delivery, started bool) error {
	own := m.bounds.Own(d.budget.By)
	if d.budget.By == budget.None {
		own = time.Duration(d.budget.Deadline - d.posted)
	}
	l := &budget.Lapse{Bound: d.budget.Bound, By: d.budget.By, Size: own, Elapsed: m.since(d.posted),
		Operation: d.info.name, Target: d.to.String(), ReportedBy: budget.ByCaller, Progress: budget.Unobserved}
	probe := m.Probe(d.to.Path(), nil)
	switch {
	case started:
		l.Progress = budget.Started
	case probe.Found:
		l.Progress = budget.NotStarted
	}
	l.Clause = probe.Discreet().Clause() // the caller may be anybody
	return l
}

// locate finds the hub that an address names in this process, and sets the target of d. It returns nil
// where the router has to find it.
func (m *Mesh) locate(d *Delivery, to string) (*Hub, error) {
	if h := m.registry.find(to); h != nil {
		d.to = &h.addr
		return h, nil
	}
	a, err := m.addresses.Parse(to)
	if err != nil {
		return nil, &message.Failure{Type: message.NotFound, Operation: d.info.name, Message: err.Error(), Cause: err}
	}
	d.to = a
	if a.Path() == to {
		return nil, nil // as was found above
	}
	return m.local(*a), nil
}

// Local returns the hub of an address in this process, hosts included, or nil.
func (m *Mesh) Local(a address.Address) *Hub { return m.local(a) }

// local finds the hub of an address in this process, through its hosts, or nil.
func (m *Mesh) local(a address.Address) *Hub {
	host, hosted := a.Host()
	if !hosted {
		return m.registry.find(a.Path())
	}
	if h := m.local(host); h != nil {
		// messaging.md §1.10: a host equal to the mesh hub is stripped.
		if h == m.root {
			return m.registry.find(a.Path())
		}
		return h.Hosted(a.Path())
	}
	return nil
}

// PostOption sets what few posts need.
type PostOption func(*Delivery)

// WithProperty sets a property of the delivery.
func WithProperty(name, value string) PostOption {
	return func(d *Delivery) {
		r := d.rare()
		if r.properties == nil {
			r.properties = map[string]string{}
		}
		r.properties[name] = value
	}
}

// Post sends a message that nobody awaits. The error says that it was refused at once; a failure that
// comes later reaches the sender's hub as a [Notice]. It is one of the two, never both. Nobody is told of what waits in a
// hub that goes down (messaging.md §1.12) or at a silo that dies or is put out: ask where the outcome matters.
func (t *Type[Req, Resp]) Post(ctx context.Context, m *Mesh, to string, msg Req, opts ...PostOption) error {
	return m.post(ctx, &t.typeInfo, to, nil, msg, opts)
}

// PostHub is Post to a hub that is at hand.
func (t *Type[Req, Resp]) PostHub(ctx context.Context, h *Hub, msg Req, opts ...PostOption) error {
	return h.mesh.post(ctx, &t.typeInfo, "", h, msg, opts)
}

func (m *Mesh) post(ctx context.Context, info *typeInfo, to string, h *Hub, msg any, opts []PostOption) error {
	now := m.clock.Now()
	c := m.caller(ctx, now)
	if f := m.identify(&c, info); f != nil {
		return f
	}
	d := &Delivery{msg: msg, info: info, who: c.who, budget: c.budget, posted: now}
	if c.hub != nil {
		d.from = &c.hub.addr
	}
	for _, o := range opts {
		o(d)
	}
	var err error
	if h == nil {
		if h, err = m.locate(d, to); err != nil {
			return err
		}
	} else {
		d.to = &h.addr
	}
	if h == nil {
		m.route(d)
	} else {
		m.deliver(h, d)
	}
	return d.refusal()
}
