package sim

import (
	"cmp"
	"flag"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

var (
	seeds    = flag.Int("seeds", 300, "seeds to run")
	from     = flag.Uint64("from", 1, "first seed")
	schedule = flag.String("schedule", "", "disturbances instead of those that the seed draws, as a failing run prints them")
	follow   = flag.String("follow", "", "address of which everything is written, for one seed")
	first    = flag.Bool("first", false, "stop at the first seed that fails, and do not shrink it")
)

// shown is how many failing seeds are shrunk and told in full.
const shown = 3

// protocol §9, decision 2, faults 1, 2, 3, 6, 9, 10, 14
func TestTheProtocolHolds(t *testing.T) {
	var fixed []Disturbance
	if *schedule != "" {
		var err error
		if fixed, err = ParseSchedule(*schedule); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	next, end := *from, *from+uint64(*seeds)
	counts, failed := map[string]int{}, map[string]int{}
	var repaired []time.Duration
	var failures []Result
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
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
				r := Run(Options{Seed: seed, Schedule: fixed, Trace: *follow, TraceTo: os.Stdout})
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
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%8d %s", counts[k], k)
	}
	slices.Sort(repaired)
	t.Logf("repaired after the last disturbance: p50 %v, p95 %v, max %v", repaired[len(repaired)/2], repaired[len(repaired)*95/100], repaired[len(repaired)-1])
	for _, k := range slices.Sorted(maps.Keys(failed)) {
		t.Errorf("%d of %d seeds: %s", failed[k], *seeds, k)
	}
	slices.SortFunc(failures, func(a, b Result) int { return cmp.Compare(a.Seed, b.Seed) })
	for _, r := range failures[:min(len(failures), shown)] {
		if *first {
			t.Error(r)
		} else {
			t.Error(Shrink(r).Report())
		}
	}
}

// decision "How correctness is shown": a seed is a run
func TestASeedIsTheSameRunEachTime(t *testing.T) {
	a, b := Run(Options{Seed: 4711}), Run(Options{Seed: 4711})
	if !maps.Equal(a.Counts, b.Counts) || a.Repaired != b.Repaired || a.Requests != b.Requests {
		t.Errorf("%v\n%v", a.Counts, b.Counts)
	}
}

// decision "How correctness is shown": the schedule is replayed by one command
func TestAScheduleIsReadAsItIsWritten(t *testing.T) {
	for seed := range uint64(50) {
		s := Schedule(seed)
		got, err := ParseSchedule(Format(s))
		if err != nil || !slices.Equal(got, s) {
			t.Fatalf("seed %d: %v\n%v\n%v", seed, err, s, got)
		}
	}
	for _, text := range []string{"x", "1:crash:1:1:1", "1:nothing:1:1:1:true", "1:crash:x:1:1:true"} {
		if _, err := ParseSchedule(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// protocol §11: more than 8 silos
func TestTheProtocolHoldsWithSixteenAndWithSixtyFourSilos(t *testing.T) {
	runs := map[int]uint64{16: 5}
	if os.Getenv("HUBMESH_SOAK") != "" {
		runs = map[int]uint64{16: 50, 64: 5} // one of 64 takes about 15 s
	}
	for silos, runs := range runs {
		for seed := uint64(1); seed <= runs; seed++ {
			begin := time.Now()
			r := Run(Options{Seed: seed, Silos: silos})
			t.Logf("%d silos, seed %d: %d requests, repaired after %v, in %v", silos, seed, r.Requests, r.Repaired, time.Since(begin))
			if r.Failed() {
				t.Errorf("%d silos: %v", silos, r)
			}
		}
	}
}
