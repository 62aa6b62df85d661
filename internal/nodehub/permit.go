package nodehub

import (
	"context"
	"errors"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// SubjectOf is the subject whose permissions count for whoever ctx says asks.
func SubjectOf(ctx context.Context) access.Subject {
	id := message.IdentityFrom(ctx)
	if id.IsAnonymous() {
		return access.Anonymous
	}
	return access.Subject(id.Subject)
}

// permit checks that the caller may do need at path. Whoever may not read is answered as if there were
// no node; whoever may read but not this, gets *access.DeniedError.
func (s *Service) permit(ctx context.Context, path node.Path, need access.Permission) error {
	e := s.access.Evaluator()
	subject := SubjectOf(ctx)
	err := e.Require(subject, path, need)
	var denied *access.DeniedError
	if errors.As(err, &denied) && e.Check(subject, path, access.Read) != access.Granted {
		return &store.NotFoundError{Path: path}
	}
	return err
}

// permitCreate checks that the caller may create a node at path. Whoever may not, but may read something
// above it, is told so whether or not he may read the path, and so whether or not there is a node.
func (s *Service) permitCreate(ctx context.Context, path node.Path) error {
	err := s.permit(ctx, path, access.Create)
	if !errors.As(err, new(*store.NotFoundError)) {
		return err
	}
	for above := range path.Ancestors() {
		if s.MayRead(ctx, above) == access.Granted {
			return notYours(ctx, path)
		}
	}
	return err
}

func notYours(ctx context.Context, path node.Path) error {
	return &access.DeniedError{Subject: SubjectOf(ctx), Path: path, Need: access.Create}
}

// twin is the answer to a create that the store refused, for one that a path of another letter case stands in the way of: one that the caller may
// not read is not named, and the refusal is that of a path which is not his.
func (s *Service) twin(ctx context.Context, path node.Path, err error) error {
	var exists *store.ExistsError
	if errors.As(err, &exists) && exists.Other != "" && exists.Other != path && s.MayRead(ctx, exists.Other) != access.Granted {
		return notYours(ctx, path)
	}
	return groundless(err)
}

// permitDelete checks that the caller may delete the node at path. Whoever may not is told so where he may
// read a node; where there is none, the answer is the one of a node that he may not read.
func (s *Service) permitDelete(ctx context.Context, path node.Path) error {
	err := s.permit(ctx, path, access.Delete)
	if !errors.As(err, new(*access.DeniedError)) {
		return err
	}
	if _, there := s.store.Read(ctx, path); errors.As(there, new(*store.NotFoundError)) {
		return &store.NotFoundError{Path: path}
	} else if there != nil {
		return there
	}
	return err
}

// MayRead is the verdict on reading one path.
func (s *Service) MayRead(ctx context.Context, path node.Path) access.Verdict {
	return s.access.Evaluator().Check(SubjectOf(ctx), path, access.Read)
}
