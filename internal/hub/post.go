package hub

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/hubmesh/hubmesh/internal/lifecycle"
	"github.com/hubmesh/hubmesh/internal/message"
)

const levelShutDown = uint32(lifecycle.ShutDown)

// deliver puts d into the inbox of h, or answers it at once. A hub that has left the registry in the
// meantime is looked up again.
func (m *Mesh) deliver(h *Hub, d *Delivery) {
	for range 3 {
		if h.accept(d) {
			return
		}
		next := m.local(*d.to)
		if next == nil {
			m.route(d)
			return
		}
		h = next
	}
	h.turnAway(d)
}

// Deliver posts a delivery that the router resolved to a hub of this process.
func (m *Mesh) Deliver(h *Hub, d *Delivery) { m.deliver(h, d) }

// dispatch sends a delivery to whoever serves its target.
func (m *Mesh) dispatch(d *Delivery) {
	if h := m.local(*d.to); h != nil {
		m.deliver(h, d)
		return
	}
	m.route(d)
}

// route hands a delivery whose target is not here to the router.
func (m *Mesh) route(d *Delivery) {
	m.traffic.check(m, d)
	if host, hosted := d.to.Host(); hosted {
		// The host is here but the hosted hub is not: nobody else can know it.
		if h := m.local(host); h != nil && h != m.root {
			if h.Level() >= lifecycle.Quiescing {
				m.refuse(d, h.disposing())
				return
			}
			m.refuse(d, &message.Failure{Type: message.NotFound, AnsweredBy: h.addr.Path(), Reason: message.ReasonNoEntry,
				Message: fmt.Sprintf("'%s' hosts no hub at '%s'", h.addr, d.to.Path())})
			return
		}
	}
	if r := m.router.Load(); r != nil && !m.closing.Load() {
		(*r).Route(d)
		return
	}
	if m.closing.Load() {
		m.refuse(d, m.root.disposing())
		return
	}
	m.refuse(d, &message.Failure{Type: message.NotFound, AnsweredBy: "mesh/" + m.id, Reason: message.ReasonNoEntry,
		Message: fmt.Sprintf("No node found at '%s'", d.to)})
}

// Refuse answers a delivery that no hub has taken: the caller of an ask gets the failure as its outcome. A post
// that nobody took is given back to whoever posts it or, where that has let go of it, told to its sender's hub.
func (m *Mesh) Refuse(d *Delivery, err error) { m.refuse(d, message.Classify(err)) }

// refuse answers a delivery that no hub has taken.
func (m *Mesh) refuse(d *Delivery, f *message.Failure) {
	if d.slot != nil {
		d.fail(f)
	} else if !d.giveBack(f) {
		m.notify(d, d.named(f))
	}
}

// notify tells the sender's hub about the failure of a delivery that nobody awaited. Ignorable
// messages and notices themselves are never answered.
func (m *Mesh) notify(d *Delivery, f *message.Failure) {
	if d.info.flags.Has(message.Ignorable) || d.info == &Failed.typeInfo || d.from == nil {
		m.stats.unheard.Add(1)
		return
	}
	n := &Delivery{msg: &Notice{Failure: f}, info: &Failed.typeInfo, from: d.to, to: d.from, posted: m.clock.Now()}
	n.post.Store(postLet)
	h := m.local(*d.from)
	switch r := m.router.Load(); {
	case h != nil && h != m.root:
		m.stats.notified.Add(1)
		if !h.accept(n) {
			m.stats.unheard.Add(1)
		}
	case h == nil && d.foreign && r != nil && !m.closing.Load():
		m.stats.notified.Add(1)
		(*r).Route(n)
	default:
		m.stats.unheard.Add(1)
	}
}

// accept is the intake of a hub: it queues d and starts the turn, or answers d. It is false when the
// hub is out of the registry, so that the caller looks again.
func (h *Hub) accept(d *Delivery) bool {
	tell, taken := h.queue(d)
	if tell != nil {
		tell()
	}
	return taken
}

// queue is accept that answers nobody: tell does, where it is not nil.
func (h *Hub) queue(d *Delivery) (tell func(), taken bool) {
	info := d.info
	life := info.flags.Has(message.Lifecycle)
	if h.mesh.audit != nil {
		h.mesh.remember(d, h.mesh.audit(d.msg))
	}
	if !life && (h.parent == nil || (d.from != nil && d.from == &h.mesh.root.addr)) {
		h.mesh.traffic.check(h.mesh, d)
	}
	h.mu.Lock()
	flags := h.flags.Load()
	switch {
	case flags&flagGone != 0:
		h.mu.Unlock()
		return nil, false
	case lifecycle.Level(flags&levelMask) >= lifecycle.DisposeHostedHubs && !life:
		h.mu.Unlock()
		return func() { h.turnAway(d) }, true
	}
	if !life && int(h.n) >= h.kind.limits.Shed {
		if report, drop := h.overflow(d); drop {
			h.mu.Unlock()
			return report, true
		}
	}
	if d.slot == nil && !life && !info.flags.Has(message.Ignorable) {
		if report, drop := h.stormy(d); drop {
			h.mu.Unlock()
			return report, true
		}
	}
	d.hub = h
	if life {
		e := h.more()
		if e.lifeTail == nil {
			e.lifeHead = d
		} else {
			e.lifeTail.next = d
		}
		e.lifeTail = d
		flags |= flagLifecycle
	} else {
		if h.tail == nil {
			h.head = d
		} else {
			h.tail.next = d
		}
		h.tail = d
		h.n++
	}
	start := flags&flagRunning == 0
	if start || life {
		h.flags.Store(flags | flagRunning)
	}
	h.mu.Unlock()
	if start {
		h.spawnRun()
	}
	return nil, true
}

// turnAway answers what reaches a hub that goes down: requests, never events (messaging.md §1.12). Whoever is
// posting an event gets it back.
func (h *Hub) turnAway(d *Delivery) {
	if d.slot != nil {
		d.fail(h.disposing())
	} else if !d.giveBack(h.disposing()) {
		h.mesh.stats.unheard.Add(1)
	}
}

// overflow decides about d when the inbox is long: ignorable messages are shed, everything else is never
// dropped but refused at the hard bound. The caller holds mu; the report runs without it.
func (h *Hub) overflow(d *Delivery) (report func(), drop bool) {
	e := h.more()
	m := h.mesh
	log := func() {}
	if !e.shedding {
		e.shedding = true
		n := h.n
		log = func() {
			m.log.Error("ACTION-BLOCK OVERLOAD", "address", h.addr.Path(), "queue", n, "shed_from", h.kind.limits.Shed, "refuse_from", h.kind.limits.Hard)
		}
	}
	if d.info.flags.Has(message.Ignorable) {
		m.stats.shed.Add(1)
		return func() { log(); d.setState(message.IgnoredState) }, true
	}
	if int(h.n) >= h.kind.limits.Hard {
		m.stats.overloaded.Add(1)
		return func() { log(); h.refuseOverloaded(d, fmt.Sprintf("%d messages are waiting", h.kind.limits.Hard)) }, true
	}
	log()
	return nil, false
}

// refuseOverloaded answers d that it was not queued. It is no drop in silence for a post either: see [Mesh.Refuse].
func (h *Hub) refuseOverloaded(d *Delivery, why string) {
	f := &message.Failure{Type: message.ShuttingDown, Target: h.addr.Path(), AnsweredBy: h.addr.Path(), Reason: message.ReasonOverloaded,
		Message: fmt.Sprintf("hub '%s' is overloaded (%s); nothing was queued, try again later", h.addr, why)}
	h.mesh.refuse(d, f)
}

// stormy applies the breaker to posts that nobody awaits. The caller holds mu.
func (h *Hub) stormy(d *Delivery) (report func(), drop bool) {
	e := h.ext.Load()
	if e == nil || e.storm == nil {
		e = h.more()
		e.storm = &storm{limit: h.kind.limits.Storm}
	}
	key := stormKey{to: d.info.id}
	if d.from != nil {
		key.from = d.from.Path()
	}
	verdict := e.storm.post(key, d.posted)
	if verdict == stormPass {
		return nil, false
	}
	h.mesh.stats.stormDropped.Add(1)
	return func() {
		d.setState(message.IgnoredState)
		if verdict == stormTrip {
			h.mesh.log.Error("MESSAGE STORM", "address", h.addr.Path(), "sender", key.from, "operation", d.info.name,
				"limit_per_second", h.kind.limits.Storm, "dropped_for", stormCooldown.String())
		}
	}, true
}

// quickTurn runs a quick handler on the caller's goroutine when the hub is idle and open.
func (h *Hub) quickTurn(d *Delivery) (any, error, bool) {
	if !h.takeQuick(quickSpins + quickYields) {
		return nil, nil, false
	}
	d.hub = h
	v, err := h.quickRun(d)
	if err == ErrNotQuick {
		return nil, nil, false
	}
	return v, err, true
}

const (
	// quickSpins is how often a caller looks whether the quick turn of another caller has ended before
	// it lets others run, and quickYields how often it does that before it queues. A quick turn does
	// not block, so its caller only needs a processor; queueing costs a park and a wake-up, and makes
	// everybody behind queue as well.
	quickSpins  = 30
	quickYields = 20
)

// takeQuick takes the turn for a quick handler, if the hub is idle and open, or is so within some looks.
func (h *Hub) takeQuick(looks int) bool {
	for tries := 0; ; tries++ {
		if h.flags.Load()&flagQuick != 0 && tries < looks {
			if tries >= quickSpins {
				runtime.Gosched()
			}
			continue
		}
		h.mu.Lock()
		flags := h.flags.Load()
		e := h.ext.Load()
		if flags&(flagRunning|flagGone|flagFailed|flagLifecycle|levelMask) == uint32(lifecycle.Started) && flags>>gateShift == 0 && h.head == nil &&
			(e == nil || e.rules.Load() == nil) {
			h.flags.Store(flags | flagRunning | flagQuick)
			h.mu.Unlock()
			return true
		}
		again := flags&flagQuick != 0 && h.head == nil && tries < looks
		h.mu.Unlock()
		if !again {
			return false
		}
	}
}

// ErrNotQuick is returned by a quick handler, on a quick turn only, that finds it would have to wait:
// the request then takes an ordinary turn. See [InQuickTurn].
var ErrNotQuick = errors.New("hub: not a quick turn's work")

// InQuickTurn tells whether ctx is that of a quick turn, in which a handler must not wait.
func InQuickTurn(ctx context.Context) bool {
	d, ok := From(ctx)
	return ok && d.hub.flags.Load()&flagQuick != 0 && d.hub.cur.Load() == d
}

func (h *Hub) quickRun(d *Delivery) (v any, err error) {
	h.cur.Store(d)
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, h.panicked(d, r)
		}
		h.cur.Store(nil)
		h.version.Add(1)
		h.touch(d.posted)
		h.mu.Lock()
		flags := h.flags.Load() &^ flagQuick
		more := h.head != nil || flags&flagLifecycle != 0
		if !more {
			flags &^= flagRunning
		}
		h.flags.Store(flags)
		h.mu.Unlock()
		if more {
			h.spawnRun()
		}
	}()
	v, err, _ = h.kind.table[d.info.id][0].run(d)
	if err != nil && err != ErrNotQuick {
		err = message.Classify(err)
	}
	return v, err
}

// Do runs f on the hub's turn and does not wait.
func (h *Hub) Do(f func(ctx context.Context, h *Hub)) {
	d := &Delivery{msg: &Work{Run: f}, info: &Execute.typeInfo, to: &h.addr, posted: h.mesh.clock.Now(), who: message.SystemIdentity()}
	d.post.Store(postLet)
	h.mesh.deliver(h, d)
}
