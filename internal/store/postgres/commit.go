package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

const (
	// commitBound is how long a batch is tried, connecting again included.
	commitBound = 10 * time.Second
	// commitPause is the pause before a batch whose connection was lost is made again, at first.
	commitPause = 20 * time.Millisecond
	// commitTries bounds how often a row that nothing visible stands in the way of is written again.
	commitTries = 4
	// commitReach is how long a connection for a batch is waited for at least, however long its writes have waited.
	commitReach = 200 * time.Millisecond
)

var (
	errCommit = errors.New("postgres: no outcome within the bound of a commit, 10 s")
	errReach  = errors.New("postgres: no connection for as long as the writes of a batch are tried")
)

// Commit writes one batch in one transaction; see [store.Store]. Where the connection is lost before the
// answer came, the batch is made again: a row that is then found as it was to be written is taken for
// written. Where that is not decided within ten seconds the rows are answered with
// *[store.OutcomeUnknownError].
func (s *Store) Commit(ctx context.Context, batch []store.Write) ([]store.Result, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.running.Done()
	if len(batch) == 0 {
		return nil, nil
	}
	c := &commit{s: s, until: store.TriedUntil(ctx), batch: make([]store.Write, len(batch)), results: make([]store.Result, len(batch)), kinds: make([]store.ChangeKind, len(batch))}
	var open []int
	seen := make(map[node.Path]struct{}, len(batch))
	for i, w := range batch {
		c.batch[i] = w
		if _, twice := seen[w.Node.Path]; twice {
			c.results[i].Err = store.ErrBatchDuplicate
			continue
		}
		seen[w.Node.Path] = struct{}{}
		if c.batch[i], c.results[i].Err = store.Normalize(w); c.results[i].Err == nil {
			open = append(open, i)
		}
	}
	// A waiter that leaves does not cancel what others of the batch wait for.
	bounded, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), commitBound, errCommit)
	defer cancel()
	if err := c.write(bounded, open); err != nil {
		return nil, s.writeFault("commit", err)
	}
	s.recovered()
	s.publish(c.changes())
	return c.results, nil
}

// commit is one batch on its way.
type commit struct {
	s       *Store
	batch   []store.Write
	results []store.Result
	kinds   []store.ChangeKind // of the rows that were written
	until   time.Time          // after which the server is not tried to be reached again; zero: the bound alone counts
	unsure  bool               // an attempt's answer was lost: what is found written may be ours
}

// write writes the rows that are open, until each has its result. An error means that nothing was written.
func (c *commit) write(ctx context.Context, open []int) error {
	pause := commitPause
	for try := 1; len(open) > 0; {
		err := c.attempt(ctx, open)
		switch {
		case err == nil:
			if open, err = c.explain(ctx, open, try >= commitTries); err == nil {
				try++
				continue
			}
		case versionTaken(err) && try < commitTries:
			if err = c.lift(ctx, open); err == nil {
				try++
				continue
			}
		case concernsRow(err) || again(err) && len(open) > 1:
			return c.oneByOne(ctx, open, err)
		case again(err) && try < commitTries:
			try++
			continue
		case lockedOut(err) && !c.unsure: // what holds the rows is no earlier attempt of ours
			if open, err = c.setAside(ctx, open, err); err == nil {
				continue
			}
		}
		if !answered(err) && !unsent(err) {
			c.unsure = true
		}
		if answered(err) && !noRoom(err) && !c.unsure {
			return c.give(open, err)
		}
		if c.over() {
			return c.give(open, err)
		}
		var freed chan struct{}
		if noRoom(err) {
			freed = c.s.freed
		}
		select {
		case <-freed:
		case <-time.After(c.within(pause)):
			pause = min(2*pause, time.Second)
		case <-ctx.Done():
			return c.give(open, err)
		}
	}
	return nil
}

// over tells whether the server was tried to be reached for as long as somebody waits.
func (c *commit) over() bool { return !c.until.IsZero() && !time.Now().Before(c.until) }

// within is a pause that does not go on for longer than that.
func (c *commit) within(pause time.Duration) time.Duration {
	if c.until.IsZero() {
		return pause
	}
	return max(0, min(pause, time.Until(c.until)))
}

// acquire waits for a connection.
func (c *commit) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	if !c.until.IsZero() {
		bound, cancel := context.WithTimeoutCause(ctx, max(commitReach, time.Until(c.until)), errReach)
		defer cancel()
		ctx = bound
	}
	conn, err := c.s.lanes.Acquire(ctx)
	if err != nil {
		return nil, &unsentError{err}
	}
	return conn, nil
}

// give ends the attempts with the rows that are open. It returns err where nothing was written.
func (c *commit) give(open []int, err error) error {
	if !c.unsure && !slices.ContainsFunc(c.kinds, func(k store.ChangeKind) bool { return k != 0 }) {
		return err
	}
	for _, i := range open {
		if !c.unsure {
			c.results[i].Err = unavailable("commit", err)
			continue
		}
		c.results[i].Err = &store.OutcomeUnknownError{Path: c.batch[i].Node.Path, Err: redact(err)}
		c.s.own.unsure(c.batch[i])
	}
	return nil
}

// unsentError is a batch that did not leave this process.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

func unsent(err error) bool {
	var u *unsentError
	return errors.As(err, &u) || pgconn.SafeToRetry(err)
}

// oneByOne writes each row alone, because the server refused them together for the sake of one.
func (c *commit) oneByOne(ctx context.Context, open []int, err error) error {
	if len(open) == 1 {
		c.results[open[0]].Err = &store.RowError{Path: c.batch[open[0]].Node.Path, Err: err}
		return nil
	}
	alone := make([][]int, 0, len(open))
	for i := range open {
		alone = append(alone, open[i:i+1])
	}
	return c.apart(ctx, alone...)
}

// lift raises the open rows that stand below an earlier life of their path: programs that go past the triggers leave
// them so. Versions that were told are then not those of the rows, and the writes are conflicts.
func (c *commit) lift(ctx context.Context, open []int) error {
	paths := make([]string, 0, len(open))
	for _, i := range open {
		paths = append(paths, string(c.batch[i].Node.Path))
	}
	conn, err := c.s.lanes.Acquire(ctx)
	if err != nil {
		return &unsentError{err}
	}
	defer c.s.release(conn)
	return c.s.ours(ctx, conn, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, liftText, paths)
		if err == nil && tag.RowsAffected() > 0 {
			c.s.log.Warn("nodes stood below an earlier life of their path, and were given versions above it: another program writes past the triggers", "nodes", tag.RowsAffected())
		}
		return err
	})
}

// release gives a connection of a lane back, and tells who waits for one.
func (s *Store) release(conn *pgxpool.Conn) {
	conn.Release()
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

// apart writes parts of the batch one after the other. An error means that nothing was written.
func (c *commit) apart(ctx context.Context, parts ...[]int) (first error) {
	answered := false
	for _, part := range parts {
		err := c.write(ctx, part)
		if answered = answered || err == nil; err == nil {
			continue
		}
		first = err
		for _, i := range part {
			c.results[i].Err = unavailable("commit", err)
		}
	}
	if answered {
		return nil
	}
	return first
}

// attempt makes one transaction of the open rows. After it the rows that were written have their results.
func (c *commit) attempt(ctx context.Context, open []int) error {
	conn, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer c.s.release(conn)
	parts := c.parts(open)
	var pipeline pgx.Batch
	if c.s.pooled {
		pipeline.Queue("begin isolation level read committed")
		pipeline.Queue(`select set_config('hubmesh.origin', $1, true), set_config('statement_timeout', $2, true), set_config('lock_timeout', $3, true),
set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)`, c.s.options.Origin, statementTimeout, c.s.options.patience)
	}
	for _, p := range parts {
		p.queue(&pipeline, c.s.options.Origin)
	}
	prune := c.prunes(open)
	if len(prune) > 0 {
		pipeline.Queue(pruneText, prune, c.s.options.History-1)
	}
	if c.s.pooled {
		pipeline.Queue("commit")
	}
	written := map[int]node.Node{}
	err = func() (err error) {
		answers := conn.SendBatch(ctx, &pipeline)
		defer func() {
			if end := answers.Close(); err == nil { // the commit is answered last; after a fault it is the same one
				err = end
			}
		}()
		if c.s.pooled {
			for range 2 { // begin, and the settings
				if _, err := answers.Exec(); err != nil {
					return err
				}
			}
		}
		for _, p := range parts {
			if err := c.receive(answers, p, written); err != nil {
				return err
			}
		}
		if len(prune) > 0 {
			if _, err = answers.Exec(); err != nil {
				return err
			}
		}
		if c.s.pooled {
			_, err = answers.Exec() // commit
		}
		return err
	}()
	if away := replicated(conn); err == nil {
		err = away // what was written is found by the next attempt, which waits again
	}
	if err != nil {
		if conn.Conn().PgConn().TxStatus() == 'E' {
			_, _ = conn.Exec(ctx, "rollback") // or the connection is not used again
		}
		return err
	}
	for i, n := range written {
		c.settle(i, n)
	}
	return nil
}

func (c *commit) settle(i int, n node.Node) {
	c.results[i] = store.Result{Node: n}
	c.kinds[i] = map[store.Op]store.ChangeKind{store.OpCreate: store.Created, store.OpUpdate: store.Updated, store.OpDelete: store.Deleted}[c.batch[i].Op]
}

// parts sorts the open rows by operation, each in path order.
func (c *commit) parts(open []int) []*part {
	sorted := slices.Clone(open)
	slices.SortFunc(sorted, func(a, b int) int { return strings.Compare(string(c.batch[a].Node.Path), string(c.batch[b].Node.Path)) })
	// Of two creates that differ in letter case only the first comes first; the other one is then explained.
	first := map[string]int{}
	for _, i := range open {
		if fold := c.batch[i].Node.Path.Fold(); c.batch[i].Op == store.OpCreate {
			if _, taken := first[fold]; !taken {
				first[fold] = i
			}
		}
	}
	var parts []*part
	for _, op := range []store.Op{store.OpDelete, store.OpUpdate, store.OpCreate} { // a place is free before it is taken
		p := &part{op: op}
		for _, i := range sorted {
			if c.batch[i].Op == op && (op != store.OpCreate || first[c.batch[i].Node.Path.Fold()] == i) {
				p.add(i, c.batch[i])
			}
		}
		if len(p.at) > 0 {
			parts = append(parts, p)
		}
	}
	return parts
}

// prunes are the paths whose history is cut now.
func (c *commit) prunes(open []int) (paths []string) {
	step := store.HistoryStep(c.s.options.History)
	for _, i := range open {
		if w := c.batch[i]; w.Op != store.OpCreate && w.Node.Version%step == 0 {
			paths = append(paths, string(w.Node.Path))
		}
	}
	return paths
}

// receive reads which rows of a part were written.
func (c *commit) receive(answers pgx.BatchResults, p *part, written map[int]node.Node) error {
	if len(p.held()) > 0 {
		if _, err := answers.Exec(); err != nil {
			return err
		}
	}
	rows, err := answers.Query()
	if err != nil {
		return err
	}
	at := p.byPath()
	for rows.Next() {
		if err := c.receiveRow(rows, p, at, written); err != nil {
			rows.Close()
			return err
		}
	}
	if rows.Close(); rows.Err() != nil || p.op != store.OpCreate {
		return rows.Err()
	}
	_, err = answers.Exec() // overtakenText
	return err
}

func (c *commit) receiveRow(rows pgx.Rows, p *part, at map[node.Path]int, written map[int]node.Node) error {
	switch p.op {
	case store.OpDelete:
		var r row
		if err := r.scan(rows); err != nil {
			return err
		}
		written[at[r.node.Path]] = r.node
	case store.OpUpdate:
		var path, by string
		var created *time.Time
		if err := rows.Scan(&path, &created, &by); err != nil {
			return err
		}
		i := at[node.Path(path)]
		n := c.batch[i].Node
		n.CreatedAt, n.CreatedBy = timeOf(created), by
		written[i] = n
	default:
		var path string
		if err := rows.Scan(&path); err != nil {
			return err
		}
		i := at[node.Path(path)]
		written[i] = c.batch[i].Node
	}
	return nil
}

// changes are the rows that were written, in the order of the batch.
func (c *commit) changes() []store.Change {
	now := node.Stamp(c.s.options.Now())
	changes := make([]store.Change, 0, len(c.batch))
	for i, w := range c.batch {
		if kind := c.kinds[i]; kind != 0 {
			changes = append(changes, store.Change{Kind: kind, Path: w.Node.Path, Node: c.results[i].Node, Version: w.Node.Version, At: now, Origin: w.Origin})
		}
	}
	return changes
}
