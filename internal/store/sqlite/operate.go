package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hubmesh/hubmesh/internal/store"
)

// Settle returns at once: what can be read has been acknowledged by the disk; see [store.Store].
func (s *Store) Settle(ctx context.Context) error { return s.reading(ctx) }

// Ready returns nil when the store takes reads and writes. After a write has failed it tries one, so
// that it is ready again as soon as, say, the disk has room; see [store.Store].
func (s *Store) Ready(ctx context.Context) error {
	if err := s.reading(ctx); err != nil {
		return err
	}
	var one int
	if err := s.pool.QueryRowContext(ctx, "select 1 from schema_version limit 1").Scan(&one); err != nil {
		return s.readFault(ctx, "be ready", err)
	}
	s.fault.Lock()
	failed := s.fault.last != nil
	s.fault.Unlock()
	if !failed {
		return nil
	}
	return s.Blobs().Put(ctx, "store", "probe", probe())
}

// probe is a value that takes more pages than a small commit does, and other bytes than the last one:
// SQLite writes nothing where the row has these bytes already.
func probe() []byte {
	value := make([]byte, 64<<10)
	_, _ = rand.Read(value) // never fails
	return value
}

// Check looks for damage in the whole file; it reads all of it, so it takes its time.
func (s *Store) Check(ctx context.Context) error {
	if err := s.reading(ctx); err != nil {
		return err
	}
	var verdict string
	if err := s.pool.QueryRowContext(ctx, "pragma quick_check(1)").Scan(&verdict); err != nil {
		return s.readFault(ctx, "check", err)
	}
	if verdict != "ok" {
		return &store.UnavailableError{Kind: store.UnavailableCorrupt, Op: "check", Hint: hintCorrupt, Err: errors.New(verdict)}
	}
	return nil
}

// Backup writes a complete copy of one state of the store into file, which must not exist yet, while
// reads and writes go on. The copy is on the disk when it returns; a failed one leaves nothing.
func (s *Store) Backup(ctx context.Context, file string) error {
	if err := s.reading(ctx); err != nil {
		return err
	}
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("back up to %s: the file exists; name another one", file)
	}
	partial := file + ".partial"
	if err := s.backup(ctx, partial); err != nil {
		_ = os.Remove(partial)
		return s.readFault(ctx, "back up to "+file, err)
	}
	if err := os.Rename(partial, file); err != nil {
		_ = os.Remove(partial)
		return unavailable("back up to "+file, err)
	}
	return syncFile(filepath.Dir(file))
}

func (s *Store) backup(ctx context.Context, file string) error {
	pool, err := openPool(s.options.File, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	made, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) // for the owner alone, like the original
	if err != nil {
		return err
	}
	if err := made.Close(); err != nil {
		return err
	}
	if _, err := pool.ExecContext(ctx, "vacuum into ?", file); err != nil {
		return err
	}
	return syncFile(file)
}

// syncFile brings a file, or the names in a directory, onto the disk.
func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	err = f.Sync()
	if other := f.Close(); err == nil {
		err = other
	}
	return err
}
