package query

import "github.com/hubmesh/hubmesh/internal/node"

// Only returns the query restricted to nodes that visible accepts, such as those that a caller may
// read. The restriction counts before sort and limit, so that a page is full where it can be. visible
// runs for every candidate: it must be quick and must not block.
func (q Query) Only(visible func(node.Node) bool) Query {
	q.visible = visible
	return q
}
