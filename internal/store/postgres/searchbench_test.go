package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
)

// BenchmarkDurableWritesBesideTheTextIndex measures acknowledged updates, each with another text of 0.6 KB, by 64 writers,
// with the text index being filled and without, in turn: its iterations are pairs of 3 s. Give it -benchtime 5x.
func BenchmarkDurableWritesBesideTheTextIndex(b *testing.B) {
	own, err := pgtest.Start("shared_buffers=1GB")
	if err != nil {
		b.Fatal(err)
	}
	defer own.Close()
	for _, nodes := range []int{64, 10_000} {
		b.Run(fmt.Sprint(nodes, " nodes"), func(b *testing.B) {
			url, err := own.Database(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			s := open(b, postgres.Options{URL: url})
			conn := stranger(b, url)
			bulk(b, conn, nodes)
			x := fill(b, s)
			settled(b, s)
			x.close()
			w := &rewriters{b: b, s: s, versions: make([]int64, nodes)}
			for i := range w.versions {
				w.versions[i] = 1
			}
			var ratios, plain, beside []float64
			measurePlain := func() {
				relay := feed.NewRelay(s.ReadMany, quiet())
				f := feed.Open(feed.SourceOf(s), relay, quiet())
				stop := s.Subscribe(func(store.Change) { f.Committed() })
				plain = append(plain, w.run(3*time.Second))
				stop()
				f.Close()
				relay.Close()
				exec(b, conn, "delete from mesh_changes") // what was written meanwhile is compared before the next run
				exec(b, conn, "delete from mesh_consumers")
			}
			measureBeside := func() {
				x := fill(b, s)
				settled(b, s)
				beside = append(beside, w.run(3*time.Second))
				state, err := s.Search(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(state.Behind.Seconds(), "s-behind")
				settled(b, s)
				x.close()
			}
			for i := range b.N {
				turns := []func(){measurePlain, measureBeside}
				if i%2 == 1 {
					slices.Reverse(turns)
				}
				for _, turn := range turns {
					turn()
				}
				ratios = append(ratios, beside[len(beside)-1]/plain[len(plain)-1])
			}
			b.ReportMetric(median(plain), "plain/s")
			b.ReportMetric(median(beside), "beside/s")
			b.ReportMetric(median(ratios), "ratio")
			b.Logf("ratios %.2f", ratios)
		})
	}
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// rewriters are 64 writers that have some nodes among them.
type rewriters struct {
	b        *testing.B
	s        *postgres.Store
	versions []int64
}

// run returns how many updates a second were acknowledged.
func (w *rewriters) run(d time.Duration) float64 {
	const writers = 64
	c := store.NewCommitter(w.s, store.CommitterOptions{Lanes: postgres.Lanes})
	defer c.Close()
	end := time.Now().Add(d)
	var work sync.WaitGroup
	counts := make([]int, writers)
	for i := range writers {
		work.Go(func() {
			words := rand.New(rand.NewPCG(uint64(i), 9))
			for k := i; time.Now().Before(end); k += writers {
				if k >= len(w.versions) {
					k = i
				}
				w.versions[k]++
				one := update(fmt.Sprint("acme/n", k+1), w.versions[k])
				var text strings.Builder
				for text.Len() < 600 {
					fmt.Fprint(&text, "word", words.IntN(5000), " ")
				}
				one.Node.Content = node.RawContent(`{"text":"` + text.String() + `"}`)
				if _, err := c.Submit(context.Background(), one); err != nil {
					w.b.Error(err)
					return
				}
				counts[i]++
			}
		})
	}
	work.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	return float64(total) / d.Seconds()
}
