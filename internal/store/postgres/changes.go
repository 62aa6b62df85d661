package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Channel carries the wake-ups of those who follow the change rows, and the payloads of programs that are not
// ours.
const Channel = "mesh_node_changes"

// Statements of the change rows (storage.md §4), made in one transaction that sees one snapshot. Columns are
// qualified in "order by": a cast in the list would be sorted by instead.
const (
	feedBeginText = "begin isolation level repeatable read read only"
	// Looked up at each read: names that the planner resolves stay those of tables that are gone.
	tablesText     = "coalesce(to_regclass('mesh_nodes')::oid::int8 << 32 | to_regclass('mesh_changes')::oid::int8, 0)"
	feedHeadText   = "select pg_current_snapshot()::text, c.system_identifier, " + tablesText + ", m.pruned_before from mesh_store m, pg_control_system() c"
	changeColumns  = "c.xid, c.pos, c.at, c.version, c.op::text, c.path, c.node_type, coalesce(c.origin, '')"
	feedBehindText = "select " + changeColumns + " from mesh_changes c where (c.xid, c.pos) > ($1::xid8, $2::bigint) order by c.xid, c.pos limit $3"
	feedOpenText   = "select " + changeColumns + " from mesh_changes c where c.xid = any($1::xid8[])"
	feedLastText   = "select " + changeColumns + " from mesh_changes c order by c.xid desc, c.pos desc limit 1"

	feedVerifyText = `select
  (select system_identifier from pg_control_system()), ` + tablesText + `, mesh_timeline(),
  (select pruned_before from mesh_store), pg_is_in_recovery(),
  (select count(*) from unnest($1::xid8[], $2::bigint[], $3::text[], $4::bigint[]) as i(xid, pos, path, version)
   join mesh_changes c on c.xid = i.xid and c.pos = i.pos and c.path = i.path collate "C" and c.version = i.version)`
)

// Changes reads the change rows on a connection of its own. It is not safe for concurrent use.
type Changes struct {
	s    *Store
	conn *pgx.Conn
}

// Changes connects a reader of the change rows. The planner's choice is pinned: a generic plan may become a
// scan of all rows.
func (s *Store) Changes(ctx context.Context) (*Changes, error) {
	conn, err := s.connect(ctx, "feed", map[string]string{
		isolation: readCommitted, readOnly: "on", "statement_timeout": readTimeout, "idle_in_transaction_session_timeout": idleTimeout,
		"plan_cache_mode": "force_custom_plan", "enable_seqscan": "off", "jit": "off",
	})
	if err != nil {
		return nil, unavailable("follow the changes", err)
	}
	return &Changes{s, conn}, nil
}

// closeBound is how long a connection may take to say farewell.
const closeBound = time.Second

var errClose = errors.New("postgres: the connection took too long to close")

func closing() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.Background(), closeBound, errClose)
}

// Close closes the connection.
func (c *Changes) Close() {
	ctx, cancel := closing()
	defer cancel()
	_ = c.conn.Close(ctx) // of what is left behind
}

// Start returns the highest row there is, if there is one, and the snapshot of the same moment. Where the database was
// restored on another server, under running processes, the rows of the one before are removed first.
func (c *Changes) Start(ctx context.Context) (store.ChangePage, error) {
	if err := c.s.settleIn(ctx, c.conn); err != nil {
		return store.ChangePage{}, unavailable("read the changes", err)
	}
	return c.page(ctx, func(b *pgx.Batch) { b.Queue(feedLastText) }, 2)
}

// Read returns what a position has not seen: the rows of its open transactions, and at most limit rows
// behind it.
func (c *Changes) Read(ctx context.Context, p store.Position, limit int) (store.ChangePage, error) {
	return c.page(ctx, func(b *pgx.Batch) {
		b.Queue(feedBehindText, p.XID, p.Pos, limit)
		if len(p.Open) > 0 {
			b.Queue(feedOpenText, p.Open)
		}
	}, limit)
}

// page runs the queries in one transaction and one round trip. The first one's rows are counted against limit.
func (c *Changes) page(ctx context.Context, queries func(*pgx.Batch), limit int) (p store.ChangePage, err error) {
	var batch pgx.Batch
	batch.Queue(feedBeginText)
	batch.Queue(feedHeadText)
	queries(&batch)
	batch.Queue("commit")
	answers := c.conn.SendBatch(ctx, &batch)
	err = func() (err error) {
		defer func() { err = errors.Join(err, answers.Close()) }()
		if _, err := answers.Exec(); err != nil {
			return err
		}
		var snapshot string
		if err := answers.QueryRow().Scan(&snapshot, &p.SystemID, &p.Tables, &p.PrunedBefore); err != nil {
			return err
		}
		if p.Snapshot, err = parseSnapshot(snapshot); err != nil {
			return err
		}
		for query := range batch.Len() - 3 {
			if err := c.rows(answers, &p); err != nil {
				return err
			}
			if query == 0 {
				p.Cut = len(p.Rows) >= limit
			}
		}
		_, err = answers.Exec()
		return err
	}()
	if err != nil {
		return store.ChangePage{}, unavailable("read the changes", err)
	}
	return p, nil
}

// rows reads one query's. Types and origins are few: a page holds one copy of each.
func (c *Changes) rows(answers pgx.BatchResults, p *store.ChangePage) error {
	rows, err := answers.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	known := map[string]string{}
	one := func(text string) string {
		if kept, ok := known[text]; ok {
			return kept
		}
		known[text] = text
		return text
	}
	var r store.ChangeRow
	var op, path, nodeType, origin string
	into := []any{&r.XID, &r.Pos, &r.At, &r.Version, &op, &path, &nodeType, &origin}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		r.At, r.Kind, r.Path, r.NodeType, r.Origin = r.At.UTC(), kindOf(op), node.Path(path), one(nodeType), one(origin)
		p.Rows = append(p.Rows, r)
	}
	return rows.Err()
}

func kindOf(op string) store.ChangeKind {
	switch op {
	case "I":
		return store.Created
	case "U":
		return store.Updated
	case "D":
		return store.Deleted
	}
	return 0
}

// parseSnapshot reads "min:max:open,open".
func parseSnapshot(text string) (s store.Snapshot, err error) {
	parts := strings.Split(text, ":")
	fault := fmt.Errorf("postgres: a snapshot reads %q", text)
	if len(parts) != 3 {
		return s, fault
	}
	if s.Min, err = strconv.ParseUint(parts[0], 10, 64); err != nil {
		return s, fault
	}
	if s.Max, err = strconv.ParseUint(parts[1], 10, 64); err != nil {
		return s, fault
	}
	if parts[2] == "" {
		return s, nil
	}
	for part := range strings.SplitSeq(parts[2], ",") {
		id, err := strconv.ParseUint(part, 10, 64)
		if err != nil {
			return s, fault
		}
		s.Open = append(s.Open, id)
	}
	return s, nil
}

// Verify looks whether the server is the one that was read before.
func (c *Changes) Verify(ctx context.Context, last []store.ChangeRow) (v store.Verification, err error) {
	var xids []uint64
	var positions, versions []int64
	var paths []string
	for _, r := range last {
		xids, positions, versions, paths = append(xids, r.XID), append(positions, r.Pos), append(versions, r.Version), append(paths, string(r.Path))
	}
	err = c.conn.QueryRow(ctx, feedVerifyText, xids, positions, paths, versions).Scan(&v.SystemID, &v.Tables, &v.Timeline, &v.PrunedBefore, &v.Standby, &v.Found)
	if err != nil {
		err = unavailable("verify the changes", err)
	}
	return v, err
}

// Listener hears the channel, and pings of its own. Wait and Ping are called by one goroutine.
type Listener struct {
	conn *pgx.Conn
	echo string // its own channel
}

// ErrPooled says that a pooler is in between, through which nothing can be listened to: poll.
var ErrPooled = errors.New("postgres: a transaction pooler is in between: LISTEN needs a direct connection")

// Listen connects a listener. The server drops it soon after it has gone, so that its queue moves on.
func (s *Store) Listen(ctx context.Context) (*Listener, error) {
	if s.pooled {
		return nil, ErrPooled
	}
	conn, err := s.connect(ctx, "listen", map[string]string{
		"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "2", "tcp_user_timeout": "9000",
		"idle_in_transaction_session_timeout": idleTimeout,
	})
	if err != nil {
		return nil, unavailable("listen", err)
	}
	l := &Listener{conn: conn, echo: fmt.Sprintf("mesh_echo_%d", conn.PgConn().PID())}
	if _, err := conn.Exec(ctx, "listen "+Channel+"; listen "+l.echo, pgx.QueryExecModeSimpleProtocol); err != nil {
		l.Close()
		return nil, unavailable("listen", err)
	}
	return l, nil
}

// Wait returns the next notification.
func (l *Listener) Wait(ctx context.Context) (store.Notification, error) {
	n, err := l.conn.WaitForNotification(ctx)
	if err != nil {
		return store.Notification{}, err
	}
	return store.Notification{Payload: n.Payload, Own: n.Channel == l.echo}, nil
}

// Ping sends the listener an echo.
func (l *Listener) Ping(ctx context.Context) error {
	_, err := l.conn.Exec(ctx, "notify "+l.echo, pgx.QueryExecModeSimpleProtocol)
	return err
}

// Close closes the connection.
func (l *Listener) Close() {
	ctx, cancel := closing()
	defer cancel()
	_ = l.conn.Close(ctx) // of what is left behind
}

// notifier keeps the connection of the wake-ups.
type notifier struct {
	mu   sync.Mutex
	conn *pgx.Conn
}

// Notify sends an empty wake-up to every listener.
func (s *Store) Notify(ctx context.Context) error {
	s.notifier.mu.Lock()
	defer s.notifier.mu.Unlock()
	if s.closing.Load() {
		return store.ErrClosed
	}
	if s.notifier.conn == nil {
		conn, err := s.connect(ctx, "notify", map[string]string{"synchronous_commit": "off", "statement_timeout": readTimeout})
		if err != nil {
			return unavailable("notify", err)
		}
		s.notifier.conn = conn
	}
	if _, err := s.notifier.conn.Exec(ctx, "notify "+Channel, pgx.QueryExecModeSimpleProtocol); err != nil {
		s.notifier.close()
		return unavailable("notify", err)
	}
	return nil
}

// close drops the connection; n.mu is held.
func (n *notifier) close() {
	if n.conn == nil {
		return
	}
	ctx, cancel := closing()
	defer cancel()
	_ = n.conn.Close(ctx) // of what is left behind
	n.conn = nil
}

// Unsure tells whether a version of a path is a write of this process whose outcome it did not know, once.
func (s *Store) Unsure(path node.Path, version int64) bool { return s.own.take(string(path), version) }

// RecordType is the type in change rows that [Store.Announce] writes.
const RecordType = "$record"

// Announce tells every process, this one included, that a record outside of the nodes has changed: as the
// deletion of a path that no node can have, "~BUCKET/KEY".
func (s *Store) Announce(ctx context.Context, bucket, key string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.running.Done()
	_, err := s.exec(ctx, `insert into mesh_changes (version, op, path, node_type, origin)
values ((extract(epoch from clock_timestamp()) * 1000000)::bigint, 'D', $1, $2, 'record')`, "~"+bucket+"/"+key, RecordType)
	if err != nil {
		return s.readFault(ctx, "tell of a record", err)
	}
	return s.Notify(ctx)
}
