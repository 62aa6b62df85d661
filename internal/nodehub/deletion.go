package nodehub

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

const (
	deletionBucket = "deletions" // of the journal of deletions, in the store's side table
	deletionBytes  = 60 << 10    // of one entry; a value of the side table has at most 64 KiB
	settleAgain    = 5 * time.Second
)

// deletion is an entry of the journal: which assignments go with a subtree that is being deleted. They go
// last, so that no node is there without what denies it. An end of the process before that must not leave
// them to whoever makes a node there anew: what is granted at a path is granted to its present node.
type deletion struct {
	Root        node.Path    `json:"root"`
	Assignments []assignment `json:"assignments"`

	keys map[string]bool // where it is written
	gone []node.Path     // what it has deleted; of more than maxTold not all
}

// assignment is one assignment as the deletion found it.
type assignment struct {
	Path    node.Path `json:"path"`
	Version int64     `json:"version"`
}

// assigns tells whether p, which goes with root, is an assignment that goes after it. What is deleted within
// _Access goes in the order of everything.
func assigns(root, p node.Path) bool {
	if _, kind, ok := root.Satellite(); ok && kind == node.SatelliteAccess {
		return false
	}
	_, ok := p.Scope()
	return ok
}

// note writes to the journal that the assignments go with a deletion, unless it says so already. On a full
// disk the deletion goes on without: it is what makes room.
func (s *Service) note(ctx context.Context, d *deletion, paths []node.Path) error {
	noted := make(map[node.Path]bool, len(d.Assignments))
	for _, a := range d.Assignments {
		noted[a.Path] = true
	}
	paths = slices.DeleteFunc(slices.Clone(paths), func(p node.Path) bool { return noted[p] })
	if len(paths) == 0 {
		return nil
	}
	for slice := range slices.Chunk(paths, deleteSlice) {
		rows, err := s.store.ReadMany(ctx, slice)
		if err != nil {
			return err
		}
		for _, n := range rows {
			d.Assignments = append(d.Assignments, assignment{n.Path, n.Version})
		}
	}
	entries, err := d.entries()
	if err != nil {
		return err
	}
	d.keys = map[string]bool{}
	for key := range entries {
		d.keys[key] = true
	}
	err = s.store.Blobs().PutMany(ctx, deletionBucket, entries)
	var full *store.UnavailableError
	if errors.As(err, &full) && full.Kind == store.UnavailableFull {
		s.log.Warn("the disk is full: a deletion goes on without its journal; should the process end before it is done, look at the assignments below the path", "address", string(d.Root))
		return nil
	}
	return err
}

// entries are the deletion as values of the side table, each for itself.
func (d *deletion) entries() (map[string][]byte, error) {
	out := map[string][]byte{}
	sum := sha256.Sum256([]byte(d.Root))
	part, size := deletion{Root: d.Root}, 0
	put := func() error {
		key := string(d.Root)
		if len(out) > 0 {
			key = fmt.Sprintf("~%x/%d", sum, len(out)) // no path has "~"
		}
		text, err := json.Marshal(part)
		out[key] = text
		part.Assignments, size = nil, 0
		return err
	}
	for _, a := range d.Assignments {
		text, err := json.Marshal(a)
		if err != nil {
			return nil, err
		}
		if size += len(text) + 1; size > deletionBytes {
			if err := put(); err != nil {
				return nil, err
			}
			size = len(text) + 1
		}
		part.Assignments = append(part.Assignments, a)
	}
	return out, put()
}

// settle ends a deletion, whether it was done or failed: the assignments that it noted go where no node is
// left at or below their scope, unless they have changed meanwhile, and the journal forgets it. It goes on
// when the caller leaves.
func (s *Service) settle(ctx context.Context, d *deletion) (deleted int, err error) {
	if len(d.Assignments) == 0 {
		return 0, nil
	}
	ctx, cancel := s.mesh.Bounds().Context(context.WithoutCancel(ctx), budget.Delete, "delete the assignments of '"+string(d.Root)+"'")
	defer cancel()
	inUse, err := s.inUse(ctx, d.Root)
	if err != nil {
		return 0, err
	}
	var due []node.Path
	noted := map[node.Path]int64{}
	for _, a := range d.Assignments {
		if scope, ok := a.Path.Scope(); ok && !inUse[scope] {
			due = append(due, a.Path)
			noted[a.Path] = a.Version
		}
	}
	deleted, err = s.deleteAll(ctx, d, due, func(n node.Node) bool { return n.Version == noted[n.Path] })
	if err != nil {
		return deleted, err
	}
	for _, key := range slices.Sorted(maps.Keys(d.keys)) {
		if err := s.store.Blobs().Delete(ctx, deletionBucket, key); err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// inUse are the paths at and below root that have a node, or one below them, assignments apart.
func (s *Service) inUse(ctx context.Context, root node.Path) (map[node.Path]bool, error) {
	inUse := map[node.Path]bool{}
	_, err := s.store.Read(ctx, root)
	switch {
	case err == nil:
		inUse[root] = true
	case !errors.As(err, new(*store.NotFoundError)):
		return nil, err
	}
	for p, err := range s.store.Descendants(ctx, root) {
		if err != nil {
			return nil, err
		}
		if assigns(root, p) {
			continue
		}
		for at := p; !inUse[at] && root.Contains(at); at = at.Parent() {
			inUse[at] = true
		}
	}
	return inUse, nil
}

// settleLater tries to settle a deletion until it is done, or the process ends; then the next start does.
// Nobody makes a node there before.
func (s *Service) settleLater(ctx context.Context, d *deletion) {
	release := s.guards.keep(d.Root)
	s.log.Warn("a deletion has left assignments; it is tried again, and nothing is made there before", "address", string(d.Root))
	ctx = message.WithIdentity(s.mesh.Context(), message.IdentityFrom(ctx))
	s.mesh.Go(func() {
		defer release()
		t := time.NewTicker(settleAgain)
		defer t.Stop()
		for {
			select {
			case <-t.C:
			case <-s.mesh.Context().Done():
				return
			}
			if _, err := s.settle(ctx, d); err == nil {
				return
			}
		}
	})
}

// settleEarlier settles the deletions that an end of the process cut off. Where the nodes are still there,
// the deletion was not acknowledged: they stay, and so does what is granted and denied on them.
func (s *Service) settleEarlier(ctx context.Context) error {
	all, err := s.store.Blobs().List(ctx, deletionBucket)
	if err != nil {
		return err
	}
	for key, text := range all {
		d := &deletion{}
		if err := json.Unmarshal(text, d); err != nil {
			return fmt.Errorf("the journal of deletions, at '%s': %w", key, err)
		}
		d.keys = map[string]bool{key: true}
		n, err := s.settle(ctx, d)
		if err != nil {
			return fmt.Errorf("the deletion of '%s', which did not end: %w", d.Root, err)
		}
		s.log.Warn("a deletion ended before it was done", "address", string(d.Root), "assignments", n)
	}
	return nil
}

// settleAt settles the deletions of other processes above new nodes that have come past their root: nobody makes a
// node there before, as within a process (settleLater), and whoever is asked for permission is asked without what
// was granted to what is gone. Of two that settle one does each of its steps.
func (s *Service) settleAt(ctx context.Context, paths ...node.Path) error {
	all, err := s.store.Blobs().List(ctx, deletionBucket)
	if err != nil {
		return err
	}
	for key, text := range all {
		d := &deletion{keys: map[string]bool{key: true}}
		if err := json.Unmarshal(text, d); err != nil {
			return fmt.Errorf("the journal of deletions, at '%s': %w", key, err)
		}
		i := slices.IndexFunc(paths, d.Root.Contains)
		if i < 0 {
			continue
		}
		if _, err := s.store.Read(ctx, d.Root); !errors.As(err, new(*store.NotFoundError)) {
			if err != nil {
				return err
			}
			continue // what is created stands on it
		}
		if _, err := s.settle(message.WithIdentity(ctx, message.SystemIdentity()), d); err != nil {
			s.log.Warn("the assignments of a deletion could not be removed", "address", string(d.Root), "error", err)
			return beingDeleted(paths[i], d.Root)
		}
	}
	return nil
}

// Recover settles what was being deleted when an earlier process ended: the assignments of what is gone go,
// too; a partition that is empty goes, another one can be written again.
func (s *Service) Recover(ctx context.Context) error {
	if err := s.settleEarlier(ctx); err != nil {
		return err
	}
	all, err := s.store.Partitions(ctx)
	if err != nil {
		return err
	}
	for _, p := range all {
		if !p.Deleting {
			continue
		}
		err := s.store.RemovePartition(ctx, p.Name)
		var left *store.PartitionError
		if errors.As(err, &left) && left.Reason == store.ReasonNotEmpty {
			s.log.Warn("the deletion of a space ended before it was done; what is left can be used or deleted again", "partition", p.Name)
			err = s.store.MarkPartition(ctx, p.Name, false)
		}
		if err != nil {
			return fmt.Errorf("partition '%s', whose deletion did not end: %w", p.Name, err)
		}
	}
	return nil
}
