package hub

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/lifecycle"
	"github.com/hubmesh/hubmesh/internal/message"
)

// invariant 4
func TestDisposalUnderFloodHandlesFewShutdownTurnsAndAnswersEveryRequest(t *testing.T) {
	in(t, func(r *rig) {
		k := NewKind("slow", Limits{})
		Handle(k, echo, func(context.Context, *Hub, *echoReq) (*echoResp, error) {
			<-time.After(time.Millisecond)
			return &echoResp{}, nil
		})
		h := r.start("acme/a", k)
		var answered atomic.Int32
		const flood = 5000
		for range flood {
			go func() {
				echo.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
				answered.Add(1)
			}()
		}
		synctest.Wait()
		for range 50 {
			Dispose.Post(r.ctx, r.Mesh, "acme/a", &DisposeRequest{})
		}
		<-h.Done()
		synctest.Wait()
		if n := answered.Load(); n != flood {
			t.Fatalf("%d of %d answered", n, flood)
		}
		if e := h.ext.Load(); e.shutTurns >= 20 {
			t.Fatalf("%d shutdown turns", e.shutTurns)
		}
		if h.Level() != lifecycle.Dead {
			t.Fatal(h.Level())
		}
	})
}

// invariant 5
// invariant 6
func TestTheWatchdogTearsDownAHubWhoseHandlerBlocksTheTurn(t *testing.T) {
	in(t, func(r *rig) {
		r.dirt = true
		release := make(chan struct{})
		host := r.start("acme/a", echoes(release))
		child, err := host.Host(r.ctx, "sync/1", echoes(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		cleaned := false
		host.OnDispose(func() { cleaned = true })
		parked := make(chan error, 1)
		go func() {
			_, err := park.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
			parked <- err
		}()
		synctest.Wait()
		waiting := make(chan error, 10)
		for range 10 { // the backlog behind the blocked turn
			go func() {
				_, err := echo.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
				waiting <- err
			}()
		}
		synctest.Wait()
		begin := time.Now()
		host.Dispose()
		<-host.Done()
		if took := time.Since(begin); took != 8*time.Second {
			t.Fatalf("torn down after %v", took)
		}
		if !cleaned || child.Level() != lifecycle.Dead || host.Level() != lifecycle.Dead {
			t.Fatalf("cleaned %v, child %v, host %v", cleaned, child.Level(), host.Level())
		}
		for range 10 {
			if f := failureOf(t, <-waiting); f.Type != message.ShuttingDown {
				t.Fatalf("%+v", f)
			}
		}
		if r.log.count("DISPOSAL DEADLOCK DETECTED") != 1 || r.log.count("[FORCE-TEARDOWN]") != 1 {
			t.Fatal("not reported once")
		}
		close(release)
		<-parked // the blocked request is answered too
	})
}

// messaging §1.9
func TestDisposalCancelsTheRunningHandlersContext(t *testing.T) {
	in(t, func(r *rig) {
		k := NewKind("k", Limits{})
		Handle(k, echo, func(ctx context.Context, _ *Hub, _ *echoReq) (*echoResp, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		h := r.start("acme/a", k)
		go echo.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
		synctest.Wait()
		begin := time.Now()
		h.Dispose()
		<-h.Done()
		if took := time.Since(begin); took != 0 {
			t.Fatalf("took %v", took)
		}
	})
}

// messaging §1.9
func TestQuiescingWaitsForTheHubsOwnAsksAtMostTwoSecondsAndThenFailsThem(t *testing.T) {
	in(t, func(r *rig) {
		release := make(chan struct{})
		r.start("acme/far", echoes(release))
		k := NewKind("k", Limits{})
		var inner error
		HandleLater(k, echo, func(ctx context.Context, h *Hub, q *echoReq, reply Reply[*echoResp]) error {
			go func() {
				_, inner = park.AskFrom(r.ctx, h, "acme/far", q, 1)
				reply(nil, inner)
			}()
			return nil
		})
		h := r.start("acme/a", k)
		outer := make(chan error)
		go func() {
			_, err := echo.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
			outer <- err
		}()
		synctest.Wait()
		begin := time.Now()
		h.Dispose()
		f := failureOf(t, <-outer)
		if took := time.Since(begin); took != 2*time.Second || f.Type != message.ShuttingDown {
			t.Fatalf("after %v: %+v", took, f)
		}
		<-h.Done()
		if !h.Snapshot().TimedOut || r.log.count("[QUIESCE-TIMEOUT]") != 1 {
			t.Fatal("not marked")
		}
		close(release)
	})
}

// invariant 26
func TestDisposeFreezesCreationAtEveryDepthBeforeItReturns(t *testing.T) {
	in(t, func(r *rig) {
		top := r.start("acme/a", echoes(nil))
		mid, _ := top.Host(r.ctx, "mid/1", echoes(nil), nil)
		low, err := mid.Host(r.ctx, "low/1", echoes(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		checked := make(chan struct{})
		low.OnFlush(func(context.Context) { <-checked }) // nothing above goes before it
		top.Dispose()
		for _, h := range []*Hub{top, mid, low} {
			_, err := h.Host(r.ctx, "late/1", echoes(nil), nil)
			var gone *message.Disposing
			if !errors.As(err, &gone) {
				t.Fatalf("%s: %v", h.Path(), err)
			}
		}
		if top.Hosted("mid/1") != mid {
			t.Fatal("an existing hub is no longer resolvable")
		}
		close(checked)
		<-top.Done()
		if low.Level() != lifecycle.Dead {
			t.Fatal(low.Level())
		}
	})
}

// invariant 27
func TestDisposalWaitsForAConstructionUnderWayAndThenDisposesIt(t *testing.T) {
	in(t, func(r *rig) {
		host := r.start("acme/a", echoes(nil))
		building, built := make(chan struct{}), make(chan struct{})
		result := make(chan error)
		go func() {
			_, err := host.Host(r.ctx, "sync/1", echoes(nil), func(context.Context) (any, error) {
				close(building)
				<-built
				return nil, nil
			})
			result <- err
		}()
		<-building
		host.Dispose()
		<-time.After(time.Second)
		if host.Level() == lifecycle.Dead {
			t.Fatal("did not wait")
		}
		close(built)
		var gone *message.Disposing
		if err := <-result; !errors.As(err, &gone) {
			t.Fatal(err)
		}
		<-host.Done()
	})
}

// invariant 28
func TestCreationAfterDisposeYieldsNothing(t *testing.T) {
	in(t, func(r *rig) {
		host := r.start("acme/a", echoes(nil))
		host.Dispose()
		<-host.Done()
		built := false
		if h, err := host.Host(r.ctx, "sync/1", echoes(nil), func(context.Context) (any, error) { built = true; return nil, nil }); err == nil || h != nil || built {
			t.Fatal(h, err, built)
		}
	})
}

// messaging §1.2
func TestCreatingAHostedHubIsSingleFlightByAddress(t *testing.T) {
	in(t, func(r *rig) {
		host := r.start("acme/a", echoes(nil))
		var built atomic.Int32
		hubs := make(chan *Hub, 20)
		for range 20 {
			go func() {
				h, err := host.Host(r.ctx, "sync/1", echoes(nil), func(context.Context) (any, error) {
					built.Add(1)
					<-time.After(time.Second)
					return nil, nil
				})
				if err != nil {
					t.Error(err)
				}
				hubs <- h
			}()
		}
		first := <-hubs
		for range 19 {
			if h := <-hubs; h != first {
				t.Fatal("two hubs at one address")
			}
		}
		if built.Load() != 1 {
			t.Fatalf("built %d times", built.Load())
		}
	})
}

// invariant 34
func TestLookingUpAHostedHubAllocatesNothingAndIgnoresHostsInTheKey(t *testing.T) {
	in(t, func(r *rig) {
		host := r.start("portal/1", echoes(nil))
		want, _ := host.Host(r.ctx, "sync/1", echoes(nil), nil)
		for i := range 1000 {
			host.Host(r.ctx, "sync/x"+string(rune('a'+i%26))+string(rune('a'+i/26)), echoes(nil), nil)
		}
		if n := testing.AllocsPerRun(100, func() {
			if host.Hosted("sync/1") != want || host.Hosted("sync/none") != nil {
				t.Fail()
			}
		}); n != 0 {
			t.Fatalf("%v allocations", n)
		}
	})
}

// invariant 35
func TestAHubBuiltWhileAnotherTurnRunsRoundTrips(t *testing.T) {
	in(t, func(r *rig) {
		k := NewKind("maker", Limits{})
		Handle(k, echo, func(ctx context.Context, h *Hub, q *echoReq) (*echoResp, error) {
			child, err := h.Host(ctx, "sync/1", echoes(nil), nil)
			if err != nil {
				return nil, err
			}
			return echo.AskHub(ctx, child, q)
		})
		r.start("acme/a", k)
		r.mustEcho("acme/a", "through the child")
	})
}

// messaging §1.9
func TestACleanupRegisteredLateRunsAtOnceAndCleanupsRunNewestFirst(t *testing.T) {
	in(t, func(r *rig) {
		h := r.start("acme/a", echoes(nil))
		var order []int
		h.OnDispose(func() { order = append(order, 1) })
		h.OnDispose(func() { order = append(order, 2); panic("one bad cleanup") })
		h.OnDispose(func() { order = append(order, 3) })
		h.OnFlush(func(context.Context) { order = append(order, 0) })
		h.Dispose()
		h.Dispose()
		<-h.Done()
		h.OnDispose(func() { order = append(order, 4) })
		if len(order) != 5 || order[0] != 0 || order[1] != 3 || order[2] != 2 || order[3] != 1 || order[4] != 4 {
			t.Fatal(order)
		}
	})
}

// invariant 70
func TestClosingTheMeshDrainsEveryHubBeforeItReturnsAndDeadPrecedesCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		levels := make(chan lifecycle.Level, 3)
		for _, p := range []string{"acme/a", "acme/b", "portal/1"} {
			h := r.start(p, echoes(nil))
			h.OnFlush(func(context.Context) {}) // not simply idle: it has to be disposed
			done := h.Done()
			go func() { <-done; levels <- h.Level() }()
		}
		if err := r.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(levels) != 3 {
			t.Fatal("not every hub has ended")
		}
		for range 3 {
			if l := <-levels; l != lifecycle.Dead {
				t.Fatal("completion before Dead")
			}
		}
		if r.Root().Level() != lifecycle.Dead {
			t.Fatal(r.Root().Level())
		}
		if _, err := echo.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{}); failureOf(t, err).Type != message.ShuttingDown {
			t.Fatal(err)
		}
	})
}

// invariant 71
func TestTheTeardownReportIsTheFirstOneAndCleanOnlyIfNothingSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		release := make(chan struct{})
		r.start("acme/a", echoes(release))
		go park.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
		synctest.Wait()
		first := r.Close(context.Background())
		if first == nil || r.Report().Clean() {
			t.Fatal("a handler that never returns was not reported")
		}
		close(release)
		synctest.Wait()
		if again := r.Close(context.Background()); again == nil || again.Error() != first.Error() {
			t.Fatalf("later verdict %v", again)
		}
	})
}

// invariant 72
func TestClosingIsBoundedAndSaysWhatIgnoredCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		stuck := make(chan struct{})
		k := echoes(nil)
		k.AddInitialiser("stubborn", func(context.Context, *Hub) error { <-stuck; return nil })
		r.start("acme/a", k)
		begin := time.Now()
		err := r.Close(context.Background())
		if took := time.Since(begin); err == nil || took != 30*time.Second {
			t.Fatalf("%v after %v", err, took)
		}
		close(stuck)
		synctest.Wait()
	})
}

// invariant 32
func TestDeactivationFindsTheHubItselfOrTheNearestAboveAndElseSaysSo(t *testing.T) {
	in(t, func(r *rig) {
		own, above := r.start("acme/a/b", echoes(nil)), r.start("acme", echoes(nil))
		if !r.Deactivate("acme/a/b") || above.Level() != lifecycle.Started {
			t.Fatal("not the hub itself")
		}
		<-own.Done()
		if !r.Deactivate("acme/a/b/c") {
			t.Fatal("not the nearest above")
		}
		<-above.Done()
		if r.Deactivate("acme/a") || r.Deactivate("mesh/1") || r.Root().Level() != lifecycle.Started {
			t.Fatal("found what is not there, or the root")
		}
	})
}
