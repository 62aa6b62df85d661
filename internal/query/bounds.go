package query

import (
	"slices"
	"strings"

	"github.com/hubmesh/hubmesh/internal/node"
)

// Bounds is what a store can use to find the candidates of a query: every node that matches is
// admitted; a node that is admitted need not match. The three lists of paths are alternatives, the
// other bounds hold beside them.
type Bounds struct {
	Paths   []node.Path // these paths
	Parents []node.Path // the children of these
	Below   []node.Path // what lies below these; "" is everything

	MainOnly bool     // no satellites
	MainToo  bool     // a satellite also counts where its main node stands
	Types    []string // node types; nil is "any"
	Prefixes []string // beginnings of the path's text; nil is "any"

	// Texts are terms, folded, of each list of which one occurs in the node, where a term is looked for. [Bounds.Admits]
	// leaves them to the matcher.
	Texts [][]string
}

// Bounds returns the bounds of the query.
func (q Query) Bounds() Bounds {
	b := Bounds{MainOnly: !q.satellites}
	for _, base := range q.bases {
		switch q.scope {
		case ScopeExact:
			b.Paths = append(b.Paths, base)
		case ScopeChildren:
			b.Parents = append(b.Parents, base)
		case ScopeDescendants, ScopeNextLevel:
			b.Below = append(b.Below, base)
		case ScopeAncestors:
			b.addAncestors(base)
		case ScopeAncestorsAndSelf:
			b.Paths = append(b.Paths, base)
			b.addAncestors(base)
		case ScopeSubtree:
			b.Paths = append(b.Paths, base)
			b.Below = append(b.Below, base)
		case ScopeHierarchy:
			b.Paths = append(b.Paths, base)
			b.Below = append(b.Below, base)
			b.addAncestors(base)
		}
		b.MainToo = b.MainToo || q.satellites && !isSatellitePath(base)
	}
	if slices.Contains(b.Below, "") {
		b.Paths, b.Parents, b.Below, b.MainToo = nil, nil, []node.Path{""}, false
	}
	slices.Sort(b.Paths)
	b.Paths = slices.Compact(b.Paths)
	if q.where != nil && q.scope != ScopeNextLevel { // which looks at nodes that do not match
		conjuncts(q.where, b.narrow)
		b.Texts = occurring(q.where, nil)
	}
	return b
}

func (b *Bounds) addAncestors(base node.Path) {
	for above := range base.Ancestors() {
		b.Paths = append(b.Paths, above)
	}
}

// narrow uses a condition that every match meets.
func (b *Bounds) narrow(c condition) {
	if c.negated || c.op != opEqual {
		return
	}
	switch {
	case c.field.name == "nodeType" && b.Types == nil:
		var types []string
		for _, v := range c.values {
			if v.glob != nil {
				return
			}
			types = append(types, v.text)
		}
		b.Types = types
	case (c.field.name == "path" || c.field.name == "namespace") && b.Prefixes == nil:
		var prefixes []string
		for _, v := range c.values {
			if v.glob != nil && v.glob[0] == "" || v.text == "" {
				return
			}
			if v.glob != nil {
				prefixes = append(prefixes, v.glob[0])
			} else {
				prefixes = append(prefixes, v.text)
			}
		}
		b.Prefixes = prefixes
	}
}

// occurring adds to all the terms that occur in every match.
func occurring(e expr, all [][]string) [][]string {
	switch e := e.(type) {
	case allOf:
		for _, term := range e {
			all = occurring(term, all)
		}
	case text:
		all = append(all, []string{e.term})
	case anyOf:
		var one []string
		for _, alternative := range e {
			t, ok := alternative.(text)
			if !ok {
				return all
			}
			one = append(one, t.term)
		}
		all = append(all, one)
	}
	return all
}

// Admits tells whether the node is within the bounds.
func (b Bounds) Admits(n node.Node) bool {
	switch {
	case b.MainOnly && n.IsSatellite():
		return false
	case b.Types != nil && !slices.Contains(b.Types, n.NodeType):
		return false
	case b.Prefixes != nil && !slices.ContainsFunc(b.Prefixes, func(prefix string) bool { return strings.HasPrefix(string(n.Path), prefix) }):
		return false
	}
	return b.places(n.Path) || b.MainToo && n.IsSatellite() && b.places(n.MainNode)
}

func (b Bounds) places(path node.Path) bool {
	return slices.Contains(b.Paths, path) ||
		slices.ContainsFunc(b.Parents, func(base node.Path) bool { return ScopeChildren.holds(base, path) }) ||
		slices.ContainsFunc(b.Below, func(base node.Path) bool { return ScopeDescendants.holds(base, path) })
}
