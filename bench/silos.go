package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hubmesh/hubmesh/client"
	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
)

const (
	siloNodes     = 10_000 // node hubs that a killed silo has served
	siloLost      = 500    // of them are asked again and again
	siloElsewhere = 500    // nodes that live on
	siloRate      = 1000   // requests a second while silos are restarted
	siloWrites    = 0.2    // of them are writes
	siloCommits   = 100
)

// silosScenario measures a cluster of three processes on one database: who sees whom when, what a kill and a
// rolling restart are to those who ask, and how long a commit is under way to a watcher elsewhere.
func silosScenario(ctx context.Context, rounds int) (*Result, error) {
	r := newResult("silos", "ms", rounds)
	tmp, bin, clean, err := workspace(ctx)
	if err != nil {
		return nil, err
	}
	defer clean()
	server, err := pgtest.Start("max_connections=200")
	if err != nil {
		return nil, err
	}
	defer server.Close()
	for round := range rounds {
		if err := silosRound(ctx, r, server, bin, filepath.Join(tmp, fmt.Sprint("round", round))); err != nil {
			return nil, err
		}
	}
	for name, goal := range map[string]float64{
		"three started together see each other": 300, "a joiner is in every view": 150, "a leaver is out": 100, "a killed silo is out": 100, "a frozen silo is out": 2000,
		"10,000 hubs lost: the last answers again": 1000, "rolling restart: p99": 250, "rolling restart: failed": 0, "rolling restart: lost writes": 0,
	} {
		r.metric(name, r.median(name))
		r.goal(name, "<=", goal)
	}
	r.metric("10,000 hubs lost: refused elsewhere", r.median("10,000 hubs lost: refused elsewhere"))
	r.goal("10,000 hubs lost: refused elsewhere", "<=", 0)
	r.ratio("frame elsewhere/(notification + hop)", "commit to a frame elsewhere, p50", "bare notification and one hop, p50")
	r.goal("frame elsewhere/(notification + hop)", "<=", 2)
	r.note("times of views are those of the silos' own log lines, on one machine's clock: from the first line of a silo that joins to the last view with it; from the signal to the last view without it; of a leaver from its last view, in which it leaves, to the last without it")
	r.note("a rolling restart is three times SIGTERM, the end, a start, /ready; the requests go to a silo that is ready, and to the next one where none was reached")
	r.note("after a kill %d of the %d lost nodes and %d others are read without a pause over HTTP by 32 callers, on the processors of the silos and the database", siloLost, siloNodes, siloElsewhere)
	return r, nil
}

func silosRound(ctx context.Context, r *Result, server *pgtest.Server, bin, dir string) (err error) {
	url, err := server.Database(ctx)
	if err != nil {
		return err
	}
	t, err := newTown(bin, dir, url)
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.start("z"); err != nil { // the tables are made before it counts
		return err
	}
	if err := t.silos["z"].stop(); err != nil {
		return err
	}
	delete(t.silos, "z")

	if err := t.start("a", "b", "c"); err != nil {
		return err
	}
	if err := t.joins(r, "three started together see each other", "a", "b", "c"); err != nil {
		return err
	}
	if err := t.start("d"); err != nil {
		return err
	}
	if err := t.joins(r, "a joiner is in every view", "d"); err != nil {
		return err
	}
	if err := t.goes(r, "a leaver is out", "d", syscall.SIGTERM); err != nil {
		return err
	}
	if err := frames(ctx, r, t, url); err != nil {
		return err
	}
	if err := frozen(r, t); err != nil {
		return err
	}
	if err := rolling(ctx, r, t); err != nil {
		return err
	}
	return lost(ctx, r, t)
}

// frozen stops a silo and lets it go on.
func frozen(r *Result, t *town) error {
	began := time.Now()
	c := t.silos["c"]
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	at, err := t.without("c", began, "a", "b")
	if err != nil {
		return err
	}
	r.add("a frozen silo is out", ms(at.Sub(began)))
	began = time.Now()
	if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	if err := t.ready("c"); err != nil {
		return err
	}
	at, err = t.with("c", began, "a", "b", "c")
	r.add("a thawed silo is in again", ms(at.Sub(began)))
	return err
}

// lost kills the silo that serves many nodes, while they and others are asked for.
func lost(ctx context.Context, r *Result, t *town) error {
	a, b, c := t.silos["a"], t.silos["b"], t.silos["c"]
	all, err := makeNodes(ctx, a, "kill", siloNodes)
	if err != nil {
		return err
	}
	others, err := makeNodes(ctx, b, "live", siloElsewhere)
	if err != nil {
		return err
	}
	if err := touch(ctx, a, all); err != nil {
		return err
	}
	if err := touch(ctx, b, others); err != nil {
		return err
	}
	some := slices.Clone(all)
	rand.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	some = some[:siloLost]

	ctx, stop := context.WithTimeoutCause(ctx, time.Minute, errors.New("nodes of a killed silo did not answer again"))
	defer stop()
	var work sync.WaitGroup
	var mu sync.Mutex
	answered := map[string]time.Time{}
	var refused atomic.Int64
	killed := time.Now()
	if err := a.cmd.Process.Kill(); err != nil {
		return err
	}
	for i := range 16 {
		work.Go(func() { // what was lost, each until it answers
			cl := c.client()
			for at := i; at < len(some); at += 16 {
				for ctx.Err() == nil {
					if _, err := cl.Get(ctx, some[at]); err == nil {
						break
					}
					time.Sleep(5 * time.Millisecond)
				}
				mu.Lock()
				answered[some[at]] = time.Now()
				mu.Unlock()
			}
		})
		work.Go(func() { // what lives on
			cl := c.client()
			for at := i; at < len(others); at += 16 {
				if _, err := cl.Get(ctx, others[at]); err != nil {
					refused.Add(1)
				}
			}
		})
	}
	work.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var last time.Time
	for _, at := range answered {
		if at.After(last) {
			last = at
		}
	}
	r.add("10,000 hubs lost: the last answers again", ms(last.Sub(killed)))
	r.add("10,000 hubs lost: refused elsewhere", float64(refused.Load()))
	_ = a.wait() // it was killed
	r.add("a killed silo: the kernel has taken its process down", ms(a.gone.Sub(killed)))
	delete(t.silos, "a")
	at, err := t.without("a", killed, "b", "c")
	r.add("a killed silo is out", ms(at.Sub(killed)))
	return err
}

// rolling restarts one silo after the other under requests.
func rolling(ctx context.Context, r *Result, t *town) error {
	nodes, err := makeNodes(ctx, t.silos["a"], "roll", 200)
	if err != nil {
		return err
	}
	load := &rollLoad{t: t, nodes: nodes, acked: make([]atomic.Int64, len(nodes))}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		load.run(ctx)
	}()
	time.Sleep(time.Second)
	began := time.Now()
	for _, name := range []string{"a", "b", "c"} {
		s := t.silos[name]
		if err := s.stop(); err != nil {
			return fmt.Errorf("%s did not end well: %w", name, err)
		}
		t.mu.Lock()
		delete(t.silos, name)
		t.mu.Unlock()
		if err := t.start(name); err != nil {
			return err
		}
	}
	r.add("rolling restart: three silos", ms(time.Since(began)))
	time.Sleep(500 * time.Millisecond)
	stop()
	<-done
	r.add("rolling restart: requests", float64(len(load.took)))
	r.add("rolling restart: failed", float64(len(load.failed)))
	for _, f := range load.failed[:min(3, len(load.failed))] {
		fmt.Fprintln(os.Stderr, "a request failed:", f)
	}
	r.add("rolling restart: p50", quantile(load.took, 0.5))
	r.add("rolling restart: p99", quantile(load.took, 0.99))
	missing, err := load.missing(context.WithoutCancel(ctx))
	r.add("rolling restart: lost writes", float64(missing))
	return err
}

// makeNodes creates nodes below a space of their own.
func makeNodes(ctx context.Context, s *siloProcess, space string, n int) ([]string, error) {
	c := s.client()
	if _, err := c.Create(ctx, client.Node{Path: space, NodeType: "Space", Content: []byte(`{}`)}); err != nil {
		return nil, err
	}
	var paths []string
	var batch []client.Node
	for i := range n {
		paths = append(paths, fmt.Sprintf("%s/n%05d", space, i))
		batch = append(batch, client.Node{Path: paths[i], Content: []byte(`{"n":0}`)})
		if len(batch) == 500 || i == n-1 {
			out, err := c.CreateMany(ctx, batch)
			if err != nil {
				return nil, err
			}
			for _, o := range out {
				if o.Error != nil {
					return nil, fmt.Errorf("creating '%s': %v", o.Path, o.Error["detail"])
				}
			}
			batch = nil
		}
	}
	return paths, nil
}

// touch has a silo serve nodes.
func touch(ctx context.Context, s *siloProcess, paths []string) error {
	var work sync.WaitGroup
	var failed atomic.Pointer[error]
	for i := range 16 {
		work.Go(func() {
			c := s.client()
			for at := i; at < len(paths); at += 16 {
				if _, err := c.Get(ctx, paths[at]); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	work.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
