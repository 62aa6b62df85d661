package query

import (
	"iter"

	"github.com/hubmesh/hubmesh/internal/node"
)

// Collect runs the query over candidates and returns the result: matched, sorted, limited, and
// without the contents that select: leaves out. Candidates are in path order and at least those that
// [Bounds.Admits]; an error among them ends it and is returned. It stops early where no order is
// asked for, and keeps at most twice the limit in memory.
func (q Query) Collect(candidates iter.Seq2[node.Node, error]) ([]node.Node, error) {
	var nodes []node.Node
	level := frontier{}
	for n, err := range candidates {
		if err != nil {
			return nil, err
		}
		if q.scope == ScopeNextLevel && !(q.real(n) && level.nearest(n.Path)) {
			continue
		}
		if !q.Match(n) {
			continue
		}
		nodes = append(nodes, n)
		if q.limit == 0 || len(nodes) < q.limit {
			continue
		}
		if !q.Sorted() {
			break
		}
		if len(nodes) >= 2*q.limit {
			q.Sort(nodes)
			clear(nodes[q.limit:])
			nodes = nodes[:q.limit]
		}
	}
	q.Sort(nodes)
	if q.limit > 0 && len(nodes) > q.limit {
		nodes = nodes[:q.limit]
	}
	for i := range nodes {
		nodes[i] = q.project(nodes[i])
	}
	return nodes, nil
}

// real tells whether the node can stand for its branch in the scope nextLevel.
func (q Query) real(n node.Node) bool {
	return n.State == node.StateActive && !n.IsSatellite() && q.inScope(n)
}

// frontier keeps the nearest nodes of each branch.
type frontier map[node.Path]struct{}

// nearest tells whether no node nearer to a base stands above path. Nodes come in path order, so an
// ancestor comes before what is below it.
func (f frontier) nearest(path node.Path) bool {
	for above := range path.Ancestors() {
		if _, taken := f[above]; taken {
			return false
		}
	}
	f[path] = struct{}{}
	return true
}
