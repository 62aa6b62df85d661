package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/hubmesh/hubmesh/internal/store"
)

// reserveSizes are the sizes of the reserve, in bytes: the first for which there is room is taken. The
// log has up to checkpoint pages, which is 16 MiB, and takes room in the database before it can be used
// anew; a deletion of one node writes some ten pages to it, one of 500 nodes a few megabytes.
var reserveSizes = []int{20 << 20, 4 << 20, 1 << 20, 256 << 10}

// reserve is a file that holds some room on the disk, for deletions: on a full disk nothing could be
// deleted without it, because a deletion is written to the log first and adds to the history. It is
// given up when a deletion meets the full disk, and from then on only what frees space is written, until
// the file has been made again. The holder of the store's writing turn uses it.
type reserve struct {
	file string
	size int         // as it was made last; 0: not yet
	used atomic.Bool // given up, and not made again yet
}

// make takes the room, unless it is held already: as much as there is at the start, and later no less
// than it was, so that making it again does not take what a deletion needs.
func (r *reserve) make() (err error) {
	if info, err := os.Stat(r.file); err == nil && info.Size() >= int64(max(r.size, reserveSizes[len(reserveSizes)-1])) {
		r.size = int(info.Size())
		return nil
	}
	for _, size := range reserveSizes {
		if size < r.size {
			break
		}
		if err = r.fill(size); err == nil {
			r.size = size
			return nil
		}
	}
	return err
}

func (r *reserve) fill(size int) error {
	f, err := os.OpenFile(r.file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err = allocate(f, size); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(r.file))
	}
	return nil
}

// writeZeros writes every byte, so that the file is no hole.
func writeZeros(f *os.File, size int) error {
	block := make([]byte, 64<<10)
	for written := 0; written < size; written += len(block) {
		if _, err := f.Write(block); err != nil {
			return err
		}
	}
	return nil
}

// giveUp frees the room; false when there is none to free.
func (s *Store) giveUp() bool {
	if err := os.Remove(s.reserve.file); err != nil {
		return false
	}
	if !s.reserve.used.Swap(true) {
		s.log.Warn("the disk is full; room that was kept for deletions is used, and until there is room again nothing else is written", "file", s.options.File)
	}
	return true
}

// growing refuses what needs new room while the reserve is used and can not be made again.
func (s *Store) growing() error {
	if !s.reserve.used.Load() {
		return nil
	}
	s.shorten()
	if err := s.reserve.make(); err != nil {
		return &store.UnavailableError{Kind: store.UnavailableFull, Op: "keep room for deletions", Hint: hintFull, Transient: true, Err: err}
	}
	s.reserve.used.Store(false)
	s.log.Info("there is room on the disk again", "file", s.options.File)
	return nil
}

// grow runs a transaction that needs new room.
func (s *Store) grow(fn func() error) error {
	if err := s.growing(); err != nil {
		return err
	}
	return s.writer.transaction(fn)
}

// shorten moves the log into the file and cuts it, unless somebody reads from it just now, or it needs
// more room than was kept: it would take what a deletion can use.
func (s *Store) shorten() {
	if info, err := os.Stat(s.options.File + "-wal"); err != nil || info.Size() > int64(s.reserve.size) {
		return
	}
	ctx := context.Background()
	var a, b, c int
	_, _ = s.writer.conn.ExecContext(ctx, "pragma busy_timeout = 0")
	_ = s.writer.conn.QueryRowContext(ctx, "pragma wal_checkpoint(truncate)").Scan(&a, &b, &c) // what it did not move stays in the log
	_, _ = s.writer.conn.ExecContext(ctx, fmt.Sprintf("pragma busy_timeout = %d", busyTimeout.Milliseconds()))
}

// freeing runs a transaction that frees space: it may use the reserve.
func (s *Store) freeing(fn func() error) error {
	err := s.writer.transaction(fn)
	if !isFull(err) || !s.giveUp() {
		return err
	}
	s.shorten()
	return s.writer.transaction(fn)
}

func isFull(err error) bool {
	var u *store.UnavailableError
	return err != nil && errors.As(unavailable("", err), &u) && u.Kind == store.UnavailableFull
}

// commitDeletes writes the deletions of a batch that has met the full disk, together or else one by one,
// so that what there is room for is done. The other rows are answered with the fault.
func (s *Store) commitDeletes(batch []store.Write, fault error) ([]store.Result, error) {
	if s.giveUp() {
		s.shorten()
	}
	results := make([]store.Result, len(batch))
	var deletes []store.Write
	var at []int
	for i, w := range batch {
		results[i].Err = fault
		if w.Op == store.OpDelete {
			deletes, at = append(deletes, w), append(at, i)
		}
	}
	done, err := s.attempt(deletes)
	if err == nil {
		for j, r := range done {
			results[at[j]] = r
		}
		s.shorten()
		return results, nil
	}
	any := false
	for j := range deletes {
		one, err := s.attempt(deletes[j : j+1])
		if err != nil {
			continue
		}
		results[at[j]], any = one[0], true
		s.shorten()
	}
	if !any {
		return nil, fault
	}
	return results, nil
}
