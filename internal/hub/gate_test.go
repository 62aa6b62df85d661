package hub

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/lifecycle"
	"github.com/hubmesh/hubmesh/internal/message"
)

// recorder is a kind with gates that admit nothing, which records the events it handles.
func recorder(got *[]string, gates ...Gate) *Kind {
	k := NewKind("recorder", Limits{})
	for _, g := range gates {
		k.AddGate(g)
	}
	Handle(k, event, func(_ context.Context, _ *Hub, q *echoReq) (*None, error) {
		*got = append(*got, q.Text)
		return nil, nil
	})
	Handle(k, echo, func(_ context.Context, _ *Hub, q *echoReq) (*echoResp, error) {
		*got = append(*got, q.Text)
		return &echoResp{q.Text}, nil
	})
	Handle(k, HeartBeat, func(context.Context, *Hub, *Heart) (*None, error) { *got = append(*got, "heartbeat"); return nil, nil })
	return k
}

// invariant 15
func TestTheStartPassesGatesThatRefuseEverything(t *testing.T) {
	in(t, func(r *rig) {
		ran := false
		k := NewKind("k", Limits{})
		k.AddGate(Gate{Name: "Data"})
		k.AddInitialiser("load", func(context.Context, *Hub) error { ran = true; return nil })
		h := r.start("acme/a", k)
		synctest.Wait()
		if !ran || h.Level() != lifecycle.Starting || !strings.Contains(h.closedGates(), "Data") || strings.Contains(h.closedGates(), GateInitialise) {
			t.Fatalf("ran %v, level %v, closed %s", ran, h.Level(), h.closedGates())
		}
		if err := h.OpenGate("Data"); err != nil {
			t.Fatal(err)
		}
		if h.Level() != lifecycle.Started {
			t.Fatal(h.Level())
		}
	})
}

// invariant 16
func TestAHeartbeatIsHandledWithAllGatesShut(t *testing.T) {
	in(t, func(r *rig) {
		var got []string
		r.start("acme/a", recorder(&got, Gate{Name: "Data"}))
		if err := HeartBeat.Post(r.ctx, r.Mesh, "acme/a", &Heart{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(got) != 1 {
			t.Fatal(got)
		}
	})
}

// messaging §1.7
func TestEveryClosedGateMustAdmitAMessage(t *testing.T) {
	in(t, func(r *rig) {
		var got []string
		admitAll := func(*Delivery) bool { return true }
		h := r.start("acme/a", recorder(&got, Gate{Name: "One", Admits: admitAll}, Gate{Name: "Two"}))
		if err := event.Post(r.ctx, r.Mesh, "acme/a", &echoReq{"x"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("one admitting gate let the message through a closed one")
		}
		h.OpenGate("Two")
		synctest.Wait()
		if len(got) != 1 {
			t.Fatal("the remaining gate admits everything, but the message stayed")
		}
	})
}

// messaging §1.7
func TestDeferredMessagesComeBeforeThoseAlreadyInTheInbox(t *testing.T) {
	in(t, func(r *rig) {
		var got []string
		release := make(chan struct{})
		k := recorder(&got, Gate{Name: "Data", Admits: func(d *Delivery) bool { return d.TypeName() == "test/park" }})
		Handle(k, park, func(_ context.Context, h *Hub, q *echoReq) (*echoResp, error) {
			<-release
			return &echoResp{}, h.OpenGate("Data")
		})
		r.start("acme/a", k)
		post := func(text string) {
			if err := event.Post(r.ctx, r.Mesh, "acme/a", &echoReq{text}); err != nil {
				t.Fatal(err)
			}
		}
		post("1")
		post("2")
		synctest.Wait() // both are deferred
		if err := park.Post(r.ctx, r.Mesh, "acme/a", &echoReq{}); err != nil {
			t.Fatal(err)
		}
		for i := 3; i < 200; i++ { // some go into the running turn's batch, some into the inbox
			post(fmt.Sprint(i))
		}
		close(release)
		synctest.Wait()
		for i, g := range got {
			if g != fmt.Sprint(i+1) {
				t.Fatalf("at %d: %s", i, g)
			}
		}
		if len(got) != 199 {
			t.Fatal(len(got))
		}
	})
}

// invariant 17
func TestAStuckGateDefersAtMost512AndRefusesTheRest(t *testing.T) {
	in(t, func(r *rig) {
		var got []string
		h := r.start("acme/a", recorder(&got, Gate{Name: "Data"}))
		refused := make(chan error, 300)
		for range 512 {
			if err := event.Post(r.ctx, r.Mesh, "acme/a", &echoReq{"e"}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		for range 300 {
			go func() {
				_, err := echo.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{"q"})
				refused <- err
			}()
		}
		synctest.Wait()
		if s := h.Snapshot(); s.Deferred != 512 {
			t.Fatalf("%d deferred", s.Deferred)
		}
		if len(refused) != 300 {
			t.Fatalf("%d of 300 requests are answered", len(refused))
		}
		if f := failureOf(t, <-refused); f.Reason != message.ReasonOverloaded || !f.Transient() || !strings.Contains(f.Message, "nothing was queued") {
			t.Fatalf("%+v", f)
		}
		if n := r.log.count("GATE-STUCK"); n != 1 {
			t.Fatalf("%d GATE-STUCK lines", n)
		}
		h.OpenGate("Data")
		synctest.Wait()
		if len(got) != 512 {
			t.Fatalf("%d handled after the gate opened", len(got))
		}
	})
}

// messaging §1.7
func TestADeferredMessageIsAnsweredAfter30SecondsNamingTheClosedGates(t *testing.T) {
	in(t, func(r *rig) {
		var got []string
		r.start("acme/a", recorder(&got, Gate{Name: "Data"}))
		begin := time.Now()
		_, err := echo.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
		f := failureOf(t, err)
		if time.Since(begin) != 30*time.Second || f.Reason != message.ReasonStarting || !strings.Contains(f.Message, "STILL STARTING: gate 'Data' closed for 30s") {
			t.Fatalf("after %v: %v", time.Since(begin), err)
		}
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("it was handled all the same")
		}
	})
}

// fault 43
func TestTheOwnersDiagnosisReachesTheCallerInsideItsBudget(t *testing.T) {
	in(t, func(r *rig) {
		starts := 0
		open := make(chan struct{})
		k := echoes(nil)
		k.AddInitialiser("read row", func(ctx context.Context, _ *Hub) error {
			starts++
			select {
			case <-open:
			case <-ctx.Done():
			}
			return ctx.Err()
		})
		r.start("acme/slow", k)
		begin := time.Now()
		_, err := echo.AskWithin(r.ctx, r.Mesh, "acme/slow", &echoReq{}, budget.Read)
		took := time.Since(begin)
		var lapse *budget.Lapse
		if !errors.As(err, &lapse) || lapse.ReportedBy != budget.ByOwner || lapse.By != budget.Read {
			t.Fatalf("%v", err)
		}
		if took != 10*time.Second-250*time.Millisecond || !strings.Contains(lapse.Clause, "STILL STARTING: gate 'Initialize' closed for 9.75s at 'read row'") {
			t.Fatalf("after %v: %s", took, lapse.Clause)
		}
		// The work was not cut because the caller left: the node starts once, and then answers.
		<-time.After(5 * time.Second)
		close(open)
		r.mustEcho("acme/slow", "started")
		if starts != 1 {
			t.Fatalf("started %d times", starts)
		}
	})
}

// hub §3
func TestNestedAsksLapseFromTheInside(t *testing.T) {
	in(t, func(r *rig) {
		release := make(chan struct{})
		r.start("acme/inner", echoes(release))
		k := NewKind("outer", Limits{})
		Handle(k, relay, func(ctx context.Context, _ *Hub, q *echoReq) (*echoResp, error) {
			return park.Ask(ctx, r.Mesh, "acme/inner", q)
		})
		r.start("acme/outer", k)
		begin := time.Now()
		_, err := relay.AskWithin(r.ctx, r.Mesh, "acme/outer", &echoReq{}, budget.Read)
		var lapse *budget.Lapse
		if !errors.As(err, &lapse) || lapse.Target != "acme/inner" || lapse.By != budget.Read || lapse.Bound != budget.Request {
			t.Fatalf("%v", err)
		}
		if lapse.Progress != budget.Started || !strings.Contains(lapse.Clause, "Executing(test/park, 9750ms)") {
			t.Fatalf("%v / %s", lapse.Progress, lapse.Clause)
		}
		if took := time.Since(begin); took != 10*time.Second-250*time.Millisecond {
			t.Fatalf("after %v", took)
		}
		begin = time.Now()
		if _, err = park.AskWithin(r.ctx, r.Mesh, "acme/inner", &echoReq{}, budget.Read); !errors.As(err, &lapse) {
			t.Fatal(err)
		}
		if time.Since(begin) != 10*time.Second || lapse.Progress != budget.NotStarted {
			t.Fatalf("a bare ask lapsed after %v, %v", time.Since(begin), lapse.Progress)
		}
		close(release)
		synctest.Wait()
		if n := r.Stats().Expired; n != 1 {
			t.Fatalf("%d turns skipped because their caller had gone", n)
		}
	})
}

// invariant 19
func TestAThrowingInitialiserFailsFastWithItsCause(t *testing.T) {
	for name, start := range map[string]func(context.Context, *Hub) error{
		"error": func(context.Context, *Hub) error { return errors.New("the row is broken") },
		"panic": func(context.Context, *Hub) error { panic("the row is broken") },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(r *rig) {
				k := echoes(nil)
				k.AddInitialiser("load", start)
				handled := false
				Handle(k, event, func(context.Context, *Hub, *echoReq) (*None, error) { handled = true; return nil, nil })
				h := r.start("acme/a", k)
				begin := time.Now()
				for range 2 { // once deferred, once after the failure
					_, err := echo.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
					if f := failureOf(t, err); f.Type != message.Failed || f.Reason != message.ReasonInit || !strings.Contains(f.Message, "the row is broken") {
						t.Fatalf("%+v", f)
					}
				}
				if time.Since(begin) != 0 {
					t.Fatal("not fast")
				}
				event.Post(r.ctx, r.Mesh, "acme/a", &echoReq{})
				synctest.Wait()
				if handled {
					t.Fatal("a handler ran after the start failed")
				}
				if err := h.InitialisationError(); err == nil {
					t.Fatal("the cause is not recorded")
				}
				Dispose.Post(r.ctx, r.Mesh, "acme/a", &DisposeRequest{})
				<-h.Done() // lifecycle messages are still handled
			})
		})
	}
}

// invariant 20
func TestAHangingInitialiserIsBoundedWithTheSameOutcome(t *testing.T) {
	in(t, func(r *rig) {
		k := echoes(nil)
		k.EndOnFailedStart = true
		stuck := make(chan struct{})
		k.AddInitialiser("hang", func(context.Context, *Hub) error { <-stuck; return nil })
		h := r.start("acme/a", k)
		begin := time.Now()
		<-h.Started()
		if took := time.Since(begin); took != 120*time.Second {
			t.Fatalf("gave up after %v", took)
		}
		if err := h.InitialisationError(); err == nil || !strings.Contains(err.Error(), "'hang' did not finish") {
			t.Fatal(err)
		}
		<-h.Done()
		close(stuck)
	})
}

// invariant 21
func TestAStartCutShortByDisposalIsACancellationAndARealErrorFaults(t *testing.T) {
	in(t, func(r *rig) {
		k := echoes(nil)
		k.AddInitialiser("wait", func(ctx context.Context, _ *Hub) error {
			<-ctx.Done()
			return fmt.Errorf("reading the row: %w", ctx.Err())
		})
		h := r.start("acme/a", k)
		result := make(chan error)
		go func() {
			_, err := echo.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
			result <- err
		}()
		synctest.Wait()
		h.Dispose()
		if f := failureOf(t, <-result); f.Type != message.ShuttingDown {
			t.Fatalf("%+v", f)
		}
		<-h.Done()
		if n := r.log.count("a hub could not start"); n != 0 {
			t.Fatal("a cancellation was logged as a fault")
		}
	})
}

// invariant 18
func TestADeferredRequestIsAnsweredShuttingDownOnDisposal(t *testing.T) {
	in(t, func(r *rig) {
		var got []string
		h := r.start("acme/a", recorder(&got, Gate{Name: "Data"}))
		result := make(chan error)
		go func() {
			_, err := echo.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
			result <- err
		}()
		synctest.Wait()
		h.Dispose()
		if f := failureOf(t, <-result); f.Type != message.ShuttingDown || !strings.Contains(f.Message, "is shutting down") {
			t.Fatalf("%+v", f)
		}
	})
}
