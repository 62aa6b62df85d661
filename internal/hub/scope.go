package hub

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
)

// Scope is a caller from outside the hubs, such as one HTTP request: a context whose asks are completed
// when it ends. Asking through a scope costs one wait instead of a select on two channels, and reads
// identity and budget once. End it.
type Scope struct {
	context.Context
	mesh  *Mesh
	hub   *Hub // the process hub in whose name it asks; may be nil
	who   *message.Identity
	base  budget.Budget
	ended atomic.Bool
	stop  func() bool
}

// NewScope returns a scope over ctx that asks in the name of from, which may be nil. It ends with ctx,
// and must be ended by the caller in any case.
func (m *Mesh) NewScope(ctx context.Context, from *Hub) *Scope {
	now := m.clock.Now()
	c := m.caller(ctx, now)
	s := &Scope{Context: ctx, mesh: m, hub: from, who: c.who, base: c.budget}
	s.stop = context.AfterFunc(ctx, s.end)
	return s
}

// End completes what is still pending in the scope as cancelled.
func (s *Scope) End() {
	s.stop()
	s.end()
}

func (s *Scope) end() {
	if s.ended.Swap(true) {
		return
	}
	s.mesh.slots.each(func(sl *slot, gen uint32) {
		if sl.scope.Load() == s {
			sl.complete(gen, phaseCancelled, nil, s.reason())
		}
	})
}

func (s *Scope) reason() error {
	if err := context.Cause(s.Context); err != nil {
		return err
	}
	return context.Canceled
}

func (s *Scope) caller(m *Mesh, now int64) caller {
	c := caller{who: s.who, budget: s.base, scope: s, hub: s.hub}
	if at, ok := s.Context.Deadline(); ok && c.budget.Deadline == 0 {
		c.budget.Deadline = now + int64(time.Until(at))
	}
	return c
}
