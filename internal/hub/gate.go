package hub

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/lifecycle"
	"github.com/hubmesh/hubmesh/internal/message"
)

// admit decides about a delivery on a hub that is not simply open. It is false when the delivery was
// deferred or answered.
func (h *Hub) admit(d *Delivery, now int64) bool {
	if d.info.flags.Has(message.Lifecycle) {
		return true
	}
	if h.Level() >= lifecycle.DisposeHostedHubs {
		h.turnAway(d)
		return false
	}
	if h.flags.Load()&flagFailed != 0 {
		// After a failed start no handler runs (architecture.md, decision 12).
		h.refuseFailedStart(d)
		return false
	}
	shut := h.gates()
	if shut == 0 || passesGates(d.info) || h.everyGateAdmits(shut, d) {
		return true
	}
	h.postpone(d, now)
	return false
}

func (h *Hub) everyGateAdmits(shut uint32, d *Delivery) bool {
	if shut&1 != 0 {
		return false
	}
	for i, g := range h.kind.gates {
		if shut&(2<<i) != 0 && (g.Admits == nil || !g.Admits(d)) {
			return false
		}
	}
	return true
}

func (h *Hub) refuseFailedStart(d *Delivery) {
	cause := h.InitialisationError()
	f := message.Classify(cause)
	if f.Type == message.Unknown {
		f = &message.Failure{Type: message.Failed, Reason: message.ReasonInit, Cause: cause,
			Message: fmt.Sprintf("hub '%s' could not start: %v", h.addr, cause)}
	}
	c := *f
	c.AnsweredBy = h.addr.Path()
	d.refused(&c)
}

// postpone puts a delivery behind the closed gates, or refuses it where too many wait. It waits at most
// the bound "defer", and is answered early enough for the answer to reach a caller in its budget.
func (h *Hub) postpone(d *Delivery, now int64) {
	due := now + int64(h.mesh.bounds.Own(budget.Defer))
	if d.budget.Deadline != 0 {
		remaining := time.Duration(d.budget.Deadline - now)
		due = min(due, max(d.budget.Deadline-int64(budget.Margin(remaining)), now))
	}
	h.mu.Lock()
	e := h.more()
	if h.gates() == 0 {
		// The last gate has opened since: take the turn after those that were deferred before.
		h.mu.Unlock()
		h.requeue(d)
		return
	}
	if e.deferN >= h.kind.limits.Deferred {
		logIt := !e.stuckLogged
		e.stuckLogged = true
		h.mu.Unlock()
		if logIt {
			h.mesh.log.Error("GATE-STUCK", "address", h.addr.Path(), "gates", h.closedGates(), "deferred", h.kind.limits.Deferred)
		}
		h.mesh.stats.overloaded.Add(1)
		h.refuseOverloaded(d, fmt.Sprintf("%d messages wait behind %s", h.kind.limits.Deferred, h.closedGates()))
		return
	}
	r := d.rare()
	r.deferredAt, r.due = now, due
	if e.deferTail == nil {
		e.deferHead = d
	} else {
		e.deferTail.next = d
	}
	e.deferTail = d
	e.deferN++
	earlier := e.deferDue == 0 || due < e.deferDue
	if earlier {
		e.deferDue = due
	}
	h.mu.Unlock()
	h.mesh.stats.deferred.Add(1)
	if earlier {
		h.mesh.sweeper.watch(h, due)
	}
}

// requeue puts d in front of the inbox: it was taken before whatever waits there.
func (h *Hub) requeue(d *Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d.next = h.head
	h.head = d
	if h.tail == nil {
		h.tail = d
	}
	h.n++
}

// expireDeferred answers the deferred deliveries that are due, with the owner's own knowledge, and
// returns when the next one is due; 0 is "none". It runs on the sweeper.
func (h *Hub) expireDeferred(now int64) int64 {
	h.mu.Lock()
	e := h.ext.Load()
	if e == nil || e.deferN == 0 {
		h.mu.Unlock()
		return 0
	}
	var gone, kept, keptTail *Delivery
	next := int64(0)
	for d := e.deferHead; d != nil; {
		following := d.next
		r := d.extra.Load()
		if r.due <= now || (d.slot != nil && !d.slot.open(d.gen)) {
			d.next = gone
			gone = d
			e.deferN--
		} else {
			d.next = nil
			if keptTail == nil {
				kept = d
			} else {
				keptTail.next = d
			}
			keptTail = d
			if next == 0 || r.due < next {
				next = r.due
			}
		}
		d = following
	}
	e.deferHead, e.deferTail, e.deferDue = kept, keptTail, next
	h.mu.Unlock()
	for gone != nil {
		d := gone
		gone = d.next
		d.next = nil
		h.mesh.stats.deferExpired.Add(1)
		d.fail(h.stillStarting(d, now))
	}
	return next
}

// stillStarting is the owner's early answer: a lapse that says which gates are closed, and since when.
func (h *Hub) stillStarting(d *Delivery, now int64) *message.Failure {
	r := d.extra.Load()
	by, size := budget.Defer, h.mesh.bounds.Own(budget.Defer)
	if r.due < r.deferredAt+int64(size) {
		by = d.budget.By
		size = time.Duration(d.budget.Deadline - d.posted)
	}
	l := &budget.Lapse{Bound: budget.Defer, By: by, Size: size, Elapsed: time.Duration(now - d.posted), Operation: d.info.name,
		Target: h.addr.Path(), ReportedBy: budget.ByOwner, Progress: budget.NotStarted,
		Clause: "STILL STARTING: " + h.closedGatesFor(now)}
	return &message.Failure{Type: message.ShuttingDown, Reason: message.ReasonStarting, AnsweredBy: h.addr.Path(),
		Message: l.Error(), RetryAfter: time.Second, Cause: l}
}

// closedGates names the closed gates.
func (h *Hub) closedGates() string {
	var names []string
	shut := h.gates()
	for i := range len(h.kind.gates) + 1 {
		if shut&(1<<i) != 0 {
			names = append(names, "'"+h.kind.gateName(i)+"'")
		}
	}
	return strings.Join(names, ", ")
}

// closedGatesFor names the closed gates, the step of the start and how long it has been going on.
func (h *Hub) closedGatesFor(now int64) string {
	names := h.closedGates()
	if names == "" {
		return "no gate is closed"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	step := ""
	born := now
	if e := h.ext.Load(); e != nil {
		if e.initStep != "" {
			step = " at '" + e.initStep + "'"
		}
		born = e.born
	}
	return fmt.Sprintf("gate %s closed for %v%s", names, time.Duration(now-born).Round(time.Millisecond), step)
}

// OpenGate opens a named gate for good. Opening an open gate does nothing.
func (h *Hub) OpenGate(name string) error {
	for i := range h.kind.gates {
		if h.kind.gates[i].Name == name {
			h.openGates(2 << i)
			return nil
		}
	}
	return fmt.Errorf("hub: kind '%s' has no gate '%s'", h.kind.name, name)
}

// openGates opens gates by mask. What every gate that is still closed admits leaves the deferred queue
// and goes in front of the inbox in its order; with the last gate that is everything, and the hub is
// Started.
func (h *Hub) openGates(mask uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.gates()
	after := before &^ mask
	h.setFlags(after<<gateShift, before<<gateShift)
	if before == after {
		return
	}
	e := h.more()
	if after == 0 {
		if h.Level() == lifecycle.Starting {
			h.raise(lifecycle.Started)
		}
		e.stuckLogged = false
		if e.startedDone != nil {
			close(e.startedDone)
			e.startedDone = nil
		}
	}
	free, n := e.releaseDeferred(func(d *Delivery) bool { return after == 0 || h.everyGateAdmits(after, d) })
	if free.head == nil {
		return
	}
	// What the running turn has taken as its batch arrived later than what was deferred, and earlier
	// than the inbox: it is put back between the two.
	if b := h.batch.Swap(nil); b != nil {
		free.push(b)
		for n++; free.tail.next != nil; n++ {
			free.tail = free.tail.next
		}
	}
	free.tail.next = h.head
	if h.head == nil {
		h.tail = free.tail
	}
	h.head = free.head
	h.n += n
	if f := h.flags.Load(); f&(flagRunning|flagGone) == 0 {
		h.setFlags(flagRunning, 0)
		h.spawnRun()
	}
}

// chain is a list of deliveries.
type chain struct{ head, tail *Delivery }

func (c *chain) push(d *Delivery) {
	if c.tail == nil {
		c.head = d
	} else {
		c.tail.next = d
	}
	c.tail = d
}

// releaseDeferred takes the deliveries that free accepts out of the deferred queue, in order. The
// caller holds mu.
func (e *extra) releaseDeferred(free func(*Delivery) bool) (out chain, n int32) {
	var kept chain
	for d := e.takeDeferred(); d != nil; {
		next := d.next
		d.next = nil
		if free(d) {
			out.push(d)
			n++
		} else {
			kept.push(d)
			e.deferN++
			if due := d.extra.Load().due; e.deferDue == 0 || due < e.deferDue {
				e.deferDue = due
			}
		}
		d = next
	}
	e.deferHead, e.deferTail = kept.head, kept.tail
	return out, n
}

// initialise runs the initialisers in order, off the turn, and reports to the hub. One that does not
// return in time is left behind: the report is made by whichever comes first.
func (h *Hub) initialise(ctx context.Context, cancel context.CancelFunc) {
	defer cancel()
	var once sync.Once
	report := func(err error) {
		once.Do(func() {
			h.accept(&Delivery{msg: &initialised{err: err}, info: &initialisedType.typeInfo, to: &h.addr, posted: h.mesh.clock.Now()})
		})
	}
	stop := context.AfterFunc(ctx, func() { report(h.startCut(ctx)) })
	defer stop()
	report(h.runInitialisers(message.WithIdentity(ctx, message.SystemIdentity())))
}

// startCut is why a start was cut short: disposal is a cancellation, not a fault (invariant 21).
func (h *Hub) startCut(ctx context.Context) error {
	if h.Level() >= lifecycle.Quiescing || h.mesh.closing.Load() {
		return &message.Disposing{Address: h.addr.Path()}
	}
	h.mu.Lock()
	step := h.more().initStep
	h.mu.Unlock()
	return fmt.Errorf("initialiser '%s' did not finish: %w", step, context.Cause(ctx))
}

func (h *Hub) runInitialisers(ctx context.Context) (err error) {
	for _, in := range h.kind.inits {
		h.mu.Lock()
		h.more().initStep = in.name
		h.mu.Unlock()
		if err := h.runInitialiser(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

func (h *Hub) runInitialiser(ctx context.Context, in initialiser) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("initialiser '%s' panicked: %v", in.name, r)
		}
	}()
	if err = in.run(ctx, h); err != nil && ctx.Err() != nil {
		return h.startCut(ctx)
	}
	return err
}

// finishStart takes the result of the initialisers, on the hub's turn. After a failure every gate
// opens and what was deferred is refused with the cause.
func (h *Hub) finishStart(err error) {
	h.mu.Lock()
	e := h.more()
	e.initStep, e.initCancel = "", nil
	if err == nil {
		h.mu.Unlock()
		h.openGates(1)
		return
	}
	e.initErr = err
	h.setFlags(flagFailed, 0)
	deferred := e.takeDeferred()
	h.mu.Unlock()
	if h.Level() < lifecycle.Quiescing && !isDisposing(err) {
		h.mesh.log.Error("a hub could not start", "address", h.addr.Path(), "kind", h.kind.name, "error", err)
	}
	h.openGates(1<<(maxGates+1) - 1)
	for d := deferred; d != nil; {
		next := d.next
		d.next = nil
		h.refuseFailedStart(d)
		d = next
	}
	if h.kind.EndOnFailedStart {
		h.Dispose()
	}
}

// takeDeferred empties the deferred queue and returns its list. The caller holds mu.
func (e *extra) takeDeferred() *Delivery {
	list := e.deferHead
	e.deferHead, e.deferTail, e.deferN, e.deferDue = nil, nil, 0, 0
	return list
}

func isDisposing(err error) bool { return message.Classify(err).Type == message.ShuttingDown }

// Started returns a channel that closes when the hub has started or will not start.
func (h *Hub) Started() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.more()
	if h.gates() == 0 {
		done := make(chan struct{})
		close(done)
		return done
	}
	if e.startedDone == nil {
		e.startedDone = make(chan struct{})
	}
	return e.startedDone
}
