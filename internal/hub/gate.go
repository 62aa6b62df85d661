package hub

import (
	"fmt"
	"strings"
	"time"

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
	h.mesh.refuse(d, &c)
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
