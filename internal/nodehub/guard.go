package nodehub

import (
	"sync"

	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
)

// guards are the subtrees that are being deleted: a write at or below one is refused as transient
// (data.md §1.4). Guards are counted and end at a segment.
type guards struct {
	mu    sync.RWMutex
	count map[node.Path]int
}

func newGuards() *guards { return &guards{count: map[node.Path]int{}} }

// open guards the subtree until the returned function is called.
func (g *guards) open(root node.Path) (release func()) {
	g.mu.Lock()
	g.count[root]++
	g.mu.Unlock()
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.count[root]--; g.count[root] == 0 {
			delete(g.count, root)
		}
	}
}

// check refuses a path at or below a guarded one.
func (g *guards) check(path node.Path) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
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
	return &message.Failure{Type: message.ShuttingDown, Target: string(path), Reason: message.ReasonStopping, AnsweredBy: "nodeops",
		Message: "'" + string(root) + "' is being deleted; nothing was written, try again when that has ended"}
}
