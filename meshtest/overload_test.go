package meshtest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/hub"
)

// bad input: more posts than may wait for a node hub that starts
// invariant 46; decision 2
func TestPostsBeyondWhatMayWaitForAStartAreToldToTheirSenderOnAnotherSiloAndHoldNothingUp(t *testing.T) {
	o := Options{RowDelay: func(path string) time.Duration {
		if path == "acme/a" {
			return 5 * time.Second
		}
		return 0
	}}
	mesh(t, o, func(t *testing.T, c *Cluster) {
		c.create(t, "acme", "acme/a")
		s1, s2 := c.Silo("s1"), c.Silo("s2")
		read := make(chan error)
		go func() {
			_, err := s1.Nodes.Get(system(t), "acme/a")
			read <- err
		}()
		c.Wait("the node to start at s1", func() bool { _, starts := s1.Router.InFlight("acme/a"); return starts })
		var told atomic.Int64
		k := hub.NewKind("sender", hub.Limits{Storm: 1 << 20})
		hub.Handle(k, hub.Failed, func(context.Context, *hub.Hub, *hub.Notice) (*hub.None, error) {
			told.Add(1)
			return &hub.None{}, nil
		})
		h, err := s2.Mesh.Start(address.Of("portal/sender"), k, nil)
		if err != nil {
			t.Fatal(err)
		}
		const posts, waiting = 600, 512 // one of those that wait is the read
		h.Do(func(ctx context.Context, h *hub.Hub) {
			for n := range posts {
				if err := echo.Post(ctx, h.Mesh(), "acme/a", &echoRequest{n}); err != nil {
					t.Error(err)
				}
			}
		})
		c.Wait("the sender to hear of those that were refused", func() bool { return told.Load() == posts-waiting+1 })
		if _, starts := s1.Router.InFlight("acme/a"); !starts {
			t.Error("it was told late")
		}
		if err := <-read; err != nil {
			t.Fatal(err)
		}
	})
}
