package meshtest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/lifecycle"
)

// grants counts the silos that hold the grant of a node, and those that have a hub of it without one.
func (c *Cluster) grants(path string) (held, bare int) {
	for _, s := range c.Silos() {
		s.Router.Do(func(x *cluster.Silo) {
			_, ok := x.Claims.Serves(path)
			switch {
			case ok:
				held++
			case s.Mesh.Find(path) != nil:
				bare++
			}
		})
	}
	return held, bare
}

// decision 3
// A silo that was put out stops its hubs and joins anew; a hub that takes its time to stop ends after the silo has been
// granted the node again, while the row for the next hub is being read. It gives back its own grant and not that one.
func TestAHubThatEndsLateGivesBackNoGrantButItsOwn(t *testing.T) {
	var late atomic.Int64
	o := Options{
		Kinds: map[string]func(*hub.Kind){"A": func(k *hub.Kind) {
			hub.Handle(k, echo, func(_ context.Context, _ *hub.Hub, r *echoRequest) (*echoReply, error) {
				<-time.After(time.Duration(r.N) * time.Millisecond) // a handler that does not look at its context
				return &echoReply{N: r.N}, nil
			})
		}},
		NodeTypes: func(s string) []string {
			if s == "s0" {
				return []string{"Space"}
			}
			return []string{"A"}
		},
		RowDelay: func(path string) time.Duration {
			if path != "acme/a" {
				return 0
			}
			return time.Duration(late.Load())
		},
	}
	mesh(t, o, func(t *testing.T, c *Cluster) {
		c.create(t, "acme")
		c.of(t, "acme/a", "A")
		s1, s2 := c.Silo("s1"), c.Silo("s2")
		if _, err := s1.Nodes.Get(system(t), "acme/a"); err != nil {
			t.Fatal(err)
		}
		if s1.Mesh.Find("acme/a") == nil {
			s1, s2 = s2, s1
		}
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			_, _ = echo.Ask(system(t), s1.Mesh, "acme/a", &echoRequest{300}) // the hub is put down in this turn
		}()
		<-time.After(time.Millisecond)
		late.Store(int64(200 * time.Millisecond))
		c.Table.Remove(s1.Epoch())
		c.Wait("it to be back", func() bool { return len(c.Table.View().Members()) == 3 && s1.Epoch() != 0 })
		read := make(chan struct{})
		go func() { // has it placed there again
			defer close(read)
			_, _ = c.Silo("s0").Nodes.Get(system(t), "acme/a")
		}()
		<-asked
		for range 20 { // while the next hub begins
			<-time.After(50 * time.Millisecond)
			if held, bare := c.grants("acme/a"); held > 1 || bare > 0 && started(s1, "acme/a") {
				t.Fatalf("%d silos hold the grant, and %d have a hub without one; the hubs are at %v", held, bare, c.at("acme/a"))
			}
		}
		late.Store(0)
		<-read
		for _, s := range []*Silo{s2, s1, c.Silo("s0")} {
			c.Wait("the node to be read from "+s.Name, func() bool {
				_, err := s.Nodes.Get(system(t), "acme/a")
				return err == nil
			})
		}
		if held, bare := c.grants("acme/a"); held != 1 || bare != 0 {
			t.Errorf("%d silos hold the grant, and %d have a hub without one; the hubs are at %v", held, bare, c.at("acme/a"))
		}
	})
}

// C1, C9
// The end of a hub is told after another one has begun at its address: it takes that one's local route and claim not
// away.
func TestAHubThatBeginsAtOnceAtTheAddressOfAnotherKeepsItsClaim(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		s := c.Silo("s1")
		k := hub.NewKind("echo", hub.Limits{})
		hub.Handle(k, echo, func(_ context.Context, _ *hub.Hub, r *echoRequest) (*echoReply, error) {
			return &echoReply{r.N, s.Name}, nil
		})
		old, err := hub.New(hub.Options{ID: "elsewhere"})
		if err != nil {
			t.Fatal(err)
		}
		defer old.Close(context.Background())
		before, err := old.Start(address.Of("portal/x"), k, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.Router.Registered(before)
		if _, err := s.Mesh.Start(address.Of("portal/x"), k, nil); err != nil {
			t.Fatal(err)
		}
		s.Router.Removed(before) // late
		if _, ok := s.Router.Serving("portal/x"); !ok {
			t.Fatal("the hub has no local route")
		}
		c.Wait("the address to be served from another silo", func() bool {
			got, err := echo.Ask(system(t), c.Silo("s0").Mesh, "portal/x", &echoRequest{1})
			return err == nil && got.N == 1
		})
	})
}

func started(s *Silo, path string) bool {
	h := s.Mesh.Find(path)
	return h != nil && h.Level() == lifecycle.Started
}
