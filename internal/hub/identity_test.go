package hub

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/message"
)

// invariant 36
// edge invariant 26
func TestAPostWithoutIdentityFailsToTheCallerAndNeverThrows(t *testing.T) {
	in(t, func(r *rig) {
		h := r.start("acme/a", echoes(nil))
		_, err := echo.Ask(context.Background(), r.Mesh, "acme/a", &echoReq{})
		if f := failureOf(t, err); f.Reason != message.ReasonNoIdentity {
			t.Fatalf("%+v", f)
		}
		err = event.Post(message.WithIdentity(context.Background(), &message.Identity{}), r.Mesh, "acme/a", &echoReq{})
		if f := failureOf(t, err); f.Reason != message.ReasonNoIdentity {
			t.Fatalf("%+v", f)
		}
		if h.Version() != 0 || r.log.count("AccessContext must never be null") != 2 {
			t.Fatal("handled, or not logged")
		}
	})
}

// whoKind records the identity of every event.
func whoKind(seen chan *message.Identity) *Kind {
	k := NewKind("who", Limits{})
	Handle(k, event, func(ctx context.Context, _ *Hub, _ *echoReq) (*None, error) {
		seen <- message.IdentityFrom(ctx)
		return nil, nil
	})
	Handle(k, Ping, func(ctx context.Context, _ *Hub, _ *PingRequest) (*Pong, error) {
		seen <- message.IdentityFrom(ctx)
		return &Pong{}, nil
	})
	return k
}

// invariant 37
// invariant 38
// invariant 40
func TestASystemHubPostsAsSystemSecurityUnlessSomebodyIsAmbient(t *testing.T) {
	in(t, func(r *rig) {
		seen := make(chan *message.Identity, 4)
		r.start("acme/who", whoKind(seen))
		k := NewKind("service", Limits{})
		k.System = true
		Handle(k, HeartBeat, func(ctx context.Context, _ *Hub, _ *Heart) (*None, error) {
			return nil, event.Post(ctx, r.Mesh, "acme/who", &echoReq{})
		})
		Handle(k, echo, func(ctx context.Context, _ *Hub, _ *echoReq) (*echoResp, error) {
			return &echoResp{}, event.Post(ctx, r.Mesh, "acme/who", &echoReq{})
		})
		r.start("import/1", k)
		if err := HeartBeat.Post(context.Background(), r.Mesh, "import/1", &Heart{}); err != nil {
			t.Fatal(err)
		}
		if who := <-seen; who.Subject != message.SubjectSystem {
			t.Fatalf("posted as %v", who)
		}
		r.mustEcho("import/1", "")
		if who := <-seen; who != alice {
			t.Fatalf("the ambient identity lost to the system: %v", who)
		}
	})
}

// invariant 39
func TestSystemAndIgnorableMessagesNeedNoIdentity(t *testing.T) {
	in(t, func(r *rig) {
		seen := make(chan *message.Identity, 1)
		r.start("acme/a", whoKind(seen))
		if _, err := Ping.Ask(context.Background(), r.Mesh, "acme/a", &PingRequest{}); err != nil {
			t.Fatal(err)
		}
		if who := <-seen; who != nil {
			t.Fatalf("somebody was made up: %v", who)
		}
		if err := chatty.Post(context.Background(), r.Mesh, "acme/a", &echoReq{}); err != nil {
			t.Fatal(err)
		}
	})
}

// invariant 41
func TestAReplyAfterTheTurnKeepsTheRequesterAndReachesIt(t *testing.T) {
	in(t, func(r *rig) {
		work := make(chan func())
		var who *message.Identity
		k := NewKind("later", Limits{})
		HandleLater(k, echo, func(ctx context.Context, _ *Hub, q *echoReq, reply Reply[*echoResp]) error {
			go func() {
				(<-work)()
				who = message.IdentityFrom(ctx)
				reply(&echoResp{q.Text}, nil)
				reply(&echoResp{"a second reply"}, errors.New("does nothing"))
			}()
			return nil
		})
		h := r.start("acme/a", k)
		result := make(chan *echoResp)
		go func() {
			resp, _ := echo.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{"late"})
			result <- resp
		}()
		synctest.Wait()
		if h.Version() != 1 {
			t.Fatal("the turn has not ended")
		}
		work <- func() {}
		if resp := <-result; resp == nil || resp.Text != "late" || who != alice {
			t.Fatalf("%v as %v", resp, who)
		}
	})
}

// invariant 42
func TestEachTurnSeesItsOwnIdentityAndNothingLeaksBetweenThem(t *testing.T) {
	in(t, func(r *rig) {
		seen := make(chan *message.Identity, 2)
		r.start("acme/a", whoKind(seen))
		bob := &message.Identity{Subject: "bob"}
		for _, who := range []*message.Identity{alice, bob} {
			if err := event.Post(message.WithIdentity(context.Background(), who), r.Mesh, "acme/a", &echoReq{}); err != nil {
				t.Fatal(err)
			}
			if got := <-seen; got != who {
				t.Fatalf("got %v, want %v", got, who)
			}
		}
	})
}

// invariant 31
func TestRouterTrafficIsToldByRoleForTheExactTypeAndNeverForHeartbeats(t *testing.T) {
	a := func(path string) *address.Address { x := address.Of(path); return &x }
	for _, c := range []struct {
		from, to  *address.Address
		heartbeat bool
		want      string
	}{
		{a("mesh/1"), a("acme/x"), false, "sender"},
		{a("acme/x"), a("mesh/1"), false, "target"},
		{a("mesh/1"), a("mesh/2"), false, "both"},
		{a("meshes/1"), a("acme/mesh"), false, ""},
		{nil, a("acme/x"), false, ""},
		{a("mesh/1"), a("mesh/1"), true, ""},
	} {
		if got := routerRole(c.from, c.to, c.heartbeat); got != c.want {
			t.Errorf("%v → %v: %q, want %q", c.from, c.to, got, c.want)
		}
	}
	in(t, func(r *rig) {
		for range 3 {
			if _, err := Ping.Ask(r.ctx, r.Mesh, "mesh/1", &PingRequest{}); err != nil {
				t.Fatal("traffic to the mesh hub was blocked:", err)
			}
		}
		if n := r.log.count("ROUTER_TRAFFIC"); n != 1 {
			t.Fatalf("%d lines for one role and type", n)
		}
	})
}
