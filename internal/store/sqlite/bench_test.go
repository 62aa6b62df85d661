package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/sqlite"
)

func importRow(i int) store.Write {
	path := node.Path(fmt.Sprintf("acme/folder %d/node %d", i%50, i))
	content := node.RawContent(`{"$type":"Markdown","markdown":"` + strings.Repeat("some text of a document ", 60) + `"}`)
	now := time.Now()
	return store.Write{Op: store.OpCreate, Node: node.Node{
		Path: path, MainNode: path, Name: "A name of a node", NodeType: "Markdown", Description: "What it is about",
		Content: content, Version: 1, State: node.StateActive, CreatedAt: now, CreatedBy: "import", ModifiedAt: now, ModifiedBy: "import",
	}}
}

// Goal (storage.md §9): an import in chunks of 500, with history, takes ≥ 5,000 rows/s.
func BenchmarkImport(b *testing.B) {
	for _, chunk := range []int{50, 500} {
		b.Run(fmt.Sprint("chunk", chunk), func(b *testing.B) {
			s := open(b, sqlite.Options{})
			provision(b, s, "acme")
			c := store.NewCommitter(s, store.CommitterOptions{})
			defer c.Close()
			rows := 0
			for b.Loop() {
				batch := make([]store.Write, chunk)
				for i := range batch {
					batch[i] = importRow(rows)
					rows++
				}
				if _, err := c.SubmitBulk(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// Goal (storage.md §9): 64 writers on 64 nodes reach ≥ 0.7 × bare transactions of the same rows and
// batch size. Both run in turn; the ratio is of the medians.
func BenchmarkCommit64Writers(b *testing.B) {
	const writers, round = 64, 250 * time.Millisecond
	s := open(b, sqlite.Options{})
	provision(b, s, "acme")
	bare := newBare(b, writers)
	var ours, theirs, batches []float64
	for b.Loop() {
		rate, batch := commitFor(b, s, writers, round)
		ours, batches = append(ours, rate), append(batches, batch)
		theirs = append(theirs, bare.run(b, max(1, int(batch+0.5)), round))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	slices.Sort(batches)
	b.ReportMetric(ours[len(ours)/2], "rows/s")
	b.ReportMetric(theirs[len(theirs)/2], "bare-rows/s")
	b.ReportMetric(batches[len(batches)/2], "rows/batch")
	b.ReportMetric(ours[len(ours)/2]/theirs[len(theirs)/2], "ratio")
}

// commitFor lets writers update a node each through a committer.
func commitFor(b *testing.B, s *sqlite.Store, writers int, round time.Duration) (rate, batch float64) {
	c := store.NewCommitter(s, store.CommitterOptions{})
	var rows atomic.Int64
	start := time.Now()
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			path := fmt.Sprint("acme/n", i)
			n, err := s.Read(context.Background(), node.Path(path))
			at := n.Version
			for time.Since(start) < round {
				at++
				w := update(path, at)
				if err != nil {
					w.Op, err = store.OpCreate, nil
				}
				if _, err := c.Submit(context.Background(), w); err != nil {
					b.Error(err)
					return
				}
				rows.Add(1)
			}
		})
	}
	all.Wait()
	took := time.Since(start)
	stats := c.Stats()
	c.Close()
	return float64(rows.Load()) / took.Seconds(), float64(stats.Rows) / float64(max(1, stats.Batches))
}

// bare writes the same rows with nothing around SQLite: the same schema, with its history, and the
// same statements in transactions of a fixed size.
type bare struct {
	conn            *sql.Conn
	begin, up, done *sql.Stmt
	version         int64
	next, writers   int
}

func newBare(b *testing.B, writers int) *bare {
	file := filepath.Join(b.TempDir(), "bare.db")
	s, err := sqlite.Open(b.Context(), sqlite.Options{File: file, Log: quiet()})
	if err != nil {
		b.Fatal(err)
	}
	provision(b, s, "acme")
	for i := range writers {
		commit(b, s, create(fmt.Sprint("acme/n", i), 1))
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=wal_autocheckpoint(4000)&_pragma=cache_size(-16384)")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	prepare := func(text string) *sql.Stmt {
		statement, err := conn.PrepareContext(b.Context(), text)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = statement.Close() })
		return statement
	}
	return &bare{
		conn: conn, begin: prepare("begin immediate"), done: prepare("commit"), version: 1, writers: writers,
		up: prepare("update nodes set version = ?, kind = 2, state = ?, sync = ?, node_type = ?, name = ?, description = ?, category = ?, icon = ?, ord = ?, " +
			"modified_at = ?, modified_by = ?, desired_id = ?, exclude = ?, prerendered = ?, content = ?, main = ? where key = ? and version = ?"),
	}
}

func (r *bare) run(b *testing.B, batch int, round time.Duration) float64 {
	ctx := context.Background()
	exec := func(s *sql.Stmt, args ...any) {
		if _, err := s.ExecContext(ctx, args...); err != nil {
			b.Fatal(err)
		}
	}
	rows := 0
	start := time.Now()
	for time.Since(start) < round {
		exec(r.begin)
		for range batch {
			if r.next == 0 {
				r.version++
			}
			n := update(fmt.Sprint("acme/n", r.next), r.version).Node
			exec(r.up, n.Version, int64(n.State), int64(0), n.NodeType, n.Name, "", "", "", nil, nil, "", "", nil, "", n.Content.Text(), nil,
				strings.ReplaceAll(string(n.Path), "/", "\x01"), r.version-1)
			r.next = (r.next + 1) % r.writers
			rows++
		}
		exec(r.done)
	}
	return float64(rows) / time.Since(start).Seconds()
}

func BenchmarkCommitOneWriter(b *testing.B) {
	s := open(b, sqlite.Options{})
	provision(b, s, "acme")
	commit(b, s, create("acme/x", 1))
	c := store.NewCommitter(s, store.CommitterOptions{})
	defer c.Close()
	for version := int64(2); b.Loop(); version++ {
		if _, err := c.Submit(b.Context(), update("acme/x", version)); err != nil {
			b.Fatal(err)
		}
	}
}

// populated is a store with 20,000 nodes of 1.5 KB.
func populated(b *testing.B) *sqlite.Store {
	s := open(b, sqlite.Options{})
	provision(b, s, "acme")
	for at := 0; at < 20_000; at += 500 {
		var batch []store.Write
		for i := range 500 {
			batch = append(batch, importRow(at+i))
		}
		commit(b, s, batch...)
	}
	return s
}

func BenchmarkReads(b *testing.B) {
	s := populated(b)
	b.Run("node", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := s.Read(b.Context(), importRow(i%20_000).Node.Path); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("node, parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				if _, err := s.Read(context.Background(), node.Path(fmt.Sprintf("acme/folder %d/node %d", i%50, i%50))); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("prefix", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Prefix(b.Context(), "acme/folder 7/node 7/content/file.png"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("400 children", func(b *testing.B) {
		for b.Loop() {
			if entries, err := s.Children(b.Context(), "acme/folder 7", store.Page{NoContent: true}); err != nil || len(entries) != 400 {
				b.Fatal(len(entries), err)
			}
		}
	})
	b.Run("50 levels without a node", func(b *testing.B) {
		for b.Loop() {
			if entries, err := s.Children(b.Context(), "acme", store.Page{NoContent: true}); err != nil || len(entries) != 50 {
				b.Fatal(len(entries), err)
			}
		}
	})
	b.Run("20,000 descendants", func(b *testing.B) {
		for b.Loop() {
			for _, err := range s.Descendants(b.Context(), "acme") {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	for _, text := range []string{
		"path:acme/folder* nodeType:Markdown limit:20", "nodeType:Markdown sort:lastModified-desc limit:20",
		"nowhere", "namespace:\"acme/folder 7\" limit:50", "name:\"A name\"*",
	} {
		b.Run("query "+text, func(b *testing.B) {
			q, err := query.Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := s.Select(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Goal (storage.md §9): reads beside an import have p99 ≤ 10 ms.
func BenchmarkReadBesideImport(b *testing.B) {
	s := populated(b)
	c := store.NewCommitter(s, store.CommitterOptions{})
	defer c.Close()
	stop := make(chan struct{})
	var imports sync.WaitGroup
	imported := 0
	imports.Go(func() {
		for {
			batch := make([]store.Write, 500)
			for i := range batch {
				batch[i] = importRow(20_000 + imported)
				imported++
			}
			if _, err := c.SubmitBulk(context.Background(), batch); err != nil {
				b.Error(err)
				return
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	var took []time.Duration
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	start := time.Now()
	for i := 0; b.Loop(); i++ {
		<-pace.C
		before := time.Now()
		if _, err := s.Read(b.Context(), importRow(i*7919%20_000).Node.Path); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(before))
	}
	close(stop)
	imports.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(imported)/time.Since(start).Seconds(), "import-rows/s")
}

func BenchmarkOpenEmpty(b *testing.B) {
	dir := b.TempDir()
	for i := 0; b.Loop(); i++ {
		s, err := sqlite.Open(b.Context(), sqlite.Options{File: filepath.Join(dir, fmt.Sprint(i, ".db")), Log: quiet()})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
