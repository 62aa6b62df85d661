package query

import (
	"strings"

	"github.com/hubmesh/hubmesh/internal/node"
)

// Scope says which nodes around a base path a query looks at (data.md §5.1).
type Scope uint8

// The scopes.
const (
	ScopeExact            Scope = iota // the base itself
	ScopeChildren                      // one level below
	ScopeDescendants                   // everything below
	ScopeAncestors                     // everything above
	ScopeHierarchy                     // above, itself and below
	ScopeSubtree                       // itself and below
	ScopeAncestorsAndSelf              // itself and above
	ScopeNextLevel                     // the nearest Active nodes below, one a branch
)

var scopeNames = map[string]Scope{
	"exact": ScopeExact, "self": ScopeExact,
	"children":    ScopeChildren,
	"descendants": ScopeDescendants,
	"ancestors":   ScopeAncestors,
	"hierarchy":   ScopeHierarchy,
	"subtree":     ScopeSubtree, "selfanddescendants": ScopeSubtree,
	"ancestorsandself": ScopeAncestorsAndSelf, "selfandancestors": ScopeAncestorsAndSelf, "myselfandancestors": ScopeAncestorsAndSelf,
	"nextlevel": ScopeNextLevel, "populated": ScopeNextLevel,
}

// parseScope reads the name of a scope, in any letter case; an unknown one is exact (data.md §5.1).
func parseScope(name string) Scope { return scopeNames[strings.ToLower(name)] }

// holds tells whether path stands in scope s to base. For the next level it tells what one node
// alone can tell: that it is below.
func (s Scope) holds(base, path node.Path) bool {
	switch s {
	case ScopeExact:
		return path == base
	case ScopeChildren:
		return path != base && path.Parent() == base
	case ScopeDescendants, ScopeNextLevel:
		return path != base && base.Contains(path)
	case ScopeAncestors:
		return path != base && path.Contains(base)
	case ScopeHierarchy:
		return path.Contains(base) || base.Contains(path)
	case ScopeSubtree:
		return base.Contains(path)
	case ScopeAncestorsAndSelf:
		return path.Contains(base)
	}
	return false
}
