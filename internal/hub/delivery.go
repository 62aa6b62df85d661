package hub

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
)

// Delivery is one message on its way (messaging.md §1.3). What the sender set is immutable. It is also
// the context of the turn that handles it: its deadline is the travelling one, its values are the
// identity and the budget, and it ends with the hub. Deliveries are never pooled, so a handler may
// keep one.
type Delivery struct {
	next *Delivery // list link, owned by whichever list holds the delivery

	msg  any
	info *typeInfo
	who  *message.Identity
	from *address.Address // nil: from outside any hub
	to   *address.Address

	budget  budget.Budget
	slot    *slot // nil: nobody awaits
	gen     uint32
	inner   atomic.Int32  // asks of this turn that are pending in this process
	posted  int64         // reading of the mesh clock
	foreign bool          // it came from another process
	post    atomic.Uint32 // of one that nobody awaits: who hears of its refusal

	hub   *Hub         // whose turn it is; set once when the turn starts
	start atomic.Int64 // when its turn started; 0 before
	extra atomic.Pointer[rare]
}

// rare holds what few deliveries need.
type rare struct {
	mu         sync.Mutex
	properties map[string]string
	visited    []string // hubs that forwarded it
	state      message.State
	refusal    *message.Failure // why a post was not taken
	deferredAt int64
	due        int64 // when a deferred delivery is answered

	done      chan struct{}
	err       error
	timer     *time.Timer
	after     map[int]func()
	lastAfter int

	audited bool // test builds: sum is the message's fingerprint at post
	sum     uint64
}

func (d *Delivery) rare() *rare {
	if r := d.extra.Load(); r != nil {
		return r
	}
	d.extra.CompareAndSwap(nil, &rare{})
	return d.extra.Load()
}

// Message is the payload; it is immutable from post on.
func (d *Delivery) Message() any { return d.msg }

// TypeName is the wire name of the message type.
func (d *Delivery) TypeName() string { return d.info.name }

// Flags are the flags of the message type.
func (d *Delivery) Flags() message.Flags { return d.info.flags }

// Identity is whoever the delivery acts for; nil on system messages only.
func (d *Delivery) Identity() *message.Identity { return d.who }

// Sender is the address of the hub that sent it; the zero address when it came from outside.
func (d *Delivery) Sender() address.Address {
	if d.from == nil {
		return address.Address{}
	}
	return *d.from
}

// Target is the address it is for.
func (d *Delivery) Target() address.Address { return *d.to }

// Budget is the travelling deadline.
func (d *Delivery) Budget() budget.Budget { return d.budget }

// Property returns a property set by [WithProperty], or "".
func (d *Delivery) Property(name string) string {
	if r := d.extra.Load(); r != nil {
		return r.properties[name]
	}
	return ""
}

// State is where the delivery stands.
func (d *Delivery) State() message.State {
	if r := d.extra.Load(); r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.state
	}
	if d.start.Load() != 0 {
		return message.Processed
	}
	return message.Submitted
}

func (d *Delivery) setState(s message.State) {
	r := d.rare()
	r.mu.Lock()
	r.state = s
	r.mu.Unlock()
}

// Visited lists the hubs that forwarded the delivery, first one first.
func (d *Delivery) Visited() []string {
	if r := d.extra.Load(); r != nil {
		return r.visited
	}
	return nil
}

// ID is the correlation id: slot and generation for a request, "-" for anything nobody awaits.
func (d *Delivery) ID() string {
	if d.slot == nil {
		return "-"
	}
	return correlation(d.slot.index, d.gen)
}

// Answer replies to the delivery with value. Later answers do nothing.
func (d *Delivery) Answer(value any) { d.answer(value) }

// Fail answers the delivery with a failure. Later answers do nothing.
func (d *Delivery) Fail(err error) { d.fail(message.Classify(err)) }

func (d *Delivery) answer(value any) {
	if d.slot != nil {
		d.slot.complete(d.gen, phaseReplied, value, nil)
	}
	d.finish(nil)
}

// fail answers a request with f. The failure of a delivery that nobody awaits goes to the sender's hub
// as a notice, unless the message is ignorable or is itself such a notice (NACK policy, §1.10).
func (d *Delivery) fail(f *message.Failure) {
	f = d.named(f)
	if d.slot != nil {
		d.slot.complete(d.gen, phaseFailed, nil, f)
		d.finish(f)
		return
	}
	if d.hub != nil {
		d.hub.mesh.notify(d, f)
	}
	d.finish(f)
}

// named is f with the target and the operation of the delivery where it names none.
func (d *Delivery) named(f *message.Failure) *message.Failure {
	if f.Target != "" && f.Operation != "" {
		return f
	}
	c := *f
	if c.Target == "" {
		c.Target = d.to.Path()
	}
	if c.Operation == "" {
		c.Operation = d.info.name
	}
	return &c
}

// Whoever posts a delivery that nobody awaits holds it until it has looked whether it was refused. A refusal is
// its to return until then, and the sender's hub is told of one that comes later: always one of the two.
const (
	postHeld    uint32 = iota
	postLet            // whoever posted it has looked
	postRefused        // it was refused before that
)

// giveBack refuses a delivery that nobody awaits towards whoever posts it; false when that has let go of it.
func (d *Delivery) giveBack(f *message.Failure) bool {
	r := d.rare()
	r.mu.Lock()
	r.state, r.refusal = message.FailedState, d.named(f)
	r.mu.Unlock()
	return d.post.CompareAndSwap(postHeld, postRefused)
}

// refusal lets go of a delivery that nobody awaits, and is why it was refused until now, or nil.
func (d *Delivery) refusal() error {
	if d.post.CompareAndSwap(postHeld, postLet) || d.post.Load() == postLet {
		return nil
	}
	r := d.rare()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusal
}

// finish ends the delivery as a context, for those who wait on its Done.
func (d *Delivery) finish(err error) {
	r := d.extra.Load()
	if r == nil {
		return
	}
	if err == nil {
		err = context.Canceled
	}
	d.end(r, err)
}

func (d *Delivery) end(r *rare, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	r.err = err
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.done != nil {
		close(r.done)
	}
	for n, f := range r.after {
		delete(r.after, n)
		go f()
	}
}

// forward retargets the delivery: a copy that is Submitted again and remembers the hubs it visited.
// A hub that it would come back to is a loop, which is answered.
func (d *Delivery) forward(to string) error {
	target, err := address.Parse(to)
	if err != nil {
		return &message.Failure{Type: message.NotFound, Message: err.Error(), Cause: err}
	}
	visited := append(append([]string(nil), d.Visited()...), d.hub.addr.Path())
	for _, v := range visited {
		if v == target.Path() {
			return &message.Failure{Type: message.RoutingLoop, Reason: message.ReasonLoop, AnsweredBy: d.hub.addr.Path(),
				Message: "the delivery came back to '" + v + "', which had forwarded it"}
		}
	}
	if len(visited) > address.MaxHosts {
		return &message.Failure{Type: message.RoutingLoop, Reason: message.ReasonLoop, AnsweredBy: d.hub.addr.Path(),
			Message: "forwarded more than 50 times"}
	}
	c := &Delivery{msg: d.msg, info: d.info, who: d.who, from: d.from, to: &target,
		budget: d.budget, slot: d.slot, gen: d.gen, posted: d.posted, foreign: d.foreign}
	r := &rare{visited: visited}
	if old := d.extra.Load(); old != nil {
		r.properties = old.properties
	}
	c.extra.Store(r)
	c.post.Store(postLet)
	d.setState(message.Forwarded)
	if d.slot != nil {
		d.slot.unbegin(d.gen)
		d.slot.cur.Store(c)
	}
	d.hub.mesh.dispatch(c)
	return nil
}

// Deadline implements context.Context with the travelling deadline.
func (d *Delivery) Deadline() (time.Time, bool) {
	if d.budget.Deadline == 0 || d.hub == nil {
		return time.Time{}, false
	}
	return d.hub.mesh.clock.Time(d.budget.Deadline), true
}

// Done implements context.Context. The channel is made on first use; it closes when the deadline
// passes, the hub is disposed, or the request has been answered.
func (d *Delivery) Done() <-chan struct{} {
	r := d.rare()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done == nil {
		r.done = make(chan struct{})
		if r.err != nil {
			close(r.done)
			return r.done
		}
		if d.budget.Deadline != 0 && d.hub != nil {
			left := time.Duration(d.budget.Deadline - d.hub.mesh.clock.Now())
			r.timer = time.AfterFunc(max(left, 0), func() { d.end(r, context.DeadlineExceeded) })
		}
	}
	return r.done
}

// Err implements context.Context.
func (d *Delivery) Err() error {
	r := d.extra.Load()
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.err {
	case nil, context.DeadlineExceeded, context.Canceled:
		return r.err
	default:
		return context.Canceled
	}
}

type deliveryKey struct{}

// Value implements context.Context: identity, budget and the delivery itself.
func (d *Delivery) Value(key any) any {
	switch key {
	case message.IdentityKey():
		if d.who == nil {
			return nil
		}
		return d.who
	case budget.ContextKey():
		return d.budget
	case deliveryKey{}:
		return d
	}
	return nil
}

// From returns the delivery whose turn ctx belongs to.
func From(ctx context.Context) (*Delivery, bool) {
	if d, ok := ctx.(*Delivery); ok {
		return d, true
	}
	d, ok := ctx.Value(deliveryKey{}).(*Delivery)
	return d, ok
}

// Self returns the hub whose turn ctx belongs to, or nil.
func Self(ctx context.Context) *Hub {
	if d, ok := From(ctx); ok {
		return d.hub
	}
	return nil
}

// AfterFunc lets package context derive from a delivery without a goroutine that waits.
func (d *Delivery) AfterFunc(f func()) (stop func() bool) {
	d.Done() // arms the deadline
	r := d.rare()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		go f()
		return func() bool { return false }
	}
	if r.after == nil {
		r.after = map[int]func(){}
	}
	r.lastAfter++
	n := r.lastAfter
	r.after[n] = f
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		_, waiting := r.after[n]
		delete(r.after, n)
		return waiting
	}
}
