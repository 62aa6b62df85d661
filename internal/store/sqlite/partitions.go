package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/tables"
)

// partitionTable is the table of partitions in memory: every write asks it, and this process is the
// only one to change it. It changes after the commit of its row, under the turn of the writer.
type partitionTable struct {
	mu       sync.RWMutex
	byFolded map[string]store.Partition
}

func (t *partitionTable) load(ctx context.Context, pool *sql.DB) error {
	rows, err := pool.QueryContext(ctx, "select name, folded, created_at, created_by, deleting from partitions")
	if err != nil {
		return err
	}
	defer rows.Close()
	t.byFolded = map[string]store.Partition{}
	for rows.Next() {
		var p store.Partition
		var folded string
		var micros int64
		if err := rows.Scan(&p.Name, &folded, &micros, &p.CreatedBy, &p.Deleting); err != nil {
			return err
		}
		p.CreatedAt = time.UnixMicro(micros).UTC()
		t.byFolded[folded] = p
	}
	return rows.Err()
}

func (t *partitionTable) find(name string) (store.Partition, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	p, exists := t.byFolded[node.Fold(name)]
	return p, exists
}

func (t *partitionTable) set(p store.Partition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byFolded[node.Fold(p.Name)] = p
}

func (t *partitionTable) remove(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byFolded, node.Fold(name))
}

// admit tells whether the write's partition takes it.
func (t *partitionTable) admit(w store.Write) error {
	name := w.Node.Path.Partition()
	p, exists := t.find(name)
	return store.AdmitWrite(p, exists, name, w.Op)
}

// EnsurePartition provisions a partition; see [store.Store].
func (s *Store) EnsurePartition(ctx context.Context, name, by string) error {
	if err := store.CheckPartitionName(name); err != nil {
		return err
	}
	done, err := s.turn(ctx)
	if err != nil || name == string(node.RootAccess) {
		if err == nil {
			done()
		}
		return err
	}
	defer done()
	if known, exists := s.partitions.find(name); exists {
		return store.AdmitPartition(known, name)
	}
	p := store.Partition{Name: name, CreatedAt: node.Stamp(s.options.Now()), CreatedBy: by}
	if err = s.growing(); err != nil {
		return s.writeFault("provision partition "+name, err)
	}
	err = s.statement("insert into partitions (name, folded, created_at, created_by) values (?, ?, ?, ?)", name, node.Fold(name), p.CreatedAt.UnixMicro(), by)
	if err != nil {
		return s.writeFault("provision partition "+name, err)
	}
	s.partitions.set(p)
	return nil
}

// Partitions lists the partitions; see [store.Store].
func (s *Store) Partitions(ctx context.Context) ([]store.Partition, error) {
	if err := s.reading(ctx); err != nil {
		return nil, err
	}
	s.partitions.mu.RLock()
	defer s.partitions.mu.RUnlock()
	var all []store.Partition
	for _, p := range s.partitions.byFolded {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b store.Partition) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// MarkPartition marks a partition as being deleted; see [store.Store].
func (s *Store) MarkPartition(ctx context.Context, name string, deleting bool) error {
	done, err := s.turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	return s.mark(name, deleting)
}

func (s *Store) mark(name string, deleting bool) error {
	p, exists := s.partitions.find(name)
	if !exists || p.Name != name {
		return store.MissingPartition(name)
	}
	if err := s.freeingStatement("update partitions set deleting = ? where name = ?", deleting, name); err != nil {
		return s.writeFault("mark partition "+name, err)
	}
	p.Deleting = deleting
	s.partitions.set(p)
	return nil
}

// sliceRows bounds one transaction of a removal, so that writes get their turn in between.
const sliceRows = 2000

// RemovePartition removes an empty partition and its history; see [store.Store]. It marks the
// partition first, so that what is interrupted can be called again and nothing comes in meanwhile.
func (s *Store) RemovePartition(ctx context.Context, name string) error {
	if err := s.markEmpty(ctx, name); err != nil {
		return err
	}
	from, to := tables.Below(node.Path(name))
	for more := true; more; {
		done, err := s.turn(ctx)
		if err != nil {
			return err
		}
		more, err = s.removeSlice(name, from, to)
		done()
		if err != nil {
			return s.writeFault("remove partition "+name, err)
		}
	}
	return nil
}

// markEmpty marks the partition if no node is left in it.
func (s *Store) markEmpty(ctx context.Context, name string) error {
	done, err := s.turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	if p, exists := s.partitions.find(name); !exists || p.Name != name {
		return store.MissingPartition(name)
	}
	from, to := tables.Below(node.Path(name))
	var left bool
	err = s.writer.conn.QueryRowContext(context.Background(),
		"select exists (select 1 from nodes where key = ?1) or exists (select 1 from nodes where key > ?2 and key < ?3)", name, from, to).Scan(&left)
	if err != nil {
		return unavailable("remove partition "+name, err)
	}
	if left {
		return &store.PartitionError{Partition: name, Reason: store.ReasonNotEmpty}
	}
	return s.mark(name, true)
}

// removeSlice removes some history, and the partition itself once none is left.
func (s *Store) removeSlice(name, from, to string) (more bool, err error) {
	err = s.freeing(func() error {
		const slice = "delete from history where rowid in (select rowid from history where key = ?1 or key > ?2 and key < ?3 limit ?4)"
		result, err := s.writer.conn.ExecContext(context.Background(), slice, name, from, to, sliceRows)
		if err != nil {
			return err
		}
		removed, err := result.RowsAffected()
		if more = removed == sliceRows; err != nil || more {
			return err
		}
		_, err = s.writer.conn.ExecContext(context.Background(), "delete from partitions where name = ?", name)
		return err
	})
	if err == nil && !more {
		s.partitions.remove(name)
	}
	return more, err
}

// statement runs one statement as a transaction; the caller is the one writer.
func (s *Store) statement(text string, args ...any) error {
	err := s.writer.transaction(func() error {
		_, err := s.writer.conn.ExecContext(context.Background(), text, args...)
		return err
	})
	if err == nil {
		s.recovered()
	}
	return err
}

// freeingStatement is statement for what frees space.
func (s *Store) freeingStatement(text string, args ...any) error {
	return s.freeing(func() error {
		_, err := s.writer.conn.ExecContext(context.Background(), text, args...)
		return err
	})
}
