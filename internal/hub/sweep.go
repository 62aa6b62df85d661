package hub

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
)

const (
	never      = math.MaxInt64
	sweepEvery = int64(time.Millisecond) // the least time between two sweeps

	// delegationGrace is how far past its deadline a request may be extended more than once: about two
	// rounds of the scheduler over eight busy goroutines on two processors.
	delegationGrace = int64(100 * time.Millisecond)
)

// sweeper is the one timer of a mesh. It lapses requests whose deadline has passed, answers deferred
// deliveries early enough for their callers, and reports stale requests. It is armed only while
// something is pending: deadlines are stored first and then compared with the armed time, and only an
// earlier one re-arms (hub.md §3).
type sweeper struct {
	mesh  *Mesh
	armed atomic.Int64 // when the timer fires; 0 is "never"

	mu       sync.Mutex
	timer    *time.Timer
	stopped  bool
	running  sync.WaitGroup
	deferred map[*Hub]struct{} // hubs with deferred deliveries
}

// arm makes sure that a sweep happens at the given reading or before.
func (w *sweeper) arm(at int64) {
	if a := w.armed.Load(); a != 0 && a <= at {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armLocked(at)
}

func (w *sweeper) armLocked(at int64) {
	if a := w.armed.Load(); w.stopped || (a != 0 && a <= at) {
		return
	}
	w.armed.Store(at)
	delay := max(time.Duration(at-w.mesh.clock.Now()), 0)
	if w.timer == nil {
		w.timer = time.AfterFunc(delay, w.sweep)
		return
	}
	w.timer.Reset(delay)
}

// watch makes the sweeper look at a hub with deferred deliveries from the given due time on.
func (w *sweeper) watch(h *Hub, due int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deferred == nil {
		w.deferred = map[*Hub]struct{}{}
	}
	w.deferred[h] = struct{}{}
	w.armLocked(due)
}

func (w *sweeper) stop() {
	w.mu.Lock()
	w.stopped = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	w.running.Wait()
}

func (w *sweeper) sweep() {
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return
	}
	w.running.Add(1)
	defer w.running.Done()
	at := w.armed.Load()
	w.armed.Store(0)
	hubs := make([]*Hub, 0, len(w.deferred))
	for h := range w.deferred {
		hubs = append(hubs, h)
	}
	w.mu.Unlock()

	now := w.mesh.clock.Now()
	lateness := max(now-at, 0)
	next := int64(never)
	// Owners answer before callers lapse, in the same sweep: their diagnosis is the better one.
	for _, h := range hubs {
		if due := h.expireDeferred(now); due == 0 {
			w.forget(h)
		} else {
			next = min(next, due)
		}
	}
	now = w.mesh.clock.Now()
	w.mesh.slots.each(func(s *slot, gen uint32) {
		if due := w.visit(s, gen, now, lateness); due != 0 {
			next = min(next, due)
		}
	})
	if next != never {
		w.arm(max(next, w.mesh.clock.Now()+sweepEvery))
	}
}

// visit handles one waiting slot and returns when to look at it again, or 0.
func (w *sweeper) visit(s *slot, gen uint32, now, lateness int64) int64 {
	due := s.deadline.Load()
	if due == 0 || !s.open(gen) {
		return 0
	}
	d := s.cur.Load()
	if due <= now {
		// Delegated lapse: while an ask of this request's own turn is pending in this process, that
		// ask lapses first and its diagnosis travels up. Extended once, and again only within the grace:
		// on a busy process the turns that carry the diagnosis up wait for a processor longer than this
		// sweep was late.
		if d != nil && d.gen == gen && d.inner.Load() > 0 && (due == d.budget.Deadline || due-d.budget.Deadline < delegationGrace) {
			later := now + int64(budget.Margin(time.Duration(d.budget.Deadline-d.posted))) + 2*lateness
			s.deadline.CompareAndSwap(due, later) // fails when the slot has moved on: then it is not ours
			return later
		}
		s.complete(gen, phaseLapsed, nil, nil)
		return 0
	}
	if d != nil && d.gen == gen && s.told.Load() != gen {
		if stale := d.posted + int64(staleAfter); stale <= now {
			s.told.Store(gen)
			w.mesh.reportStale(s, d, gen, now)
		} else {
			due = min(due, stale)
		}
	}
	return due
}

// forget drops a hub that has no deferred delivery left.
func (w *sweeper) forget(h *Hub) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.ext.Load(); e == nil || e.deferN == 0 {
		delete(w.deferred, h)
	}
}

// reportStale logs one request that has waited long (messaging.md §1.4).
func (m *Mesh) reportStale(s *slot, d *Delivery, gen uint32, now int64) {
	if d == nil || d.gen != gen {
		return
	}
	from := "outside"
	if h := s.owner.Load(); h != nil {
		from = h.addr.Path()
	}
	m.log.Warn("[STALE-CALLBACK]", "operation", d.info.name, "delivery_id", correlation(s.index, gen),
		"target", d.to.String(), "sender", from, "age", time.Duration(now-d.posted))
}
