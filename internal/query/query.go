package query

import (
	"slices"

	"github.com/hubmesh/hubmesh/internal/node"
)

// Query is a parsed query. The zero value matches nothing; make one with [Parse]. A Query is
// immutable and safe for concurrent use; the With methods return changed copies.
type Query struct {
	source string
	parsed bool
	where  expr // nil: no condition

	bases      []node.Path // sorted; what the scope is about
	based      bool        // path: or namespace: was given
	scope      Scope
	scoped     bool // scope: was given
	satellites bool // satellites are asked for
	tops       bool // top-level nodes belong to a listing of all descendants

	sort    []sortKey
	limit   int
	selects []string
	context string
	visible func(node.Node) bool // nil: every node; see Only
	most    int64                // bytes that Collect may look at; see Within
}

// String returns the text that was parsed.
func (q Query) String() string { return q.source }

// Bases returns the paths that the scope is about; the root scope where the query names none.
func (q Query) Bases() []node.Path { return slices.Clone(q.bases) }

// Scope returns which nodes around the bases the query looks at.
func (q Query) Scope() Scope { return q.scope }

// Limit returns the number of nodes asked for; 0 is "all".
func (q Query) Limit() int { return q.limit }

// WithLimit returns the query with another limit; 0 is "all".
func (q Query) WithLimit(limit int) Query {
	q.limit = max(0, limit)
	return q
}

// Context returns the name of the context the result is for, such as "search"; "" for none.
func (q Query) Context() string { return q.context }

// Sorted tells whether the query asks for an order of its own; else results are in path order.
func (q Query) Sorted() bool { return len(q.sort) > 0 }

// WithDefaultPath returns the query relative to base, if it names no path itself: with conditions it
// looks at the subtree of base, without any at its children; scope: in the query wins.
func (q Query) WithDefaultPath(base node.Path) Query {
	if q.based || !q.parsed {
		return q
	}
	q.bases = []node.Path{base}
	q.satellites = q.satellites || isSatellitePath(base)
	if !q.scoped {
		q.scope = ScopeChildren
		if q.where != nil {
			q.scope = ScopeSubtree
		}
	}
	return q
}

// Match decides one node. For the scope nextLevel it decides what can be decided alone: the node is
// Active, below a base, and meets the conditions; [Query.Collect] keeps the nearest ones.
func (q Query) Match(n node.Node) bool { return q.match(&n, new(work)) }

func (q Query) match(n *node.Node, w *work) bool {
	if !q.parsed || !q.inScope(*n) || !q.inContext(*n) {
		return false
	}
	if q.scope == ScopeNextLevel && n.State != node.StateActive {
		return false
	}
	return (q.where == nil || q.where.match(n, w)) && (q.visible == nil || q.visible(*n))
}

// inScope tells whether the node stands where the query looks. A satellite is taken for its main node,
// unless the query names a path among satellites (data.md §5.1).
func (q Query) inScope(n node.Node) bool {
	satellite := n.IsSatellite()
	if satellite && !q.satellites {
		return false
	}
	for _, base := range q.bases {
		path := n.Path
		if satellite && !isSatellitePath(base) {
			path = n.MainNode
		}
		if !q.scope.holds(base, path) {
			continue
		}
		if base == "" && q.scope == ScopeDescendants && !q.tops && path.Depth() == 1 {
			continue
		}
		return true
	}
	return false
}

// inContext tells whether the node shows in the context of the query (data.md §1.2).
func (q Query) inContext(n node.Node) bool {
	switch {
	case q.context == "":
		return true
	case slices.Contains(n.ExcludeFromContext, q.context):
		return false
	case q.context == "search":
		return !n.IsSatellite() && !n.Path.Hidden()
	}
	return true
}

// dropsContent tells whether select: is there and names nothing in the content.
func (q Query) dropsContent() bool {
	return len(q.selects) > 0 && !slices.ContainsFunc(q.selects, needsContent)
}

// NeedsContent tells whether matching or sorting looks into contents. Where it does not, a store may
// leave them out of the candidates and fill them in afterwards, unless select: leaves them out anyway
// (then ReturnsContent is false).
func (q Query) NeedsContent() bool {
	return q.where != nil && looksInside(q.where) || slices.ContainsFunc(q.sort, sortKey.needsContent)
}

// ReturnsContent tells whether the result has contents.
func (q Query) ReturnsContent() bool { return !q.dropsContent() }

func isSatellitePath(p node.Path) bool {
	_, _, ok := p.Satellite()
	return ok
}
