package main

import (
	"context"
	"database/sql"
	"errors"
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
	tmp, bin, clean, err := workspace(ctx)
	if err != nil {
		return nil, err
	}
	defer clean()
	if err := httpWrites(ctx, r, bin, tmp, rounds); err != nil {
		return nil, err
	}
	return r, bareWrites(ctx, r, tmp, rounds)
}

// The peers of httpWrites.
const (
	pocketbaseAsIs    = "PocketBase creates, 16 clients"
	pocketbaseDurable = "PocketBase creates, synchronous=full, 16 clients"
)

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
	peers := map[string]*server{}
	if bin, err := buildPocketbase(ctx, tmp); err != nil {
		r.note("PocketBase was not run: %v", err)
	} else {
		for name, options := range map[string][]string{pocketbaseAsIs: nil, pocketbaseDurable: {"durable"}} {
			peer, err := runPocketbase(bin, filepath.Join(tmp, name), options...)
			if err != nil {
				return err
			}
			defer peer.stop()
			peers[name] = peer
		}
		r.note("PocketBase is %s, which keeps no history; as it comes it acknowledges before the disk has the commit (synchronous=normal)", pocketbaseVersion)
	}
	for round := range rounds {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		rate, err := s.hammer(clients, func(client, i int) (method, path, body string) {
			return "PATCH", fmt.Sprintf("/api/nodes/w/n%d", client), payload(round*1_000_000 + i + 1)
		})
		if err != nil {
			return err
		}
		r.add("HTTP, 16 clients", rate)
		for name, peer := range peers {
			rate, err := peer.hammer(clients, func(_, i int) (method, path, body string) {
				return "POST", "/api/collections/items/records", content(round*1_000_000 + i + 1)
			})
			if err != nil {
				return err
			}
			r.add(name, rate)
		}
	}
	r.metric("http_16_clients_per_s", r.median("HTTP, 16 clients"))
	r.goal("http_16_clients_per_s", ">=", 2500)
	if len(peers) > 0 {
		r.ratio("hubmesh/pocketbase", "HTTP, 16 clients", pocketbaseAsIs)
		r.goal("hubmesh/pocketbase", ">=", 4)
		r.ratio("hubmesh/pocketbase durable", "HTTP, 16 clients", pocketbaseDurable)
	}
	r.note("clients and servers share the processors")
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
	const writers = 64
	if err := writtenTo(who, m, writers); err != nil {
		return err
	}
	bare, err := openBare(ctx, filepath.Join(tmp, "bare"), writers)
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

// bare is the limit: the rows of a write (the node, and its history by the trigger) in transactions of
// one connection, with the store's schema and settings, and nothing around SQLite.
type bare struct {
	db   *sql.DB
	rows int
}

// openBare opens the file of a closed mesh with the nodes w/n0 …, at version 1.
func openBare(ctx context.Context, dir string, rows int) (*bare, error) {
	m, err := hubmesh.New(hubmesh.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	err = writtenTo(hubmesh.AsSystem(context.WithoutCancel(ctx)), m, rows)
	if err = errors.Join(err, m.Close(context.Background())); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "hubmesh.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=wal_autocheckpoint(4000)&_pragma=cache_size(-16384)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &bare{db, rows}, nil
}

// writtenTo makes the nodes that the writers write to.
func writtenTo(ctx context.Context, m *hubmesh.Mesh, n int) error {
	if _, err := m.Create(ctx, "w", hubmesh.Space, map[string]any{}); err != nil {
		return err
	}
	for i := range n {
		if _, err := m.Create(ctx, fmt.Sprintf("w/n%d", i), hubmesh.Markdown, map[string]any{"n": 0}); err != nil {
			return err
		}
	}
	return nil
}

// content is the member of a payload.
func content(i int) string {
	text := payload(i)
	return text[len(`{"content":`) : len(text)-1]
}

func (b *bare) run(d time.Duration, batch int, version *int64) (float64, error) {
	update, err := b.db.Prepare("update nodes set version = ?, kind = 2, state = 1, sync = 0, node_type = 'Markdown', name = ?, description = '', category = '', icon = '', " +
		"ord = null, modified_at = ?, modified_by = 'bench', desired_id = '', exclude = null, prerendered = '', content = ?, main = null where key = ? and version < ?")
	if err != nil {
		return 0, err
	}
	defer update.Close()
	began, n := time.Now(), 0
	for next := 0; time.Since(began) < d; {
		tx, err := b.db.Begin()
		if err != nil {
			return 0, err
		}
		stmt := tx.Stmt(update)
		for range batch {
			if next%b.rows == 0 {
				*version++
			}
			name := fmt.Sprintf("n%d", next%b.rows)
			res, err := stmt.Exec(*version, name, time.Now().UnixMicro(), content(next), "w\x01"+name, *version)
			if err != nil {
				return 0, err
			}
			if changed, err := res.RowsAffected(); err != nil || changed != 1 {
				return 0, fmt.Errorf("the bare update of %s changed %d rows: %w", name, changed, err)
			}
			next++
			n++
		}
		if err := tx.Commit(); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}
