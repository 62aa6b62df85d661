package mirror

import (
	"context"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// quiet is the least time between two replacements of one listing or result.
const quiet = 50 * time.Millisecond

// live is what listings and results share: a mark that something may have changed, a wake-up, and a
// pace.
type live struct {
	wake chan struct{} // capacity 1
	mu   sync.Mutex
	over bool
	last time.Time // of the last replacement
}

func newLive() live { return live{wake: make(chan struct{}, 1)} }

func (l *live) mark() {
	select {
	case l.wake <- struct{}{}:
	default: // already marked
	}
}

func (l *live) end() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.mark()
}

// wait returns when something may have changed, at most once per quiet.
func (l *live) wait(ctx context.Context) error {
	select {
	case <-l.wake:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if pause := quiet - time.Since(l.last); !l.last.IsZero() && pause > 0 {
		t := time.NewTimer(pause)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		// What was marked during the pause is seen by the read that follows.
		select {
		case <-l.wake:
		default:
		}
	}
	l.mu.Lock()
	over := l.over
	l.mu.Unlock()
	if over {
		return ErrClosed
	}
	l.last = time.Now()
	return nil
}

// Listing follows the children of one path, as whole replacements.
type Listing struct {
	live
	hub  *Hub
	path node.Path
	ctx  context.Context
	page store.Page
}

// Listing opens a listing for the identity in ctx. Close it.
func (h *Hub) Listing(ctx context.Context, path node.Path, page store.Page) (*Listing, error) {
	l := &Listing{live: newLive(), hub: h, path: path, ctx: ctx, page: page}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	if h.byParent[path] == nil {
		h.byParent[path] = map[*Listing]struct{}{}
	}
	h.byParent[path][l] = struct{}{}
	l.mark()
	return l, nil
}

// Next returns the children as they are now: at once the first time, then after each change.
func (l *Listing) Next(ctx context.Context) ([]store.Entry, error) {
	if err := l.wait(ctx); err != nil {
		return nil, err
	}
	entries, _, err := l.hub.nodes.Children(l.ctx, l.path, l.page)
	return entries, err
}

// Close ends the listing.
func (l *Listing) Close() {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	delete(l.hub.byParent[l.path], l)
	if len(l.hub.byParent[l.path]) == 0 {
		delete(l.hub.byParent, l.path)
	}
}

// Result follows a query, as whole replacements.
type Result struct {
	live
	hub   *Hub
	query query.Query
	ctx   context.Context

	heldMu  sync.Mutex
	held    map[node.Path]struct{}
	reading bool // a read is under way: what changes now may be missing in it
}

// Result opens a live query for the identity in ctx. Close it.
func (h *Hub) Result(ctx context.Context, q query.Query) (*Result, error) {
	r := &Result{live: newLive(), hub: h, query: q, ctx: ctx}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	h.results[r] = struct{}{}
	r.mark()
	return r, nil
}

// offer marks the result when a change may concern it: a node that matches, or one that was shown.
func (r *Result) offer(c store.Change) {
	if c.Kind != store.Deleted && r.query.Match(c.Node) {
		r.mark()
		return
	}
	r.heldMu.Lock()
	_, shown := r.held[c.Path]
	shown = shown || r.reading
	r.heldMu.Unlock()
	if shown {
		r.mark()
	}
}

// Next returns the rows as they are now: at once the first time, then after each relevant change.
func (r *Result) Next(ctx context.Context) ([]node.Node, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	r.heldMu.Lock()
	r.reading = true
	r.heldMu.Unlock()
	nodes, err := r.hub.nodes.Select(r.ctx, r.query)
	if err != nil {
		return nil, err
	}
	held := make(map[node.Path]struct{}, len(nodes))
	for _, n := range nodes {
		held[n.Path] = struct{}{}
	}
	r.heldMu.Lock()
	r.held, r.reading = held, false
	r.heldMu.Unlock()
	return nodes, nil
}

// Close ends the live query.
func (r *Result) Close() {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	delete(r.hub.results, r)
}
