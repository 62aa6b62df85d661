package meshtest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
)

// poster is a hub that posts, and counts how it hears of what was refused as overloaded.
type poster struct {
	*hub.Hub
	back, told, other atomic.Int64 // by Post, by a notice, and notices of another reason
}

func (p *poster) heard() int64 { return p.back.Load() + p.told.Load() }

func (s *Silo) poster(t *testing.T) *poster {
	t.Helper()
	p := &poster{}
	k := hub.NewKind("poster", hub.Limits{Storm: 1 << 20})
	hub.Handle(k, hub.Failed, func(_ context.Context, _ *hub.Hub, n *hub.Notice) (*hub.None, error) {
		if n.Failure.Reason == message.ReasonOverloaded {
			p.told.Add(1)
		} else {
			p.other.Add(1)
		}
		return &hub.None{}, nil
	})
	var err error
	if p.Hub, err = s.Mesh.Start(address.Of("portal/poster"), k, nil); err != nil {
		t.Fatal(err)
	}
	return p
}

// send posts n messages to an address in one turn.
func (p *poster) send(t *testing.T, to string, n int) {
	p.Do(func(ctx context.Context, h *hub.Hub) {
		for i := range n {
			var f *message.Failure
			switch err := echo.Post(ctx, h.Mesh(), to, &echoRequest{i}); {
			case errors.As(err, &f) && f.Reason == message.ReasonOverloaded:
				p.back.Add(1)
			case err != nil:
				t.Error(err)
			}
		}
	})
}

// from runs f for a sender on the owner's silo and on another one.
func from(t *testing.T, o Options, f func(t *testing.T, c *Cluster, near bool, sender *Silo)) {
	for name, silo := range map[string]string{"the owner's silo": "s1", "another silo": "s2"} {
		t.Run(name, func(t *testing.T) {
			mesh(t, o, func(t *testing.T, c *Cluster) { f(t, c, silo == "s1", c.Silo(silo)) })
		})
	}
}

// slow delays what happens at acme/a.
func slow(path string) time.Duration {
	if path == "acme/a" {
		return 5 * time.Second
	}
	return 0
}

// bad input: more posts than may wait for a node hub that starts
// invariant 46; decision 2; fault 17
func TestPostsBeyondWhatMayWaitForAStartAreToldToTheirSenderOnceAndHoldNothingUp(t *testing.T) {
	from(t, Options{RowDelay: slow}, func(t *testing.T, c *Cluster, _ bool, sender *Silo) {
		c.create(t, "acme", "acme/a")
		s1 := c.Silo("s1")
		read := make(chan error, 1)
		go func() {
			_, err := s1.Nodes.Get(system(t), "acme/a")
			read <- err
		}()
		c.Wait("the node to start at s1", func() bool { _, starts := s1.Router.InFlight("acme/a"); return starts })
		p := sender.poster(t)
		const posts, waiting = 600, 512 - 1 // one of those that wait is the read
		p.send(t, "acme/a", posts)
		c.Wait("the sender to hear of those that were refused", func() bool { return p.heard() >= posts-waiting })
		if _, starts := s1.Router.InFlight("acme/a"); !starts {
			t.Error("it was told late")
		}
		if err := <-read; err != nil {
			t.Fatal(err)
		}
		// The node takes no such message: of each one that waited its sender hears that, and of nothing twice.
		c.Wait("the others to be handled", func() bool { return p.other.Load() >= waiting })
		<-time.After(time.Minute) // virtual
		if p.heard() != posts-waiting || p.other.Load() != waiting {
			t.Errorf("%d given back, %d told, %d others", p.back.Load(), p.told.Load(), p.other.Load())
		}
	})
}

// bad input: more posts than may wait behind the gate of a node hub that starts
// fault 17; invariant 17
func TestEveryPostToANodeHubWhoseStartTakesTooLongHasOneOutcome(t *testing.T) {
	from(t, Options{StartDelay: slow}, func(t *testing.T, c *Cluster, _ bool, sender *Silo) {
		c.create(t, "acme", "acme/a")
		s1 := c.Silo("s1")
		read := make(chan error, 1)
		go func() {
			_, err := s1.Nodes.Get(system(t), "acme/a")
			read <- err
		}()
		c.Wait("the hub to start at s1", func() bool {
			h := s1.Mesh.Find("acme/a")
			return h != nil && h.Snapshot().Deferred == 1 // the read
		})
		p := sender.poster(t)
		const posts, waiting = 700, 512 - 1
		p.send(t, "acme/a", posts)
		c.Wait("the sender to hear of those that were refused", func() bool { return p.heard() >= posts-waiting })
		if err := <-read; err != nil {
			t.Fatal(err)
		}
		c.Wait("the others to be handled", func() bool { return p.other.Load() >= waiting })
		<-time.After(time.Minute) // virtual
		if p.heard() != posts-waiting || p.other.Load() != waiting || s1.Mesh.Stats().Overloaded != posts-waiting {
			t.Errorf("%d given back, %d told, %d others; %+v", p.back.Load(), p.told.Load(), p.other.Load(), s1.Mesh.Stats())
		}
	})
}

// bad input: more posts than the inbox of a process hub takes
// fault 17; invariant 14
func TestEveryPostToAProcessHubThatDoesNotKeepUpIsHandledOrRefused(t *testing.T) {
	from(t, Options{}, func(t *testing.T, c *Cluster, near bool, sender *Silo) {
		leave := make(chan struct{})
		var handled atomic.Int64
		k := hub.NewKind("slow", hub.Limits{Storm: 1 << 20, Shed: 1000, Hard: 1000})
		hub.Handle(k, echo, func(context.Context, *hub.Hub, *echoRequest) (*echoReply, error) {
			handled.Add(1)
			<-leave
			return &echoReply{}, nil
		})
		if _, err := c.Silo("s1").Mesh.Start(address.Of("portal/slow"), k, nil); err != nil {
			t.Fatal(err)
		}
		p := sender.poster(t)
		const posts, more = 1100, 400
		p.send(t, "portal/slow", posts)
		c.Wait("its inbox to be full", func() bool { return p.heard() > 0 })
		p.send(t, "portal/slow", more) // none of these
		c.Wait("the sender to hear of them", func() bool { return p.heard() >= more })
		<-time.After(time.Second)
		refused := p.heard()
		close(leave)
		<-time.After(time.Minute) // virtual
		if handled.Load()+refused != posts+more || p.heard() != refused || p.other.Load() != 0 {
			t.Errorf("%d posts: %d handled, %d given back, %d told, %d others", posts+more, handled.Load(), p.back.Load(), p.told.Load(), p.other.Load())
		}
		if near && p.told.Load() != 0 {
			t.Error("Post itself returns what the inbox of its own silo does not take")
		}
	})
}
