package nodehub

import (
	"context"
	"sync"

	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
)

// guards are the subtrees that are being deleted: a write at or below one is refused as transient
// (data.md §1.4). A write that has passed its check is known until it is over, and a guard waits for
// those, so that nothing comes up below it later. Guards are counted and end at a segment.
type guards struct {
	mu      sync.Mutex
	count   map[node.Path]int
	writing map[node.Path]int // writes that have been let in
	claimed map[node.Path]bool
	waiting int           // guards that wait for writes
	left    chan struct{} // closed when a write ends and somebody waits
}

func newGuards() *guards {
	return &guards{count: map[node.Path]int{}, writing: map[node.Path]int{}, claimed: map[node.Path]bool{}, left: make(chan struct{})}
}

// open guards the subtree until release is called, and waits until the writes in it that were let in
// before are over, or ctx ends.
func (g *guards) open(ctx context.Context, root node.Path) (release func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count[root]++
	g.waiting++
	defer func() { g.waiting-- }()
	for g.busy(root) {
		left := g.left
		g.mu.Unlock()
		select {
		case <-left:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		g.mu.Lock()
		if err != nil {
			g.close(root)
			return nil, err
		}
	}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.close(root)
	}, nil
}

// keep guards a subtree that is guarded already for longer, until release is called.
func (g *guards) keep(root node.Path) (release func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count[root]++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.close(root)
	}
}

func (g *guards) close(root node.Path) {
	if g.count[root]--; g.count[root] == 0 {
		delete(g.count, root)
	}
}

// claim makes the caller the one that deletes a partition, until release is called; ok is false while
// another does.
func (g *guards) claim(partition node.Path) (release func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.claimed[partition] {
		return nil, false
	}
	g.claimed[partition] = true
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.claimed, partition)
	}, true
}

// busy tells whether a write at or below root is under way.
func (g *guards) busy(root node.Path) bool {
	for path := range g.writing {
		if root.Contains(path) {
			return true
		}
	}
	return false
}

// enter lets a write in, until leave is called; it refuses a path at or below a guarded one.
func (g *guards) enter(path node.Path) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.check(path); err != nil {
		return nil, err
	}
	g.writing[path]++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.writing[path]--; g.writing[path] == 0 {
			delete(g.writing, path)
		}
		if g.waiting > 0 {
			close(g.left)
			g.left = make(chan struct{})
		}
	}, nil
}

func (g *guards) check(path node.Path) error {
	if len(g.count) == 0 {
		return nil
	}
	hit := func(p node.Path) bool { return g.count[p] > 0 }
	root := path
	found := hit(path)
	if !found {
		for p := range path.Ancestors() {
			if hit(p) {
				root, found = p, true
				break
			}
		}
	}
	if !found {
		return nil
	}
	return beingDeleted(path, root)
}

// beingDeleted refuses work at path because of the deletion of root.
func beingDeleted(path, root node.Path) error {
	return &message.Failure{Type: message.ShuttingDown, Target: string(path), Reason: message.ReasonStopping, AnsweredBy: "nodeops",
		Message: "'" + string(root) + "' is being deleted; nothing was written, try again when that has ended"}
}
