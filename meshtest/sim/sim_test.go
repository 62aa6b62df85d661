package sim

import (
	"flag"
	"os"
	"slices"
	"sort"
	"sync"
	"testing"
	"time"
)

var (
	seeds = flag.Int("seeds", 100, "seeds to run")
	from  = flag.Uint64("from", 1, "first seed")
	trace = flag.String("follow", "", "address of which everything is written, for one seed")
	first = flag.Bool("first", false, "stop at the first seed that fails, and do not shrink it")
)

// protocol §9
func TestTheProtocolHolds(t *testing.T) {
	var mu sync.Mutex
	next, end := *from, *from+uint64(*seeds)
	counts, failed := map[string]int{}, map[string]int{}
	var repaired []time.Duration
	var failures []Result
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				mu.Lock()
				seed := next
				next++
				stop := seed >= end || *first && len(failures) > 0
				mu.Unlock()
				if stop {
					return
				}
				r := Run(Options{Seed: seed, Trace: *trace, TraceTo: os.Stdout})
				mu.Lock()
				for k, n := range r.Counts {
					counts[k] += n
				}
				counts["requests"] += r.Requests
				repaired = append(repaired, r.Repaired)
				for k := range r.Violations {
					failed[k]++
				}
				if r.Failed() {
					failures = append(failures, r)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	names := make([]string, 0, len(counts))
	for k := range counts {
		names = append(names, k)
	}
	sort.Strings(names)
	for _, k := range names {
		t.Log(k, counts[k])
	}
	slices.Sort(repaired)
	t.Log("repaired after: p50", repaired[len(repaired)/2], "p95", repaired[len(repaired)*95/100], "max", repaired[len(repaired)-1])
	for k, n := range failed {
		t.Logf("%d seeds: %s", n, k)
	}
	for i, r := range failures {
		if i == 10 {
			break
		}
		t.Error(r)
	}
}
