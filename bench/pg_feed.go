package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
)

const (
	aloneWrites  = 60
	alonePause   = 40 * time.Millisecond
	pacedRate    = 1000 // writes a second
	pacedWriters = 32
	pacedFor     = 3 * time.Second
	openFor      = 5 * time.Second // a transaction that has nothing to do with the mesh
	catchUpRows  = 1_000_000
	catchUpPage  = 10_000
	partitions   = 10_000
)

func pgFeedScenario(ctx context.Context, rounds int) (*Result, error) {
	r := newResult("pg-feed", "ms", rounds)
	server, err := pgtest.Start("shared_buffers=1GB", "max_connections=200")
	if err != nil {
		return nil, err
	}
	defer server.Close()
	for round := range rounds {
		if err := pgFeedRound(ctx, r, server, round == 0); err != nil {
			return nil, err
		}
	}
	for name, goal := range map[string]float64{"alone, p50": 2, "1,000 writes a second, p50": 5, "1,000 writes a second, p99": 15, "beside an open transaction, the longest": 1000, "create a partition, p50": 5, "point read among 10,000 partitions, p50": 1} {
		r.metric(name, r.median(name))
		r.goal(name, "<=", goal)
	}
	r.metric("rows a second, 1,000,000 behind", r.median("rows a second, 1,000,000 behind"))
	r.goal("rows a second, 1,000,000 behind", ">=", 200_000)
	r.ratio("alone/bare notification", "alone, p50", "bare notification, p50")
	r.note("from the acknowledgement on one process's store to the invalidation in another's cache, over the product's feed; both in one process of the operating system, each with its own connections")
	r.note("the open transaction has an id and stands in another database of the same server for 5 s; the figure is the longest wait of an update meanwhile, of 50 a second")
	r.note("a bare notification is a NOTIFY by one connection until another one has it")
	return r, nil
}

// arrivals waits for versions at a follower.
type arrivals struct {
	mu   sync.Mutex
	wait map[string]chan time.Time
}

func (a *arrivals) told(i feed.Invalidation) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	key := fmt.Sprint(i.Path, i.Version)
	if c := a.wait[key]; c != nil {
		c <- now
		delete(a.wait, key)
	}
}

func (a *arrivals) expect(path string, version int64) <-chan time.Time {
	c := make(chan time.Time, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wait[fmt.Sprint(path, version)] = c
	return c
}

func pgFeedRound(ctx context.Context, r *Result, server *pgtest.Server, first bool) error {
	url, err := server.Database(ctx)
	if err != nil {
		return err
	}
	a, err := newFollower(url, func(feed.Invalidation) {})
	if err != nil {
		return err
	}
	defer a.close()
	seen := &arrivals{wait: map[string]chan time.Time{}}
	b, err := newFollower(url, seen.told)
	if err != nil {
		return err
	}
	defer b.close()
	if err := a.store.EnsurePartition(ctx, "w", ""); err != nil {
		return err
	}
	c := store.NewCommitter(a.store, store.CommitterOptions{Lanes: postgres.Lanes})
	defer c.Close()
	w := &pgWriter{c: c, seen: seen, at: map[string]int64{}}
	alone, err := w.run(ctx, 1, aloneWrites, alonePause)
	if err != nil {
		return err
	}
	r.add("alone, p50", quantile(alone, 0.5))
	r.add("alone, p99", quantile(alone, 0.99))
	bare, err := bareNotification(ctx, url)
	if err != nil {
		return err
	}
	r.add("bare notification, p50", quantile(bare, 0.5))
	pause := time.Duration(pacedWriters) * time.Second / pacedRate
	paced, err := w.run(ctx, pacedWriters, int(pacedFor/pause), pause)
	if err != nil {
		return err
	}
	r.add("1,000 writes a second, p50", quantile(paced, 0.5))
	r.add("1,000 writes a second, p99", quantile(paced, 0.99))
	if err := openTransaction(ctx, r, server, w); err != nil {
		return err
	}
	if err := catchUp(ctx, r, url, a.store); err != nil {
		return err
	}
	if first {
		return manyPartitions(ctx, r, a.store)
	}
	return nil
}

// pgWriter updates nodes and waits until they are known elsewhere.
type pgWriter struct {
	c    *store.Committer
	seen *arrivals
	mu   sync.Mutex
	at   map[string]int64
}

// run has writers update a node each, count times, paced, and returns how long each update took from its
// acknowledgement until it was known elsewhere, in ms.
func (w *pgWriter) run(ctx context.Context, writers, count int, pause time.Duration) (took []float64, err error) {
	var work sync.WaitGroup
	errs := make(chan error, writers)
	for i := range writers {
		work.Go(func() {
			time.Sleep(pause * time.Duration(i) / time.Duration(writers))
			began := time.Now()
			for k := range count {
				time.Sleep(time.Until(began.Add(time.Duration(k) * pause)))
				d, err := w.write(ctx, fmt.Sprint("w/n", i))
				if err != nil {
					errs <- err
					return
				}
				w.mu.Lock()
				took = append(took, ms(max(d, 0)))
				w.mu.Unlock()
			}
		})
	}
	work.Wait()
	select {
	case err = <-errs:
	default:
	}
	return took, err
}

func (w *pgWriter) write(ctx context.Context, path string) (time.Duration, error) {
	w.mu.Lock()
	version := w.at[path] + 1
	w.at[path] = version
	w.mu.Unlock()
	change := store.Write{Op: store.OpUpdate, Node: pgNode(path, version), Expected: version - 1}
	if version == 1 {
		change.Op = store.OpCreate
	}
	arrived := w.seen.expect(path, version)
	if _, err := w.c.Submit(ctx, change); err != nil {
		return 0, err
	}
	acked := time.Now()
	select {
	case at := <-arrived:
		return at.Sub(acked), nil
	case <-time.After(30 * time.Second):
		return 0, fmt.Errorf("version %d of %s is not known elsewhere after 30 s", version, path)
	}
}

func bareNotification(ctx context.Context, url string) (took []float64, err error) {
	hear, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer hear.Close(ctx)
	say, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer say.Close(ctx)
	if _, err := hear.Exec(ctx, "listen bench"); err != nil {
		return nil, err
	}
	for range aloneWrites {
		began := time.Now()
		if _, err := say.Exec(ctx, "notify bench"); err != nil {
			return nil, err
		}
		if _, err := hear.WaitForNotification(ctx); err != nil {
			return nil, err
		}
		took = append(took, ms(time.Since(began)))
		time.Sleep(alonePause / 4)
	}
	return took, nil
}

func openTransaction(ctx context.Context, r *Result, server *pgtest.Server, w *pgWriter) error {
	other, err := server.Database(ctx)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, other)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "select pg_current_xact_id()"); err != nil {
		return err
	}
	pause := 20 * time.Millisecond
	took, err := w.run(ctx, 1, int(openFor/pause), pause)
	if err != nil {
		return err
	}
	r.add("beside an open transaction, the longest", quantile(took, 1))
	return tx.Rollback(ctx)
}

// catchUp reads a million change rows from the beginning.
func catchUp(ctx context.Context, r *Result, url string, s *postgres.Store) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for range 10 { // in transactions, as they are written
		if _, err := conn.Exec(ctx, "insert into mesh_changes (version, op, path, node_type, origin) select i, 'U', 'w/catch-up/' || i, 'Task', 'bench' from generate_series(1, $1::int) i", catchUpRows/10); err != nil {
			return err
		}
	}
	c, err := s.Changes(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	began, rows := time.Now(), 0
	var at store.Position
	for {
		page, err := c.Read(ctx, at, catchUpPage)
		if err != nil {
			return err
		}
		rows += len(page.Rows)
		for _, row := range page.Rows {
			if row.XID > at.XID || row.XID == at.XID && row.Pos > at.Pos {
				at.XID, at.Pos = row.XID, row.Pos
			}
		}
		if !page.Cut {
			break
		}
	}
	r.add("rows a second, 1,000,000 behind", float64(rows)/time.Since(began).Seconds())
	return nil
}

func manyPartitions(ctx context.Context, r *Result, s *postgres.Store) error {
	for i := range partitions {
		began := time.Now()
		if err := s.EnsurePartition(ctx, fmt.Sprint("p", i), ""); err != nil {
			return err
		}
		if i >= partitions-1000 {
			r.add("create a partition, p50", ms(time.Since(began)))
		}
	}
	if _, err := s.Commit(ctx, []store.Write{{Op: store.OpCreate, Node: pgNode("p77/x", 1)}}); err != nil {
		return err
	}
	for range 1000 {
		began := time.Now()
		if _, err := s.Read(ctx, "p77/x"); err != nil {
			return err
		}
		r.add("point read among 10,000 partitions, p50", ms(time.Since(began)))
	}
	return nil
}
