package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
)

// BenchmarkDurableWrites measures acknowledged updates of single nodes by many writers through the committer.
func BenchmarkDurableWrites(b *testing.B) {
	own, err := pgtest.Start("shared_buffers=1GB")
	if err != nil {
		b.Fatal(err)
	}
	defer own.Close()
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			url, err := own.Database(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			s := open(b, postgres.Options{URL: url})
			space(b, s, "acme")
			c := store.NewCommitter(s, store.CommitterOptions{Lanes: postgres.Lanes})
			defer c.Close()
			content := node.RawContent(`{"text":"` + strings.Repeat("x", 600) + `"}`)
			for i := range writers {
				must(b, s, create(fmt.Sprint("acme/n", i), 1))
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			var work sync.WaitGroup
			for i := range writers {
				work.Go(func() {
					for v := int64(2); left.Add(-1) >= 0; v++ {
						w := update(fmt.Sprint("acme/n", i), v)
						w.Node.Content = content
						if _, err := c.Submit(context.Background(), w); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			work.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
			st := c.Stats()
			b.ReportMetric(float64(st.Rows)/float64(st.Batches), "rows/batch")
		})
	}
}

// BenchmarkCreates measures acknowledged creates of single nodes below one node by many writers through the
// committer, with that node as their ground and without.
func BenchmarkCreates(b *testing.B) {
	own, err := pgtest.Start("shared_buffers=1GB")
	if err != nil {
		b.Fatal(err)
	}
	defer own.Close()
	for _, writers := range []int{1, 8, 64} {
		for name, ground := range map[string]store.Ground{"alone": {}, "on ground": store.GroundOf(sample("acme/x", 1))} {
			b.Run(fmt.Sprint(writers, "/", name), func(b *testing.B) { benchmarkCreates(b, own, writers, ground) })
		}
	}
}

func benchmarkCreates(b *testing.B, own *pgtest.Server, writers int, ground store.Ground) {
	url, err := own.Database(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	s := open(b, postgres.Options{URL: url})
	space(b, s, "acme")
	must(b, s, create("acme", 1), create("acme/x", 1))
	c := store.NewCommitter(s, store.CommitterOptions{Lanes: postgres.Lanes})
	defer c.Close()
	content := node.RawContent(`{"text":"` + strings.Repeat("x", 600) + `"}`)
	var made atomic.Int64
	b.ResetTimer()
	var work sync.WaitGroup
	for range writers {
		work.Go(func() {
			for n := made.Add(1); n <= int64(b.N); n = made.Add(1) {
				w := create(fmt.Sprint("acme/x/n", n), 1)
				w.Node.Content, w.Ground = content, ground
				if _, err := c.Submit(context.Background(), w); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
	st := c.Stats()
	b.ReportMetric(float64(st.Rows)/float64(st.Batches), "rows/batch")
}
