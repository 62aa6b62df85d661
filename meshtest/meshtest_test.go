package meshtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

type echoRequest struct{ N int }
type echoReply struct {
	N    int
	Silo string
}

var echo = hub.Define[*echoRequest, *echoReply]("test/echo", message.Request)

func system(t testing.TB) context.Context {
	return message.WithIdentity(t.Context(), message.SystemIdentity())
}

// serve starts a process hub that answers echo.
func serve(t testing.TB, s *Silo, at string) *hub.Hub {
	t.Helper()
	k := hub.NewKind("echo", hub.Limits{})
	hub.Handle(k, echo, func(_ context.Context, _ *hub.Hub, r *echoRequest) (*echoReply, error) {
		return &echoReply{r.N, s.Name}, nil
	})
	h, err := s.Mesh.Start(address.Of(at), k, nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func wireTypes() []hub.WireType { return []hub.WireType{echo.Wire()} }

func mesh(t *testing.T, o Options, f func(t *testing.T, c *Cluster)) {
	synctest.Test(t, func(t *testing.T) {
		o.Types = append(o.Types, echo.Wire())
		c := New(t, o)
		f(t, c)
		c.close()
	})
}

// node creates a space and a node in it.
func (c *Cluster) create(t testing.TB, paths ...string) {
	t.Helper()
	for _, p := range paths {
		n := node.Node{Path: node.Path(p), NodeType: node.TypeMarkdown, Content: node.RawContent(`{"$type":"Markdown","markdown":"x"}`)}
		if n.Path.Partition() == p {
			n.NodeType = node.TypeSpace
			n.Content = node.RawContent(`{}`)
		}
		if _, err := c.Silos()[0].Nodes.Create(system(t), n); err != nil {
			t.Fatal(err)
		}
	}
}

// C1
// invariant 61
func TestAProcessHubIsReachedFromEverySilo(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		serve(t, c.Silo("s1"), "portal/x")
		for _, s := range c.Silos() {
			r, err := echo.Ask(system(t), s.Mesh, "portal/x", &echoRequest{7})
			if err != nil || r.N != 7 || r.Silo != "s1" {
				t.Errorf("from %s: %+v %v", s.Name, r, err)
			}
		}
	})
}

// decision 3
// invariant 64
func TestANodeHasOneHubInTheClusterAndIsReadFromEverySilo(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		c.create(t, "acme", "acme/a")
		for round := range 3 {
			for _, s := range c.Silos() {
				n, err := s.Nodes.Patch(system(t), "acme/a", []byte(fmt.Sprintf(`{"name":"%s %d"}`, s.Name, round)), nodehub.Condition{})
				if err != nil {
					t.Fatalf("from %s: %v", s.Name, err)
				}
				for _, o := range c.Silos() {
					got, err := o.Nodes.Get(system(t), "acme/a")
					if err != nil || got.Version != n.Version || got.Name != n.Name {
						t.Fatalf("%s reads %q %d, written %q %d by %s: %v", o.Name, got.Name, got.Version, n.Name, n.Version, s.Name, err)
					}
				}
			}
		}
		hubs := 0
		for _, s := range c.Silos() {
			if s.Mesh.Find("acme/a") != nil {
				hubs++
			}
		}
		if hubs != 1 {
			t.Errorf("%d silos have a hub of the node", hubs)
		}
	})
}

// C24 C34, fault 17
func TestAnAddressThatNobodyServesIsRefusedAtOnce(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		for _, s := range c.Silos() {
			begin := time.Now()
			_, err := echo.Ask(system(t), s.Mesh, "portal/nobody", &echoRequest{})
			var f *message.Failure
			if !errors.As(err, &f) || f.Type != message.ShuttingDown || !f.TargetUnserved || f.Reason != message.ReasonNoEntry || f.AnsweredBy == "" {
				t.Fatalf("from %s: %+v", s.Name, err)
			}
			if took := time.Since(begin); took > 100*time.Millisecond {
				t.Errorf("from %s: after %v", s.Name, took)
			}
		}
	})
}

// C28, decision 11
func TestAReleasedProcessAddressIsAnsweredAsReleased(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		h := serve(t, c.Silo("s1"), "portal/x")
		if _, err := echo.Ask(system(t), c.Silo("s2").Mesh, "portal/x", &echoRequest{}); err != nil {
			t.Fatal(err)
		}
		h.Dispose()
		<-h.Done()
		_, err := echo.Ask(system(t), c.Silo("s2").Mesh, "portal/x", &echoRequest{})
		var f *message.Failure
		if !errors.As(err, &f) || f.Type != message.NotFound || f.Reason != message.ReasonReleased || !f.TargetUnserved {
			t.Fatalf("%+v", err)
		}
		serve(t, c.Silo("s0"), "portal/x")
		if r, err := echo.Ask(system(t), c.Silo("s2").Mesh, "portal/x", &echoRequest{}); err != nil || r.Silo != "s0" {
			t.Fatalf("opened elsewhere: %+v %v", r, err)
		}
	})
}

// faults 1 and 6
func TestANodeOfACrashedSiloIsServedByAnother(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		c.create(t, "acme", "acme/a")
		owner := c.Silo("s1")
		if _, err := owner.Nodes.Patch(system(t), "acme/a", []byte(`{"name":"by s1"}`), nodehub.Condition{}); err != nil {
			t.Fatal(err)
		}
		owner.Crash()
		begin := time.Now()
		for _, s := range c.Silos() {
			c.Wait("the node to be served again", func() bool {
				n, err := s.Nodes.Get(system(t), "acme/a")
				if err != nil && !message.IsTransient(err) {
					t.Fatalf("not transient: %v", err)
				}
				return err == nil && n.Name == "by s1"
			})
		}
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("after %v", took)
		}
	})
}

// C41, decision 5
// CF-28
func TestALapseIsToldByTheOwnerFromAnotherSiloInsideTheCallersBudget(t *testing.T) {
	mesh(t, Options{StartDelay: func(string) time.Duration { return 15 * time.Second }}, func(t *testing.T, c *Cluster) {
		c.create(t, "acme", "acme/a")
		// s1 has the grant, and its hub is starting.
		go c.Silo("s1").Nodes.Get(system(t), "acme/a")
		c.Wait("the node to start at s1", func() bool { return c.Silo("s1").Mesh.Find("acme/a") != nil })
		begin := time.Now()
		_, err := nodehub.Get.AskWithin(system(t), c.Silo("s2").Mesh, "acme/a", &nodehub.GetRequest{}, budget.Read)
		var l *budget.Lapse
		if !errors.As(err, &l) || l.ReportedBy != budget.ByOwner {
			t.Fatalf("%+v", err)
		}
		if took := time.Since(begin); took >= 10*time.Second {
			t.Errorf("told after %v", took)
		}
		<-time.After(10 * time.Second)
		if _, err := c.Silo("s2").Nodes.Get(system(t), "acme/a"); err != nil {
			t.Errorf("the next read: %v", err)
		}
	})
}

// messaging §1.12
func TestATypedErrorReachesACallerOnAnotherSilo(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		c.create(t, "acme", "acme/a")
		if _, err := c.Silo("s1").Nodes.Get(system(t), "acme/a"); err != nil {
			t.Fatal(err)
		}
		_, err := c.Silo("s2").Nodes.Patch(system(t), "acme/a", []byte(`{"name":"x"}`), nodehub.Condition{Version: 99})
		var conflict *store.ConflictError
		if !errors.As(err, &conflict) || conflict.Path != "acme/a" || conflict.Expected != 99 {
			t.Fatalf("%+v", err)
		}
		var missing *store.NotFoundError
		if _, err := c.Silo("s2").Nodes.Get(system(t), "acme/none"); !errors.As(err, &missing) {
			t.Fatalf("%+v", err)
		}
	})
}
