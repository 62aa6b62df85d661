package hub

import (
	"fmt"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
)

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

// takeDeferred empties the deferred queue and returns its list. The caller holds mu.
func (e *extra) takeDeferred() *Delivery {
	list := e.deferHead
	e.deferHead, e.deferTail, e.deferN, e.deferDue = nil, nil, 0, 0
	return list
}
