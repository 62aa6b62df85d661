package nodehub

import (
	"context"
	"errors"
	"slices"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// importMany writes a chunk of an import. It does not go through the hubs of the nodes: the store's
// compare-and-set decides, and live hubs take the change from the feed before the importer is answered, those of other
// silos, too (told.go).
func (s *Service) importMany(ctx context.Context, r *ImportRequest) (*CreateManyReply, error) {
	if len(r.Nodes) > maxMany {
		return nil, &RuleError{Reason: "a chunk of an import is too large"}
	}
	out := make([]Outcome, len(r.Nodes))
	todo := make([]int, 0, len(r.Nodes))
	seen := make(map[node.Path]bool, len(r.Nodes))
	for i, n := range r.Nodes {
		out[i].Path = n.Path
		if seen[n.Path] {
			out[i].Err = store.ErrBatchDuplicate
			continue
		}
		seen[n.Path] = true
		todo = append(todo, i)
	}
	tombs := map[node.Path]int64{}
	for attempt := 0; len(todo) > 0; attempt++ {
		again, err := s.importOnce(ctx, r.Nodes, todo, out, tombs, attempt == maxRemerge)
		if err != nil {
			return nil, err
		}
		todo = again
	}
	var replaced []node.Path
	for _, o := range out {
		if o.Err == nil && !o.Same && !o.Created {
			replaced = append(replaced, o.Path)
		}
	}
	s.tell(ctx, replaced) // and logs who may answer as before
	return &CreateManyReply{Outcomes: out}, nil
}

// importOnce tries the nodes at the given places and returns those that met another write.
func (s *Service) importOnce(ctx context.Context, nodes []node.Node, todo []int, out []Outcome, tombs map[node.Path]int64, last bool) (again []int, err error) {
	paths := make([]node.Path, len(todo))
	for j, i := range todo {
		paths[j] = nodes[i].Path
	}
	rows, err := s.store.ReadMany(ctx, paths)
	if err != nil {
		return nil, err
	}
	on, err := s.grounds(ctx, paths)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(paths, func(p node.Path) bool { return s.shared && on.livedBefore(p, tombs[p]) }); i >= 0 {
		if err := s.catchUp(ctx, paths[i]); err != nil {
			return nil, err
		}
	}
	have := make(map[node.Path]node.Node, len(rows))
	for _, n := range rows {
		have[n.Path] = n
	}
	var writes []store.Write
	var at []int
	var releases []func()
	defer func() { each(releases) }()
	for _, i := range todo {
		if !last && on.under(nodes[i].Path) == store.NoSpace(nodes[i].Path.Partition()) && slices.Contains(paths, node.Path(nodes[i].Path.Partition())) {
			again = append(again, i) // its space comes first
			continue
		}
		var w store.Write
		var same bool
		leave, err := s.guards.enter(nodes[i].Path)
		if err == nil {
			releases = append(releases, leave)
			w, same, err = s.importWrite(ctx, nodes[i], have, tombs)
			w.Ground = on.under(nodes[i].Path)
		}
		if err == nil && !same {
			var release func()
			if release, err = s.access.Admit(ctx, access.Change{Path: w.Node.Path, Version: w.Node.Version, Node: w.Node}); err == nil {
				releases = append(releases, release)
			}
		}
		switch {
		case err != nil:
			out[i].Err = err
		case same:
			out[i].Same, out[i].Version = true, have[nodes[i].Path].Version
		default:
			writes, at = append(writes, w), append(at, i)
		}
	}
	if len(writes) == 0 && slices.ContainsFunc(todo, func(i int) bool { return out[i].Same }) {
		if err := s.store.Settle(ctx); err != nil {
			return nil, err
		}
	}
	results, err := s.committer.SubmitBulk(ctx, writes)
	if err != nil {
		return nil, waited(err)
	}
	for j, res := range results {
		i := at[j]
		var conflict *store.ConflictError
		var exists *store.ExistsError
		switch {
		case errors.As(res.Err, &conflict) && !last:
			tombs[nodes[i].Path] = conflict.Actual
			again = append(again, i)
		case errors.As(res.Err, &exists) && exists.Other == "" && !last:
			again = append(again, i)
		default:
			out[i].Err, out[i].Version = s.twin(ctx, nodes[i].Path, res.Err), res.Node.Version
			out[i].Created = res.Err == nil && writes[j].Op == store.OpCreate
		}
	}
	return again, nil
}

// importWrite is the write of one node of an import; same tells that none is needed.
func (s *Service) importWrite(ctx context.Context, n node.Node, have map[node.Path]node.Node, tombs map[node.Path]int64) (w store.Write, same bool, err error) {
	cur, exists := have[n.Path]
	if !exists {
		if err := s.prepare(ctx, &n, true); err != nil {
			return w, false, err
		}
		if n.Path.Depth() == 1 {
			if err := s.ensurePartition(ctx, n); err != nil {
				return w, false, groundless(err)
			}
		}
		n.Version = tombs[n.Path] + 1
		return store.Write{Op: store.OpCreate, Node: n, Origin: originOps}, false, nil
	}
	if err := s.permit(ctx, n.Path, access.Update); err != nil {
		return w, false, err
	}
	if err := structure(&n, true); err != nil {
		return w, false, err
	}
	next := cur.WithWritable(n)
	if next.State == node.StateNew {
		next.State = cur.State
	}
	if next.SameAs(cur) {
		return w, true, nil
	}
	if err := s.validate(ctx, next, &cur); err != nil {
		return w, false, err
	}
	next.Version, next.ModifiedAt, next.ModifiedBy = cur.Version+1, s.stamp(), author(ctx)
	return store.Write{Op: store.OpUpdate, Node: next, Expected: cur.Version, ExpectedAt: cur.ModifiedAt, Origin: originOps}, false, nil
}
