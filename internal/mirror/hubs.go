package mirror

import (
	"context"
	"sync"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Nodes asks the owners, in the name of whoever the context carries.
type Nodes interface {
	Get(ctx context.Context, path node.Path) (node.Node, error)
	At(ctx context.Context, path node.Path, version int64) (node.Node, error)
	Children(ctx context.Context, path node.Path, page store.Page) ([]store.Entry, string, error)
	Select(ctx context.Context, q query.Query) ([]node.Node, error)
	MayRead(ctx context.Context, path node.Path) access.Verdict
}

// Hub fans the changes of one process out to its watches. It is safe for concurrent use. Changed and
// Permissions run on the committing goroutine and only set marks.
type Hub struct {
	nodes Nodes

	mu       sync.Mutex
	closed   bool
	byNode   map[node.Path]map[*Watch]struct{}
	byParent map[node.Path]map[*Listing]struct{}
	results  map[*Result]struct{}
}

// New returns a hub of watches.
func New(nodes Nodes) *Hub {
	return &Hub{nodes: nodes, byNode: map[node.Path]map[*Watch]struct{}{}, byParent: map[node.Path]map[*Listing]struct{}{}, results: map[*Result]struct{}{}}
}

// Changed takes a committed change.
func (h *Hub) Changed(c store.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.byNode[c.Path] {
		w.offer(c)
	}
	h.list(c)
	for r := range h.results {
		r.offer(c)
	}
}

// Elsewhere takes a change whose row was not read, since nothing here follows it: see [Hub.Follows]. What
// began to follow meanwhile reads again.
func (h *Hub) Elsewhere(c store.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.byNode[c.Path] {
		w.reset()
	}
	h.list(c)
	for r := range h.results {
		r.mark()
	}
}

// list marks the listings that a change concerns; h.mu is held.
func (h *Hub) list(c store.Change) {
	// A listing shows its children and whether they have children of their own.
	parent := c.Path.Parent()
	for l := range h.byParent[parent] {
		l.mark()
	}
	if c.Kind != store.Updated {
		for above := range parent.Ancestors() {
			if parent == above {
				break
			}
			for l := range h.byParent[above] {
				l.mark()
			}
		}
	}
}

// Permissions takes a change of the assignments at a scope: everything at or below it is looked at
// again.
func (h *Hub) Permissions(scope node.Path) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for path, ws := range h.byNode {
		if scope.Contains(path) || scope.Contains(path.Main()) {
			for w := range ws {
				w.recheck()
			}
		}
	}
	for _, ls := range h.byParent {
		for l := range ls {
			l.mark()
		}
	}
	for r := range h.results {
		r.mark()
	}
}

// Reset takes note that everything may have changed, and that commits which were told may have been lost: whatever is
// shown is read again, and counts also with a lower version.
func (h *Hub) Reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ws := range h.byNode {
		for w := range ws {
			w.restart()
		}
	}
	for _, ls := range h.byParent {
		for l := range ls {
			l.mark()
		}
	}
	for r := range h.results {
		r.mark()
	}
}

// Follows tells whether anything looks at the node at a path, or might show it: then a change by another
// process is to come with its row.
func (h *Hub) Follows(path node.Path) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.byNode[path]) > 0 || len(h.results) > 0
}

// Close ends every watch with ErrClosed.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.end(func(context.Context, node.Path) error { return ErrClosed })
}

// Undetermined takes note that nothing has been heard of permissions for long: every watch of a reader whose
// permissions are not known ends with *[access.UndeterminedError], so that it is opened anew where or when they are.
func (h *Hub) Undetermined() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end(func(ctx context.Context, path node.Path) error {
		if h.nodes.MayRead(ctx, path) != access.Undetermined {
			return nil
		}
		return &access.UndeterminedError{Path: path}
	})
}

// end ends the watches for which there is a reason; h.mu is held.
func (h *Hub) end(why func(ctx context.Context, path node.Path) error) {
	for path, ws := range h.byNode {
		for w := range ws {
			if err := why(w.ctx, path); err != nil {
				w.end(err)
			}
		}
	}
	for path, ls := range h.byParent {
		for l := range ls {
			if err := why(l.ctx, path); err != nil {
				l.end(err)
			}
		}
	}
	for r := range h.results {
		if err := why(r.ctx, ""); err != nil {
			r.end(err)
		}
	}
}

// Counts are the watches that are open.
type Counts struct{ Nodes, Listings, Results int }

// Counts returns how many watches are open.
func (h *Hub) Counts() Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := Counts{Results: len(h.results)}
	for _, ws := range h.byNode {
		c.Nodes += len(ws)
	}
	for _, ls := range h.byParent {
		c.Listings += len(ls)
	}
	return c
}
