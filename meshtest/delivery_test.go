package meshtest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
)

// entries are the directory's entries of an address, wherever its slot is.
func (c *Cluster) entries(addr string) (found []wire.Entry) {
	for _, s := range c.Silos() {
		s.Router.Do(func(x *cluster.Silo) {
			if e, ok := x.Owner.Entry(addr); ok {
				found = append(found, e)
			}
		})
	}
	return found
}

// C2: success pins the address until it is released, and no idle collection takes it.
func TestAClaimThatLandedStandsUntilItsOwnerReleasesItHoweverLongNobodyAsks(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		c.create(t, "acme", "acme/a")
		s1 := c.Silo("s1")
		h := serve(t, s1, "portal/x")
		if _, err := s1.Nodes.Get(system(t), "acme/a"); err != nil {
			t.Fatal(err)
		}
		c.Wait("the claims to land", func() bool { return len(c.entries("portal/x")) == 1 && len(c.entries("acme/a")) == 1 })
		before := c.entries("portal/x")[0]
		if before.Epoch != s1.Epoch() {
			t.Fatalf("%+v is not s1's", before)
		}
		round := func() (n uint32) {
			s1.Router.Do(func(x *cluster.Silo) {
				st, _ := x.Claims.State("portal/x")
				n = st.Round
			})
			return n
		}
		<-time.After(time.Second) // connections that open at the start have it claimed once more
		claimed := round()
		<-time.After(15 * time.Minute) // virtual
		if left := c.entries("acme/a"); len(left) != 0 {
			t.Fatalf("idle collection has not taken the node hub: %+v", left)
		}
		if now := c.entries("portal/x"); !slices.Equal(now, []wire.Entry{before}) {
			t.Fatalf("%+v, was %+v", now, before)
		}
		if n := round(); n != claimed { // it stands, and was not made again
			t.Fatalf("it was claimed %d times more", n-claimed)
		}
		for _, s := range c.Silos() {
			if r, err := echo.Ask(system(t), s.Mesh, "portal/x", &echoRequest{}); err != nil || r.Silo != "s1" {
				t.Errorf("from %s: %+v %v", s.Name, r, err)
			}
		}
		h.Dispose()
		<-h.Done()
		c.Wait("the release", func() bool { return len(c.entries("portal/x")) == 0 })
		_, err := echo.Ask(system(t), c.Silo("s2").Mesh, "portal/x", &echoRequest{})
		var f *message.Failure
		if !errors.As(err, &f) || f.Reason != message.ReasonReleased {
			t.Errorf("%+v", err)
		}
	})
}

// C5
func TestADeliveryEndsInTheInboxAndItsSenderWaitsForNoProcessing(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		began, leave := make(chan struct{}), make(chan struct{})
		var handled []int
		k := hub.NewKind("parked", hub.Limits{})
		hub.Handle(k, echo, func(_ context.Context, _ *hub.Hub, r *echoRequest) (*echoReply, error) {
			if r.N == 0 {
				close(began)
				<-leave
			}
			handled = append(handled, r.N)
			return &echoReply{N: r.N}, nil
		})
		if _, err := c.Silo("s1").Mesh.Start(address.Of("portal/x"), k, nil); err != nil {
			t.Fatal(err)
		}
		serve(t, c.Silo("s1"), "portal/other")
		sender := c.Silo("s0")
		const posts = 100
		begin := time.Now()
		for n := range posts {
			if err := echo.Post(system(t), sender.Mesh, "portal/x", &echoRequest{n}); err != nil {
				t.Fatal(err)
			}
		}
		<-began
		// The hub is in its first turn, and will be: everything behind it is in its inbox, and its sender knows.
		c.Wait("all of them to be taken", func() bool {
			l, ok := sender.Router.LaneTo("portal/x")
			return ok && l.State == "open" && l.Waiting+l.Outstanding+l.Refused == 0
		})
		// What came on the same connection after them is not behind them.
		if r, err := echo.Ask(system(t), sender.Mesh, "portal/other", &echoRequest{7}); err != nil || r.N != 7 {
			t.Errorf("%+v %v", r, err)
		}
		if took := time.Since(begin); took > 200*time.Millisecond {
			t.Errorf("after %v", took)
		}
		close(leave)
		if _, err := echo.Ask(system(t), sender.Mesh, "portal/x", &echoRequest{posts}); err != nil {
			t.Fatal(err)
		}
		want := make([]int, posts+1)
		for n := range want {
			want[n] = n
		}
		if !slices.Equal(handled, want) {
			t.Errorf("handled %v", handled)
		}
	})
}

// C12
func TestASiloThatIsAloneClaimsItsHubOnceAndServesIt(t *testing.T) {
	mesh(t, Options{Silos: 1}, func(t *testing.T, c *Cluster) {
		s := c.Silo("s0")
		serve(t, s, "portal/x")
		<-time.After(time.Hour) // virtual
		s.Router.Do(func(x *cluster.Silo) {
			if st, ok := x.Claims.State("portal/x"); !ok || st.Round != 1 || st.Landed != x.Self() {
				t.Errorf("%+v", st)
			}
			if n := x.Counts().Views; n != 1 {
				t.Errorf("%d views", n)
			}
		})
		if now := c.entries("portal/x"); len(now) != 1 || now[0].Epoch != s.Epoch() {
			t.Errorf("%+v", now)
		}
		if r, err := echo.Ask(system(t), s.Mesh, "portal/x", &echoRequest{3}); err != nil || r.N != 3 {
			t.Errorf("%+v %v", r, err)
		}
	})
}
