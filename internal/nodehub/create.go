package nodehub

import (
	"context"
	"errors"
	"fmt"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// maxMany bounds the nodes of one CreateManyRequest.
const maxMany = 10_000

// opsKind is the kind of the operations hub. Its turns only start the work: many creates commit
// together, and none waits behind another.
func (s *Service) opsKind() *hub.Kind {
	k := hub.NewKind("nodeops", hub.Limits{})
	later(s, k, Create, budget.Commit, s.create)
	later(s, k, CreateMany, budget.Delete, s.createMany)
	later(s, k, Import, budget.Delete, s.importMany)
	later(s, k, Delete, budget.Delete, s.delete)
	return k
}

// later registers an operation that runs off the turn, at most maxOperations at once.
func later[Req, Resp any](s *Service, k *hub.Kind, t *hub.Type[Req, Resp], w budget.Bound, f func(context.Context, Req) (Resp, error)) {
	hub.HandleLater(k, t, func(d context.Context, _ *hub.Hub, r Req, reply hub.Reply[Resp]) error {
		if s.running.Add(1) > maxOperations {
			s.running.Add(-1)
			return &message.Failure{Type: message.ShuttingDown, Reason: message.ReasonOverloaded, AnsweredBy: s.ops.Path(),
				Message: fmt.Sprintf("%d operations are running; nothing was queued, try again later", maxOperations)}
		}
		ctx, cancel := s.bounded(d, w, t.Name())
		s.mesh.Go(func() {
			defer s.running.Add(-1)
			defer cancel()
			defer func() {
				if r := recover(); r != nil {
					s.log.Error("operation panicked", "operation", t.Name(), "panic", fmt.Sprint(r))
					var none Resp
					reply(none, &message.Failure{Type: message.Exception, Reason: message.ReasonPanic, AnsweredBy: s.ops.Path(), Message: "the operation panicked"})
				}
			}()
			resp, err := f(ctx, r)
			reply(resp, err)
		})
		return nil
	})
}

// create writes one new node (data.md §1.4).
func (s *Service) create(ctx context.Context, r *CreateRequest) (*NodeReply, error) {
	n := r.Node
	on, err := s.ground(ctx, n.Path)
	if err != nil {
		return nil, err
	}
	last, known := s.lastVersion(ctx, n.Path)
	if s.shared && on.livedBefore(n.Path, last) { // something may have been deleted here
		if err := s.settleAt(ctx, n.Path); err != nil {
			return nil, err
		}
		if err := s.catchUp(ctx, n.Path); err != nil {
			return nil, err
		}
	}
	if err := s.prepare(ctx, &n, false); err != nil {
		return nil, err
	}
	leave, err := s.guards.enter(n.Path)
	if err != nil {
		return nil, err
	}
	defer leave()
	for attempt := 0; ; attempt++ {
		if err := s.bootstrap(ctx, n); err != nil {
			return nil, groundless(err)
		}
		if attempt > 0 {
			if last, known = s.lastVersion(ctx, n.Path); last > 0 {
				if err := s.catchUp(ctx, n.Path); err != nil {
					return nil, err
				}
			}
		}
		if known != nil {
			return nil, known
		}
		n.Version = last + 1 // above the tombstone: no two lives share a number
		got, err := s.commit(ctx, store.Write{Op: store.OpCreate, Node: n, Origin: originOps, Ground: on.under(n.Path)})
		var conflict *store.ConflictError
		if errors.As(err, &conflict) && attempt < maxRemerge {
			continue // another life began and ended meanwhile
		}
		if n.Path.Depth() == 1 && partitionMissing(err) {
			if attempt < maxRemerge {
				continue // another process has removed it since
			}
			return nil, beingDeleted(n.Path, n.Path)
		}
		if err != nil {
			return nil, s.twin(ctx, n.Path, err)
		}
		s.grantCreator(ctx, got)
		return &NodeReply{Node: got, Created: true}, nil
	}
}

// prepare checks a node that is to be created and stamps it.
func (s *Service) prepare(ctx context.Context, n *node.Node, imported bool) error {
	if n.Path.IsRoot() {
		return &RuleError{Path: n.Path, Reason: "the root has no node"}
	}
	if err := s.permitCreate(ctx, n.Path); err != nil {
		return err
	}
	if err := newPath(n.Path); err != nil {
		return err
	}
	if err := structure(n, imported); err != nil {
		return err
	}
	if err := s.ownerExists(ctx, *n); err != nil {
		return err
	}
	if err := s.validate(ctx, *n, nil); err != nil {
		return err
	}
	if n.State == node.StateNew {
		n.State = node.StateActive
	}
	now, who := s.stamp(), author(ctx)
	n.CreatedAt, n.ModifiedAt, n.CreatedBy, n.ModifiedBy = now, now, who, who
	return nil
}

// ownerExists refuses a satellite whose owner is not there. An owner that the path names was asked for
// permission with it; one that the writer names must be his to change, as it must be for a satellite below
// it, and one that he may not read is not there.
func (s *Service) ownerExists(ctx context.Context, n node.Node) error {
	if !n.IsSatellite() {
		return nil
	}
	if _, _, byPath := n.Path.Satellite(); !byPath {
		err := s.permit(ctx, n.MainNode, access.Update)
		var missing *store.NotFoundError
		switch {
		case errors.As(err, &missing):
			return noOwner(n)
		case err != nil:
			return err
		}
	}
	if n.MainNode.IsRoot() {
		return nil
	}
	_, err := s.store.Read(ctx, n.MainNode)
	var missing *store.NotFoundError
	if errors.As(err, &missing) {
		return noOwner(n)
	}
	return err
}

func noOwner(n node.Node) error {
	return &RuleError{Path: n.Path, Reason: fmt.Sprintf("its main node '%s' does not exist", n.MainNode)}
}

// lastVersion is the version of the path's tombstone, 0 for a path that never had a node, or
// *store.ExistsError.
func (s *Service) lastVersion(ctx context.Context, path node.Path) (int64, error) {
	have, err := s.store.Read(ctx, path)
	var missing *store.NotFoundError
	switch {
	case errors.As(err, &missing):
		return missing.LastVersion, nil
	case err != nil:
		return 0, err
	}
	return 0, &store.ExistsError{Path: path, Version: have.Version}
}

// bootstrap provisions the partition of a node that owns one. The caller has been permitted to create
// it.
func (s *Service) bootstrap(ctx context.Context, n node.Node) error {
	if n.Path.Depth() != 1 {
		return nil
	}
	if _, err := s.lastVersion(ctx, n.Path); err != nil {
		return err
	}
	return s.ensurePartition(ctx, n)
}

// ensurePartition provisions the partition of its root n. One that differs in case only stands in the
// way like any other node would.
func (s *Service) ensurePartition(ctx context.Context, n node.Node) error {
	name := n.Path.Partition()
	err := s.store.EnsurePartition(ctx, name, author(ctx))
	var twin *store.PartitionError
	if s.shared && errors.As(err, &twin) && twin.Reason == store.ReasonDeleting {
		// The last step of a deletion may be left, by a process that is about to take it or is gone.
		if err := s.store.RemovePartition(ctx, name); err != nil && !errors.As(err, new(*store.PartitionError)) {
			return err
		}
		err = s.store.EnsurePartition(ctx, name, author(ctx))
	}
	if !errors.As(err, &twin) || twin.Other == "" {
		return err
	}
	exists := &store.ExistsError{Path: n.Path, Other: node.Path(twin.Other)}
	if other, err := s.store.Read(ctx, exists.Other); err == nil {
		exists.Version = other.Version
	}
	return s.twin(ctx, n.Path, exists)
}

// partitionMissing tells whether a partition was not there.
func partitionMissing(err error) bool {
	var p *store.PartitionError
	return errors.As(err, &p) && p.Reason == store.ReasonMissing
}

// grantCreator makes the creator of a space its Admin, unless that is so already. The space stands
// without it: a failure is logged, and an Admin of the root scope can mend it.
func (s *Service) grantCreator(ctx context.Context, n node.Node) {
	subject := SubjectOf(ctx)
	if n.Path.Depth() != 1 || !ownsPartition(n.NodeType) || !subject.Authenticated() ||
		s.access.Evaluator().Check(subject, n.Path, access.Administer) == access.Granted {
		return
	}
	id, err := node.ParsePath(string(n.Path) + "/_Access/" + string(subject) + "_Access")
	if err == nil {
		system := message.WithIdentity(ctx, message.SystemIdentity())
		_, err = s.create(system, &CreateRequest{Node: node.Node{Path: id, NodeType: node.TypeAccessAssignment, Name: string(subject) + " Access",
			Content: AssignmentContent(string(subject), "Admin")}})
	}
	if err != nil {
		s.log.Warn("the creator of a space was not made its Admin", "address", string(n.Path), "subject", string(subject), "error", err)
	}
}

// createMany writes many nodes; each has its own outcome (data.md §1.4).
func (s *Service) createMany(ctx context.Context, r *CreateManyRequest) (*CreateManyReply, error) {
	if len(r.Nodes) > maxMany {
		return nil, &RuleError{Reason: fmt.Sprintf("at most %d nodes at once, not %d", maxMany, len(r.Nodes))}
	}
	out := make([]Outcome, len(r.Nodes))
	seen := map[node.Path]bool{}
	var writes []store.Write
	var at []int
	var leaves []func()
	defer func() { each(leaves) }()
	on, err := s.grounds(ctx, pathsOf(r.Nodes))
	if err != nil {
		return nil, err
	}
	told := false
	for i, n := range r.Nodes {
		out[i].Path = n.Path
		last, known := s.lastVersion(ctx, n.Path)
		if !told && s.shared && on.livedBefore(n.Path, last) {
			if err := s.catchUp(ctx, n.Path); err != nil {
				return nil, err
			}
			told = true
		}
		err := s.prepareMany(ctx, &n, seen)
		if n.Version = last + 1; err == nil {
			err = known
		}
		if err == nil {
			var leave func()
			if leave, err = s.guards.enter(n.Path); err == nil {
				leaves = append(leaves, leave)
			}
		}
		if err != nil {
			out[i].Err = err
			continue
		}
		seen[n.Path] = true
		writes, at = append(writes, store.Write{Op: store.OpCreate, Node: n, Origin: originOps, Ground: on.under(n.Path)}), append(at, i)
	}
	results, err := s.committer.SubmitBulk(ctx, writes)
	if err != nil {
		return nil, waited(err)
	}
	for j, res := range results {
		out[at[j]].Err, out[at[j]].Version = s.twin(ctx, out[at[j]].Path, res.Err), res.Node.Version
	}
	return &CreateManyReply{Outcomes: out}, nil
}

func pathsOf(nodes []node.Node) []node.Path {
	paths := make([]node.Path, len(nodes))
	for i, n := range nodes {
		paths[i] = n.Path
	}
	return paths
}

// prepareMany is prepare for one of many: no assignments, no partitions, no path twice.
func (s *Service) prepareMany(ctx context.Context, n *node.Node, seen map[node.Path]bool) error {
	if seen[n.Path] {
		return store.ErrBatchDuplicate
	}
	if n.NodeType == node.TypeAccessAssignment {
		return &RuleError{Path: n.Path, Reason: "assignments are created one by one"}
	}
	if n.Path.Depth() == 1 {
		return &RuleError{Path: n.Path, Reason: "spaces are created one by one"}
	}
	return s.prepare(ctx, n, false)
}

// AssignmentContent is the content of an assignment that gives a subject a role.
func AssignmentContent(subject, role string) node.Content {
	return node.RawContent(fmt.Sprintf(`{"$type":"AccessAssignment","accessObject":%s,"roles":[{"role":%s}]}`, quote(subject), quote(role)))
}
