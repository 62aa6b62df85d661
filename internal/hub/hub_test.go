package hub

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/lifecycle"
	"github.com/hubmesh/hubmesh/internal/message"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The messages of the tests.
type (
	echoReq  struct{ Text string }
	echoResp struct{ Text string }
)

var (
	echo   = Define[*echoReq, *echoResp]("test/echo", message.Request)
	park   = Define[*echoReq, *echoResp]("test/park", message.Request)
	relay  = Define[*echoReq, *echoResp]("test/relay", message.Request)
	event  = Define[*echoReq, *None]("test/event", 0)
	chatty = Define[*echoReq, *None]("test/chatty", message.Ignorable)
)

// logbook collects log lines.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logbook) count(phrase string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), phrase)
}

// rig is a mesh for one test.
type rig struct {
	*Mesh
	t    *testing.T
	log  *logbook
	ctx  context.Context // carries the identity "alice"
	dirt bool            // the test leaves the mesh unclean on purpose
}

var alice = &message.Identity{Subject: "alice", Name: "Alice"}

func newRig(t *testing.T) *rig {
	t.Helper()
	l := &logbook{}
	m, err := New(Options{ID: "1", Logger: slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{Mesh: m, t: t, log: l, ctx: message.WithIdentity(context.Background(), alice)}
}

// in runs a test in a bubble of virtual time, with a mesh that is closed at its end.
func in(t *testing.T, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		f(r)
		if err := r.Close(context.Background()); err != nil && !r.dirt {
			t.Errorf("close: %v", err)
		}
	})
}

func (r *rig) start(path string, k *Kind) *Hub {
	r.t.Helper()
	h, err := r.Start(address.Of(path), k, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

// echoes is a kind that answers echo at once and park when it is released.
func echoes(release <-chan struct{}) *Kind {
	k := NewKind("echo", Limits{})
	Handle(k, echo, func(_ context.Context, _ *Hub, q *echoReq) (*echoResp, error) { return &echoResp{q.Text}, nil })
	Handle(k, park, func(_ context.Context, _ *Hub, q *echoReq) (*echoResp, error) {
		<-release
		return &echoResp{q.Text}, nil
	})
	return k
}

func (r *rig) mustEcho(path, text string) {
	r.t.Helper()
	resp, err := echo.Ask(r.ctx, r.Mesh, path, &echoReq{text})
	if err != nil || resp.Text != text {
		r.t.Fatalf("echo at %s: %v, %v", path, resp, err)
	}
}

func failureOf(t *testing.T, err error) *message.Failure {
	t.Helper()
	var f *message.Failure
	if !errors.As(err, &f) {
		t.Fatalf("not a failure: %v", err)
	}
	return f
}

// invariant 1
func TestRequestAndResponseWorkToSelfsNeighbourAndThroughAHost(t *testing.T) {
	in(t, func(r *rig) {
		k := echoes(nil)
		r.start("acme/a", k)
		host := r.start("portal/1", k)
		if _, err := host.Host(r.ctx, "sync/7", k, nil); err != nil {
			t.Fatal(err)
		}
		r.mustEcho("acme/a", "direct")
		r.mustEcho("portal/1~sync/7", "hosted")
		r.mustEcho("mesh/1~acme/a", "through the mesh hub")
		if _, err := Ping.Ask(r.ctx, r.Mesh, "mesh/1", &PingRequest{}); err != nil {
			t.Fatal(err)
		}
	})
}

// messaging §1.10
func TestAnAddressNobodyServesIsAnsweredAtOnce(t *testing.T) {
	in(t, func(r *rig) {
		begin := time.Now()
		_, err := echo.Ask(r.ctx, r.Mesh, "acme/none", &echoReq{})
		if f := failureOf(t, err); f.Type != message.NotFound || f.AnsweredBy != "mesh/1" || !strings.Contains(f.Message, "No node found at 'acme/none'") {
			t.Fatalf("%+v", f)
		}
		r.start("portal/1", echoes(nil))
		_, err = echo.Ask(r.ctx, r.Mesh, "portal/1~sync/9", &echoReq{})
		if f := failureOf(t, err); f.Type != message.NotFound || f.AnsweredBy != "portal/1" {
			t.Fatalf("%+v", f)
		}
		if time.Since(begin) != 0 {
			t.Fatalf("took %v", time.Since(begin))
		}
	})
}

// invariant 2
func TestADisposeMessageToTheRootMeshHubIsIgnored(t *testing.T) {
	in(t, func(r *rig) {
		r.start("acme/a", echoes(nil))
		if err := Dispose.Post(r.ctx, r.Mesh, "mesh/1", &DisposeRequest{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.mustEcho("acme/a", "still routed")
		if r.Root().Level() != lifecycle.Started {
			t.Fatal(r.Root().Level())
		}
	})
}

// invariant 3
func TestADisposeMessageToAHostedHubDisposesIt(t *testing.T) {
	in(t, func(r *rig) {
		host := r.start("portal/1", echoes(nil))
		child, err := host.Host(r.ctx, "sync/7", echoes(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := Dispose.Post(r.ctx, r.Mesh, "portal/1~sync/7", &DisposeRequest{}); err != nil {
			t.Fatal(err)
		}
		<-child.Done()
		if host.Hosted("sync/7") != nil || host.Level() != lifecycle.Started {
			t.Fatal("the host went too, or the child stayed")
		}
	})
}

// invariant 9
func TestAPostedDeliveryStartsWithAnEmptyRoutingPathAndLoopsAreAnswered(t *testing.T) {
	in(t, func(r *rig) {
		var first []string
		forwarder := func(to string) *Kind {
			k := NewKind("forwarder", Limits{})
			HandleAny(k, func(d *Delivery) (Verdict, error) {
				if first == nil {
					first = append([]string{}, d.Visited()...)
				}
				return Forward(to), nil
			})
			return k
		}
		r.start("acme/a", forwarder("acme/b"))
		r.start("acme/b", forwarder("acme/a"))
		_, err := echo.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
		if f := failureOf(t, err); f.Type != message.RoutingLoop || !strings.Contains(f.Message, "acme/a") {
			t.Fatalf("%+v", f)
		}
		if first == nil || len(first) != 0 {
			t.Fatalf("routing path at post: %v", first)
		}
		r.start("acme/c", forwarder("acme/d"))
		r.start("acme/d", echoes(nil))
		r.mustEcho("acme/c", "forwarded once")
	})
}

// invariant 24
func TestAnUnhandledRequestIsAnsweredNotFound(t *testing.T) {
	in(t, func(r *rig) {
		r.start("acme/a", NewKind("mute", Limits{}))
		_, err := echo.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
		if f := failureOf(t, err); f.Type != message.NotFound || f.Reason != message.ReasonUnhandled || f.AnsweredBy != "acme/a" {
			t.Fatalf("%+v", f)
		}
	})
}

// invariant 25
func TestAnUnhandledEventIsAnsweredWithAnIgnoredNotice(t *testing.T) {
	in(t, func(r *rig) {
		r.start("acme/mute", NewKind("mute", Limits{}))
		got := make(chan *message.Failure, 3)
		k := NewKind("teller", Limits{})
		Handle(k, echo, func(ctx context.Context, _ *Hub, _ *echoReq) (*echoResp, error) {
			return &echoResp{}, errors.Join(event.Post(ctx, r.Mesh, "acme/mute", &echoReq{}), chatty.Post(ctx, r.Mesh, "acme/mute", &echoReq{}))
		})
		Handle(k, Failed, func(_ context.Context, _ *Hub, n *Notice) (*None, error) {
			got <- n.Failure
			return nil, nil
		})
		r.start("acme/teller", k)
		r.mustEcho("acme/teller", "")
		if f := <-got; f.Type != message.Ignored || f.Operation != "test/event" {
			t.Fatalf("%+v", f)
		}
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("an ignorable message was answered too")
		}
	})
}

// messaging §1.5
func TestTheNewestRuleAnswersAndEveryMatchingRuleRuns(t *testing.T) {
	in(t, func(r *rig) {
		var ran []string
		base := NewKind("base", Limits{})
		handler := func(name string) func(context.Context, *Hub, *echoReq) (*echoResp, error) {
			return func(context.Context, *Hub, *echoReq) (*echoResp, error) {
				ran = append(ran, name)
				return &echoResp{name}, nil
			}
		}
		Handle(base, echo, handler("inherited"))
		k := NewKind("k", Limits{})
		k.Inherited = base
		Handle(k, echo, handler("old"))
		Handle(k, echo, handler("new"))
		h := r.start("acme/a", k)
		On(h, echo, handler("own"))
		resp, err := echo.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
		if err != nil || resp.Text != "own" {
			t.Fatalf("%v %v", resp, err)
		}
		synctest.Wait()
		if got := strings.Join(ran, " "); got != "own new old inherited" {
			t.Fatal(got)
		}
	})
}

// messaging §1.5
func TestAFallbackPolicyAnswersWhatNoRuleTakes(t *testing.T) {
	in(t, func(r *rig) {
		k := NewKind("broken", Limits{})
		k.Fallback = &Fallback{Type: message.CompilationFailed, Message: "type 'acme/T' is unusable", NodeTypePath: "acme/T"}
		r.start("acme/a", k)
		_, err := echo.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
		if f := failureOf(t, err); f.Type != message.CompilationFailed || f.NodeTypePath != "acme/T" {
			t.Fatalf("%+v", f)
		}
	})
}

// messaging §1.5
func TestAPanicAnswersItsCallerAndTheHubGoesOn(t *testing.T) {
	in(t, func(r *rig) {
		k := NewKind("k", Limits{})
		Handle(k, park, func(context.Context, *Hub, *echoReq) (*echoResp, error) { panic("boom") })
		Handle(k, echo, func(_ context.Context, _ *Hub, q *echoReq) (*echoResp, error) { return &echoResp{q.Text}, nil })
		r.start("acme/a", k)
		for range 3 {
			_, err := park.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
			if f := failureOf(t, err); f.Type != message.Exception || strings.Contains(f.Error(), "goroutine") {
				t.Fatalf("%+v", f)
			}
		}
		r.mustEcho("acme/a", "alive")
		if n := r.Stats().Panics; n != 3 {
			t.Fatal(n)
		}
	})
}

// messaging §1.2
func TestATurnHoldsTheHubAndOrderIsThatOfArrival(t *testing.T) {
	in(t, func(r *rig) {
		release := make(chan struct{})
		var got []string
		k := NewKind("k", Limits{})
		Handle(k, park, func(context.Context, *Hub, *echoReq) (*echoResp, error) { <-release; return nil, nil })
		Handle(k, event, func(_ context.Context, _ *Hub, q *echoReq) (*None, error) { got = append(got, q.Text); return nil, nil })
		h := r.start("acme/a", k)
		if err := park.Post(r.ctx, r.Mesh, "acme/a", &echoReq{}); err != nil {
			t.Fatal(err)
		}
		want := ""
		for i := range 200 {
			text := string(rune('a' + i%26))
			want += text
			if err := event.Post(r.ctx, r.Mesh, "acme/a", &echoReq{text}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("a second turn ran beside the first")
		}
		close(release)
		synctest.Wait()
		if strings.Join(got, "") != want {
			t.Fatal("out of order")
		}
		if h.Version() != 201 {
			t.Fatalf("version %d", h.Version())
		}
	})
}

// messaging §1.2
func TestATurnMayNotAskItsOwnHub(t *testing.T) {
	in(t, func(r *rig) {
		k := NewKind("k", Limits{})
		Handle(k, echo, func(ctx context.Context, _ *Hub, q *echoReq) (*echoResp, error) {
			return echo.Ask(ctx, r.Mesh, "acme/a", q)
		})
		r.start("acme/a", k)
		begin := time.Now()
		_, err := echo.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
		if f := failureOf(t, err); f.Reason != message.ReasonSelfAsk || time.Since(begin) != 0 {
			t.Fatalf("%v after %v", err, time.Since(begin))
		}
	})
}

// invariant 29
func TestDispatchSurvivesConcurrentRemovalOfRules(t *testing.T) {
	r := newRig(t)
	defer r.Close(context.Background())
	h := r.start("acme/a", echoes(nil))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				remove := On(h, event, func(context.Context, *Hub, *echoReq) (*None, error) { return nil, nil })
				remove()
			}
		})
	}
	for range 500 {
		r.mustEcho("acme/a", "x")
	}
	wg.Wait()
}

// messaging §1.4
func TestARequestThatWaitsLongIsReportedOnceAsStale(t *testing.T) {
	in(t, func(r *rig) {
		release := make(chan struct{})
		r.start("acme/a", echoes(release))
		done := make(chan error)
		go func() {
			_, err := park.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
			done <- err
		}()
		<-time.After(staleAfter - time.Millisecond)
		synctest.Wait()
		if n := r.log.count("[STALE-CALLBACK]"); n != 0 {
			t.Fatalf("%d lines too early", n)
		}
		<-time.After(20 * time.Second)
		synctest.Wait()
		if n := r.log.count("[STALE-CALLBACK]"); n != 1 {
			t.Fatalf("%d lines", n)
		}
		close(release)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

// hub §3
func TestAnAskWithTooLittleBudgetIsRefusedBeforeAnythingIsSent(t *testing.T) {
	in(t, func(r *rig) {
		h := r.start("acme/a", echoes(nil))
		ctx := budget.With(r.ctx, budget.Budget{Deadline: r.Clock().Now() + int64(10*time.Millisecond), By: budget.Read})
		_, err := echo.Ask(ctx, r.Mesh, "acme/a", &echoReq{})
		var small *budget.TooSmall
		if !errors.As(err, &small) || small.By != budget.Read || h.Version() != 0 {
			t.Fatalf("%v, version %d", err, h.Version())
		}
	})
}
