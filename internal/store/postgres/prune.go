package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// What is kept of the change rows, and how they are removed (storage.md §4).
const (
	keepChanges = 15 * time.Minute
	keepMarks   = time.Hour
	pruneRows   = 10_000
	pruneLock   = 0x6875626e
	markText    = "insert into mesh_feed_marks (horizon) select pg_snapshot_xmin(pg_current_snapshot())"
	raiseText   = `update mesh_store set pruned_before = greatest(pruned_before, m.horizon)
from (select horizon from mesh_feed_marks where at < clock_timestamp() - $1::interval order by at desc limit 1) m`
	pruneSlice = `delete from mesh_changes where ctid = any (array(
  select c.ctid from mesh_changes c where c.xid < (select pruned_before from mesh_store) order by c.xid, c.pos limit $1))`
)

// Prune removes change rows that are older than a quarter of an hour, unless another process does so just
// now. The mark of what may be gone is committed first, so that nobody reads past a hole without knowing.
// Call it every half minute.
func (s *Store) Prune(ctx context.Context) (removed int64, err error) {
	return s.pruneOlder(ctx, keepChanges)
}

func (s *Store) pruneOlder(ctx context.Context, keep time.Duration) (removed int64, err error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.running.Done()
	var turn bool
	// A transaction's lock also holds through a pooler; it ends with the first step, which is the one that
	// several processes must not make at a time.
	err = s.writing(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, "select pg_try_advisory_xact_lock($1)", int64(pruneLock)).Scan(&turn); err != nil || !turn {
			return err
		}
		for _, step := range []struct {
			text string
			args []any
		}{
			{markText, nil}, {raiseText, []any{keep}}, {"delete from mesh_feed_marks where at < clock_timestamp() - $1::interval", []any{keepMarks}},
		} {
			if _, err := tx.Exec(ctx, step.text, step.args...); err != nil {
				return err
			}
		}
		return nil
	})
	for err == nil && turn {
		tag, err := s.exec(ctx, pruneSlice, pruneRows)
		if err != nil {
			return removed, s.readFault(ctx, "prune the changes", err)
		}
		removed += tag.RowsAffected()
		if tag.RowsAffected() < pruneRows {
			break
		}
	}
	return removed, s.readFault(ctx, "prune the changes", err)
}

// Blocker is a connection that may keep the notification queue from moving.
type Blocker struct {
	PID         int32
	Application string
	State       string
	Open        time.Duration // of its transaction
}

// Queue returns which part of the server's notification queue is used, and the oldest transactions: over a
// quarter, one of a listener among them holds it.
func (s *Store) Queue(ctx context.Context) (used float64, oldest []Blocker, err error) {
	err = s.reading(ctx, func() error {
		if err := s.reads.QueryRow(ctx, "select pg_notification_queue_usage()").Scan(&used); err != nil {
			return err
		}
		rows, err := s.reads.Query(ctx, `select pid, application_name, coalesce(state, ''), extract(epoch from clock_timestamp() - xact_start)::float8
from pg_stat_activity where xact_start is not null and pid <> pg_backend_pid() order by xact_start limit 3`)
		if err != nil {
			return err
		}
		oldest, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (b Blocker, err error) {
			var seconds float64
			err = row.Scan(&b.PID, &b.Application, &b.State, &seconds)
			b.Open = time.Duration(seconds * float64(time.Second))
			return b, err
		})
		return err
	})
	return used, oldest, s.readFault(ctx, "look at the queue", err)
}
