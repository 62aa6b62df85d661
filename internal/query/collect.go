package query

import (
	"iter"
	"slices"

	"github.com/hubmesh/hubmesh/internal/node"
)

// Collect runs the query over candidates and returns the result: matched, sorted, limited, and
// without the contents that select: leaves out. Candidates are in path order and at least those that
// [Bounds.Admits]; an error among them ends it and is returned. It stops early where no order is
// asked for, keeps at most twice the limit in memory, and answers *[SizeError] where the contents
// that it keeps exceed maxBytes (0: no bound), and *[WorkError] where it takes more than [Query.Within] allows.
func (q Query) Collect(candidates iter.Seq2[node.Node, error], maxBytes int) ([]node.Node, error) {
	var nodes []node.Node
	var size int
	var done work
	level := frontier{}
	// A content that is neither selected nor sorted by need not be kept.
	drop := q.dropsContent() && !slices.ContainsFunc(q.sort, sortKey.needsContent)
	for n, err := range candidates {
		if err != nil {
			return nil, err
		}
		if q.scope == ScopeNextLevel && !(q.real(n) && level.nearest(n.Path)) {
			continue
		}
		matched := q.match(&n, &done)
		if int64(done) > q.maxWork() {
			return nil, &WorkError{Bytes: q.maxWork()}
		}
		if !matched {
			continue
		}
		if drop {
			n.Content = node.Content{}
		}
		nodes = append(nodes, n)
		size += n.Content.Len()
		if q.limit > 0 && q.Sorted() && len(nodes) >= 2*q.limit {
			q.Sort(nodes)
			for _, n := range nodes[q.limit:] {
				size -= n.Content.Len()
			}
			clear(nodes[q.limit:])
			nodes = nodes[:q.limit]
		}
		if maxBytes > 0 && size > maxBytes {
			return nil, &SizeError{Bytes: maxBytes}
		}
		if q.limit > 0 && !q.Sorted() && len(nodes) == q.limit {
			break
		}
	}
	q.Sort(nodes)
	if q.limit > 0 && len(nodes) > q.limit {
		nodes = nodes[:q.limit]
	}
	if q.dropsContent() {
		for i := range nodes {
			nodes[i].Content = node.Content{}
		}
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
