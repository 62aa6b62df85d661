package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

const (
	claimHubs    = 100_000
	claimSample  = 2_000
	staticFor    = 5 * time.Second
	unrelatedFor = time.Second
	frozenFor    = 3 * time.Second
	frozenHubs   = 1_000 // of the silo that runs; asked beside a frozen one
	frozenPause  = 5 * time.Millisecond
	locateBound  = 600.0 // ms: directory.Defaults().LocateBound
	frozenMargin = 200.0 // ms: a shared machine's turns
)

// claims observes that no address has two claims in flight: a claim that repeats a round never leaves
// while that round is under way, and no older round's answer counts (as the simulation judges it).
type claims struct {
	mu    sync.Mutex
	open  []uint32 // by registration: the round under way, 0 is none
	twice atomic.Int64
}

// at is the round of a registration. The caller holds the lock.
func (c *claims) at(reg uint64) *uint32 {
	for uint64(len(c.open)) <= reg {
		c.open = append(c.open, 0)
	}
	return &c.open[reg]
}

func (c *claims) Claiming(_ string, reg uint64, round uint32, _ membership.Member, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.at(reg)
	if *now != 0 && again {
		c.twice.Add(1)
	}
	*now = round
}

func (c *claims) Settled(_ string, reg uint64, round uint32, _ bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.at(reg)
	if *now != round {
		c.twice.Add(1)
	}
	*now = 0
}

func (*claims) Detaching(string, uint64)                                            {}
func (*claims) Landed(string, uint64, membership.Member, time.Duration, bool)       {}
func (*claims) NotLanding(addr string, reg uint64, _ membership.Member, why string) {}
func (*claims) Lost(string, uint64, membership.Member)                              {}

func clusterClaimsScenario(ctx context.Context, rounds int) (*Result, error) {
	r := newResult("cluster-claims", "ms", rounds)
	for round := range rounds {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := claimRound(r, round == 0); err != nil {
			return nil, err
		}
	}
	for _, g := range []struct {
		name string
		max  float64
	}{
		{"all reachable after the view", 500}, {"addresses with two claims in flight", 0},
		{"bytes of a claimed hub on its owner", 1536}, {"bytes of an entry in the directory", 300}, {"directory requests of a static cluster", 0},
		{"longest wait beside a frozen silo, served address", locateBound + frozenMargin},
		{"longest wait beside a frozen silo, unserved address", locateBound + frozenMargin},
	} {
		r.metric(g.name, r.median(g.name))
		r.goal(g.name, "<=", g.max)
	}
	r.ratio("p99 of unrelated asks, during/before", "p99 µs of unrelated asks, during", "p99 µs of unrelated asks, before")
	r.goal("p99 of unrelated asks, during/before", "<=", 3)
	r.note("three processes; 100,000 process hubs on the first, whose view is given to the first two and then, with the third in it, to all three at the same time; 2,000 random addresses are asked from each until they answer, 32 at once")
	r.note("unrelated asks are of four callers on the second silo to one hub on the first, for a second; the window of the join begins at the view")
	r.note("the third silo is then stopped with SIGSTOP while the second asks addresses that it has not asked before: its bound is that of a locate, 600 ms, and 200 ms for a shared machine")
	return r, nil
}

// trio is three silos, each a process.
type trio [3]*child

func startTrio() (t trio, err error) {
	for i := range t {
		if t[i], err = spawn("silo", fmt.Sprintf("s%d", i), fmt.Sprint(i+1), plain); err != nil {
			t.end()
			return t, err
		}
	}
	return t, nil
}

// end ends them, one that is frozen too.
func (t trio) end() {
	for _, c := range t {
		if c != nil {
			_ = c.cmd.Process.Signal(syscall.SIGCONT)
			_ = c.stop()
		}
	}
}

// numbers has a silo carry out a command whose answer is numbers.
func numbers(c *child, format string, args ...any) ([]float64, error) {
	text, err := c.do(format, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
	}
	var list []float64
	for _, w := range strings.Fields(text) {
		f, err := strconv.ParseFloat(w, 64)
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	if len(list) == 0 {
		return nil, errors.New("an empty answer")
	}
	return list, nil
}

func number(c *child, format string, args ...any) (float64, error) {
	list, err := numbers(c, format, args...)
	if err != nil {
		return 0, err
	}
	return list[0], nil
}

func claimRound(r *Result, first bool) error {
	t, err := startTrio()
	if err != nil {
		return err
	}
	defer t.end()
	if err := fixTo(1, nil, t[:2], nil, t[:2]); err != nil {
		return err
	}
	if err := claimAll(r, t); err != nil {
		return err
	}
	if first {
		if err := staticTraffic(r, t); err != nil {
			return err
		}
	}
	if err := join(r, t); err != nil {
		return err
	}
	return freeze(r, t)
}

// claimAll starts the hubs and waits until they are claimed, measuring memory.
func claimAll(r *Result, t trio) error {
	if _, err := t[0].do("start %s", echoPath); err != nil {
		return err
	}
	var before, after, entries [2]float64
	var err error
	for i := range before {
		if before[i], err = number(t[i], "heap"); err != nil {
			return err
		}
	}
	began := time.Now()
	if _, err := t[0].do("many %d", claimHubs); err != nil {
		return err
	}
	if err := landed(t[0]); err != nil {
		return err
	}
	r.add("100,000 hubs started and claimed", ms(time.Since(began)))
	time.Sleep(2 * time.Second) // what the requests held has gone
	for i := range after {
		if after[i], err = number(t[i], "heap"); err != nil {
			return err
		}
		if entries[i], err = number(t[i], "entries"); err != nil {
			return err
		}
	}
	if entries[0]+entries[1] != claimHubs {
		return fmt.Errorf("the directory holds %v and %v entries", entries[0], entries[1])
	}
	entry := (after[1] - before[1]) / entries[1]
	r.add("bytes of an entry in the directory", entry)
	r.add("bytes of a claimed hub on its owner", (after[0]-before[0]-entry*entries[0])/claimHubs)
	return nil
}

// landed waits until every claim of a silo is acknowledged by the present owner of its slot.
func landed(c *child) error {
	const patience, pause = 30 * time.Second, 10 * time.Millisecond
	for end := time.Now().Add(patience); ; time.Sleep(pause) {
		n, err := number(c, "landed")
		if err != nil {
			return err
		}
		if n > claimHubs { // the echo and the root besides
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%v of %d claims have landed after %v", n, claimHubs, patience)
		}
	}
}

// staticTraffic counts requests of the directory while nothing changes.
func staticTraffic(r *Result, t trio) error {
	sent := 0.0
	for i, sign := range []float64{-1, 1} {
		if i > 0 {
			time.Sleep(staticFor)
		}
		for _, c := range t[:2] {
			n, err := number(c, "directory")
			if err != nil {
				return err
			}
			sent += sign * n
		}
	}
	r.add("directory requests of a static cluster", sent)
	return nil
}

// join gives all three a view with the third in it, and measures what follows.
func join(r *Result, t trio) error {
	for _, when := range []string{"before", "during"} {
		if _, err := t[1].do("load %s 4", echoPath); err != nil {
			return err
		}
		began := time.Now()
		if when == "during" {
			if err := joined(r, t, began); err != nil {
				return err
			}
		}
		time.Sleep(time.Until(began.Add(unrelatedFor)))
		p, err := numbers(t[1], "unload")
		if err != nil {
			return err
		}
		r.add("p50 µs of unrelated asks, "+when, p[0])
		r.add("p99 µs of unrelated asks, "+when, p[1])
	}
	twice, err := number(t[0], "twice")
	r.add("addresses with two claims in flight", twice)
	return err
}

func joined(r *Result, t trio, began time.Time) error {
	if err := fixTo(2, nil, t[:], nil, t[:]); err != nil {
		return err
	}
	r.add("the view is given", ms(time.Since(began)))
	errs := make([]error, len(t)+1)
	var again [3]float64
	var wg sync.WaitGroup
	for i, c := range t {
		wg.Go(func() {
			var list []float64
			if list, errs[i] = numbers(c, "reach %d %d", claimHubs, claimSample); errs[i] == nil {
				again[i] = list[1]
			}
		})
	}
	wg.Wait()
	r.add("all reachable after the view", ms(time.Since(began)))
	r.add("asks repeated until reachable", again[0]+again[1]+again[2])
	errs[len(t)] = landed(t[0])
	r.add("all claims landed after the view", ms(time.Since(began)))
	return errors.Join(errs...)
}

// freeze stops the third silo and asks beside it.
func freeze(r *Result, t trio) error {
	const prefix = "beside"
	for i := range frozenHubs {
		if _, err := t[0].do("start portal/%s%d", prefix, i); err != nil {
			return err
		}
	}
	if err := landed(t[0]); err != nil {
		return err
	}
	if err := t[2].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	worst, err := numbers(t[1], "frozen %s %d", prefix, frozenFor.Milliseconds())
	if err != nil {
		return err
	}
	r.add("longest wait beside a frozen silo, served address", worst[0])
	r.add("longest wait beside a frozen silo, unserved address", worst[1])
	return nil
}
