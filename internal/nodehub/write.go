package nodehub

import (
	"context"
	"errors"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// get answers the node.
func (s *Service) get(ctx context.Context, h *hub.Hub, _ *GetRequest) (*NodeReply, error) {
	if err := s.permit(ctx, node.Path(h.Path()), access.Read); err != nil {
		return nil, err
	}
	n, err := s.current(ctx, h)
	if err != nil {
		return nil, err
	}
	return &NodeReply{Node: n}, nil
}

// patch merges a patch over the node.
func (s *Service) patch(ctx context.Context, h *hub.Hub, r *PatchRequest) (*NodeReply, error) {
	return s.update(ctx, h, r.If, func(cur node.Node) (node.Node, error) {
		return node.ApplyPatch(cur, []byte(r.Patch), s.limits)
	})
}

// put replaces the writable fields of the node.
func (s *Service) put(ctx context.Context, h *hub.Hub, r *PutRequest) (*NodeReply, error) {
	return s.update(ctx, h, r.If, func(cur node.Node) (node.Node, error) {
		next := cur.WithWritable(r.Node)
		if next.MainNode == "" {
			next.MainNode = cur.MainNode
		}
		return next, nil
	})
}

// update is the one write path of an existing node, on its hub's turn: compute, prove the change, mint
// the version, commit, and only then answer. A write that meets a newer version is computed again over
// it, unless the caller named a version. What makes a commit needless or refuses it is decided by the stored row
// where others write it, too: what is held may be older than what they acknowledged.
func (s *Service) update(ctx context.Context, h *hub.Hub, cond Condition, change func(node.Node) (node.Node, error)) (*NodeReply, error) {
	path := node.Path(h.Path())
	if err := s.permit(ctx, path, access.Update); err != nil {
		return nil, err
	}
	st := h.State().(*state)
	sure := !s.rivals // whether what is held is what is stored
	for attempt := 0; ; attempt++ {
		cur, err := s.current(ctx, h)
		if err != nil {
			return nil, err
		}
		next, err := s.next(ctx, cur, cond, change)
		if !sure && (err != nil || next.SameAs(cur)) {
			if cur, err = s.reload(ctx, h); err != nil {
				return nil, err
			}
			sure = true
			next, err = s.next(ctx, cur, cond, change)
		}
		if err != nil {
			return nil, err
		}
		if next.SameAs(cur) { // data.md §1.3.1: a version only on a proven change
			if err := s.store.Settle(ctx); err != nil {
				return nil, err
			}
			return &NodeReply{Node: cur}, nil
		}
		next.Version = cur.Version + 1
		next.ModifiedAt, next.ModifiedBy = s.stamp(), author(ctx)
		lasting, done := s.lasting(ctx)
		got, err := s.commit(lasting, store.Write{Op: store.OpUpdate, Node: next, Expected: cur.Version, ExpectedAt: cur.ModifiedAt, Origin: originHub})
		done()
		var conflict *store.ConflictError
		var missing *store.NotFoundError
		switch {
		case err == nil:
			st.set(s.cache, got)
			return &NodeReply{Node: got}, nil
		case errors.As(err, &missing):
			st.gone = true
			h.Dispose()
			return nil, err
		case errors.As(err, &conflict):
			st.stale = true
			if cond.Version != 0 || attempt == maxRemerge {
				return nil, err
			}
		default:
			// The outcome may be unknown: what is held may be old.
			st.stale = true
			return nil, err
		}
	}
}

// next is a node after a change of one whose version meets the condition.
func (s *Service) next(ctx context.Context, cur node.Node, cond Condition, change func(node.Node) (node.Node, error)) (node.Node, error) {
	if cond.Absent {
		return node.Node{}, &store.ExistsError{Path: cur.Path, Version: cur.Version}
	}
	if cond.Version != 0 && cond.Version != cur.Version {
		return node.Node{}, &store.ConflictError{Path: cur.Path, Expected: cond.Version, Actual: cur.Version}
	}
	next, err := change(cur)
	if err != nil || next.SameAs(cur) {
		return next, err
	}
	return next, s.validate(ctx, next, &cur)
}

// commit submits one write and waits for it. The wait ends with the caller's budget, the work does not.
func (s *Service) commit(ctx context.Context, w store.Write) (node.Node, error) {
	if w.Op != store.OpDelete {
		leave, err := s.guards.enter(w.Node.Path)
		if err != nil {
			return node.Node{}, err
		}
		defer leave()
	}
	release, err := s.access.Admit(ctx, access.Change{Path: w.Node.Path, Version: w.Node.Version, Deleted: w.Op == store.OpDelete, Node: w.Node})
	if err != nil {
		return node.Node{}, err
	}
	defer release()
	res, err := s.committer.Submit(ctx, w)
	if err == nil {
		err = res.Err
	}
	return res.Node, waited(err)
}

// lasting is ctx for the commit of a turn. A commit that is under way when ctx is cancelled, since the hub is
// disposed or its caller has left, is waited for a little longer: who hands a node over says how its last write
// ended. A deadline is kept.
func (s *Service) lasting(ctx context.Context) (context.Context, func()) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) && errors.Is(context.Cause(ctx), context.Canceled) {
			t := time.NewTimer(s.mesh.Bounds().Own(budget.Quiesce))
			defer t.Stop()
			select {
			case <-t.C:
			case <-over:
			}
		}
		cancel(context.Cause(ctx))
	})
	return longer, func() {
		stop()
		close(over)
		cancel(context.Canceled)
	}
}

// waited turns the end of a caller's wait into what it means: the write may still be made.
func waited(err error) error {
	if err == nil {
		return nil
	}
	var unknown *store.OutcomeUnknownError
	if !errors.As(err, &unknown) {
		return err
	}
	return &message.Failure{Type: message.ShuttingDown, Reason: message.ReasonBudget, OutcomeUnknown: true,
		Message: "the commit was not answered in time; the write may have been made: read the node before trying again", Cause: err}
}

// stamp is the time of a write.
func (s *Service) stamp() time.Time { return node.Stamp(time.Now()) }

// author is who a write is by: the caller, never a name in the request (edge.md §2.3).
func author(ctx context.Context) string {
	if id := message.IdentityFrom(ctx); id != nil {
		return id.Subject
	}
	return message.SubjectAnonymous
}

// bounded returns a context for work of the operations hub: the caller's identity, the service's own
// bound, ended with the mesh.
func (s *Service) bounded(d context.Context, w budget.Bound, what string) (context.Context, context.CancelFunc) {
	ctx, cancel := s.mesh.Bounds().Context(s.mesh.Context(), w, what)
	return message.WithIdentity(ctx, message.IdentityFrom(d)), cancel
}
