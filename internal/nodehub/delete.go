package nodehub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

const (
	deletePasses = 200     // enumerations after which a delete that finds more and more, made by other processes, gives up
	deleteMost   = 200_000 // nodes of one delete
	deleteSlice  = 500
)

// ChildrenError refuses the deletion of a node that has children.
type ChildrenError struct {
	Path   node.Path
	Hidden node.Path // a child that the caller may read and that listings leave out; "" where others are in the way
}

func (e *ChildrenError) Error() string {
	if e.Hidden != "" {
		return fmt.Sprintf("'%s' has children, among them '%s', which listings leave out; delete them first, or delete recursively", e.Path, e.Hidden)
	}
	return fmt.Sprintf("'%s' has children; delete them first, or delete recursively", e.Path)
}

// SubtreeError refuses the deletion of a subtree of which the caller may not delete all. Which node it is
// about is not told, and so not whether he may read it.
type SubtreeError struct{ Path node.Path }

func (e *SubtreeError) Error() string {
	return fmt.Sprintf("something below '%s' is not yours to delete; nothing was deleted", e.Path)
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
// then the guard, then a plan by the store's own enumeration, then bottom-up, assignments last. With recursion the node
// itself may be absent: what lies below it is removed all the same. A partition goes with its root.
func (s *Service) delete(ctx context.Context, r *DeleteRequest) (*DeleteReply, error) {
	if err := s.permitDelete(ctx, r.Path); err != nil {
		return nil, err
	}
	root, there, err := s.rootOf(ctx, r)
	if err != nil {
		return nil, err
	}
	release, err := s.guards.open(ctx, r.Path)
	if err != nil {
		return nil, err
	}
	defer release()
	if r.Path.Depth() > 1 {
		reply, err := s.deleteTree(ctx, r, root, there)
		if err == nil && reply.Deleted == 0 || !there && s.hidden(ctx, r.Path, err) {
			return nil, &store.NotFoundError{Path: r.Path, LastVersion: root.Version}
		}
		return reply, err
	}
	// What would be refused is refused before anything is marked.
	if _, err := s.plan(ctx, r); err != nil {
		if !there && s.hidden(ctx, r.Path, err) {
			return nil, &store.NotFoundError{Path: r.Path, LastVersion: root.Version}
		}
		return nil, err
	}
	return s.deletePartition(ctx, r, root, there)
}

// hidden tells whether err refuses the deletion of a subtree of which the caller may read nothing: without a node
// of its own it is answered as if nothing were there.
func (s *Service) hidden(ctx context.Context, root node.Path, err error) bool {
	if !errors.As(err, new(*SubtreeError)) {
		return false
	}
	for p, err := range s.store.Descendants(ctx, root) {
		if err != nil || s.MayRead(ctx, p) == access.Granted {
			return false
		}
	}
	return true
}

// rootOf reads the node that is to be deleted. One that is absent has its tombstone's version; there is
// false then, and only a deletion with recursion and without a condition goes on.
func (s *Service) rootOf(ctx context.Context, r *DeleteRequest) (root node.Node, there bool, err error) {
	root, err = s.store.Read(ctx, r.Path)
	var missing *store.NotFoundError
	switch {
	case errors.As(err, &missing) && r.Recursive && r.If.Version == 0 && r.Path != node.RootAccess && !r.Path.IsRoot():
		return node.Node{Path: r.Path, Version: missing.LastVersion}, false, nil
	case err != nil:
		return node.Node{}, false, err
	case r.If.Version != 0 && r.If.Version != root.Version:
		return node.Node{}, false, &store.ConflictError{Path: r.Path, Expected: r.If.Version, Actual: root.Version}
	}
	return root, true, nil
}

// deletePartition deletes a partition's root and everything below it, and then the partition. The store
// marks the partition first: whoever writes into it, by whatever way and however late, is refused, so
// that it is empty when the last node is gone. A deletion that fails takes the mark away.
func (s *Service) deletePartition(ctx context.Context, r *DeleteRequest, root node.Node, there bool) (reply *DeleteReply, err error) {
	name := r.Path.Partition()
	done, ok := s.guards.claim(r.Path)
	if !ok {
		return nil, beingDeleted(r.Path, r.Path)
	}
	defer done()
	defer func() {
		if err != nil {
			s.unmark(ctx, name)
		}
	}()
	err = s.store.MarkPartition(ctx, name, true)
	if partitionMissing(err) { // another process has deleted it meanwhile
		return nil, &store.NotFoundError{Path: r.Path, LastVersion: root.Version}
	}
	if err != nil {
		return nil, err
	}
	if reply, err = s.deleteTree(ctx, r, root, there); err != nil {
		return nil, err
	}
	if err := s.store.RemovePartition(ctx, name); err != nil && !partitionMissing(err) {
		if _, none := s.store.Read(ctx, r.Path); none == nil && s.shared {
			s.unmark(ctx, name) // another process has created the space anew
			return reply, nil
		}
		return nil, &PartialDeleteError{Path: r.Path, Deleted: reply.Deleted, Failed: r.Path, Err: err}
	}
	return reply, nil
}

// unmark lets a partition be written again whose deletion has failed. It goes on when the caller leaves.
func (s *Service) unmark(ctx context.Context, name string) {
	ctx, cancel := s.mesh.Bounds().Context(context.WithoutCancel(ctx), budget.Commit, "unmark '"+name+"'")
	defer cancel()
	err := s.store.MarkPartition(ctx, name, false)
	var missing *store.PartitionError
	if err != nil && !errors.As(err, &missing) {
		s.log.Error("a partition whose deletion failed stays closed to writes until it is deleted or the process starts again", "partition", name, "error", err)
	}
}

// deleteTree deletes what is below a node, then the node, where there is one, and then their assignments: at
// no moment is there a node without what denies it.
func (s *Service) deleteTree(ctx context.Context, r *DeleteRequest, root node.Node, there bool) (*DeleteReply, error) {
	plan, err := s.plan(ctx, r)
	if err != nil {
		return nil, err
	}
	d := &deletion{Root: r.Path}
	if err := s.note(ctx, d, plan.assignments); err != nil {
		return nil, err
	}
	deleted, version, err := s.deleteNodes(ctx, r, root, there, d, plan)
	var n int
	var left error
	if err != nil && ctx.Err() != nil {
		left = context.Cause(ctx) // a commit may be under way: what is left is known after it
	} else {
		n, left = s.settle(ctx, d)
	}
	if left != nil && len(d.Assignments) > 0 {
		s.settleLater(ctx, d)
	}
	if deleted += n; err == nil && left != nil {
		err = &PartialDeleteError{Path: r.Path, Failed: d.Assignments[0].Path, Err: left}
	}
	var partial *PartialDeleteError
	if errors.As(err, &partial) {
		partial.Deleted = deleted
	}
	if err != nil {
		return nil, err
	}
	return &DeleteReply{Deleted: deleted, Version: version, Untold: s.tell(ctx, d.gone)}, nil
}

// deleteNodes deletes the nodes of a plan and those that are found meanwhile, and then the root. It returns
// how many went and the root's last version.
func (s *Service) deleteNodes(ctx context.Context, r *DeleteRequest, root node.Node, there bool, d *deletion, plan deletePlan) (deleted int, version int64, err error) {
	for pass := 0; ; pass++ {
		var below node.Path
		if len(plan.nodes) > 0 {
			below = plan.nodes[0]
		} else if !there {
			return deleted, root.Version, nil
		} else {
			version, err = s.deleteRoot(ctx, r, root, plan.assignments)
			var left *store.NotEmptyError // another process has created it meanwhile
			switch {
			case err == nil:
				d.gone = append(d.gone, r.Path)
				return deleted + 1, version, nil
			case errors.As(err, &left):
				below = left.Below
			case errors.As(err, new(*store.NotFoundError)):
				return deleted, 0, err // another process has deleted it meanwhile, when nothing was left below it
			case deleted > 0:
				return deleted, 0, &PartialDeleteError{Path: r.Path, Failed: r.Path, Err: err}
			default:
				return deleted, 0, err
			}
		}
		if pass == deletePasses {
			return deleted, 0, &PartialDeleteError{Path: r.Path, Failed: below, Err: errors.New("nodes keep appearing below it")}
		}
		n, err := s.deleteAll(ctx, d, plan.nodes, nil)
		deleted += n
		if err != nil {
			return deleted, 0, err
		}
		if plan, err = s.plan(ctx, r); err != nil {
			if deleted > 0 {
				err = &PartialDeleteError{Path: r.Path, Failed: r.Path, Err: err}
			}
			return deleted, 0, err
		}
		if err := s.note(ctx, d, plan.assignments); err != nil {
			return deleted, 0, err
		}
	}
}

// deletePlan is what goes with a root: nodes before it, deepest first, and the assignments after it.
type deletePlan struct{ nodes, assignments []node.Path }

// plan lists what goes with the root. Without recursion that is the root's own satellites and the
// configurations of its collections, and a child is a refusal. Every node of the plan must be the caller's
// to delete.
func (s *Service) plan(ctx context.Context, r *DeleteRequest) (deletePlan, error) {
	var out deletePlan
	for p, err := range s.store.Descendants(ctx, r.Path) {
		if err != nil {
			return deletePlan{}, err
		}
		if !r.Recursive && !belongsTo(p, r.Path) {
			return deletePlan{}, s.children(ctx, r.Path, p)
		}
		if err := s.permit(ctx, p, access.Delete); errors.As(err, new(*access.DeniedError)) || errors.As(err, new(*store.NotFoundError)) {
			return deletePlan{}, &SubtreeError{Path: r.Path}
		} else if err != nil {
			return deletePlan{}, err // undetermined
		}
		if assigns(r.Path, p) {
			out.assignments = append(out.assignments, p)
		} else {
			out.nodes = append(out.nodes, p)
		}
		if len(out.nodes)+len(out.assignments) > deleteMost {
			return deletePlan{}, &RuleError{Path: r.Path, Reason: fmt.Sprintf("more than %d nodes; delete its subtrees first", deleteMost)}
		}
	}
	out.nodes = deepestFirst(out.nodes)
	return out, nil
}

func deepestFirst(plan []node.Path) []node.Path {
	slices.SortStableFunc(plan, func(a, b node.Path) int { return b.Depth() - a.Depth() })
	return plan
}

// belongsTo tells whether p, which is below root, is part of what root is, and no child of it: a satellite
// of root, or what configures a collection of root, with its satellites.
func belongsTo(p, root node.Path) bool {
	main := p.Main()
	owner, ok := collectionOwner(main)
	return main == root || ok && owner == root
}

// children refuses the deletion of root because of p. What listings leave out is named, to who may read it.
func (s *Service) children(ctx context.Context, root, p node.Path) error {
	e := &ChildrenError{Path: root}
	if p[len(root)+1] == '_' && s.MayRead(ctx, p) == access.Granted {
		e.Hidden = p
	}
	return e
}

// deleteAll removes nodes in slices for a deletion: those that only says so of, where it is given.
func (s *Service) deleteAll(ctx context.Context, d *deletion, paths []node.Path, only func(node.Node) bool) (int, error) {
	deleted := 0
	for slice := range slices.Chunk(paths, deleteSlice) {
		rows, err := s.store.ReadMany(ctx, slice)
		if err != nil {
			return deleted, err
		}
		if only != nil {
			rows = slices.DeleteFunc(rows, func(n node.Node) bool { return !only(n) })
		}
		writes := make([]store.Write, len(rows))
		var releases []func()
		for i, n := range rows {
			rel, err := s.access.Admit(ctx, access.Change{Path: n.Path, Version: n.Version + 1, Deleted: true, Node: n})
			if err != nil {
				each(releases)
				return deleted, &PartialDeleteError{Path: d.Root, Deleted: deleted, Failed: n.Path, Err: err}
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
				if len(d.gone) <= maxTold {
					d.gone = append(d.gone, rows[i].Path)
				}
			case errors.As(res.Err, &missing), errors.As(res.Err, &conflict), partitionMissing(res.Err):
				// Gone already, or changed meanwhile: the next pass looks again.
			default:
				return deleted, &PartialDeleteError{Path: d.Root, Deleted: deleted, Failed: rows[i].Path, Err: res.Err}
			}
		}
	}
	return deleted, nil
}

// deleteRoot removes the node itself, while nothing but its assignments is below it. Within a process the
// guard sees to that.
func (s *Service) deleteRoot(ctx context.Context, r *DeleteRequest, root node.Node, assignments []node.Path) (int64, error) {
	for attempt := 0; ; attempt++ {
		w := s.tombstone(ctx, root)
		w.Empty, w.Spare = s.shared, assignments
		_, err := s.commit(ctx, w)
		var conflict *store.ConflictError
		if err == nil {
			return w.Node.Version, nil
		}
		if partitionMissing(err) {
			return 0, &store.NotFoundError{Path: r.Path, LastVersion: root.Version}
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
	expected, at := n.Version, n.ModifiedAt
	n.Version++
	n.State, n.ModifiedAt, n.ModifiedBy = node.StateDeleted, s.stamp(), author(ctx)
	return store.Write{Op: store.OpDelete, Node: n, Expected: expected, ExpectedAt: at, Origin: originOps}
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
