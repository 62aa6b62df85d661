package meshtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
)

// C30, protocol §6: what is on the wire while a hub is started anew does not overtake what the old one has refused
func TestMessagesKeepTheirOrderOverAHubThatIsStartedAnew(t *testing.T) {
	for gap := time.Duration(0); gap < 60*time.Millisecond; gap += 3 * time.Millisecond {
		t.Run(fmt.Sprint("after ", gap), func(t *testing.T) {
			mesh(t, Options{Silos: 2}, func(t *testing.T, c *Cluster) { overRestart(t, c, gap) })
		})
	}
}

// overRestart sends five messages while the hub that they are for ends and is started anew.
func overRestart(t *testing.T, c *Cluster, gap time.Duration) {
	var order []int
	began, leave := make(chan struct{}), make(chan struct{})
	k := hub.NewKind("numbers", hub.Limits{})
	hub.Handle(k, echo, func(_ context.Context, _ *hub.Hub, r *echoRequest) (*echoReply, error) {
		if r.N == 0 {
			close(began)
			<-leave
		} else {
			order = append(order, r.N)
		}
		return &echoReply{N: r.N}, nil
	})
	start := func() (*hub.Hub, error) { return c.Silo("s1").Mesh.Start(address.Of("portal/x"), k, nil) }
	h, err := start()
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(100 * time.Millisecond)
	const last = 5
	ends := make(chan error, last+1)
	ask := func(n int) {
		go func() { ends <- second(echo.Ask(system(t), c.Silo("s0").Mesh, "portal/x", &echoRequest{n})) }()
		<-time.After(time.Millisecond)
	}
	ask(0)
	<-began
	ask(1)
	ask(2)
	<-time.After(30 * time.Millisecond)
	c.Network.SetSlow(30 * time.Millisecond)
	ask(3) // on the wire while the hub goes down
	ask(4)
	h.Dispose()
	close(leave)
	<-h.Done()
	for _, err = start(); err != nil; _, err = start() {
		<-time.After(100 * time.Microsecond)
	}
	<-time.After(gap)
	ask(last)
	for range last + 1 {
		if err := <-ends; err != nil && !message.IsTransient(err) {
			t.Error(err)
		}
	}
	if !slices.IsSorted(order) || len(slices.Compact(slices.Clone(order))) != len(order) || len(order) == 0 || order[len(order)-1] != last {
		t.Errorf("executed %v", order)
	}
}

// decision 2: nothing is repeated that may have been executed
// invariant 44
func TestWhatMayHaveBeenExecutedWhenAConnectionBreaksIsExecutedOnce(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		ran := map[int]int{}
		began, leave := make(chan struct{}), make(chan struct{})
		k := hub.NewKind("counts", hub.Limits{})
		hub.Handle(k, echo, func(_ context.Context, _ *hub.Hub, r *echoRequest) (*echoReply, error) {
			if ran[r.N]++; r.N == 0 && ran[0] == 1 {
				close(began)
				<-leave
			}
			return &echoReply{N: r.N}, nil
		})
		if _, err := c.Silo("s1").Mesh.Start(address.Of("portal/x"), k, nil); err != nil {
			t.Fatal(err)
		}
		<-time.After(100 * time.Millisecond)
		const asks = 10
		ends := make(chan error, asks)
		for n := range asks {
			go func() { ends <- second(echo.Ask(system(t), c.Silo("s0").Mesh, "portal/x", &echoRequest{n})) }()
			<-time.After(time.Millisecond)
		}
		<-began
		<-time.After(30 * time.Millisecond) // all of them are there
		c.Network.Break("s0", "s1")
		begin := time.Now()
		for range asks {
			var f *message.Failure
			if err := <-ends; !errors.As(err, &f) || !f.OutcomeUnknown || f.Reason != message.ReasonLost || !f.Transient() {
				t.Errorf("%+v", err)
			}
		}
		if took := time.Since(begin); took > 20*time.Millisecond {
			t.Errorf("told after %v", took)
		}
		close(leave)
		if r, err := echo.Ask(system(t), c.Silo("s0").Mesh, "portal/x", &echoRequest{asks}); err != nil || r.N != asks {
			t.Errorf("the next: %+v %v", r, err)
		}
		<-time.After(time.Minute) // virtual
		for n := range asks + 1 {
			if ran[n] != 1 {
				t.Errorf("%d was executed %d times", n, ran[n])
			}
		}
	})
}
