package route

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/node"
)

// maxResolved bounds the answers that a resolver keeps.
const maxResolved = 65_536

// manyAsked is the number of answers of one node above which a change below it drops them all: looking
// through them would cost more than asking again.
const manyAsked = 1024

// Resolution is the node that a path belongs to.
type Resolution struct {
	Node node.Path // the deepest existing node at or above the path
	Rest string    // what is left of the path below it; "" when the node is the path
}

// Resolver answers which node a path belongs to (messaging.md §1.11). It keeps positive answers only,
// never a miss and never a look-up that has not ended. It is safe for concurrent use.
type Resolver struct {
	mesh *hub.Mesh
	rows Rows

	mu      sync.RWMutex
	known   map[node.Path]node.Path              // asked path → node
	askedOf map[node.Path]map[node.Path]struct{} // node → paths that were answered with it
	flights map[node.Path]*flight
	epoch   uint64 // raised by every eviction: a look-up that began before it is not kept
}

type flight struct {
	done chan struct{}
	at   node.Path
	err  error
}

// NewResolver returns an empty resolver.
func NewResolver(m *hub.Mesh, rows Rows) *Resolver {
	return &Resolver{mesh: m, rows: rows, known: map[node.Path]node.Path{}, askedOf: map[node.Path]map[node.Path]struct{}{}, flights: map[node.Path]*flight{}}
}

// Warm returns a kept answer at once.
func (r *Resolver) Warm(path node.Path) (Resolution, bool) {
	r.mu.RLock()
	at, ok := r.known[path]
	r.mu.RUnlock()
	if !ok {
		return Resolution{}, false
	}
	return resolution(path, at), true
}

func resolution(path, at node.Path) Resolution {
	return Resolution{Node: at, Rest: strings.TrimPrefix(strings.TrimPrefix(string(path), string(at)), "/")}
}

// Resolve returns the node that path belongs to, or *store.NotFoundError. Look-ups of one path are
// shared; a caller that leaves does not cut them. The wait ends with ctx, with its cause.
func (r *Resolver) Resolve(ctx context.Context, path node.Path) (Resolution, error) {
	if res, ok := r.Warm(path); ok {
		return res, nil
	}
	r.mu.Lock()
	f := r.flights[path]
	if f == nil {
		f = &flight{done: make(chan struct{})}
		r.flights[path] = f
		epoch := r.epoch
		r.mesh.Go(func() { r.look(path, f, epoch) })
	}
	r.mu.Unlock()
	select {
	case <-f.done:
		if f.err != nil {
			return Resolution{}, f.err
		}
		return resolution(path, f.at), nil
	case <-ctx.Done():
		return Resolution{}, fmt.Errorf("resolving '%s': %w", path, context.Cause(ctx))
	}
}

// look runs one shared look-up, within its own bound.
func (r *Resolver) look(path node.Path, f *flight, epoch uint64) {
	ctx, cancel := r.mesh.Bounds().Context(r.mesh.Context(), budget.Resolve, "resolve "+string(path))
	defer cancel()
	n, err := r.rows.Prefix(ctx, path)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("resolving '%s': %w", path, context.Cause(ctx))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f.at, f.err = n.Path, err
	delete(r.flights, path)
	if err == nil && epoch == r.epoch {
		r.keep(path, n.Path)
	}
	close(f.done)
}

func (r *Resolver) keep(path, at node.Path) {
	if len(r.known) >= maxResolved {
		for k := range r.known { // any one: the order of a map is as good as a clock here
			r.drop(k)
			break
		}
	}
	r.known[path] = at
	if r.askedOf[at] == nil {
		r.askedOf[at] = map[node.Path]struct{}{}
	}
	r.askedOf[at][path] = struct{}{}
}

func (r *Resolver) drop(path node.Path) {
	at, ok := r.known[path]
	if !ok {
		return
	}
	delete(r.known, path)
	delete(r.askedOf[at], path)
	if len(r.askedOf[at]) == 0 {
		delete(r.askedOf, at)
	}
}

// Clear drops everything: anything may have changed.
func (r *Resolver) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epoch++
	clear(r.known)
	clear(r.askedOf)
}

// Evict drops what a change at path may have made untrue: the path itself, everything that was
// answered with it, and everything below it that was answered with an ancestor.
func (r *Resolver) Evict(path node.Path) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epoch++
	if len(r.known) == 0 {
		return
	}
	r.drop(path)
	for asked := range r.askedOf[path] {
		r.drop(asked)
	}
	for above := range path.Ancestors() {
		asked := r.askedOf[above]
		all := len(asked) > manyAsked
		for p := range asked {
			if all || path.Contains(p) {
				r.drop(p)
			}
		}
	}
}
