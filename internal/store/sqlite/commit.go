package sqlite

import (
	"context"
	"slices"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/tables"
)

// Commit writes one batch in one transaction; see [store.Store].
func (s *Store) Commit(ctx context.Context, batch []store.Write) ([]store.Result, error) {
	done, err := s.turn(ctx)
	if err != nil || len(batch) == 0 {
		if err == nil {
			done()
		}
		return nil, err
	}
	defer done()
	fault := s.growing()
	if fault == nil {
		results, err := s.attempt(batch)
		if err == nil {
			s.recovered()
			return results, nil
		}
		fault = err
	}
	fault = s.writeFault("commit", fault)
	if !isFull(fault) || !slices.ContainsFunc(batch, func(w store.Write) bool { return w.Op == store.OpDelete }) {
		return nil, fault
	}
	return s.commitDeletes(batch, fault)
}

// attempt writes a batch in one transaction and publishes it. The caller is the one writer.
func (s *Store) attempt(batch []store.Write) ([]store.Result, error) {
	results := make([]store.Result, len(batch))
	changes := make([]store.Change, 0, len(batch))
	seen := make(map[node.Path]struct{}, len(batch))
	now := node.Stamp(s.options.Now())
	err := s.writer.transaction(func() error {
		for i, w := range batch {
			if _, twice := seen[w.Node.Path]; twice {
				results[i].Err = store.ErrBatchDuplicate
				continue
			}
			seen[w.Node.Path] = struct{}{}
			kind, n, err := s.write(w)
			if err != nil {
				if !ofRow(err) {
					return err
				}
				results[i].Err = err
				continue
			}
			results[i].Node = n
			changes = append(changes, store.Change{Kind: kind, Path: n.Path, Node: n, Version: w.Node.Version, At: now, Origin: w.Origin})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.fanout.Publish(changes)
	return results, nil
}

// turn becomes the one writer; done gives that back.
func (s *Store) turn(ctx context.Context) (done func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case s.writing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done = func() { <-s.writing }
	if s.closed.Load() {
		done()
		return nil, store.ErrClosed
	}
	return done, nil
}

// ofRow tells whether err is a row's own, so that the batch goes on.
func ofRow(err error) bool {
	switch err.(type) {
	case *store.ExistsError, *store.ConflictError, *store.NotFoundError, *store.PartitionError, *store.GroundError, *store.NotEmptyError, *store.RowError:
		return true
	}
	return false
}

// write writes one row inside the transaction and returns the node as stored; for a delete the node
// that was removed. An error that is not of the row ends the transaction.
func (s *Store) write(w store.Write) (store.ChangeKind, node.Node, error) {
	w, err := store.Normalize(w)
	if err == nil {
		err = s.partitions.admit(w)
	}
	if err != nil {
		return 0, node.Node{}, err
	}
	n := w.Node
	var kind store.ChangeKind
	switch w.Op {
	case store.OpCreate:
		kind = store.Created
		if err = s.stands(w); err == nil {
			err = s.create(n)
		}
	case store.OpUpdate:
		kind = store.Updated
		n, err = s.update(w)
	default:
		kind = store.Deleted
		n, err = s.delete(w)
	}
	if concernsRow(err) {
		err = &store.RowError{Path: w.Node.Path, Err: err}
	}
	return kind, n, err
}

func (s *Store) create(n node.Node) error {
	key, folded := tables.Key(n.Path), tables.Key(node.Path(n.Path.Fold()))
	if n.Version > 0 {
		changed, err := exec(s.writer.create, append(rowArgs(n, store.Created), key, folded)...)
		if err != nil || changed == 1 {
			return err
		}
	}
	// Why not?
	var other string
	var version int64
	err := s.writer.byFolded.QueryRowContext(context.Background(), folded).Scan(&other, &version)
	switch {
	case err == nil && other == key:
		return &store.ExistsError{Path: n.Path, Version: version}
	case err == nil:
		return &store.ExistsError{Path: n.Path, Version: version, Other: tables.Path(other)}
	case !noRows(err):
		return err
	}
	last, _, err := integer(s.writer.tombstone, key)
	if err != nil {
		return err
	}
	return &store.ConflictError{Path: n.Path, Actual: last}
}

func (s *Store) update(w store.Write) (node.Node, error) {
	n, expected, at := w.Node, w.Expected, microsOf(w.ExpectedAt)
	key := tables.Key(n.Path)
	if n.Version > expected {
		args := append(rowArgs(n, store.Updated), key, expected, at)
		changed, err := exec(s.writer.update, args...)
		if err == nil && changed == 0 {
			// Either the version is another one, or the creation stamps are; the latter are kept.
			var born any
			err = s.writer.restamp.QueryRowContext(context.Background(), key, expected).Scan(&born, &n.CreatedBy)
			if err == nil {
				n.CreatedAt = timeOf(born)
				changed, err = exec(s.writer.update, append(rowArgs(n, store.Updated), key, expected, at)...)
			} else if noRows(err) {
				err = nil
			}
		}
		if err != nil {
			return node.Node{}, err
		}
		if changed == 1 {
			return n, s.pruneHistory(key, n.Version, s.options.History-1)
		}
	}
	actual, _, err := integer(s.writer.current, key)
	if err != nil {
		return node.Node{}, err
	}
	return node.Node{}, &store.ConflictError{Path: n.Path, Expected: expected, Actual: actual}
}

// stands refuses a create whose ground is gone.
func (s *Store) stands(w store.Write) error {
	g := w.Ground
	if g.Path == "" {
		return nil
	}
	var at any
	err := s.writer.born.QueryRowContext(context.Background(), tables.Key(g.Path)).Scan(&at)
	if err == nil && g.Is(node.Node{CreatedAt: timeOf(at)}) || err != nil && !noRows(err) {
		return err
	}
	switch version, exists, err := integer(s.writer.current, tables.Key(w.Node.Path)); {
	case err != nil:
		return err
	case exists:
		return &store.ExistsError{Path: w.Node.Path, Version: version}
	}
	return store.Groundless(w)
}

// empty refuses the deletion of a node below which others stand than it spares.
func (s *Store) empty(w store.Write, key string) error {
	if !w.Empty {
		return nil
	}
	actual, exists, err := integer(s.writer.current, key)
	if err != nil || !exists || w.Expected >= 0 && actual != w.Expected {
		return err // the deletion answers that
	}
	from, to := tables.Below(w.Node.Path)
	rows, err := s.writer.below.QueryContext(context.Background(), from, to)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return err
		}
		if p := tables.Path(key); !slices.Contains(w.Spare, p) {
			return &store.NotEmptyError{Path: w.Node.Path, Below: p}
		}
	}
	return rows.Err()
}

func (s *Store) delete(w store.Write) (node.Node, error) {
	n, expected := w.Node, w.Expected
	key := tables.Key(n.Path)
	var removed row
	if err := s.empty(w, key); err != nil {
		return node.Node{}, err
	}
	err := removed.scan(s.writer.delete.QueryRowContext(context.Background(), key, expected, n.Version, microsOf(w.ExpectedAt)).Scan)
	if noRows(err) {
		return node.Node{}, s.whyNotDeleted(n.Path, key, expected)
	}
	if err != nil {
		return node.Node{}, err
	}
	if _, err := exec(s.writer.mark, key, n.Version, int64(store.Deleted), removed.node.Name, microsOf(n.ModifiedAt), n.ModifiedBy); err != nil {
		return node.Node{}, fatal(err)
	}
	if _, err := exec(s.writer.bury, key, n.Version); err != nil {
		return node.Node{}, fatal(err)
	}
	return removed.node, s.pruneHistory(key, n.Version, s.options.History)
}

func (s *Store) whyNotDeleted(path node.Path, key string, expected int64) error {
	actual, exists, err := integer(s.writer.current, key)
	if err != nil {
		return err
	}
	if exists {
		return &store.ConflictError{Path: path, Expected: expected, Actual: actual}
	}
	last, _, err := integer(s.writer.tombstone, key)
	if err != nil {
		return err
	}
	return &store.NotFoundError{Path: path, LastVersion: last}
}

// pruneHistory keeps the newest rows of a node's history, now and then.
func (s *Store) pruneHistory(key string, version int64, keep int) error {
	if version%store.HistoryStep(s.options.History) != 0 {
		return nil
	}
	_, err := exec(s.writer.prune, key, int64(keep))
	return fatal(err)
}

// fatal keeps the error of a later statement of a row from passing as the row's own: its first
// statement has had its effect, so the transaction has to go.
func fatal(err error) error {
	if err == nil {
		return nil
	}
	return &laterError{err}
}

type laterError struct{ error }

func (e *laterError) Unwrap() error { return e.error }

// writeFault makes the fault of a transaction typed, and remembers it for [Store.Ready].
func (s *Store) writeFault(op string, err error) error {
	err = unavailable(op, err)
	s.fault.Lock()
	first := s.fault.last == nil
	s.fault.last = err
	s.fault.Unlock()
	if first {
		s.log.Error("the database does not take writes", "file", s.options.File, "error", err)
	}
	return err
}

// recovered notes that a transaction was committed.
func (s *Store) recovered() {
	if s.reserve.used.Load() {
		return // only what frees space is written
	}
	s.fault.Lock()
	was := s.fault.last
	s.fault.last = nil
	s.fault.Unlock()
	if was != nil {
		s.log.Info("the database takes writes again", "file", s.options.File)
	}
}
