package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh"
	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
)

const idleHubs = 100_000

func idleScenario(ctx context.Context, rounds int) (*Result, error) {
	r := newResult("idle", "bytes an idle hub", rounds)
	if err := idleRuntime(r); err != nil {
		return nil, err
	}
	return r, idleNodes(ctx, r)
}

// idleRuntime is the runtime alone: hubs that were asked once.
func idleRuntime(r *Result) error {
	m, err := hub.New(hub.Options{ID: "bench"})
	if err != nil {
		return err
	}
	defer m.Close(context.Background())
	k := hub.NewKind("idle", hub.Limits{})
	hub.Handle(k, pingTurn, func(_ context.Context, _ *hub.Hub, q *pingReq) (*pingResp, error) { return &pingResp{q.n}, nil })
	paths := make([]string, idleHubs)
	for i := range paths {
		paths[i] = fmt.Sprintf("acme/n%d", i)
	}
	who := message.WithIdentity(context.Background(), &message.Identity{Subject: "bench"})
	before := heap()
	for _, p := range paths {
		if _, err := m.Start(address.Of(p), k, nil); err != nil {
			return err
		}
		if _, err := pingTurn.Ask(who, m, p, &pingReq{}); err != nil {
			return err
		}
	}
	settle()
	r.metric("runtime_bytes_per_hub", float64(heap()-before)/idleHubs)
	r.goal("runtime_bytes_per_hub", "<=", 256)
	return nil
}

// idleNodes is 100,000 node hubs with their rows, content just below 1 KiB.
func idleNodes(ctx context.Context, r *Result) error {
	tmp, err := os.MkdirTemp("", "hubmesh-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	m, err := hubmesh.New(hubmesh.Options{Dir: tmp, Idle: time.Hour})
	if err != nil {
		return err
	}
	defer m.Close(context.Background())
	who := hubmesh.AsSystem(context.WithoutCancel(ctx))
	if err := fill(who, m, idleHubs, 900); err != nil {
		return err
	}
	path := func(i int) string { return fmt.Sprintf("bench/d%d/n%d", i/1000, i) }
	goroutines := runtime.NumGoroutine()
	before := heap()
	for i := range idleHubs {
		if _, err := m.Get(who, path(i)); err != nil {
			return err
		}
	}
	settle()
	after := heap()
	r.metric("node_hub_bytes_with_row", float64(after-before)/idleHubs)
	r.goal("node_hub_bytes_with_row", "<=", 2048)
	r.metric("goroutines_added", float64(runtime.NumGoroutine()-goroutines))
	r.goal("goroutines_added", "<=", 0)
	var pauses []float64
	for range 9 {
		t := time.Now()
		runtime.GC()
		pauses = append(pauses, ms(time.Since(t)))
	}
	r.metric("full_gc_ms", quantile(pauses, 0.5))
	r.goal("full_gc_ms", "<=", 100)
	var mu sync.Mutex
	var took []float64
	var wg sync.WaitGroup
	lapses := 0
	for range 32 {
		wg.Go(func() {
			for range 2000 {
				t := time.Now()
				_, err := m.Get(who, path(rand.IntN(idleHubs)))
				mu.Lock()
				took = append(took, ms(time.Since(t)))
				if err != nil {
					lapses++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(took)
	r.metric("random_asks_failed", float64(lapses))
	r.goal("random_asks_failed", "<=", 0)
	r.metric("random_ask_p99_ms", quantile(took, 0.99))
	return nil
}

// settle lets turns that are ending end.
func settle() {
	for range 5 {
		runtime.Gosched()
	}
	time.Sleep(50 * time.Millisecond)
}

func floodScenario(ctx context.Context, rounds int) (*Result, error) {
	r := newResult("flood", "ms of an ask", rounds)
	m, err := hub.New(hub.Options{ID: "bench"})
	if err != nil {
		return nil, err
	}
	defer m.Close(context.Background())
	k := hub.NewKind("bench", hub.Limits{})
	work := func() {
		x := 1
		for range 1000 {
			x = x*31 + 7
		}
		_ = x
	}
	hub.Handle(k, pingTurn, func(_ context.Context, _ *hub.Hub, q *pingReq) (*pingResp, error) { work(); return &pingResp{q.n}, nil })
	tell := hub.Define[*pingReq, *hub.None]("bench/tell", message.Ignorable)
	hub.Handle(k, tell, func(context.Context, *hub.Hub, *pingReq) (*hub.None, error) { work(); return nil, nil })
	for i := range 65 {
		if _, err := m.Start(address.Of(fmt.Sprintf("acme/n%d", i)), k, nil); err != nil {
			return nil, err
		}
	}
	who := message.WithIdentity(context.WithoutCancel(ctx), &message.Identity{Subject: "bench"})
	run := func(name string, flooded bool) {
		stop := make(chan struct{})
		var wg sync.WaitGroup
		if flooded {
			for range 2 {
				wg.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							_ = tell.Post(who, m, "acme/n64", &pingReq{}) // shed at the bound, as it should be
						}
					}
				})
			}
		}
		var mu sync.Mutex
		var took []float64
		var askers sync.WaitGroup
		end := time.Now().Add(700 * time.Millisecond)
		for i := range 8 {
			askers.Go(func() {
				var own []float64
				for time.Now().Before(end) {
					t := time.Now()
					if _, err := pingTurn.Ask(who, m, fmt.Sprintf("acme/n%d", i), &pingReq{}); err == nil {
						own = append(own, ms(time.Since(t)))
					}
				}
				mu.Lock()
				took = append(took, own...)
				mu.Unlock()
			})
		}
		askers.Wait()
		close(stop)
		wg.Wait()
		r.add("p99 "+name, quantile(took, 0.99))
		r.add("p99.9 "+name, quantile(took, 0.999))
		r.add("worst "+name, slices.Max(took))
	}
	for range rounds {
		run("quiet", false)
		run("beside a flooded hub", true)
	}
	r.metric("others_p99_ms", r.median("p99 beside a flooded hub"))
	r.goal("others_p99_ms", "<=", 20)
	return r, nil
}
