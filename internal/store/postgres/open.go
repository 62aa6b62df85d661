package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hubmesh/hubmesh/internal/store"
)

var _ store.Store = (*Store)(nil)

// Lanes is how many batches are to be committed at a time (storage.md §5): the committer's option.
const Lanes = 2

// Bounds and settings of the connections (storage.md §5).
const (
	openBound        = 30 * time.Second // connecting and migrating, other processes' migrations included
	statementTimeout = "10s"
	lockTimeout      = "5s"
	lanePatience     = "200ms" // how long a batch waits for a row that something else holds
	idleTimeout      = "5s"
	readTimeout      = "5s"
	laneConns        = Lanes + 1 // the lanes, and rows beside them that something else held
	writeConns       = 2         // partitions and records
	leastVersion     = 140000
)

// Options of a store; only URL is needed.
type Options struct {
	URL       string // postgres://user:password@host:port/database, or key=value pairs
	Origin    string // names this process in its change rows; "" makes one up
	History   int    // versions kept of a node; 0 is store.DefaultHistory
	ScanRows  int    // nodes that a query may look at; 0 is store.DefaultScanRows
	ScanBytes int    // bytes that a query may return; 0 is store.DefaultScanBytes
	Readers   int    // connections that read; 0 is 8
	// Log is told of migrations and of faults; nil is slog.Default.
	Log *slog.Logger
	// Now stamps changes; nil is time.Now.
	Now func() time.Time

	patience string // tests only: instead of lanePatience
	restless bool   // tests only: the text index is filled without a rest
}

// Store keeps nodes in one PostgreSQL database. Make one with [Open].
type Store struct {
	options Options
	log     *slog.Logger
	fanout  store.Fanout
	config  *pgxpool.Config // as the URL says
	pooled  bool            // a transaction pooler may be in between

	lanes  *pgxpool.Pool
	writes *pgxpool.Pool
	reads  *pgxpool.Pool
	freed  chan struct{} // holds one when a connection of a lane was given back
	own    ownWrites

	notifier notifier

	closing atomic.Bool
	starts  sync.Mutex // held while a call begins, and while closing is set
	running sync.WaitGroup

	fault struct {
		sync.Mutex
		last error     // of the last write; nil once one has succeeded
		told time.Time // when it was last said that a lock had ended writes
	}
}

var errOpen = errors.New("postgres: the database was not ready within 30 s")

// Open connects and migrates the schema. The error is a *[store.UnavailableError] whose hint says what to
// do; it never holds the URL.
func Open(ctx context.Context, options Options) (*Store, error) {
	s := &Store{options: options.withDefaults(), freed: make(chan struct{}, 1)}
	s.log = s.options.Log
	s.fanout.OnPanic = func(value any, stack []byte) {
		s.log.Error("a subscriber of changes panicked", "panic", value, "stack", string(stack))
	}
	bounded, cancel := context.WithTimeoutCause(ctx, openBound, errOpen)
	defer cancel()
	if err := s.open(bounded); err != nil {
		s.disconnect()
		if cause := ctx.Err(); cause != nil {
			return nil, cause
		}
		return nil, unavailable("open the database", err)
	}
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.Origin == "" {
		o.Origin = rand.Text()
	}
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
		o.Readers = 8
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.patience = cmp.Or(o.patience, lanePatience)
	return o
}

func (s *Store) open(ctx context.Context) (err error) {
	if s.config, err = pgxpool.ParseConfig(s.options.URL); err != nil || s.options.URL == "" {
		return &store.UnavailableError{Op: "open", Hint: hintURL, Err: errors.New("the connection URL is not valid")}
	}
	if s.config.ConnConfig.ConnectTimeout == 0 {
		s.config.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	if s.pooled, err = s.inspect(ctx); err != nil {
		return err
	}
	if err = s.migrate(ctx); err != nil {
		return err
	}
	writing := map[string]string{
		isolation: readCommitted, "hubmesh.origin": s.options.Origin, "synchronous_commit": "on", "statement_timeout": statementTimeout, "lock_timeout": lockTimeout,
		"idle_in_transaction_session_timeout": idleTimeout,
		// The statements take arrays: one plan serves all, and it goes from the arrays to the rows by index,
		// in their order, whatever the server believes of the table's size.
		"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "jit": "off",
	}
	if s.writes, err = s.pool(ctx, writeConns, writing); err != nil {
		return err
	}
	writing["lock_timeout"] = s.options.patience
	if s.lanes, err = s.pool(ctx, laneConns, writing); err != nil {
		return err
	}
	s.reads, err = s.pool(ctx, s.options.Readers, map[string]string{
		isolation: readCommitted, readOnly: "on", "statement_timeout": readTimeout, "idle_in_transaction_session_timeout": idleTimeout,
	})
	return err
}

// inspect connects once, checks what the server is, and tells whether a pooler is in between: its
// connections have another backend than they say.
func (s *Store) inspect(ctx context.Context) (pooled bool, err error) {
	conn, err := s.connect(ctx, "start", nil)
	if err != nil {
		return false, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var version int
	var encoding string
	var backend uint32
	var standby bool
	// Without a prepared statement, whose name another process may have left on the same connection of a pooler.
	err = conn.QueryRow(ctx, "select current_setting('server_version_num')::int, current_setting('server_encoding'), pg_backend_pid(), pg_is_in_recovery()", pgx.QueryExecModeExec).
		Scan(&version, &encoding, &backend, &standby)
	if err == nil {
		err = suits(version, encoding, standby)
	}
	return backend != conn.PgConn().PID(), err
}

// suits refuses a server that can not keep a mesh.
func suits(version int, encoding string, standby bool) error {
	switch {
	case version < leastVersion:
		return &store.UnavailableError{Op: "open", Hint: hintVersion, Err: fmt.Errorf("the server has version %d.%d", version/10000, version%10000)}
	case encoding != "UTF8":
		return &store.UnavailableError{Op: "open", Hint: "create the database with encoding UTF8", Err: fmt.Errorf("the database has the encoding %s", encoding)}
	case standby:
		return &store.UnavailableError{Op: "open", Hint: hintReadOnly, Transient: true, Err: errors.New("the server is a standby")}
	}
	return nil
}

// connect opens one connection beside the pools, with settings that are left out behind a pooler, as those of
// [Store.pool] are.
func (s *Store) connect(ctx context.Context, purpose string, settings map[string]string) (*pgx.Conn, error) {
	config := s.config.ConnConfig.Copy()
	s.configure(config, purpose, settings)
	return pgx.ConnectConfig(ctx, config)
}

// configure makes a connection's settings: what it is for shows in pg_stat_activity.
func (s *Store) configure(config *pgx.ConnConfig, purpose string, settings map[string]string) {
	config.RuntimeParams = maps.Clone(config.RuntimeParams)
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "hubmesh " + purpose
	}
	if s.pooled {
		config.DefaultQueryExecMode = pgx.QueryExecModeExec // prepared statements would be another client's
		config.RuntimeParams["DateStyle"] = "ISO, MDY"      // values come as texts; poolers know this one
		return
	}
	maps.Copy(config.RuntimeParams, settings)
	if settings[readOnly] == "on" {
		config.ValidateConnect = primaryWill(config.ValidateConnect)
	}
}

// The statements of this package look again, each with a snapshot of its own, after they have waited for a lock: a
// transaction that keeps its first snapshot would see nothing of whoever it has waited for. So none goes by the
// isolation that a database or a role has for its default.
const (
	isolation     = "default_transaction_isolation"
	readCommitted = string(pgx.ReadCommitted)
)

// readOnly makes the transactions of a connection read-only unless they say otherwise.
const readOnly = "default_transaction_read_only"

// primaryWill has a connection that is read-only by its own settings pass a check that wants one that can write, as
// target_session_attrs=read-write makes it: on the primary it could. A standby stays refused, so that the next host
// of the URL is asked.
func primaryWill(valid pgconn.ValidateConnectFunc) pgconn.ValidateConnectFunc {
	if valid == nil {
		return nil
	}
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		err := valid(ctx, conn)
		if errors.Is(err, pgconn.ErrReadOnlyConnection) {
			return pgconn.ValidateConnectTargetSessionAttrsPrimary(ctx, conn)
		}
		return err
	}
}

// pool opens at most size connections with settings. Behind a pooler these cannot be given: a startup packet
// with them is refused, and a session's would leak to other clients.
func (s *Store) pool(ctx context.Context, size int, settings map[string]string) (*pgxpool.Pool, error) {
	config := s.config.Copy()
	purpose := "write"
	if _, reads := settings[readOnly]; reads {
		purpose = "read"
	}
	s.configure(config.ConnConfig, purpose, settings)
	config.MaxConns = int32(size)
	config.ConnConfig.OnNotice = unreplicated
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// begin admits a call; its end is s.running.Done.
func (s *Store) begin(ctx context.Context) error {
	s.starts.Lock()
	defer s.starts.Unlock()
	if s.closing.Load() {
		return store.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.running.Add(1)
	return nil
}

// Close waits for running calls and closes the connections.
func (s *Store) Close() error {
	s.starts.Lock()
	s.closing.Store(true)
	s.starts.Unlock()
	s.running.Wait()
	s.disconnect()
	return nil
}

func (s *Store) disconnect() {
	s.notifier.mu.Lock()
	s.notifier.close()
	s.notifier.mu.Unlock()
	for _, pool := range []*pgxpool.Pool{s.lanes, s.writes, s.reads} {
		if pool != nil {
			pool.Close()
		}
	}
}

// Origin names this process in its change rows.
func (s *Store) Origin() string { return s.options.Origin }

// Pooled tells whether a pooler stands between this process and the server.
func (s *Store) Pooled() bool { return s.pooled }

// Subscribe registers fn for every change that this process commits; see [store.Store].
func (s *Store) Subscribe(fn func(store.Change)) (cancel func()) { return s.fanout.Subscribe(fn) }

// SubscriberPanics returns how many panics of subscribers were contained.
func (s *Store) SubscriberPanics() int64 { return s.fanout.Panics() }

func (s *Store) publish(changes []store.Change) { s.fanout.Publish(changes) }

// tellEvery is how often it is said that locks end writes.
const tellEvery = time.Minute

// writeFault makes the fault of a batch typed, and remembers it for [Store.Ready].
func (s *Store) writeFault(op string, err error) error {
	var said *pgconn.PgError
	ended := errors.As(err, &said) && (said.Code == codeCanceled || said.Code == codeLockTimeout)
	err = unavailable(op, err)
	if ended { // by somebody, or by what another program holds: the server takes other writes
		s.fault.Lock()
		now := s.options.Now()
		quiet := now.Sub(s.fault.told) < tellEvery
		if !quiet {
			s.fault.told = now
		}
		s.fault.Unlock()
		if !quiet {
			s.log.Warn("writes were ended by a lock of another program, or cancelled; look at pg_stat_activity for who holds it", "error", err)
		}
		return err
	}
	s.fault.Lock()
	first := s.fault.last == nil
	s.fault.last = err
	s.fault.Unlock()
	if first {
		s.log.Error("the database does not take writes", "error", err)
	}
	return err
}

// recovered notes that a batch was committed.
func (s *Store) recovered() {
	s.fault.Lock()
	was := s.fault.last
	s.fault.last = nil
	s.fault.Unlock()
	if was != nil {
		s.log.Info("the database takes writes again")
	}
}

// Ready returns nil when the server takes reads and writes. After a write has failed it tries one; see
// [store.Store].
func (s *Store) Ready(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.running.Done()
	var recovering bool
	err := roomy(ctx, s.writes, func() error { return s.writes.QueryRow(ctx, "select pg_is_in_recovery()").Scan(&recovering) })
	if err != nil {
		return s.readFault(ctx, "be ready", err)
	}
	if recovering {
		return &store.UnavailableError{Op: "be ready", Hint: hintReadOnly, Transient: true, Err: errors.New("the server is a standby")}
	}
	s.fault.Lock()
	failed := s.fault.last != nil
	s.fault.Unlock()
	if !failed {
		return nil
	}
	probe := make([]byte, 64<<10) // needs new pages, which the server would spare with bytes that it can compress
	if _, err := rand.Read(probe); err != nil {
		return err
	}
	if _, err := s.exec(ctx, `insert into mesh_blobs (bucket, key, value) values ('store', $1, $2)
on conflict (bucket, key) do update set value = excluded.value`, "probe "+s.options.Origin, probe); err != nil {
		return s.readFault(ctx, "be ready", err)
	}
	if _, err := s.exec(ctx, "delete from mesh_blobs where bucket = 'store' and key = $1", "probe "+s.options.Origin); err != nil {
		return s.readFault(ctx, "be ready", err)
	}
	s.recovered()
	return nil
}

// ownWrites are the writes of this process whose outcome it does not know. When the feed brings one, it was
// committed, and nobody here has been told.
type ownWrites struct {
	mu   sync.Mutex
	open map[string]int64 // version by path
}

// mostUnsure bounds ownWrites; beyond it the feed tells of no further one, and its subscribers learn of it
// with the next write of the path.
const mostUnsure = 10_000

func (o *ownWrites) unsure(w store.Write) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = map[string]int64{}
	}
	if len(o.open) < mostUnsure {
		o.open[string(w.Node.Path)] = w.Node.Version
	}
}

// take tells whether a version of a path is one of them, and forgets it.
func (o *ownWrites) take(path string, version int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if v, ok := o.open[path]; !ok || v != version {
		return false
	}
	delete(o.open, path)
	return true
}

// connectionLost tells whether a read may be made again: its connection went before the answer came.
func connectionLost(err error) bool {
	if err == nil || errors.Is(err, pgx.ErrNoRows) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var fault *pgconn.PgError
	if errors.As(err, &fault) {
		return strings.HasPrefix(fault.Code, "57P") || strings.HasPrefix(fault.Code, "08")
	}
	return true
}
