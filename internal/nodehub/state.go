package nodehub

import (
	"context"
	"errors"
	"time"
	"unique"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// state is what a node hub holds: its row. Content over inlineContent lives in the cache.
type state struct {
	service *Service
	node    node.Node
	away    bool   // the content is in the cache, or in the store
	stale   bool   // the row may be older than the store's: read it before the next use
	gone    bool   // the node was deleted
	epoch   uint64 // of the service when the row was taken
}

// set takes a row.
func (st *state) set(cache *contentCache, n node.Node) {
	// Few different values stand in many rows: one copy of each keeps 100,000 idle hubs small and their
	// collection short.
	for _, s := range []*string{&n.NodeType, &n.CreatedBy, &n.ModifiedBy, &n.Category, &n.Icon} {
		*s = unique.Make(*s).Value()
	}
	if n.MainNode == n.Path {
		n.MainNode = n.Path
	}
	st.stale, st.gone, st.epoch = false, false, st.service.epoch.Load()
	st.away = n.Content.Len() > inlineContent
	if st.away {
		cache.put(n.Path, n.Version, n.Content)
		n.Content = node.Content{}
	}
	st.node = n
}

// full returns the node with its content, and false when the store has to be asked.
func (st *state) full(cache *contentCache) (node.Node, bool) {
	if st.stale || st.gone || st.epoch != st.service.epoch.Load() {
		return node.Node{}, false
	}
	if !st.away {
		return st.node, true
	}
	c, ok := cache.get(st.node.Path, st.node.Version)
	n := st.node
	n.Content = c
	return n, ok
}

// current returns the node on its hub's turn, reading the row where it must.
func (s *Service) current(ctx context.Context, h *hub.Hub) (node.Node, error) {
	if err := s.serving(ctx, h); err != nil {
		return node.Node{}, err
	}
	st := h.State().(*state)
	if n, ok := st.full(s.cache); ok && (s.fed == nil || s.fed()) {
		return n, nil
	}
	path := node.Path(h.Path())
	if st.gone {
		return node.Node{}, &store.NotFoundError{Path: path}
	}
	if hub.InQuickTurn(ctx) {
		return node.Node{}, hub.ErrNotQuick
	}
	return s.reload(ctx, h)
}

// reload reads the row. A row that is gone ends the hub.
func (s *Service) reload(ctx context.Context, h *hub.Hub) (node.Node, error) {
	st := h.State().(*state)
	path := node.Path(h.Path())
	epoch := s.epoch.Load() // what makes rows old while this one is read makes it old, too
	bound, cancel := s.mesh.Bounds().Context(context.WithoutCancel(ctx), budget.StoreRead, "read '"+h.Path()+"'")
	defer cancel()
	n, err := s.store.Read(bound, path)
	var missing *store.NotFoundError
	if errors.As(err, &missing) {
		st.gone = true
		h.Dispose()
	}
	if err != nil {
		return node.Node{}, err
	}
	// data.md §1.3.4: an external row counts when it is newer; an equal one passes.
	// After a reset the held one may have been lost.
	if n.Version >= st.node.Version || st.stale || st.epoch != epoch {
		st.set(s.cache, n)
		st.epoch = epoch
	}
	return n, nil
}

// takeChange applies a change that somebody else has committed.
func (s *Service) takeChange(_ context.Context, h *hub.Hub, m *changed) (*hub.None, error) {
	st := h.State().(*state)
	c := m.change
	if now := s.epoch.Load(); m.epoch != now || st.epoch != now {
		return nil, nil // it may have been lost, or the row is read before its next use
	}
	if c.Version <= st.node.Version {
		return nil, nil // an echo, or older than what is held
	}
	if c.Kind == store.Deleted {
		st.gone = true
		h.Dispose()
		return nil, nil
	}
	if st.stale {
		return nil, nil // the row is read before its next use; this change may be older than that
	}
	st.set(s.cache, c.Node)
	return nil, nil
}

func (s *Service) refreshRow(ctx context.Context, h *hub.Hub, _ *refresh) (*hub.None, error) {
	_, err := s.reload(ctx, h)
	var missing *store.NotFoundError
	if errors.As(err, &missing) {
		return nil, nil
	}
	if err != nil {
		h.State().(*state).stale = true
	}
	return nil, nil
}

// isolatedRetry is a round of pings: what an isolated silo waits for.
const isolatedRetry = 300 * time.Millisecond

// serving refuses to answer from what this process holds while it is isolated (decision 1) and the membership
// does not confirm that it is the one to answer: nothing stale is served, and whoever asks is told to try again.
func (s *Service) serving(ctx context.Context, h *hub.Hub) error {
	if s.isolated == nil || !s.isolated() {
		return nil
	}
	if hub.InQuickTurn(ctx) {
		return hub.ErrNotQuick
	}
	ask, cancel := s.mesh.Bounds().Context(ctx, budget.Confirm, "confirm that '"+h.Path()+"' is served here")
	defer cancel()
	if s.confirm(ask) {
		return nil
	}
	return &message.Failure{Type: message.ShuttingDown, Target: h.Path(), AnsweredBy: h.Path(), Reason: message.ReasonIsolated, RetryAfter: isolatedRetry,
		Message: "the silo of '" + h.Path() + "' has not heard for a while that it still is a member; nothing is answered from what it holds, try again"}
}
