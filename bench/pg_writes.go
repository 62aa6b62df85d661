package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
)

const (
	pgWriteFor = 1500 * time.Millisecond
	pgWarmFor  = 300 * time.Millisecond
)

// pgSubject commits batches of updates in its own way.
type pgSubject struct {
	name   string
	commit store.Committing
	lanes  int
	rows   int // a batch; 0 is the committer's
}

func pgWritesScenario(ctx context.Context, rounds int) (*Result, error) {
	r := newResult("pg-writes", "durable writes a second", rounds)
	server, err := pgtest.Start("shared_buffers=1GB", "max_connections=200")
	if err != nil {
		return nil, err
	}
	defer server.Close()
	for _, readers := range []int{0, 2} {
		if err := pgWrites(ctx, r, server, rounds, readers); err != nil {
			return nil, err
		}
	}
	for _, writers := range []int{8, 64} {
		at := fmt.Sprintf(", %d writers", writers)
		name := "hubmesh/limit, no reader" + at
		r.ratio(name, "hubmesh, no reader"+at, "limit, no reader"+at)
		r.goal(name, ">=", 0.75)
		name = "hubmesh/limit, two readers" + at
		r.ratio(name, "hubmesh, two readers"+at, "limit, two readers"+at)
		r.goal(name, ">=", 0.45)
	}
	r.metric("writes a second, two readers, 64 writers", r.median("hubmesh, two readers, 64 writers"))
	r.goal("writes a second, two readers, 64 writers", ">=", 5500)
	r.ratio("hubmesh/without group commit, 64 writers", "hubmesh, two readers, 64 writers", "without group commit, two readers, 64 writers")
	r.goal("hubmesh/without group commit, 64 writers", ">=", 2)
	r.ratio("hubmesh/NOTIFY in each transaction, 64 writers", "hubmesh, two readers, 64 writers", "NOTIFY in each transaction, two readers, 64 writers")
	r.goal("hubmesh/NOTIFY in each transaction, 64 writers", ">=", 5)
	r.note("updates of one node a writer, compare-and-set on the version, 0.6 KB of JSON, with history; server, writers and readers on the same processors")
	r.note("the limit is the same array statement in the same batches and lanes, with history and without change rows; it is read by the same readers, who find nothing")
	r.note("a reader is the product's own feed on its own connections; without group commit is a transaction a write on eight connections")
	return r, nil
}

func pgWrites(ctx context.Context, r *Result, server *pgtest.Server, rounds, readers int) error {
	url, err := server.Database(ctx)
	if err != nil {
		return err
	}
	s, err := postgres.Open(ctx, postgres.Options{URL: url})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.EnsurePartition(ctx, "w", ""); err != nil {
		return err
	}
	limit, err := newLimit(ctx, url, "")
	if err != nil {
		return err
	}
	defer limit.pool.Close()
	with, stop, err := followers(url, readers)
	if err != nil {
		return err
	}
	defer stop()
	subjects := []pgSubject{{name: "hubmesh", commit: notifying{s, with}, lanes: postgres.Lanes}, {name: "limit", commit: limit, lanes: postgres.Lanes}}
	if readers > 0 {
		shout, err := newLimit(ctx, url, "select pg_notify('"+postgres.Channel+"', '')")
		if err != nil {
			return err
		}
		defer shout.pool.Close()
		subjects = append(subjects, pgSubject{"without group commit", notifying{s, with}, 8, 1}, pgSubject{"NOTIFY in each transaction", shout, 8, 1})
	}
	label := map[int]string{0: "no reader", 2: "two readers"}[readers]
	version := int64(0)
	for range rounds {
		for _, writers := range []int{8, 64} {
			for _, sub := range subjects {
				if sub.rows == 1 && writers != 64 {
					continue
				}
				rate, err := pgRate(ctx, s, sub, writers, &version)
				if err != nil {
					return fmt.Errorf("%s: %w", sub.name, err)
				}
				r.add(fmt.Sprintf("%s, %s, %d writers", sub.name, label, writers), rate)
			}
		}
	}
	return nil
}

// pgRate makes nodes of its own and counts their acknowledged updates.
func pgRate(ctx context.Context, s *postgres.Store, sub pgSubject, writers int, made *int64) (float64, error) {
	*made++
	paths := make([]string, writers)
	var creates []store.Write
	for i := range paths {
		paths[i] = fmt.Sprintf("w/r%d-%d", *made, i)
		creates = append(creates, store.Write{Op: store.OpCreate, Node: pgNode(paths[i], 1)})
	}
	if _, err := s.Commit(ctx, creates); err != nil {
		return 0, err
	}
	c := store.NewCommitter(sub.commit, store.CommitterOptions{Lanes: sub.lanes, BatchRows: sub.rows})
	defer c.Close()
	var counted atomic.Int64
	var counting, over atomic.Bool
	errs := make(chan error, writers)
	var work sync.WaitGroup
	for _, path := range paths {
		work.Go(func() {
			for v := int64(2); !over.Load(); v++ {
				if _, err := c.Submit(ctx, store.Write{Op: store.OpUpdate, Node: pgNode(path, v), Expected: v - 1}); err != nil {
					errs <- err
					return
				}
				if counting.Load() {
					counted.Add(1)
				}
			}
		})
	}
	time.Sleep(pgWarmFor)
	counting.Store(true)
	began := time.Now()
	time.Sleep(pgWriteFor)
	counting.Store(false)
	took := time.Since(began)
	over.Store(true)
	work.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
	}
	return float64(counted.Load()) / took.Seconds(), nil
}

var pgText = strings.Repeat("x", 560)

func pgNode(path string, version int64) node.Node {
	now := time.Now().UTC().Truncate(time.Microsecond)
	return node.Node{Path: node.Path(path), MainNode: node.Path(path), NodeType: "Task", Name: "bench", Version: version, State: node.StateActive,
		Content: node.RawContent(fmt.Sprintf(`{"n":%d,"text":"%s"}`, version, pgText)), CreatedAt: now, CreatedBy: "bench", ModifiedAt: now, ModifiedBy: "bench"}
}

// notifying wakes the followers after each commit, as a process does.
type notifying struct {
	*postgres.Store
	feed *feed.Feed
}

func (n notifying) Commit(ctx context.Context, batch []store.Write) ([]store.Result, error) {
	results, err := n.Store.Commit(ctx, batch)
	if n.feed != nil {
		n.feed.Committed()
	}
	return results, err
}

// limit is the same update without change rows.
type limit struct {
	pool  *pgxpool.Pool
	after string // a further statement in each transaction
}

func newLimit(ctx context.Context, url, after string) (*limit, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 8
	for name, value := range map[string]string{"hubmesh.origin": "limit", "plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "jit": "off"} {
		config.ConnConfig.RuntimeParams[name] = value
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	return &limit{pool, after}, err
}

const limitText = `with i as materialized (
  select * from unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::timestamptz[], $7::text[]) as i(path, expected, version, name, who, at, content)),
upd as (
  update mesh_nodes n set name = i.name, version = i.version, kind = 2, modified_at = i.at, modified_by = i.who, content = i.content::json
  from i join mesh_nodes o on o.path = i.path collate "C" and o.version = i.expected
  where n.path = i.path collate "C" and n.version = i.expected
  returning o.*),
hist as (
  insert into mesh_node_history (path, main_node, version, kind, state, sync_behavior, node_type, name, description, category, icon, display_order,
    created_at, created_by, modified_at, modified_by, desired_id, exclude_from_context, prerendered_html, content)
  select path, main_node, version, kind, state, sync_behavior, node_type, name, description, category, icon, display_order,
    created_at, created_by, modified_at, modified_by, desired_id, exclude_from_context, prerendered_html, content from upd)
select path from upd`

// Commit updates a batch.
func (l *limit) Commit(ctx context.Context, batch []store.Write) ([]store.Result, error) {
	var paths, names, who, contents []string
	var expected, version []int64
	var at []time.Time
	for _, w := range batch {
		paths, names, who, contents = append(paths, string(w.Node.Path)), append(names, w.Node.Name), append(who, w.Node.ModifiedBy), append(contents, w.Node.Content.Text())
		expected, version, at = append(expected, w.Expected), append(version, w.Node.Version), append(at, w.Node.ModifiedAt)
	}
	var pipeline pgx.Batch
	pipeline.Queue(limitText, paths, expected, version, names, who, at, contents)
	if l.after != "" {
		pipeline.Queue(l.after)
	}
	answers := l.pool.SendBatch(ctx, &pipeline)
	tag, err := answers.Exec()
	if closed := answers.Close(); err == nil {
		err = closed
	}
	if err == nil && tag.RowsAffected() != int64(len(batch)) {
		err = fmt.Errorf("%d of %d rows", tag.RowsAffected(), len(batch))
	}
	return make([]store.Result, len(batch)), err
}

// followers are processes that read the change rows; the first wakes the others.
func followers(url string, count int) (first *feed.Feed, stop func(), err error) {
	var ends []func()
	stop = func() {
		for _, end := range ends {
			end()
		}
	}
	for range count {
		f, err := newFollower(url, func(feed.Invalidation) {})
		if err != nil {
			stop()
			return nil, nil, err
		}
		ends = append(ends, f.close)
		if first == nil {
			first = f.feed
		}
	}
	return first, stop, nil
}
