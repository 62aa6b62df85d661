package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/tables"
)

// removeRows bounds one transaction of a removal.
const removeRows = 2000

// EnsurePartition provisions a partition; see [store.Store].
func (s *Store) EnsurePartition(ctx context.Context, name, by string) error {
	if err := store.CheckPartitionName(name); err != nil && name != string(node.RootAccess) {
		return err
	}
	if err := s.begin(ctx); err != nil || name == string(node.RootAccess) {
		if err == nil {
			s.running.Done()
		}
		return err
	}
	defer s.running.Done()
	var known store.Partition
	err := s.writing(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "insert into mesh_partitions (name, folded, created_at, created_by) values ($1, $2, $3, $4) on conflict do nothing",
			name, node.Fold(name), node.Stamp(s.options.Now()), by)
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, "select name, deleting from mesh_partitions where folded = $1", node.Fold(name)).Scan(&known.Name, &known.Deleting)
	})
	if err != nil {
		return s.readFault(ctx, "provision partition "+name, err)
	}
	return store.AdmitPartition(known, name)
}

// writing runs a short transaction beside the lanes.
func (s *Store) writing(ctx context.Context, f func(tx pgx.Tx) error) error {
	return roomy(ctx, s.writes, func() error { return s.ours(ctx, s.writes, f) })
}

// ours makes a transaction that bears our mark.
func (s *Store) ours(ctx context.Context, on beginner, f func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, on, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if s.pooled {
			if _, err := tx.Exec(ctx, "select set_config('hubmesh.origin', $1, true)", s.options.Origin); err != nil {
				return err
			}
		}
		return f(tx)
	})
}

// exec makes a transaction of one statement beside the lanes.
func (s *Store) exec(ctx context.Context, text string, args ...any) (tag pgconn.CommandTag, err error) {
	if !s.pooled {
		err = roomy(ctx, s.writes, func() (err error) {
			tag, err = s.writes.Exec(ctx, text, args...)
			return err
		})
		return tag, err
	}
	err = s.writing(ctx, func(tx pgx.Tx) (err error) {
		tag, err = tx.Exec(ctx, text, args...)
		return err
	})
	return tag, err
}

// beginner is a pool or a connection.
type beginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Partitions lists the partitions; see [store.Store].
func (s *Store) Partitions(ctx context.Context) ([]store.Partition, error) {
	var all []store.Partition
	err := s.reading(ctx, func() error {
		rows, err := s.reads.Query(ctx, "select name, created_at, created_by, deleting from mesh_partitions where name <> $1 order by name", string(node.RootAccess))
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p store.Partition, err error) {
			var at time.Time
			err = row.Scan(&p.Name, &at, &p.CreatedBy, &p.Deleting)
			p.CreatedAt = at.UTC()
			return p, err
		})
		return err
	})
	return all, s.readFault(ctx, "list partitions", err)
}

// MarkPartition marks a partition as being deleted; see [store.Store].
func (s *Store) MarkPartition(ctx context.Context, name string, deleting bool) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.running.Done()
	return s.mark(ctx, name, deleting)
}

func (s *Store) mark(ctx context.Context, name string, deleting bool) error {
	tag, err := s.exec(ctx, "update mesh_partitions set deleting = $2 where name = $1 and name <> $3", name, deleting, string(node.RootAccess))
	if err == nil && tag.RowsAffected() == 0 {
		return store.MissingPartition(name)
	}
	if err == nil && deleting {
		// Creates that began before the mark hold the row until they are committed; those that begin now do not ask
		// for it. After this each of them is seen by whoever looks, or refused.
		_, err = s.exec(ctx, "select from mesh_partitions where name = $1 for update", name)
	}
	return s.readFault(ctx, "mark partition "+name, err)
}

// RemovePartition removes an empty partition and its history; see [store.Store]. It marks the
// partition first, so that what is interrupted can be called again and nothing comes in meanwhile. A node
// whose create was under way keeps the partition there: the row is referred to.
func (s *Store) RemovePartition(ctx context.Context, name string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.running.Done()
	if err := s.markEmpty(ctx, name); err != nil {
		return err
	}
	const slice = `delete from mesh_node_history where ctid = any (array(
  select h.ctid from mesh_node_history h where h.path = $1 or h.path > $2 and h.path < $3 limit $4))`
	from, to := mainRange(node.Path(name))
	for {
		tag, err := s.exec(ctx, slice, name, from, to, removeRows)
		if err != nil {
			return s.readFault(ctx, "remove partition "+name, err)
		}
		if tag.RowsAffected() < removeRows {
			break
		}
	}
	_, err := s.exec(ctx, "delete from mesh_partitions where name = $1 and deleting", name)
	if concernsRow(err) {
		if err := s.mark(ctx, name, false); err != nil { // of this call: who created there was let in before it
			return err
		}
		return &store.PartitionError{Partition: name, Reason: store.ReasonNotEmpty}
	}
	return s.readFault(ctx, "remove partition "+name, err)
}

// markEmpty marks the partition if no node is left in it.
func (s *Store) markEmpty(ctx context.Context, name string) error {
	from, to := tables.Below(node.Path(name))
	var exists, left bool
	err := roomy(ctx, s.writes, func() error {
		return s.writes.QueryRow(ctx, `select exists (select 1 from mesh_partitions where name = $1 and name <> $4),
  exists (select 1 from mesh_nodes where path = $1) or exists (select 1 from mesh_nodes where key > $2 and key < $3)`,
			name, from, to, string(node.RootAccess)).Scan(&exists, &left)
	})
	switch {
	case err != nil:
		return s.readFault(ctx, "remove partition "+name, err)
	case !exists:
		return store.MissingPartition(name)
	case left:
		return &store.PartitionError{Partition: name, Reason: store.ReasonNotEmpty}
	}
	return s.mark(ctx, name, true)
}
