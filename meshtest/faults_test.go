package meshtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
)

// fault 14
func TestTwentyScaleEventsUnderLoadShowNoErrorThatIsNotTransientAndLoseNoWrite(t *testing.T) {
	mesh(t, Options{Seed: 14}, func(t *testing.T, c *Cluster) {
		paths := []string{"acme", "acme/a", "acme/b", "acme/c", "acme/d"}
		c.create(t, paths...)
		ctx, stop := context.WithCancel(system(t))
		var wg sync.WaitGroup
		var mu sync.Mutex
		acked := map[string]int64{} // greatest acknowledged version
		writes, transient := 0, 0
		for i := range 8 {
			wg.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					mu.Lock()
					silos := c.Silos()
					s := silos[(i+n)%len(silos)]
					mu.Unlock()
					p := paths[1+(i+n)%4]
					got, err := s.Nodes.Patch(ctx, node.Path(p), []byte(fmt.Sprintf(`{"description":"%d %d"}`, i, n)), nodehub.Condition{})
					mu.Lock()
					switch {
					case err == nil:
						writes++
						acked[p] = max(acked[p], got.Version)
					case message.IsTransient(err):
						transient++
					case ctx.Err() == nil && !errors.Is(err, context.Canceled):
						t.Errorf("%s from %s: %v", p, s.Name, err)
					}
					mu.Unlock()
					<-time.After(10 * time.Millisecond)
				}
			})
		}
		for event := range 20 {
			mu.Lock()
			silos := c.Silos()
			mu.Unlock()
			switch {
			case event%3 == 0 || len(silos) < 2:
				mu.Lock()
				c.Add(fmt.Sprintf("n%d", event))
				mu.Unlock()
			case event%3 == 1:
				if err := silos[0].Leave(ctx); err != nil {
					t.Error(err)
				}
			default:
				silos[len(silos)-1].Crash()
			}
			<-time.After(500 * time.Millisecond)
		}
		stop()
		wg.Wait()
		c.WaitJoined()
		for p, v := range acked {
			for _, s := range c.Silos() {
				n, err := s.Nodes.Get(system(t), node.Path(p))
				if err != nil || n.Version < v {
					t.Errorf("%s at %s: version %d, acknowledged %d: %v", p, s.Name, n.Version, v, err)
				}
			}
		}
		t.Logf("%d writes, %d transient failures", writes, transient)
		if writes < 1000 || transient > writes/10 {
			t.Errorf("%d writes, %d transient failures", writes, transient)
		}
	})
}

// seen is a hub that notes the numbers that it is told.
func seen(t testing.TB, s *Silo, at string) func() []int {
	t.Helper()
	var mu sync.Mutex
	var numbers []int
	k := hub.NewKind("seen", hub.Limits{})
	hub.Handle(k, echo, func(_ context.Context, _ *hub.Hub, r *echoRequest) (*echoReply, error) {
		mu.Lock()
		defer mu.Unlock()
		numbers = append(numbers, r.N)
		return &echoReply{r.N, s.Name}, nil
	})
	if _, err := s.Mesh.Start(address.Of(at), k, nil); err != nil {
		t.Fatal(err)
	}
	return func() []int {
		mu.Lock()
		defer mu.Unlock()
		return append([]int(nil), numbers...)
	}
}

// C30
func TestPostsToOneAddressArriveInOrderWhereverItMoves(t *testing.T) {
	mesh(t, Options{Seed: 30}, func(t *testing.T, c *Cluster) {
		ctx := system(t)
		sender := c.Silo("s0")
		first := seen(t, c.Silo("s1"), "portal/x")
		n := 0
		post := func() {
			if err := echo.Post(ctx, sender.Mesh, "portal/x", &echoRequest{n}); err != nil {
				t.Fatal(err)
			}
			n++
		}
		for range 200 {
			post()
		}
		<-time.After(time.Second)
		c.Silo("s1").Mesh.Find("portal/x").Dispose()
		for range 50 { // while it is on its way down, and nobody serves it
			post()
		}
		second := seen(t, c.Silo("s2"), "portal/x")
		for range 50 {
			post()
		}
		<-time.After(time.Second)
		for _, got := range [][]int{first(), second()} {
			for i := 1; i < len(got); i++ {
				if got[i] <= got[i-1] {
					t.Fatalf("%d came after %d", got[i], got[i-1])
				}
			}
		}
		if len(first()) < 200 || len(second()) < 50 {
			t.Errorf("%d and %d arrived", len(first()), len(second()))
		}
	})
}

// fault 11
func TestWhatWaitsAtAHubThatGoesDownIsAnsweredEachOnce(t *testing.T) {
	mesh(t, Options{Seed: 11}, func(t *testing.T, c *Cluster) {
		release := make(chan struct{})
		k := hub.NewKind("slow", hub.Limits{})
		hub.Handle(k, echo, func(_ context.Context, _ *hub.Hub, r *echoRequest) (*echoReply, error) {
			<-release
			return &echoReply{r.N, "s1"}, nil
		})
		h, err := c.Silo("s1").Mesh.Start(address.Of("portal/slow"), k, nil)
		if err != nil {
			t.Fatal(err)
		}
		const asks = 50
		ends := make(chan error, asks)
		for i := range asks {
			go func() {
				_, err := echo.Ask(system(t), c.Silo("s0").Mesh, "portal/slow", &echoRequest{i})
				ends <- err
			}()
		}
		<-time.After(100 * time.Millisecond)
		h.Dispose()
		<-time.After(100 * time.Millisecond)
		close(release)
		answered := 0
		for range asks {
			err := <-ends
			if err == nil {
				answered++
				continue
			}
			var f *message.Failure
			if !errors.As(err, &f) || (f.Type != message.ShuttingDown && f.Reason != message.ReasonReleased) {
				t.Errorf("%+v", err)
			}
		}
		t.Logf("%d of %d were served before it went down", answered, asks)
	})
}

// protocol §7
func TestAFrozenSiloDelaysNoReadBySecondsAndIsPutOut(t *testing.T) {
	mesh(t, Options{Seed: 7}, func(t *testing.T, c *Cluster) {
		serve(t, c.Silo("s1"), "portal/x")
		ctx := system(t)
		if _, err := hub.Ping.Ask(ctx, c.Silo("s0").Mesh, "mesh/"+c.Silo("s1").Mesh.ID(), &hub.PingRequest{}); err != nil {
			t.Fatal(err)
		}
		c.Network.Hold("s1")
		begin := time.Now()
		_, err := hub.Ping.Ask(ctx, c.Silo("s0").Mesh, "mesh/"+c.Silo("s1").Mesh.ID(), &hub.PingRequest{})
		if took := time.Since(begin); !message.IsTransient(err) || took > time.Second {
			t.Errorf("a read in flight: after %v: %v", took, err)
		}
		c.Wait("the frozen silo to be put out", func() bool { return len(c.Silo("s0").View().Members()) == 2 })
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("put out after %v", took)
		}
		begin = time.Now()
		_, err = echo.Ask(ctx, c.Silo("s0").Mesh, "portal/x", &echoRequest{})
		if took := time.Since(begin); !message.IsTransient(err) || took > 100*time.Millisecond {
			t.Errorf("an ask after that: after %v: %v", took, err)
		}
		c.Network.Release("s1")
		c.Wait("it to be back with another epoch", func() bool { return len(c.Silo("s0").View().Members()) == 3 })
		if _, err := echo.Ask(ctx, c.Silo("s0").Mesh, "portal/x", &echoRequest{}); err != nil {
			t.Errorf("its hub is not reached: %v", err)
		}
	})
}

// fault 17
func TestAPostThatNobodyTakesIsToldToItsSendersHub(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		told := make(chan *message.Failure, 1)
		k := hub.NewKind("sender", hub.Limits{})
		hub.Handle(k, hub.Failed, func(_ context.Context, _ *hub.Hub, n *hub.Notice) (*hub.None, error) {
			told <- n.Failure
			return nil, nil
		})
		hub.Handle(k, echo, func(ctx context.Context, h *hub.Hub, r *echoRequest) (*echoReply, error) {
			return &echoReply{}, echo.Post(ctx, h.Mesh(), "portal/nobody", r)
		})
		if _, err := c.Silo("s0").Mesh.Start(address.Of("portal/sender"), k, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := echo.Ask(system(t), c.Silo("s1").Mesh, "portal/sender", &echoRequest{}); err != nil {
			t.Fatal(err)
		}
		if f := <-told; !f.TargetUnserved {
			t.Errorf("%+v", f)
		}
	})
}

// decision 2: a refusal names who answered; `hubmesh why`
func TestWhySaysWhoServesAnAddressAndWhoSaysSo(t *testing.T) {
	mesh(t, Options{StartDelay: func(p string) time.Duration {
		if p == "acme/slow" {
			return 8 * time.Second
		}
		return 0
	}}, func(t *testing.T, c *Cluster) {
		c.create(t, "acme", "acme/a", "acme/slow")
		ctx := system(t)
		serve(t, c.Silo("s1"), "portal/x")
		<-time.After(100 * time.Millisecond)
		x, err := c.Silo("s0").Router.Explain(ctx, "portal/x")
		if err != nil {
			t.Fatal(err)
		}
		entry := false
		for _, o := range x.Observations {
			if o.Missing != "" || o.Role == "slot-owner" && o.Silo != x.SlotOwner {
				t.Errorf("%+v", o)
			}
			if o.Slot != nil && o.Slot.Entry != nil {
				entry = o.Slot.Entry.Silo == "s1" && o.Slot.Settled
			}
		}
		if !entry {
			t.Errorf("%+v", x)
		}
		go c.Silo("s1").Nodes.Get(ctx, "acme/slow")
		c.Wait("the node to start", func() bool { return c.Silo("s1").Mesh.Find("acme/slow") != nil })
		<-time.After(2 * time.Second)
		if x, err = c.Silo("s2").Router.Explain(ctx, "acme/slow"); err != nil {
			t.Fatal(err)
		}
		told := false
		for _, o := range x.Observations {
			told = told || o.Silo == "s1" && o.Serving && strings.Contains(string(o.Hub), "STILL STARTING")
		}
		if !told {
			t.Errorf("%+v", x)
		}
		c.Network.Hold(x.SlotOwner)
		begin := time.Now()
		x, err = c.Silo("s0").Router.Explain(ctx, "acme/slow")
		if x.SlotOwner != "s0" && (err != nil || x.Observations[1].Missing == "" || time.Since(begin) > 1100*time.Millisecond) {
			t.Errorf("of a frozen slot owner after %v: %+v %v", time.Since(begin), x, err)
		}
		c.Network.Release(x.SlotOwner)
	})
}
