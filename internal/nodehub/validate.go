package nodehub

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/node"
)

// RuleError says that a node breaks a structural rule; it binds everybody.
type RuleError struct {
	Path   node.Path
	Reason string
}

func (e *RuleError) Error() string { return fmt.Sprintf("'%s': %s", e.Path, e.Reason) }

// newPath refuses a path that no new node may have: what [node.Path.CheckNew] does, and a path that is
// not composed as far as it can be (Unicode NFC), because the same text typed elsewhere would be another
// path. Paths that exist are left alone.
func newPath(path node.Path) error {
	if err := path.CheckNew(); err != nil {
		return err
	}
	if !norm.NFC.IsNormalString(string(path)) {
		return &node.PathError{Path: string(path), Reason: fmt.Sprintf("its letters and accents are written apart (not Unicode NFC); use %q", norm.NFC.String(string(path)))}
	}
	return nil
}

const activityKind = "_Activity"

// ownsPartition tells whether nodes of a type may stand at the top level.
func ownsPartition(nodeType string) bool {
	switch nodeType {
	case node.TypeSpace, node.TypeUser, node.TypeNodeType:
		return true
	}
	return false
}

// structure checks the rules of data.md §1.2 that need nothing but the node, and sets its main node.
func structure(n *node.Node, imported bool) error {
	refuse := func(format string, args ...any) error {
		return &RuleError{Path: n.Path, Reason: fmt.Sprintf(format, args...)}
	}
	owner, kind, satellite := n.Path.Satellite()
	scope, assignment := n.Path.Scope()
	if satellite && kind == "_Access" && !assignment {
		return refuse("only assignments stand in _Access, one level below it")
	}
	if satellite && owner.IsRoot() && !assignment {
		return refuse("a top-level satellite has no owner")
	}
	if n.NodeType == node.TypeAccessAssignment && !assignment {
		return refuse("an AccessAssignment stands at {scope}/_Access/{subject}_Access")
	}
	if assignment && n.NodeType != node.TypeAccessAssignment {
		return refuse("only nodes of type AccessAssignment stand in _Access")
	}
	if n.NodeType == node.TypeActivity && (!satellite || kind != activityKind) {
		return refuse("an Activity stands in the _Activity of its main node")
	}
	main := n.Path.Main()
	if assignment {
		main = scope
	}
	switch {
	case satellite && n.MainNode != "" && n.MainNode != main && string(n.MainNode) != main.ID():
		return refuse("its main node is '%s' by its path, not '%s'", main, n.MainNode)
	case satellite, n.MainNode == "":
		n.MainNode = main
	}
	if !imported {
		if n.NodeType == "" && n.Content.IsZero() {
			return refuse("a node needs a nodeType or a content")
		}
		if n.Path.Depth() == 1 && !ownsPartition(n.NodeType) {
			return refuse("at the top level stand only nodes that own a partition: of type Space, User or NodeType, not '%s'", n.NodeType)
		}
	}
	for s := range n.Path.Segments() {
		if strings.TrimSpace(s) == "" {
			return refuse("an empty segment")
		}
	}
	return nil
}

// validate checks a node that is about to be written. Before is what it replaces; nil at creation.
func (s *Service) validate(ctx context.Context, n node.Node, before *node.Node) error {
	if err := n.Check(s.limits); err != nil {
		return err
	}
	if n.State == node.StateDeleted && (before == nil || before.State != node.StateDeleted) {
		// It is the mark of a tombstone: a deletion asks for Delete, frees the path and keeps the history.
		return &node.FieldError{Field: "state", Reason: "a node is not written as Deleted: delete it (DELETE)"}
	}
	if before != nil {
		if n.NodeType == "" && n.Content.IsZero() && !(before.NodeType == "" && before.Content.IsZero()) {
			return &RuleError{Path: n.Path, Reason: "a node needs a nodeType or a content; this would leave it without either"}
		}
		if n.NodeType != before.NodeType {
			if _, kind, ok := n.Path.Satellite(); ok && kind == "_Access" {
				return &RuleError{Path: n.Path, Reason: "only nodes of type AccessAssignment stand in _Access"}
			}
		}
		if n.IsSatellite() != before.IsSatellite() || (n.IsSatellite() && n.MainNode != before.MainNode) {
			return &RuleError{Path: n.Path, Reason: fmt.Sprintf("its main node is '%s' and does not change", before.MainNode)}
		}
	}
	if err := checkCollection(n); err != nil {
		return err
	}
	if n.NodeType == node.TypeNodeType && (before == nil || !node.Equal(before.Content, n.Content)) {
		// Who breaks a type is told, and not those who write its nodes later.
		err := s.types.slots.run(ctx, string(n.Path), func(context.Context) error {
			_, err := compileSchema(n)
			return err
		})
		if err != nil {
			return err
		}
	}
	hidden := s.typeHidden(ctx, n.NodeType)
	if hidden && (before == nil || before.NodeType != n.NodeType) && !s.types.isRegistered(n.NodeType) {
		return &TypeError{NodeType: n.NodeType}
	}
	guarding := []string{n.NodeType}
	if before != nil && before.NodeType != n.NodeType {
		guarding = append(guarding, before.NodeType) // what guards a node is not lifted by a change of its type
	}
	for _, name := range guarding {
		if v := s.check[name]; v != nil {
			if err := v(ctx, before, n); err != nil {
				return err
			}
		}
	}
	err := s.types.check(ctx, n)
	var bad *SchemaError
	if hidden && errors.As(err, &bad) {
		// The node has the type already, so its name is no secret; what its schema says is.
		return &SchemaError{NodeType: bad.NodeType, Broken: bad.Broken}
	}
	return err
}

// typeHidden tells whether the writer may not read the node of a type. Such a type is as unknown to him as
// one that is not there.
func (s *Service) typeHidden(ctx context.Context, nodeType string) bool {
	path, err := node.ParsePath(nodeType)
	return nodeType != "" && err == nil && s.MayRead(ctx, path) != access.Granted
}
