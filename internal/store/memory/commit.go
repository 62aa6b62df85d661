package memory

import (
	"context"
	"slices"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Commit writes one batch; see [store.Store].
func (s *Store) Commit(ctx context.Context, batch []store.Write) ([]store.Result, error) {
	if err := s.turn(ctx); err != nil {
		return nil, err
	}
	defer func() { <-s.writing }()
	results, changes, err := s.apply(batch)
	if err != nil {
		return nil, err
	}
	s.fanout.Publish(changes)
	return results, nil
}

// apply writes the batch under the lock; the caller is the one writer.
func (s *Store) apply(batch []store.Write) ([]store.Result, []store.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, store.ErrClosed
	}
	now := node.Stamp(s.options.Now())
	results := make([]store.Result, len(batch))
	changes := make([]store.Change, 0, len(batch))
	seen := make(map[node.Path]bool, len(batch))
	for i, w := range batch {
		if seen[w.Node.Path] {
			results[i].Err = store.ErrBatchDuplicate
			continue
		}
		seen[w.Node.Path] = true
		kind, result := s.applyOne(w)
		results[i] = result
		if result.Err == nil {
			changes = append(changes, store.Change{
				Kind: kind, Path: w.Node.Path, Node: result.Node, Version: w.Node.Version, At: now, Origin: w.Origin,
			})
		}
	}
	return results, changes, nil
}

func (s *Store) applyOne(w store.Write) (store.ChangeKind, store.Result) {
	w, err := store.Normalize(w)
	if err == nil {
		err = s.checkPartition(w)
	}
	if err != nil {
		return 0, store.Result{Err: err}
	}
	switch w.Op {
	case store.OpCreate:
		if err = s.stands(w); err == nil {
			err = s.create(w.Node)
		}
		return store.Created, store.Result{Node: w.Node, Err: err}
	case store.OpUpdate:
		n, err := s.update(w)
		return store.Updated, store.Result{Node: n, Err: err}
	}
	n, err := s.delete(w)
	return store.Deleted, store.Result{Node: n, Err: err}
}

func (s *Store) create(n node.Node) error {
	if stored, exists := s.nodes[n.Path]; exists {
		return &store.ExistsError{Path: n.Path, Version: stored.Version}
	}
	if other, exists := s.folded[n.Path.Fold()]; exists {
		return &store.ExistsError{Path: n.Path, Version: s.nodes[other].Version, Other: other}
	}
	if last := s.tombstones[n.Path]; n.Version <= last {
		return &store.ConflictError{Path: n.Path, Actual: last}
	}
	s.nodes[n.Path] = &n
	s.folded[n.Path.Fold()] = n.Path
	s.insertOrder(n.Path)
	s.remember(n.Path, version{info: store.InfoOf(n, store.Created), node: &n})
	return nil
}

func (s *Store) update(w store.Write) (node.Node, error) {
	n, expected := w.Node, w.Expected
	var actual int64
	stored, exists := s.nodes[n.Path]
	if exists {
		actual = stored.Version
	}
	if !exists || actual != expected || !meant(w, stored) || n.Version <= actual {
		return node.Node{}, &store.ConflictError{Path: n.Path, Expected: expected, Actual: actual}
	}
	n.CreatedAt, n.CreatedBy = stored.CreatedAt, stored.CreatedBy
	s.nodes[n.Path] = &n
	s.remember(n.Path, version{info: store.InfoOf(n, store.Updated), node: &n})
	return n, nil
}

// meant tells whether a row of the expected version is the one that a write was made for.
func meant(w store.Write, stored *node.Node) bool {
	return w.ExpectedAt.IsZero() || w.ExpectedAt.Truncate(time.Microsecond).Equal(stored.ModifiedAt.Truncate(time.Microsecond))
}

// stands refuses a create whose ground is gone.
func (s *Store) stands(w store.Write) error {
	g := w.Ground
	if g.Path == "" {
		return nil
	}
	if n, exists := s.nodes[g.Path]; exists && g.Is(*n) {
		return nil
	}
	if n, exists := s.nodes[w.Node.Path]; exists {
		return &store.ExistsError{Path: w.Node.Path, Version: n.Version}
	}
	return store.Groundless(w)
}

func (s *Store) delete(w store.Write) (node.Node, error) {
	n, expected := w.Node, w.Expected
	stored, exists := s.nodes[n.Path]
	if !exists {
		return node.Node{}, s.notFound(n.Path)
	}
	if expected >= 0 && expected != stored.Version || !meant(w, stored) || n.Version <= stored.Version {
		return node.Node{}, &store.ConflictError{Path: n.Path, Expected: expected, Actual: stored.Version}
	}
	for i := s.after(n.Path); w.Empty && i < len(s.order) && n.Path.Contains(s.order[i]); i++ {
		if !slices.Contains(w.Spare, s.order[i]) {
			return node.Node{}, &store.NotEmptyError{Path: n.Path, Below: s.order[i]}
		}
	}
	delete(s.nodes, n.Path)
	delete(s.folded, n.Path.Fold())
	s.deleteOrder(n.Path)
	s.tombstones[n.Path] = n.Version
	n.Name = stored.Name
	s.remember(n.Path, version{info: store.InfoOf(n, store.Deleted)})
	return *stored, nil
}

// remember appends to the history and prunes it now and then.
func (s *Store) remember(path node.Path, v version) {
	trail := append(s.history[path], v)
	keep := s.options.History
	if len(trail) > keep && v.info.Version%store.HistoryStep(keep) == 0 {
		trail = append([]version(nil), trail[len(trail)-keep:]...)
	}
	s.history[path] = trail
}

func (s *Store) notFound(path node.Path) *store.NotFoundError {
	return &store.NotFoundError{Path: path, LastVersion: s.tombstones[path]}
}
