package importer

import (
	"context"
	"errors"
	"fmt"

	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// OperationsSpace is the space of what concerns no single space, such as the import of several. The mesh makes it
// when it is needed and grants nothing in it, so that only who reads at the root scope reads it.
const OperationsSpace node.Path = "Operations"

// otherOperations bounds the names that are tried where the one before is somebody's own space.
const otherOperations = 100

// owner is the node at which the activity of the import lies. An activity names files, paths and types and quotes
// errors, so it lies where only who may read all of that reads it: at the node that everything goes below, or in
// the space of operations where there is no such node yet, or where something below it has access rules of its own.
func (p *plan) owner(ctx context.Context) (node.Path, error) {
	alone, err := p.goesWhereOneRuleHolds(ctx)
	if err != nil {
		return "", err
	}
	if alone {
		return p.r.Into, nil
	}
	return p.s.operations(message.WithIdentity(ctx, message.SystemIdentity()))
}

// goesWhereOneRuleHolds tells whether who may read the node that the import goes into may read all that it brings.
func (p *plan) goesWhereOneRuleHolds(ctx context.Context) (bool, error) {
	into := p.r.Into
	if into == "" {
		return false, nil
	}
	if _, err := p.s.o.Store.Read(ctx, into); err != nil {
		if errors.As(err, new(*store.NotFoundError)) {
			err = nil
		}
		return false, err
	}
	ownRule := func(at node.Path) bool {
		scope, ok := at.Scope()
		return ok && scope != into
	}
	for _, it := range p.items {
		if ownRule(it.path) {
			return false, nil
		}
	}
	for at, err := range p.s.o.Store.Descendants(ctx, into) {
		if err != nil {
			return false, err
		}
		if ownRule(at) {
			return false, nil
		}
	}
	return true, nil
}

// operations returns the space of operations and makes it where it is missing. A space of that name which the mesh
// has not made may be shared with anybody: it is left to its owner, and the next name is taken.
func (s *Service) operations(system context.Context) (node.Path, error) {
	for n := 1; n <= otherOperations; n++ {
		at := OperationsSpace
		if n > 1 {
			at = node.Path(fmt.Sprintf("%s-%d", OperationsSpace, n))
		}
		_, err := s.o.Nodes.Create(system, node.Node{Path: at, NodeType: node.TypeSpace, Name: "Operations", Content: node.RawContent(`{"$type":"Space"}`)})
		if err == nil {
			return at, nil
		}
		if !errors.As(err, new(*store.ExistsError)) {
			return "", err
		}
		have, err := s.o.Nodes.Get(system, at)
		switch {
		case err == nil && have.Path == at && have.CreatedBy == message.SubjectSystem:
			return at, nil
		case err != nil && !notFound(err): // else another spelling of the name is somebody's
			return "", err
		}
	}
	return "", &SourceError{string(OperationsSpace), "every name for the space of operations is taken; rename or delete one of those spaces"}
}
