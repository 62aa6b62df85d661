package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh"
	_ "modernc.org/sqlite"
)

// payload is a content of about 600 bytes that differs each time.
func payload(i int) string {
	return fmt.Sprintf(`{"content":{"n":%d,"text":"%0560d"}}`, i, i)
}

func writesScenario(ctx context.Context, rounds int) (*Result, error) {
	r := newResult("writes", "durable writes a second", rounds)
	tmp, err := os.MkdirTemp("", "hubmesh-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	bin, err := binary(ctx, tmp)
	if err != nil {
		return nil, err
	}
	if err := httpWrites(ctx, r, bin, tmp, rounds); err != nil {
		return nil, err
	}
	return r, bareWrites(ctx, r, tmp, rounds)
}

// httpWrites patches 16 nodes from 16 clients over HTTP, with history.
func httpWrites(ctx context.Context, r *Result, bin, tmp string, rounds int) error {
	dir, err := os.MkdirTemp(tmp, "http-")
	if err != nil {
		return err
	}
	s, err := serve(bin, dir)
	if err != nil {
		return err
	}
	defer s.stop()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	if err := s.do(client, "POST", "/api/nodes/w", `{"nodeType":"Space","content":{}}`); err != nil {
		return err
	}
	const clients = 16
	for c := range clients {
		if err := s.do(client, "POST", fmt.Sprintf("/api/nodes/w/n%d", c), payload(0)); err != nil {
			return err
		}
	}
	for round := range rounds {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var n atomic.Int64
		var failed atomic.Value
		var wg sync.WaitGroup
		began := time.Now()
		end := began.Add(time.Second)
		for c := range clients {
			wg.Go(func() {
				for i := 0; time.Now().Before(end); i++ {
					if err := s.do(client, "PATCH", fmt.Sprintf("/api/nodes/w/n%d", c), payload(round*1_000_000+i+1)); err != nil {
						failed.Store(err)
						return
					}
					n.Add(1)
				}
			})
		}
		wg.Wait()
		if err, _ := failed.Load().(error); err != nil {
			return err
		}
		r.add("HTTP, 16 clients", float64(n.Load())/time.Since(began).Seconds())
	}
	r.metric("http_16_clients_per_s", r.median("HTTP, 16 clients"))
	r.goal("http_16_clients_per_s", ">=", 2500)
	r.note("client and server share the processors")
	r.note("PocketBase 0.40 needs a newer toolchain than this project's and was not run")
	return nil
}

// bareWrites compares 64 writers on 64 nodes with bare SQLite transactions of the same rows and batch
// size.
func bareWrites(ctx context.Context, r *Result, tmp string, rounds int) error {
	m, err := hubmesh.New(hubmesh.Options{Dir: filepath.Join(tmp, "mesh")})
	if err != nil {
		return err
	}
	defer m.Close(context.Background())
	who := hubmesh.AsSystem(context.WithoutCancel(ctx))
	if _, err := m.Create(who, "w", hubmesh.Space, map[string]any{}); err != nil {
		return err
	}
	const writers = 64
	for w := range writers {
		if _, err := m.Create(who, fmt.Sprintf("w/n%d", w), hubmesh.Markdown, map[string]any{"n": 0}); err != nil {
			return err
		}
	}
	bare, err := openBare(filepath.Join(tmp, "bare.db"), writers)
	if err != nil {
		return err
	}
	defer bare.db.Close()
	version := int64(1)
	for round := range rounds {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		before := m.CommitStats()
		var n atomic.Int64
		var failed atomic.Value
		var wg sync.WaitGroup
		began := time.Now()
		end := began.Add(time.Second)
		for w := range writers {
			wg.Go(func() {
				for i := 0; time.Now().Before(end); i++ {
					if _, err := m.Patch(who, fmt.Sprintf("w/n%d", w), jsonText(payload(round*1_000_000+i+1)), hubmesh.Condition{}); err != nil {
						failed.Store(err)
						return
					}
					n.Add(1)
				}
			})
		}
		wg.Wait()
		if err, _ := failed.Load().(error); err != nil {
			return err
		}
		took := time.Since(began)
		after := m.CommitStats()
		batch := max(1, int(float64(after.Rows-before.Rows)/float64(max(1, after.Batches-before.Batches))+0.5))
		r.add("mesh, 64 writers on 64 nodes", float64(n.Load())/took.Seconds())
		r.add("rows a commit", float64(batch))
		rate, err := bare.run(time.Second, batch, &version)
		if err != nil {
			return err
		}
		r.add("bare SQLite, same rows and batch", rate)
	}
	r.ratio("mesh/bare, 64 writers", "mesh, 64 writers on 64 nodes", "bare SQLite, same rows and batch")
	r.goal("mesh/bare, 64 writers", ">=", 0.7)
	return nil
}

// jsonText is JSON text that marshals as it is.
type jsonText string

func (t jsonText) MarshalJSON() ([]byte, error) { return []byte(t), nil }

// bare is the limit: the rows of a write (the node and its history) in transactions of one connection,
// with the store's settings and nothing else.
type bare struct {
	db   *sql.DB
	rows int
}

func openBare(file string, rows int) (*bare, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=wal_autocheckpoint(4000)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	for _, stmt := range []string{
		`create table node (path text primary key, version integer not null, modified integer, by text, data text) without rowid`,
		`create table history (path text not null, version integer not null, at integer, by text, data text, unique (path, version))`,
	} {
		if _, err := db.Exec(stmt); err != nil {
			return nil, err
		}
	}
	for i := range rows {
		if _, err := db.Exec(`insert into node values (?, 1, 0, '', '{}')`, fmt.Sprintf("w/n%d", i)); err != nil {
			return nil, err
		}
	}
	return &bare{db, rows}, nil
}

func (b *bare) run(d time.Duration, batch int, version *int64) (float64, error) {
	update, err := b.db.Prepare(`update node set version = ?, modified = ?, by = ?, data = ? where path = ? and version < ?`)
	if err != nil {
		return 0, err
	}
	defer update.Close()
	insert, err := b.db.Prepare(`insert into history values (?, ?, ?, ?, ?)`)
	if err != nil {
		return 0, err
	}
	defer insert.Close()
	began, n := time.Now(), 0
	for i := 0; time.Since(began) < d; {
		tx, err := b.db.Begin()
		if err != nil {
			return 0, err
		}
		*version++
		for range batch {
			path, text := fmt.Sprintf("w/n%d", i%b.rows), payload(i)
			if i++; i%b.rows == 0 {
				*version++
			}
			if _, err := tx.Stmt(update).Exec(*version, i, "bench", text, path, *version); err != nil {
				return 0, err
			}
			if _, err := tx.Stmt(insert).Exec(path, *version, i, "bench", text); err != nil {
				return 0, err
			}
			n++
		}
		if err := tx.Commit(); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}
