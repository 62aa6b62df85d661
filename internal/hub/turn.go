package hub

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/hubmesh/hubmesh/internal/lifecycle"
	"github.com/hubmesh/hubmesh/internal/message"
)

const (
	batchSize    = 64                            // deliveries taken at a time; after each batch others may run
	slowDispatch = int64(500 * time.Millisecond) // messaging.md §1.5
)

// run drains the hub. A panic in a handler answers the current message as failed and the draining
// goes on: what is queued stays in the hub and is not lost.
func (h *Hub) run() {
	for !h.drain() {
	}
}

// spawnRun starts the turn of a hub whose running flag the caller has just set.
func (h *Hub) spawnRun() {
	h.mesh.wg.Add(1)
	if h.loop == nil {
		h.loop = func() {
			defer h.mesh.wg.Done()
			h.run()
		}
	}
	go h.loop()
}

func (h *Hub) drain() (idle bool) {
	defer func() {
		if r := recover(); r != nil {
			h.recovered(r)
		}
	}()
	now := int64(0)
	for turns := 1; ; turns++ {
		d := h.take(now)
		if d == nil {
			return true
		}
		if now == 0 {
			// The delivery that woke an idle hub was posted just now: its stamp saves a clock read. One
			// that has been elsewhere in between carries an extra part.
			if now = d.posted; d.extra.Load() != nil {
				now = h.mesh.clock.Now()
			}
		}
		now = h.turn(d, now)
		if turns%batchSize == 0 {
			runtime.Gosched()
		}
	}
}

// recovered answers the delivery whose turn panicked.
func (h *Hub) recovered(r any) {
	d := h.cur.Load()
	if d == nil {
		h.mesh.stats.panics.Add(1)
		h.mesh.log.Error("a turn panicked between deliveries", "address", h.addr.Path(), "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
		return
	}
	d.fail(h.panicked(d, r))
	h.cur.Store(nil)
}

// panicked logs a handler's panic and returns the failure for its caller, which does not carry the
// stack.
func (h *Hub) panicked(d *Delivery, r any) *message.Failure {
	h.mesh.stats.panics.Add(1)
	h.mesh.log.Error("handler panicked", "address", h.addr.Path(), "operation", d.info.name, "delivery_id", d.ID(),
		"panic", fmt.Sprint(r), "stack", string(debug.Stack()))
	return &message.Failure{Type: message.Exception, Operation: d.info.name, Target: h.addr.Path(), AnsweredBy: h.addr.Path(),
		Reason: message.ReasonPanic, Message: fmt.Sprintf("the handler of '%s' panicked", d.info.name)}
}

// take returns the next delivery: the lifecycle lane first, then the batch, then the next batch from
// the inbox. Where nothing is left the hub is idle.
func (h *Hub) take(now int64) *Delivery {
	if h.flags.Load()&flagLifecycle == 0 {
		if d := h.popBatch(); d != nil {
			return d
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if d := h.takeLifecycle(); d != nil {
		return d
	}
	if d := h.popBatch(); d != nil {
		return d
	}
	first := h.head
	if first == nil {
		h.setFlags(0, flagRunning)
		if e := h.ext.Load(); e != nil {
			e.shedding = false
		}
		if now != 0 {
			h.touch(now)
		}
		return nil
	}
	last, n := first, int32(1)
	for n < batchSize && last.next != nil {
		last, n = last.next, n+1
	}
	if h.head = last.next; h.head == nil {
		h.tail = nil
	}
	last.next = nil
	h.n -= n
	if first.next != nil { // popBatch has found the batch empty
		h.batch.Store(first.next)
		first.next = nil
	}
	return first
}

func (h *Hub) takeLifecycle() *Delivery {
	e := h.ext.Load()
	if e == nil || e.lifeHead == nil {
		return nil
	}
	d := e.lifeHead
	if e.lifeHead = d.next; e.lifeHead == nil {
		e.lifeTail = nil
		h.setFlags(0, flagLifecycle)
	}
	d.next = nil
	return d
}

// popBatch takes the first delivery of the batch. Only the running turn pops; teardown by the watchdog
// may take the whole batch away meanwhile.
func (h *Hub) popBatch() *Delivery {
	d := h.batch.Load()
	if d == nil || !h.batch.CompareAndSwap(d, d.next) {
		return nil
	}
	d.next = nil
	return d
}

// touch notes that the hub was used.
func (h *Hub) touch(now int64) {
	if at := uint32(now / int64(time.Second)); h.used.Load() != at {
		h.used.Store(at)
	}
}

// turn handles one delivery and returns the time at its end, which is the start of the next.
func (h *Hub) turn(d *Delivery, now int64) int64 {
	flags := h.flags.Load()
	if flags>>gateShift != 0 || flags&flagFailed != 0 || lifecycle.Level(flags&levelMask) >= lifecycle.DisposeHostedHubs {
		if !h.admit(d, now) {
			return now
		}
	}
	if s := d.slot; s != nil && !s.begin(d.gen) {
		// The caller has gone: nobody wants the answer, and nothing has been done.
		h.mesh.stats.expired.Add(1)
		return now
	}
	d.start.Store(now)
	h.cur.Store(d)
	h.handle(d)
	h.cur.Store(nil)
	h.version.Add(1)
	if h.mesh.audit != nil {
		h.mesh.verify(d)
	}
	end := h.mesh.clock.Now()
	if end-now > slowDispatch {
		h.mesh.stats.slow.Add(1)
		h.mesh.log.Info("SLOW_DISPATCH", "address", h.addr.Path(), "operation", d.info.name, "delivery_id", d.ID(), "took", time.Duration(end-now))
	}
	return end
}

// handle runs the rules over a delivery and sees to it that a request is answered.
func (h *Hub) handle(d *Delivery) {
	if h.builtin(d) {
		d.answer((*None)(nil))
		return
	}
	taken := false
	if e := h.ext.Load(); e != nil {
		if own := e.rules.Load(); own != nil {
			for _, r := range *own {
				if r.info == nil || r.info == d.info {
					taken = h.apply(r, d, taken) || taken
				}
			}
		}
	}
	rules := h.kind.rulesFor(d.info)
	for i := range rules {
		taken = h.apply(&rules[i], d, taken) || taken
	}
	if !taken {
		h.unhandled(d)
	}
}

// apply runs one rule. The first answer counts; a later rule's answer meets a slot that is taken.
func (h *Hub) apply(r *rule, d *Delivery, taken bool) bool {
	v, err, o := r.run(d)
	switch {
	case o == passed:
		return false
	case o == handled && err != nil:
		d.fail(h.failure(err))
	case o == handled && !taken:
		d.answer(v)
	}
	return true
}

// failure is a handler's error as its caller gets it: it says who answered.
func (h *Hub) failure(err error) *message.Failure {
	f := message.Classify(err)
	if f.AnsweredBy == "" {
		c := *f
		c.AnsweredBy = h.addr.Path()
		f = &c
	}
	return f
}

// unhandled answers what no rule took (messaging.md §1.5).
func (h *Hub) unhandled(d *Delivery) {
	if fb := h.kind.Fallback; fb != nil && d.info != &Failed.typeInfo {
		d.fail(&message.Failure{Type: fb.Type, Message: fb.Message, NodeTypePath: fb.NodeTypePath, AnsweredBy: h.addr.Path()})
		return
	}
	f := &message.Failure{Type: message.Ignored, Operation: d.info.name, Target: h.addr.Path(), AnsweredBy: h.addr.Path(),
		Reason: message.ReasonUnhandled, Message: fmt.Sprintf("hub '%s' has no handler for '%s'", h.addr, d.info.name)}
	if d.slot != nil {
		f.Type = message.NotFound
	} else {
		d.setState(message.IgnoredState)
	}
	d.fail(f)
}
