package nodehub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

const (
	deletePasses = 5       // enumerations after which a delete that finds more and more gives up
	deleteMost   = 200_000 // nodes of one delete
	deleteSlice  = 500
)

// ChildrenError refuses the deletion of a node that has children.
type ChildrenError struct{ Path node.Path }

func (e *ChildrenError) Error() string {
	return fmt.Sprintf("'%s' has children; delete them first, or delete recursively", e.Path)
}

// PartialDeleteError says that a deletion did not reach its end.
type PartialDeleteError struct {
	Path    node.Path
	Deleted int
	Failed  node.Path
	Err     error
}

func (e *PartialDeleteError) Error() string {
	return fmt.Sprintf("deleting '%s' stopped at '%s' after %d nodes: %v", e.Path, e.Failed, e.Deleted, e.Err)
}
func (e *PartialDeleteError) Unwrap() error { return e.Err }

// delete removes a node, with its satellites, or a whole subtree (data.md §1.4): permission first,
// then the guard, then a plan by the store's own enumeration, then bottom-up.
func (s *Service) delete(ctx context.Context, r *DeleteRequest) (*DeleteReply, error) {
	if err := s.permit(ctx, r.Path, access.Delete); err != nil {
		return nil, err
	}
	root, err := s.store.Read(ctx, r.Path)
	if err != nil {
		return nil, err
	}
	if r.If.Version != 0 && r.If.Version != root.Version {
		return nil, &store.ConflictError{Path: r.Path, Expected: r.If.Version, Actual: root.Version}
	}
	release := s.guards.open(r.Path)
	defer release()
	plan, err := s.plan(ctx, r)
	if err != nil {
		return nil, err
	}
	deleted := 0
	for pass := 0; len(plan) > 0; pass++ {
		if pass == deletePasses {
			return nil, &PartialDeleteError{Path: r.Path, Deleted: deleted, Failed: plan[0], Err: errors.New("nodes keep appearing below it")}
		}
		n, err := s.deleteAll(ctx, r.Path, plan)
		deleted += n
		if err != nil {
			var partial *PartialDeleteError
			if errors.As(err, &partial) {
				partial.Deleted = deleted
			}
			return nil, err
		}
		if plan, err = s.plan(ctx, r); err != nil {
			return nil, err
		}
	}
	version, err := s.deleteRoot(ctx, r, root)
	if err != nil {
		if deleted == 0 {
			return nil, err
		}
		return nil, &PartialDeleteError{Path: r.Path, Deleted: deleted, Failed: r.Path, Err: err}
	}
	if r.Path.Depth() == 1 {
		// An emptied partition goes with its root; one that has got new nodes stays.
		if err := s.store.RemovePartition(ctx, r.Path.Partition()); err != nil {
			s.log.Info("a partition stays after its root was deleted", "partition", r.Path.Partition(), "error", err)
		}
	}
	return &DeleteReply{Deleted: deleted + 1, Version: version}, nil
}

// plan lists what goes before the root, deepest first. Without recursion that is the root's own
// satellites, and a child is a refusal. Every node of the plan must be the caller's to delete.
func (s *Service) plan(ctx context.Context, r *DeleteRequest) ([]node.Path, error) {
	var plan []node.Path
	for p, err := range s.store.Descendants(ctx, r.Path) {
		if err != nil {
			return nil, err
		}
		owner, _, satellite := p.Satellite()
		if !r.Recursive && !(satellite && owner == r.Path) {
			return nil, &ChildrenError{Path: r.Path}
		}
		if err := s.permit(ctx, p, access.Delete); err != nil {
			return nil, &RuleError{Path: r.Path, Reason: "something below it is not yours to delete; nothing was deleted"}
		}
		if plan = append(plan, p); len(plan) > deleteMost {
			return nil, &RuleError{Path: r.Path, Reason: fmt.Sprintf("more than %d nodes; delete its subtrees first", deleteMost)}
		}
	}
	slices.SortStableFunc(plan, func(a, b node.Path) int { return b.Depth() - a.Depth() })
	return plan, nil
}

// deleteAll removes the nodes of a plan in slices.
func (s *Service) deleteAll(ctx context.Context, root node.Path, plan []node.Path) (int, error) {
	deleted := 0
	for slice := range slices.Chunk(plan, deleteSlice) {
		rows, err := s.store.ReadMany(ctx, slice)
		if err != nil {
			return deleted, err
		}
		writes := make([]store.Write, len(rows))
		var releases []func()
		for i, n := range rows {
			rel, err := s.access.Admit(access.Change{Path: n.Path, Version: n.Version + 1, Deleted: true, Node: n})
			if err != nil {
				each(releases)
				return deleted, &PartialDeleteError{Path: root, Deleted: deleted, Failed: n.Path, Err: err}
			}
			releases = append(releases, rel)
			writes[i] = s.tombstone(ctx, n)
		}
		results, err := s.committer.SubmitBulk(ctx, writes)
		each(releases)
		if err != nil {
			return deleted, waited(err)
		}
		for i, res := range results {
			var missing *store.NotFoundError
			var conflict *store.ConflictError
			switch {
			case res.Err == nil:
				deleted++
			case errors.As(res.Err, &missing), errors.As(res.Err, &conflict):
				// Gone already, or changed meanwhile: the next pass looks again.
			default:
				return deleted, &PartialDeleteError{Path: root, Deleted: deleted, Failed: rows[i].Path, Err: res.Err}
			}
		}
	}
	return deleted, nil
}

// deleteRoot removes the node itself.
func (s *Service) deleteRoot(ctx context.Context, r *DeleteRequest, root node.Node) (int64, error) {
	for attempt := 0; ; attempt++ {
		w := s.tombstone(ctx, root)
		_, err := s.commit(ctx, w)
		var conflict *store.ConflictError
		if err == nil {
			return w.Node.Version, nil
		}
		if !errors.As(err, &conflict) || r.If.Version != 0 || attempt == maxRemerge {
			return 0, err
		}
		if root, err = s.store.Read(ctx, r.Path); err != nil {
			return 0, err
		}
	}
}

// tombstone is the write that deletes n.
func (s *Service) tombstone(ctx context.Context, n node.Node) store.Write {
	expected := n.Version
	n.Version++
	n.State, n.ModifiedAt, n.ModifiedBy = node.StateDeleted, s.stamp(), author(ctx)
	return store.Write{Op: store.OpDelete, Node: n, Expected: expected, Origin: originOps}
}

func each(fs []func()) {
	for _, f := range fs {
		f()
	}
}

func quote(s string) string {
	b, _ := json.Marshal(s) // a string always marshals
	return string(b)
}
