package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
)

func budgetScenario(ctx context.Context, rounds int) (*Result, error) {
	r := newResult("budget", "ns a hop; share of lapses told by the innermost", rounds)
	table := budget.Defaults()
	clock := budget.NewClock()
	for range rounds {
		outer := budget.Budget{Deadline: clock.Now() + int64(time.Hour), Bound: budget.Request, By: budget.Request}
		b := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := table.Take(outer, clock.Now(), budget.StoreRead); err != nil {
					b.Fatal(err)
				}
			}
		})
		r.add("hop", float64(b.NsPerOp()))
		r.add("hop allocations", float64(b.AllocsPerOp()))
		c := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c, cancel := context.WithTimeoutCause(ctx, time.Hour, errors.New("x"))
				cancel()
				_ = c
			}
		})
		r.add("context.WithTimeoutCause", float64(c.NsPerOp()))
	}
	r.metric("hop_ns", r.median("hop"))
	r.goal("hop_ns", "<=", 50)
	r.metric("hop_allocations", r.median("hop allocations"))
	r.goal("hop_allocations", "<=", 0)
	for _, busy := range []int{0, 2, 8} {
		share, n, err := innermostFirst(ctx, busy, 320)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("innermost_first_share_%d_busy", busy)
		r.metric(name, share)
		r.note("%d busy goroutines: %d lapses of three nested asks", busy, n)
		switch busy {
		case 2:
			r.goal(name, ">=", 0.99)
		case 8:
			r.goal(name, ">=", 0.90)
		}
	}
	return r, nil
}

var (
	nestOuter = hub.Define[*pingReq, *pingResp]("bench/outer", message.Request)
	nestMid   = hub.Define[*pingReq, *pingResp]("bench/mid", message.Request)
	nestInner = hub.Define[*pingReq, *pingResp]("bench/inner", message.Request)
)

// innermostFirst lets n asks of three hubs in a row lapse, beside busy processors, and returns the
// share in which the caller was told of the innermost.
func innermostFirst(ctx context.Context, busy, n int) (share float64, total int, err error) {
	table := budget.Defaults().With(budget.Read, 600*time.Millisecond).With(budget.StoreRead, 500*time.Millisecond).
		With(budget.TokenCheck, 550*time.Millisecond).With(budget.Handshake, 550*time.Millisecond)
	m, err := hub.New(hub.Options{ID: "bench", Bounds: table})
	if err != nil {
		return 0, 0, err
	}
	defer m.Close(context.Background())
	stop := make(chan struct{})
	var burn sync.WaitGroup
	for range busy {
		burn.Go(func() {
			x := 1
			for {
				select {
				case <-stop:
					return
				default:
					for range 10_000 {
						x = x*31 + 7
					}
				}
			}
		})
	}
	defer burn.Wait()
	defer close(stop)
	hold := make(chan struct{})
	defer close(hold)
	const groups = 64
	for g := range groups {
		inner, mid, outer := hub.NewKind("inner", hub.Limits{}), hub.NewKind("mid", hub.Limits{}), hub.NewKind("outer", hub.Limits{})
		hub.HandleLater(inner, nestInner, func(context.Context, *hub.Hub, *pingReq, hub.Reply[*pingResp]) error { return nil })
		hub.Handle(mid, nestMid, func(ctx context.Context, _ *hub.Hub, q *pingReq) (*pingResp, error) {
			return nestInner.Ask(ctx, m, fmt.Sprintf("acme/inner%d", g), q)
		})
		hub.Handle(outer, nestOuter, func(ctx context.Context, _ *hub.Hub, q *pingReq) (*pingResp, error) {
			return nestMid.Ask(ctx, m, fmt.Sprintf("acme/mid%d", g), q)
		})
		for name, k := range map[string]*hub.Kind{"inner": inner, "mid": mid, "outer": outer} {
			if _, err := m.Start(address.Of(fmt.Sprintf("acme/%s%d", name, g)), k, nil); err != nil {
				return 0, 0, err
			}
		}
	}
	who := message.WithIdentity(context.WithoutCancel(ctx), &message.Identity{Subject: "bench"})
	right := 0
	for total < n {
		var wg sync.WaitGroup
		var mu sync.Mutex
		for g := range groups {
			wg.Go(func() {
				_, err := nestOuter.AskWithin(who, m, fmt.Sprintf("acme/outer%d", g), &pingReq{}, budget.Read)
				var l *budget.Lapse
				mu.Lock()
				defer mu.Unlock()
				total++
				if errors.As(err, &l) && l.Operation == "bench/inner" {
					right++
				}
			})
		}
		wg.Wait()
	}
	return float64(right) / float64(total), total, nil
}
