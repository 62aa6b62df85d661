package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"

	"github.com/hubmesh/hubmesh/internal/store"
)

var _ store.Store = (*Store)(nil)

// Settings of every connection (storage.md §7).
const (
	busyTimeout    = 5 * time.Second // for the lock of a foreign tool
	checkpoint     = 4000            // pages in the write-ahead log before a commit moves them into the file
	writerCacheKiB = 16 << 10
	readerCacheKiB = 4 << 10
)

// Options of a store; only File is needed.
type Options struct {
	File      string // the database; beside it are FILE-wal, FILE-shm, FILE.lock and FILE.reserve
	History   int    // versions kept of a node; 0 is store.DefaultHistory
	ScanRows  int    // nodes that a query may look at; 0 is store.DefaultScanRows
	ScanBytes int    // bytes that a query may return; 0 is store.DefaultScanBytes
	Readers   int    // connections that read; 0 is 4, or twice the processors if that is more
	// Log is told of migrations and of faults; nil is slog.Default.
	Log *slog.Logger
	// Now stamps changes; nil is time.Now.
	Now func() time.Time
}

// Store keeps nodes in one SQLite file. Make one with [Open].
type Store struct {
	options Options
	log     *slog.Logger
	fanout  store.Fanout
	lock    *fileLock

	// writing is held by the one writer, from its transaction to the end of its publication, so that
	// changes are published in commit order. A channel, because waiting for it observes a context.
	writing chan struct{}
	writer  *writer // used by the holder of writing
	pool    *sql.DB // reads
	reads   reads
	closed  atomic.Bool

	partitions partitionTable
	reserve    reserve

	fault struct {
		sync.Mutex
		last error // of the last write; nil once one has succeeded
	}
}

// Open opens or creates the database, takes its lock and migrates its schema. The error is a
// *[store.UnavailableError] whose kind and hint say what to do: another process has it, the file is
// damaged or not ours, written by a newer program, not permitted, or the disk is full.
func Open(ctx context.Context, options Options) (*Store, error) {
	s := &Store{options: options.withDefaults(), writing: make(chan struct{}, 1)}
	s.log = s.options.Log
	s.fanout.OnPanic = func(value any, stack []byte) {
		s.log.Error("a subscriber of changes panicked", "panic", value, "stack", string(stack))
	}
	if err := s.open(ctx); err != nil {
		s.release()
		if cause := ctx.Err(); cause != nil {
			return nil, cause
		}
		return nil, unavailable("open "+s.options.File, err)
	}
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.History <= 0 {
		o.History = store.DefaultHistory
	}
	if o.ScanRows <= 0 {
		o.ScanRows = store.DefaultScanRows
	}
	if o.ScanBytes <= 0 {
		o.ScanBytes = store.DefaultScanBytes
	}
	if o.Readers <= 0 {
		o.Readers = max(4, 2*runtime.GOMAXPROCS(0))
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func (s *Store) open(ctx context.Context) (err error) {
	file := s.options.File
	if file == "" {
		return &store.UnavailableError{Op: "open", Hint: hintPath, Err: errors.New("no file is named")}
	}
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if s.lock, err = lockFile(file + ".lock"); err != nil {
		return err
	}
	if err = prepareFile(file); err != nil {
		return err
	}
	if s.writer, err = openWriter(ctx, file); err != nil {
		return err
	}
	if err = s.migrate(ctx); err != nil {
		return err
	}
	if err = os.Remove(file + newSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err = s.writer.prepare(ctx); err != nil {
		return err
	}
	if s.pool, err = openPool(file, s.options.Readers, "query_only(1)", fmt.Sprintf("cache_size(-%d)", readerCacheKiB)); err != nil {
		return err
	}
	if err = s.reads.prepare(ctx, s.pool); err != nil {
		return err
	}
	if err = s.partitions.load(ctx, s.pool); err != nil {
		return err
	}
	s.reserve.file = file + ".reserve"
	if err := s.reserve.make(); err != nil {
		s.log.Warn("no room could be kept on the disk for deletions; if it runs full, nothing can be deleted", "file", s.reserve.file, "error", err)
	}
	return nil
}

// newSuffix names the file that stands beside a database from before it is created until it has its tables: an empty
// database without it is one that has lost everything.
const newSuffix = ".new"

// prepareFile creates the file for its owner alone, and refuses one that is no database, or is none any more.
func prepareFile(file string) error {
	_, err := os.Stat(file)
	isNew := errors.Is(err, fs.ErrNotExist)
	if isNew {
		mark, err := os.OpenFile(file+newSuffix, os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		if err := mark.Close(); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	const magic = "SQLite format 3\x00"
	head := make([]byte, len(magic))
	n, _ := f.ReadAt(head, 0)
	if n > 0 && string(head[:n]) != magic {
		return &store.UnavailableError{Kind: store.UnavailableCorrupt, Op: "open", Hint: hintCorrupt, Err: errors.New("the file is not a database")}
	}
	if n > 0 || isNew {
		return nil
	}
	if _, err := os.Stat(file + newSuffix); err == nil {
		return nil // a first start ended here
	}
	return &store.UnavailableError{Kind: store.UnavailableCorrupt, Op: "open", Hint: hintEmpty, Err: errors.New("the file is empty")}
}

// openPool opens at most size connections with the settings of this package and further pragmas.
func openPool(file string, size int, pragmas ...string) (*sql.DB, error) {
	query := url.Values{"_txlock": {"deferred"}, "_error_rc": {"1"}}
	settings := []string{
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "journal_mode(wal)", "synchronous(full)",
		fmt.Sprintf("wal_autocheckpoint(%d)", checkpoint), "foreign_keys(0)", "trusted_schema(0)",
	}
	for _, pragma := range append(settings, pragmas...) {
		query.Add("_pragma", pragma)
	}
	path := filepath.ToSlash(file)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	connector, err := sqlite.NewConnector(dsn.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

// Close waits for a running commit and for running reads, and releases the file and its lock.
func (s *Store) Close() error {
	s.writing <- struct{}{}
	defer func() { <-s.writing }()
	if s.closed.Swap(true) {
		return nil
	}
	return s.release()
}

func (s *Store) release() error {
	var errs []error
	if s.pool != nil {
		errs = append(errs, s.pool.Close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.release())
	}
	return errors.Join(errs...)
}

// Subscribe registers fn for every committed change; see [store.Store].
func (s *Store) Subscribe(fn func(store.Change)) (cancel func()) { return s.fanout.Subscribe(fn) }

// SubscriberPanics returns how many panics of subscribers were contained.
func (s *Store) SubscriberPanics() int64 { return s.fanout.Panics() }
