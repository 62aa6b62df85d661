package query

import (
	"slices"
	"strings"

	"github.com/hubmesh/hubmesh/internal/node"
)

// expr is a condition on one node. What deciding it takes is added to w.
type expr interface {
	match(n *node.Node, w *work) bool
}

type allOf []expr

func (e allOf) match(n *node.Node, w *work) bool {
	for _, term := range e {
		if !term.match(n, w) {
			return false
		}
	}
	return true
}

// anyOf holds alternatives; a nil one is no condition.
type anyOf []expr

func (e anyOf) match(n *node.Node, w *work) bool {
	for _, term := range e {
		if term == nil || term.match(n, w) {
			return true
		}
	}
	return false
}

type not struct{ expr }

func (e not) match(n *node.Node, w *work) bool { return !e.expr.match(n, w) }

// isMain tells main nodes from satellites.
type isMain struct{ negated bool }

func (e isMain) match(n *node.Node, _ *work) bool { return n.IsSatellite() == e.negated }

// text is a term that has to occur somewhere in the node, in any letter case: in the name, path,
// description, type, or a text of the content to depth 3 (data.md §5.1).
type text struct{ finder }

// textDepth is how deep the content is searched.
const textDepth = 3

func newText(term string) expr {
	if term = strings.TrimSpace(term); term == "" {
		return nil
	}
	return text{newFinder(term)}
}

func (e text) match(n *node.Node, w *work) bool {
	w.add(len(n.Name) + len(n.Path) + len(n.Description) + len(n.NodeType))
	if e.in(n.Name) || e.in(string(n.Path)) || e.in(n.Description) || e.in(n.NodeType) {
		return true
	}
	w.add(n.Content.Len())
	for value := range n.Content.Texts(textDepth) {
		w.add(0)
		if e.inJSON(value) {
			return true
		}
	}
	return false
}

// conjuncts yields the conditions that every match meets.
func conjuncts(e expr, yield func(condition)) {
	switch e := e.(type) {
	case allOf:
		for _, term := range e {
			conjuncts(term, yield)
		}
	case condition:
		yield(e)
	}
}

// looksInside tells whether the condition depends on the content.
func looksInside(e expr) bool {
	switch e := e.(type) {
	case allOf:
		return slices.ContainsFunc(e, looksInside)
	case anyOf:
		return slices.ContainsFunc(e, looksInside)
	case not:
		return looksInside(e.expr)
	case condition:
		return e.field.kind == kindContent
	case text:
		return true
	}
	return false
}

// satelliteTypes are the types of node that live in satellite tables (data.md §1.2).
var satelliteTypes = []string{
	node.TypeActivity, node.TypeAccessAssignment,
	"UserActivity", "Thread", "ThreadMessage", "Comment", "Approval", "Tracking", "Notification",
}

// asksForSatellites tells whether the query names a type of satellite, a main node, or a path among
// satellites: other queries leave satellites out.
func asksForSatellites(e expr) bool {
	switch e := e.(type) {
	case allOf:
		return slices.ContainsFunc(e, asksForSatellites)
	case anyOf:
		return slices.ContainsFunc(e, asksForSatellites)
	case isMain:
		return e.negated
	case condition:
		if e.negated || e.op != opEqual {
			return false
		}
		switch e.field.name {
		case "mainNode":
			return true
		case "nodeType":
			return slices.ContainsFunc(e.values, func(v pattern) bool { return slices.Contains(satelliteTypes, v.text) })
		case "path", "namespace":
			return slices.ContainsFunc(e.values, func(v pattern) bool { return isSatellitePath(node.Path(strings.Trim(v.text, "/"))) })
		}
	}
	return false
}

// asksForType tells whether the query names the type.
func asksForType(e expr, nodeType string) bool {
	switch e := e.(type) {
	case allOf:
		return slices.ContainsFunc(e, func(e expr) bool { return asksForType(e, nodeType) })
	case anyOf:
		return slices.ContainsFunc(e, func(e expr) bool { return asksForType(e, nodeType) })
	case condition:
		return !e.negated && e.op == opEqual && e.field.name == "nodeType" &&
			slices.ContainsFunc(e.values, func(v pattern) bool { return v.text == nodeType })
	}
	return false
}
