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

// MayRead is the verdict on reading one path.
func (s *Service) MayRead(ctx context.Context, path node.Path) access.Verdict {
	return s.access.Evaluator().Check(SubjectOf(ctx), path, access.Read)
}
