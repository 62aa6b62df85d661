package hub

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
)

// invariant 10
// invariant 12
func TestTheMessageAfterTheThresholdTripsOnceAndAQuietWindowHeals(t *testing.T) {
	s := &storm{limit: 2000}
	key := stormKey{from: "acme/a", to: 1}
	now := int64(5 * time.Second)
	for i := range 2000 {
		if v := s.post(key, now); v != stormPass {
			t.Fatalf("message %d: %v", i+1, v)
		}
	}
	if v := s.post(key, now); v != stormTrip {
		t.Fatalf("message 2001: %v", v)
	}
	for range 5000 {
		if v := s.post(key, now+int64(time.Second)); v != stormDrop {
			t.Fatalf("during the cooldown: %v", v)
		}
	}
	if v := s.post(key, now+int64(stormCooldown)); v != stormPass {
		t.Fatalf("after the cooldown: %v", v)
	}
	s.post(stormKey{from: "other"}, now+int64(10*time.Second))
	if len(s.keys) != 1 {
		t.Fatalf("%d keys are remembered", len(s.keys))
	}
}

// invariant 11
func TestHighDiverseVolumeNeverTrips(t *testing.T) {
	s := &storm{limit: 2000}
	for i := range 100_000 {
		if v := s.post(stormKey{from: fmt.Sprint("acme/", i%100), to: 1}, int64(i)*int64(time.Second)/100_000); v != stormPass {
			t.Fatalf("post %d: %v", i, v)
		}
	}
}

// invariant 7
func TestASingleKeyStormTripsOnceAndOtherTypesAreAnswered(t *testing.T) {
	in(t, func(r *rig) {
		var handled atomic.Int32
		k := echoes(nil)
		Handle(k, event, func(context.Context, *Hub, *echoReq) (*None, error) { handled.Add(1); return nil, nil })
		r.start("acme/a", k)
		for range 5000 {
			if err := event.Post(r.ctx, r.Mesh, "acme/a", &echoReq{}); err != nil {
				t.Fatal("a drop is Ignored, never Failed:", err)
			}
		}
		r.mustEcho("acme/a", "answered")
		synctest.Wait()
		if handled.Load() != 2000 || r.log.count("MESSAGE STORM") != 1 || r.Stats().StormDropped != 3000 {
			t.Fatalf("%d handled, %d reports, %d dropped", handled.Load(), r.log.count("MESSAGE STORM"), r.Stats().StormDropped)
		}
		<-time.After(stormCooldown)
		event.Post(r.ctx, r.Mesh, "acme/a", &echoReq{})
		synctest.Wait()
		if handled.Load() != 2001 {
			t.Fatal("did not heal")
		}
	})
}

// messaging §1.8
func TestARequestIsNeverDroppedByTheStormRule(t *testing.T) {
	in(t, func(r *rig) {
		r.start("acme/a", echoes(nil))
		for i := range 6000 {
			r.mustEcho("acme/a", fmt.Sprint(i))
		}
		if r.Stats().StormDropped != 0 {
			t.Fatal("asks were counted")
		}
	})
}

// invariant 8
// invariant 14
func TestOverloadShedsOnlyIgnorableMessagesAndRefusesRequestsAtTheHardBound(t *testing.T) {
	in(t, func(r *rig) {
		release := make(chan struct{})
		var events atomic.Int32
		k := echoes(release)
		Handle(k, event, func(context.Context, *Hub, *echoReq) (*None, error) { events.Add(1); return nil, nil })
		h := r.start("acme/a", k)
		go park.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
		synctest.Wait()
		for i := range 10_000 {
			// distinct senders, so that no single key is a storm
			d := &Delivery{msg: &echoReq{}, info: &event.typeInfo, who: alice, to: &h.addr, posted: r.clock.Now() + int64(i)*int64(time.Millisecond)}
			h.accept(d)
		}
		for range 100 {
			chatty.Post(r.ctx, r.Mesh, "acme/a", &echoReq{})
			HeartBeat.Post(r.ctx, r.Mesh, "acme/a", &Heart{})
		}
		if st := r.Stats(); st.Shed != 200 || st.StormDropped != 0 {
			t.Fatalf("%+v", st)
		}
		answers := make(chan error, 10_050)
		for range 10_050 {
			go func() {
				_, err := echo.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
				answers <- err
			}()
		}
		synctest.Wait()
		refused := len(answers)
		if refused != 50 {
			t.Fatalf("%d refused at the hard bound", refused)
		}
		f := failureOf(t, <-answers)
		if f.Reason != message.ReasonOverloaded || !strings.Contains(f.Message, "nothing was queued") {
			t.Fatalf("%+v", f)
		}
		if n := r.log.count("ACTION-BLOCK OVERLOAD"); n != 1 {
			t.Fatalf("%d overload lines", n)
		}
		close(release)
		for range 10_049 {
			err := <-answers
			if err != nil && failureOf(t, err).Reason != message.ReasonOverloaded {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if events.Load() != 10_000 {
			t.Fatalf("%d user events handled", events.Load())
		}
	})
}

// invariant 13
func TestLifecycleTrafficIsNeverDropped(t *testing.T) {
	in(t, func(r *rig) {
		release := make(chan struct{})
		h := r.start("acme/a", echoes(release))
		go park.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
		synctest.Wait()
		for range 10_500 {
			go echo.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
		}
		synctest.Wait()
		for range 3000 {
			if err := Dispose.Post(r.ctx, r.Mesh, "acme/a", &DisposeRequest{}); err != nil {
				t.Fatal(err)
			}
		}
		close(release)
		<-h.Done()
		if st := r.Stats(); st.StormDropped != 0 || st.Shed != 0 {
			t.Fatalf("%+v", st)
		}
	})
}

// messaging §1.4
func TestRacingRepliesLapsesCancellationsAndPanicsGiveEveryRequestExactlyOneOutcome(t *testing.T) {
	r := newRig(t)
	defer r.Close(context.Background())
	k := NewKind("racy", Limits{})
	HandleLater(k, echo, func(_ context.Context, _ *Hub, q *echoReq, reply Reply[*echoResp]) error {
		switch q.Text {
		case "panic":
			panic("now")
		case "error":
			return errors.New("no")
		case "twice":
			go reply(&echoResp{}, nil)
			go reply(nil, errors.New("no"))
		case "never":
		default:
			reply(&echoResp{}, nil)
		}
		return nil
	})
	r.start("acme/a", k)
	kinds := []string{"panic", "error", "twice", "never", "plain"}
	var wg sync.WaitGroup
	var answered, refused atomic.Int64
	const each = 300
	for i := range 16 {
		wg.Go(func() {
			for n := range each {
				ctx, cancel := context.WithTimeout(r.ctx, time.Duration(5+n%10)*time.Millisecond)
				_, err := echo.Ask(ctx, r.Mesh, "acme/a", &echoReq{kinds[(n+i)%len(kinds)]})
				var small *budget.TooSmall
				if errors.As(err, &small) {
					refused.Add(1) // the machine was late: nothing was sent, so there is no outcome
				}
				answered.Add(1)
				cancel()
			}
		})
	}
	wg.Wait()
	st := r.Stats()
	if sum := st.Replied + st.Failed + st.Lapsed + st.Cancelled; sum+refused.Load() != 16*each || answered.Load() != 16*each || st.Pending != 0 {
		t.Fatalf("%d outcomes for %d requests: %+v", sum, 16*each, st)
	}
}

// messaging §1.4
func TestAScopeThatEndsCompletesItsAsksAtOnce(t *testing.T) {
	in(t, func(r *rig) {
		release := make(chan struct{})
		r.start("acme/a", echoes(release))
		reads := r.start("portal/reads-1", NewKind("reads", Limits{}))
		ctx, cancel := context.WithCancel(r.ctx)
		scope := r.NewScope(ctx, reads)
		defer scope.End()
		result := make(chan error)
		go func() {
			_, err := park.Ask(scope, r.Mesh, "acme/a", &echoReq{})
			result <- err
		}()
		synctest.Wait()
		if s := reads.Snapshot(); len(s.Pending) != 1 || s.Pending[0].Target != "acme/a" {
			t.Fatalf("%v", s)
		}
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := echo.Ask(scope, r.Mesh, "acme/a", &echoReq{}); !errors.Is(err, context.Canceled) {
			t.Fatal("an ended scope still asks:", err)
		}
		close(release)
	})
}

// hub §1
func TestAQuickTurnRunsOnAnIdleHubKeepsTheOrderAndMayNotAsk(t *testing.T) {
	in(t, func(r *rig) {
		release := make(chan struct{})
		k := NewKind("quick", Limits{})
		HandleQuick(k, echo, func(_ context.Context, _ *Hub, q *echoReq) (*echoResp, error) { return &echoResp{q.Text}, nil })
		HandleQuick(k, relay, func(ctx context.Context, _ *Hub, q *echoReq) (*echoResp, error) {
			return echo.Ask(ctx, r.Mesh, "acme/b", q)
		})
		Handle(k, park, func(context.Context, *Hub, *echoReq) (*echoResp, error) { <-release; return nil, nil })
		r.start("acme/a", k)
		r.start("acme/b", echoes(nil))
		r.mustEcho("acme/a", "quick")
		if st := r.Stats(); st.Replied != 0 {
			t.Fatal("a quick turn took a slot")
		}
		if _, err := relay.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{}); failureOf(t, err).Reason != message.ReasonSelfAsk {
			t.Fatal(err)
		}
		go park.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
		synctest.Wait()
		done := make(chan struct{})
		go func() { r.mustEcho("acme/a", "queued behind the turn"); close(done) }()
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("ran beside another turn")
		default:
		}
		close(release)
		<-done
	})
}

// invariant 30
func TestAnIdleHubHasNoGoroutineAndRetiresAfterItsIdleBound(t *testing.T) {
	in(t, func(r *rig) {
		k := echoes(nil)
		k.Idle = 5 * time.Minute
		h := r.start("acme/a", k)
		pinned := echoes(nil)
		pinned.Idle = 5 * time.Minute
		pinned.MayRetire = func(*Hub) bool { return false }
		r.start("acme/pinned", pinned)
		r.mustEcho("acme/a", "x")
		synctest.Wait()
		if h.flags.Load()&flagRunning != 0 {
			t.Fatal("an idle hub runs")
		}
		<-time.After(4 * time.Minute)
		r.mustEcho("acme/a", "used again")
		<-time.After(4 * time.Minute)
		if h.Gone() {
			t.Fatal("retired though used four minutes ago")
		}
		<-time.After(3 * time.Minute)
		if !h.Gone() || r.Find("acme/a") != nil {
			t.Fatal("still there")
		}
		if r.Find("acme/pinned") == nil {
			t.Fatal("a hub that may not retire is gone")
		}
	})
}
