package postgres_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
)

var soakFor = flag.Duration("soak-for", 10*time.Minute, "how long the feed's soak writes")

// issue 4: memory flat at 2,000 writes a second with five listeners, one of them stalled
func TestTheFeedsMemoryStaysFlatBesideAStalledSubscriber(t *testing.T) {
	if os.Getenv("HUBMESH_SOAK") == "" {
		t.Skip("runs for minutes: set HUBMESH_SOAK=1, and -soak-for")
	}
	own, err := pgtest.Start("shared_buffers=256MB")
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	url := fresh(t, own)
	var all []*process
	for i := range 5 {
		all = append(all, start(t, fmt.Sprint("p", i), url))
	}
	stalled := make(chan struct{})
	all[4].relay.Invalidations("stalled", func(feed.Invalidation) { <-stalled })
	defer close(stalled)
	space(t, all[0].store, "acme")
	const writers, nodes, rate = 40, 2000, 2000
	c := store.NewCommitter(all[0].store, store.CommitterOptions{Lanes: postgres.Lanes})
	defer c.Close()
	stop, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	var mu sync.Mutex
	written := 0
	for i := range writers {
		work.Go(func() {
			versions := make([]int64, nodes/writers)
			tick := time.NewTicker(time.Second * writers / rate)
			defer tick.Stop()
			for k := 0; stop.Err() == nil; k = (k + 1) % len(versions) {
				path := fmt.Sprintf("acme/n%d-%d", i, k)
				versions[k]++
				w := update(path, versions[k])
				if versions[k] == 1 {
					w = create(path, 1)
				}
				if _, err := c.Submit(context.Background(), w); err != nil {
					t.Errorf("%s: %v", path, err)
					return
				}
				mu.Lock()
				written++
				mu.Unlock()
				<-tick.C
			}
		})
	}
	// What a consumer or a test keeps of the past is not the feed's.
	forget := func() {
		for _, p := range all {
			p.mu.Lock()
			clear(p.seen)
			clear(p.logical)
			p.mu.Unlock()
		}
	}
	var heaps []float64
	const looks = 20
	for range looks {
		<-time.After(*soakFor / looks)
		if _, err := all[0].store.Prune(t.Context()); err != nil {
			t.Error(err)
		}
		forget()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heaps = append(heaps, float64(m.HeapAlloc)/(1<<20))
	}
	cancel()
	work.Wait()
	mu.Lock()
	t.Logf("%d writes, %.0f a second; heap in MiB: %.1f", written, float64(written)/soakFor.Seconds(), heaps)
	mu.Unlock()
	early, late := 0.0, math.Inf(1)
	for i, h := range heaps {
		if i >= looks/4 && i < looks/2 {
			early = max(early, h)
		}
		if i >= 3*looks/4 {
			late = min(late, h)
		}
	}
	if late > early*1.1+1 {
		t.Errorf("the heap grew from at most %.1f MiB to at least %.1f", early, late)
	}
	for i, p := range all {
		if i == 4 {
			continue
		}
		if err := p.feed.Sync(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if s := all[4].relay.Stats(); s.Slow == 0 && s.Queues["stalled"] == 0 {
		t.Errorf("the stalled subscriber was not: %+v", s)
	}
}
