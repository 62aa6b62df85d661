package hub

import (
	"context"
	"fmt"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/lifecycle"
)

// TeardownReport says how a mesh ended (messaging.md §1.9, invariant 71). The first report stands.
type TeardownReport struct {
	Took     time.Duration
	Survived []string // hubs that were not Dead, and work that did not end in time
}

// Clean tells whether nothing survived.
func (r *TeardownReport) Clean() bool { return len(r.Survived) == 0 }

// Report returns the teardown report, or nil before Close has finished.
func (m *Mesh) Report() *TeardownReport { return m.report.Load() }

// Closed closes when Close has finished.
func (m *Mesh) Closed() <-chan struct{} { return m.closed }

// Close disposes every hub, the root last, and waits for every goroutine that the mesh has started,
// within the bound "teardown" or ctx. It is safe to call again: later calls wait for the first and
// return its verdict. An unclean end is an error that names what survived.
func (m *Mesh) Close(ctx context.Context) error {
	if m.closing.Swap(true) {
		select {
		case <-m.closed:
			return m.report.Load().err()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	begin := m.clock.Now()
	bound, cancel := m.bounds.Context(ctx, budget.Teardown, "close the mesh")
	defer cancel()
	r := &TeardownReport{}
	m.retire.stop()
	r.Survived = append(r.Survived, m.disposeAll(bound)...)
	m.root.Dispose()
	if !wait(bound, m.root.Done()) {
		r.Survived = append(r.Survived, m.root.addr.Path())
	}
	m.cancel()
	// Whoever still waits for a reply gets an answer now.
	m.slots.each(func(s *slot, gen uint32) { s.complete(gen, phaseFailed, nil, m.root.disposing()) })
	joined := make(chan struct{})
	go func() { m.wg.Wait(); close(joined) }()
	if !wait(bound, joined) {
		r.Survived = append(r.Survived, "goroutines that ignore cancellation")
	}
	m.sweeper.stop()
	r.Took = m.since(begin)
	m.report.Store(r)
	close(m.closed)
	if !r.Clean() {
		m.log.Error("the mesh did not end cleanly", "survived", r.Survived, "took", r.Took)
	}
	return r.err()
}

// disposeAll ends every registered hub but the root, those included that were registered meanwhile.
func (m *Mesh) disposeAll(ctx context.Context) (survived []string) {
	for {
		var hubs []*Hub
		m.registry.each(func(h *Hub) {
			if h != m.root {
				hubs = append(hubs, h)
			}
		})
		if len(hubs) == 0 {
			return nil
		}
		for _, h := range hubs {
			if !h.retire() {
				h.Dispose()
			}
		}
		for _, h := range hubs {
			if !wait(ctx, h.Done()) {
				survived = append(survived, fmt.Sprintf("%s (%v)", h.addr.Path(), h.Level()))
			}
		}
		if len(survived) > 0 {
			return survived
		}
	}
}

func wait(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
	}
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *TeardownReport) err() error {
	if r.Clean() {
		return nil
	}
	return fmt.Errorf("hub: %d survived the teardown: %v", len(r.Survived), r.Survived)
}

// retire takes an idle hub out without the phases of disposal: nothing waits in it, nothing runs, it
// hosts nobody. It is false when the hub is not idle.
func (h *Hub) retire() bool {
	s := h.mesh.registry.shard(h.addr.Path())
	s.mu.Lock()
	h.mu.Lock()
	ok := h.retirable()
	var e *extra
	if ok {
		h.setFlags(uint32(lifecycle.Dead)|flagGone, levelMask)
		if s.hubs[h.addr.Path()] == h {
			delete(s.hubs, h.addr.Path())
		}
		e = h.ext.Load()
		if e != nil {
			e.dead = true
			if e.done != nil {
				close(e.done)
			}
		}
	}
	h.mu.Unlock()
	s.mu.Unlock()
	if w := h.mesh.watcher.Load(); ok && w != nil {
		(*w).Removed(h)
	}
	if ok && e != nil {
		for i := len(e.cleanups) - 1; i >= 0; i-- {
			h.guarded("cleanup", e.cleanups[i])
		}
	}
	return ok
}

// retirable: the caller holds mu.
func (h *Hub) retirable() bool {
	f := h.flags.Load()
	if f&(flagRunning|flagGone|flagLifecycle|levelMask) != uint32(lifecycle.Started) || f>>gateShift != 0 || h.head != nil || h == h.mesh.root {
		return false
	}
	if h.parent != h.mesh.root {
		return false
	}
	if e := h.ext.Load(); e != nil {
		if len(e.flushes) > 0 || e.deferN > 0 || e.children.busy() {
			return false
		}
	}
	if f&flagAsked != 0 && h.asks() > 0 {
		return false
	}
	return h.kind.MayRetire == nil || h.kind.MayRetire(h)
}

func (c *children) busy() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.hubs) > 0 || c.building > 0
}
