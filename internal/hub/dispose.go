package hub

import (
	"context"
	"strings"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/lifecycle"
	"github.com/hubmesh/hubmesh/internal/message"
)

// quiescePoll is how often a quiescing hub looks whether its own asks are done (messaging.md §1.9).
const quiescePoll = 50 * time.Millisecond

// Dispose begins the ordered end of the hub and returns at once; it is idempotent. Done closes when
// the hub is Dead. The order is that of messaging.md §1.9: creation of hosted hubs is frozen in the
// whole subtree before Dispose returns, the running handler's context ends, then Quiescing,
// DisposeHostedHubs, ShutDown, Dead, with a watchdog that tears down out of band.
func (h *Hub) Dispose() {
	h.mu.Lock()
	if h.Level() >= lifecycle.Quiescing || h.flags.Load()&flagGone != 0 {
		h.mu.Unlock()
		return
	}
	h.raise(lifecycle.Quiescing)
	e := h.more()
	cancel := e.initCancel
	h.mu.Unlock()
	h.freeze()
	if cancel != nil {
		cancel()
	}
	if d := h.cur.Load(); d != nil {
		d.end(d.rare(), context.Canceled)
	}
	h.mesh.log.Info("[QUIESCE-START]", "address", h.addr.Path())
	h.mesh.Go(h.disposal)
}

// Deactivate disposes the hub that serves a path, or the nearest one above it, so that the next message
// starts it anew; false when there is none. The root is not deactivated.
func (m *Mesh) Deactivate(path string) bool {
	for path != "" {
		if h := m.registry.find(path); h != nil && h != m.root {
			h.Dispose()
			return true
		}
		path = path[:max(0, strings.LastIndexByte(path, '/'))]
	}
	return false
}

// freeze stops the creation of hosted hubs here and below; existing ones stay resolvable.
func (h *Hub) freeze() {
	for _, c := range h.hosted().freeze() {
		c.freeze()
	}
}

// disposal walks the phases. Each is bounded, and the watchdog bounds them all.
func (h *Hub) disposal() {
	watchdog := time.NewTimer(h.mesh.bounds.Own(budget.Watchdog))
	defer watchdog.Stop()
	h.quiesce()
	h.mu.Lock()
	h.raise(lifecycle.DisposeHostedHubs)
	h.mu.Unlock()
	h.disposeHosted()
	done := h.Done()
	d := &Delivery{msg: &shutdown{level: lifecycle.ShutDown}, info: &shutdownType.typeInfo, to: &h.addr, posted: h.mesh.clock.Now()}
	h.accept(d)
	select {
	case <-done:
	case <-watchdog.C:
		h.mesh.log.Error("DISPOSAL DEADLOCK DETECTED", "address", h.addr.Path(), "snapshot", h.Snapshot().String())
		h.mesh.log.Warn("[FORCE-TEARDOWN]", "address", h.addr.Path())
		h.teardown(true)
	}
}

// quiesce waits until the hub's own asks are done, within its bound; then they fail.
func (h *Hub) quiesce() {
	deadline := h.mesh.clock.Now() + int64(h.mesh.bounds.Own(budget.Quiesce))
	for h.asks() > 0 {
		left := deadline - h.mesh.clock.Now()
		if left <= 0 {
			h.mu.Lock()
			h.more().timedOut = true
			h.mu.Unlock()
			h.mesh.log.Warn("[QUIESCE-TIMEOUT]", "address", h.addr.Path(), "pending", h.asks())
			h.failAsks()
			return
		}
		timer := time.NewTimer(min(quiescePoll, time.Duration(left)))
		<-timer.C
	}
	h.mesh.log.Info("[QUIESCE-OK]", "address", h.addr.Path())
}

// asks is the number of requests that the hub itself awaits.
func (h *Hub) asks() int {
	n := 0
	if h.flags.Load()&flagAsked != 0 {
		h.mesh.slots.each(func(s *slot, _ uint32) {
			if s.owner.Load() == h {
				n++
			}
		})
	}
	return n
}

// failAsks fails the requests that the hub awaits.
func (h *Hub) failAsks() {
	if h.flags.Load()&flagAsked == 0 {
		return
	}
	h.mesh.slots.each(func(s *slot, gen uint32) {
		if s.owner.Load() == h {
			s.complete(gen, phaseFailed, nil, h.disposing())
		}
	})
}

// disposeHosted ends the hosted hubs, including those whose construction was under way, within the
// bound "hosted-dispose".
func (h *Hub) disposeHosted() {
	timer := time.NewTimer(h.mesh.bounds.Own(budget.HostedDispose))
	defer timer.Stop()
	table := h.hosted()
	for {
		hubs, building := table.all()
		if len(hubs) == 0 && building == nil {
			return
		}
		for _, c := range hubs {
			c.Dispose()
		}
		for _, c := range hubs {
			select {
			case <-c.Done():
			case <-timer.C:
				h.mesh.log.Warn("[HOSTED-DISPOSE-ERROR]", "address", h.addr.Path(), "hosted", c.addr.Path(), "level", c.Level().String())
				return
			}
		}
		if building != nil {
			select {
			case <-building:
			case <-timer.C:
				h.mesh.log.Warn("[HOSTED-DISPOSE-ERROR]", "address", h.addr.Path(), "hosted", "under construction")
				return
			}
		}
	}
}

// shutdownTurn is the shutdown message on the hub's turn. Phases are guarded by the run level.
func (h *Hub) shutdownTurn(level lifecycle.Level) {
	h.mu.Lock()
	h.more().shutTurns++
	h.mu.Unlock()
	if level == lifecycle.ShutDown {
		h.teardown(false)
	}
}

// teardown is the last phase: asks fail, flushes and cleanups run, everything that waits is answered,
// Dead is set, and only then is completion signalled. It runs once, on the hub's turn or, by the
// watchdog, out of band.
func (h *Hub) teardown(forced bool) {
	h.mu.Lock()
	e := h.more()
	if !h.raise(lifecycle.ShutDown) {
		h.mu.Unlock()
		return
	}
	e.forced = forced
	flushes, cleanups := e.flushes, e.cleanups
	e.flushes, e.cleanups = nil, nil
	h.mu.Unlock()
	if forced {
		hubs, _ := h.hosted().all()
		for _, c := range hubs {
			c.teardown(true)
		}
	}
	h.failAsks()
	for _, f := range flushes {
		ctx, cancel := h.mesh.bounds.Context(context.WithoutCancel(h.mesh.base), budget.Quiesce, "flush "+h.addr.Path())
		h.guarded("flush", func() { f(message.WithIdentity(ctx, message.SystemIdentity())) })
		cancel()
	}
	// Newest first, as with deferred calls: what was built last is taken down first.
	for i := len(cleanups) - 1; i >= 0; i-- {
		h.guarded("cleanup", cleanups[i])
	}
	h.answerWaiting()
	h.detach()
	h.mu.Lock()
	h.setFlags(uint32(lifecycle.Dead)|flagGone, levelMask)
	e.dead = true
	late := e.cleanups
	e.cleanups = nil
	if e.done != nil {
		close(e.done)
	}
	h.mu.Unlock()
	for _, f := range late {
		h.guarded("cleanup", f)
	}
	h.answerWaiting() // what came in between
}

// guarded runs user code of the teardown; a panic ends that piece alone.
func (h *Hub) guarded(what string, f func()) {
	defer func() {
		if r := recover(); r != nil {
			h.mesh.log.Error("a "+what+" panicked", "address", h.addr.Path(), "panic", r)
		}
	}()
	f()
}

// answerWaiting takes everything that waits in the hub and answers it.
func (h *Hub) answerWaiting() {
	h.mu.Lock()
	lists := [3]*Delivery{}
	if e := h.ext.Load(); e != nil {
		lists[0] = e.takeDeferred()
	}
	lists[1] = h.batch.Swap(nil)
	lists[2] = h.head
	h.head, h.tail, h.n = nil, nil, 0
	h.mu.Unlock()
	for _, d := range lists {
		for d != nil {
			next := d.next
			d.next = nil
			h.turnAway(d)
			d = next
		}
	}
}

// detach takes the hub out of the registry or of its host's table.
func (h *Hub) detach() {
	if h.parent != nil && h.parent != h.mesh.root {
		h.parent.hosted().remove(h)
		return
	}
	h.mesh.registry.remove(h)
	if w := h.mesh.watcher.Load(); w != nil {
		(*w).Removed(h)
	}
}
