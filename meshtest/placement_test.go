package meshtest

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

// handling says which node types each silo handles; one that is not listed handles all.
func handling(types map[string][]string) func(string) []string {
	return func(silo string) []string { return types[silo] }
}

// kinds are node types A and B without handlers of their own.
func kinds() map[string]func(*hub.Kind) {
	return map[string]func(*hub.Kind){"A": func(*hub.Kind) {}, "B": func(*hub.Kind) {}}
}

// of creates a node of a type.
func (c *Cluster) of(t testing.TB, path, nodeType string) {
	t.Helper()
	if _, err := c.Silos()[0].Nodes.Create(system(t), node.Node{Path: node.Path(path), NodeType: nodeType, Content: node.RawContent(`{}`)}); err != nil {
		t.Fatal(err)
	}
}

// at lists the silos that have a hub of a node.
func (c *Cluster) at(path string) (silos []string) {
	for _, s := range c.Silos() {
		if s.Mesh.Find(path) != nil {
			silos = append(silos, s.Name)
		}
	}
	return silos
}

func (c *Cluster) mustBe(t testing.TB, path string, silos ...string) {
	t.Helper()
	at := c.at(path)
	if len(at) != 1 || !slices.Contains(silos, at[0]) {
		t.Fatalf("hubs of %s are at %v, want one at one of %v", path, at, silos)
	}
}

func read(t testing.TB, s *Silo, path string) {
	t.Helper()
	if _, err := s.Nodes.Get(system(t), node.Path(path)); err != nil {
		t.Fatalf("%s from %s: %v", path, s.Name, err)
	}
}

// decision 1, decision 3: placement uses only silos that handle the type.
func TestANodeIsServedByASiloThatHandlesItsTypeWhoeverAsks(t *testing.T) {
	for _, asker := range []string{"s0", "s1", "s2"} {
		mesh(t, Options{Kinds: kinds(), NodeTypes: handling(map[string][]string{"s1": {"A"}, "s2": {"A", "B"}})}, func(t *testing.T, c *Cluster) {
			c.create(t, "acme")
			c.of(t, "acme/a", "A")
			c.of(t, "acme/b", "B")
			for _, p := range []string{"acme", "acme/a", "acme/b"} {
				read(t, c.Silo(asker), p)
			}
			c.mustBe(t, "acme", "s0")
			c.mustBe(t, "acme/a", asker) // it is preferred where it handles the type
			c.mustBe(t, "acme/b", map[string]string{"s0": "s0", "s1": "s0 s2", "s2": "s2"}[asker], "s0", "s2")
			for _, s := range c.Silos() {
				if _, err := s.Nodes.Patch(system(t), "acme/b", []byte(fmt.Sprintf(`{"name":%q}`, s.Name)), nodehub.Condition{}); err != nil {
					t.Fatalf("from %s: %v", s.Name, err)
				}
			}
			c.mustBe(t, "acme/b", "s0", "s2")
		})
	}
}

// decision 2: no silo for the type
func TestWithoutASiloForItsTypeANodeIsRefusedAtOnceUntilOneJoins(t *testing.T) {
	o := Options{Silos: 2, Kinds: kinds(), NodeTypes: handling(map[string][]string{"s0": {"Space", "A"}, "s1": {"Space"}, "s2": {"B"}})}
	mesh(t, o, func(t *testing.T, c *Cluster) {
		c.create(t, "acme")
		c.of(t, "acme/b", "B")
		for _, s := range c.Silos() {
			begin := time.Now()
			_, err := s.Nodes.Get(system(t), "acme/b")
			var f *message.Failure
			if !errors.As(err, &f) || f.Type != message.ShuttingDown || f.Reason != message.ReasonNoSilo || f.TargetUnserved || f.AnsweredBy == "" {
				t.Fatalf("from %s: %+v", s.Name, err)
			}
			if took := time.Since(begin); took > 100*time.Millisecond {
				t.Errorf("from %s: after %v", s.Name, took)
			}
			// One that is not there is not found all the same.
			if _, err := s.Nodes.Get(system(t), "acme/none"); !errors.As(err, &f) || f.Type != message.NotFound {
				t.Fatalf("from %s: %+v", s.Name, err)
			}
		}
		c.Add("s2")
		c.WaitJoined()
		for _, s := range c.Silos() {
			read(t, s, "acme/b")
		}
		c.mustBe(t, "acme/b", "s2")
	})
}

// decision 3: a type changes only with the life of its node.
func TestANodeThatIsCreatedAnewWithAnotherTypeMovesToASiloThatHandlesIt(t *testing.T) {
	mesh(t, Options{Kinds: kinds(), NodeTypes: handling(map[string][]string{"s1": {"A"}, "s2": {"B"}, "s0": {"Space"}})}, func(t *testing.T, c *Cluster) {
		c.create(t, "acme")
		for i, nodeType := range []string{"A", "B", "A"} {
			c.of(t, "acme/x", nodeType)
			for _, s := range c.Silos() {
				for { // what its former life left in the caches is told as such
					_, err := s.Nodes.Get(system(t), "acme/x")
					if err == nil {
						break
					}
					if !message.IsTransient(err) {
						t.Fatalf("life %d from %s: %v", i, s.Name, err)
					}
					<-time.After(10 * time.Millisecond)
				}
			}
			c.mustBe(t, "acme/x", map[string]string{"A": "s1", "B": "s2"}[nodeType])
			if _, err := c.Silo("s0").Nodes.Delete(system(t), "acme/x", false, nodehub.Condition{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func small(c *cluster.Config) { c.Placement.Margin = 4 }

// decision 3: the caller's silo unless it is much more loaded.
func TestNodesArePlacedElsewhereOnceTheirCallersSiloIsMuchMoreLoaded(t *testing.T) {
	mesh(t, Options{Config: small}, func(t *testing.T, c *Cluster) {
		c.create(t, "acme")
		<-time.After(time.Second) // each has told its load
		for i := range 30 {
			p := fmt.Sprintf("acme/%d", i)
			c.create(t, p)
			read(t, c.Silo("s0"), p)
		}
		served := map[string]int{}
		for i := range 30 {
			at := c.at(fmt.Sprintf("acme/%d", i))
			if len(at) != 1 {
				t.Fatalf("acme/%d is at %v", i, at)
			}
			served[at[0]]++
		}
		if served["s0"] < 10 || served["s0"] > 2*min(served["s1"], served["s2"])+4 {
			t.Errorf("%v", served)
		}
		st := c.Silo("s0").Router.Status()
		if n := st.Resolve.Placements; n.ByLoad != int64(served["s1"]+served["s2"]) || n.Failed > 0 {
			t.Errorf("%+v with %v", n, served)
		}
		<-time.After(time.Second)
		st = c.Silo("s0").Router.Status()
		for _, m := range st.Members {
			if want := served[m.Silo]; m.NodeHubs == nil || *m.NodeHubs < want || *m.NodeHubs > want+1 { // acme
				t.Errorf("%s is told to serve %v, want %d", m.Silo, m.NodeHubs, want)
			}
		}
	})
}

// decision 3: handed over when their silo is much more loaded; what is in use stays.
func TestASiloThatIsMuchMoreLoadedHandsOverWhatIsNotUsed(t *testing.T) {
	mesh(t, Options{Silos: 1, Config: small}, func(t *testing.T, c *Cluster) {
		c.create(t, "acme")
		for i := range 30 {
			p := fmt.Sprintf("acme/%d", i)
			c.create(t, p)
			read(t, c.Silo("s0"), p)
		}
		c.Add("s1")
		c.WaitJoined()
		used := func() {
			for range 20 {
				read(t, c.Silo("s1"), "acme/7")
				<-time.After(time.Second)
			}
		}
		before := c.Silo("s0").Mesh.Find("acme/7")
		used()
		if c.Silo("s0").Mesh.Find("acme/7") != before || before == nil {
			t.Error("a node that is in use was handed over")
		}
		moved := 0
		for i := range 30 {
			p := fmt.Sprintf("acme/%d", i)
			if len(c.at(p)) == 0 {
				moved++
			}
			read(t, c.Silo("s0"), p)
		}
		if moved < 8 || moved > 12 {
			t.Errorf("%d of 31 node hubs were handed over", moved)
		}
		served := map[string]int{}
		for i := range 30 {
			served[c.at(fmt.Sprintf("acme/%d", i))[0]]++
		}
		if served["s1"] == 0 || served["s0"] > 2*served["s1"]+4 {
			t.Errorf("%v", served)
		}
		handed := c.Silo("s0").Router.Status().Resolve.Placements.HandedOver
		for range 10 { // nothing goes back and forth
			used()
		}
		if now := c.Silo("s0").Router.Status().Resolve.Placements.HandedOver; now != handed {
			t.Errorf("%d node hubs were handed over, and then %d", handed, now-handed)
		}
	})
}

// decision 3: "Node hubs … stop when idle", and start again wherever they are asked for next
func TestANodeWhoseHubHasRetiredIsServedAgainByWhoeverAsks(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		c.create(t, "acme", "acme/a")
		for _, s := range c.Silos() {
			read(t, s, "acme/a")
			c.mustBe(t, "acme/a", s.Name)
			<-time.After(10 * time.Minute)
			if at := c.at("acme/a"); len(at) > 0 {
				t.Fatalf("it is still at %v", at)
			}
		}
		read(t, c.Silo("s0"), "acme/a")
	})
}

// decision 2, decision 3: each request has one outcome, and is executed at most once.
func TestASiloThatDiesWhileItIsChosenCostsNobodyMoreThanOneOutcome(t *testing.T) {
	types := handling(map[string][]string{"s0": {"Space"}})
	outcomes := map[string]int{}
	for moment := range 24 {
		mesh(t, Options{Seed: uint64(moment), NodeTypes: types}, func(t *testing.T, c *Cluster) {
			c.create(t, "acme", "acme/a")
			var commits atomic.Int64
			stop := c.Store.Subscribe(func(ch store.Change) {
				if ch.Path == "acme/a" {
					commits.Add(1)
				}
			})
			defer stop()
			began, err := time.Now(), make(chan error, 1)
			go func() {
				_, e := c.Silo("s0").Nodes.Patch(system(t), "acme/a", []byte(`{"name":"once"}`), nodehub.Condition{})
				err <- e
			}()
			<-time.After(time.Duration(moment) * 100 * time.Microsecond)
			chosen := "s1"
			if c.Silo("s2").Mesh.Find("acme/a") != nil || c.Silo("s2").Router.Status().Claims.Claiming > 0 {
				chosen = "s2"
			}
			c.Silo(chosen).Crash()
			e := <-err
			var f *message.Failure
			switch n := commits.Load(); {
			case e == nil && n == 1:
				outcomes["done"]++
			case errors.As(e, &f) && f.OutcomeUnknown && n <= 1:
				outcomes["unknown"]++
			case errors.As(e, &f) && f.Type == message.ShuttingDown && n == 0:
				outcomes["refused"]++
			default:
				t.Errorf("moment %d: %v with %d commits", moment, e, n)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("moment %d: %v", moment, took)
			}
			c.WaitJoined()
			read(t, c.Silo("s0"), "acme/a")
			c.mustBe(t, "acme/a", "s1", "s2")
		})
	}
	t.Logf("%v", outcomes)
	if outcomes["done"] == 0 {
		t.Errorf("%v", outcomes)
	}
}

// decision 3: one activation, whoever is chosen.
func TestTwoSilosThatAreChosenForOneNodeAtOnceMakeOneActivation(t *testing.T) {
	mesh(t, Options{Silos: 4}, func(t *testing.T, c *Cluster) {
		for i := range 20 {
			p := fmt.Sprintf("acme%d", i)
			c.create(t, p)
			for _, s := range c.Silos() {
				if h := s.Mesh.Find(p); h != nil {
					h.Dispose()
					<-h.Done()
				}
			}
			got := make(chan wire.Answer, 2)
			from := c.Silo("s0").Epoch()
			for _, name := range []string{"s2", "s3"} {
				c.Silo(name).Router.Do(func(x *cluster.Silo) {
					x.Core.Handle(wire.Place{Head: wire.Head{From: from, To: x.Self(), Key: x.View().Key()}, Addr: p}, func(a wire.Answer) { got <- a })
				})
			}
			a, b := <-got, <-got
			one, ok := a.(wire.Hit)
			two, too := b.(wire.Hit)
			if !ok || !too || one.Entry.Epoch != two.Entry.Epoch || one.Entry.Reg != two.Entry.Reg {
				t.Fatalf("%s: %+v and %+v", p, a, b)
			}
			read(t, c.Silo("s1"), p)
			c.mustBe(t, p, "s2", "s3")
		}
	})
}

// decision 3: handed over when their silo leaves.
func TestARequestAtALeavingSiloIsServedByOneThatStays(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		c.create(t, "acme", "acme/a")
		leaving := c.Silo("s1")
		read(t, leaving, "acme/a")
		c.mustBe(t, "acme/a", "s1")
		if err := leaving.Router.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		read(t, leaving, "acme/a") // nobody else has asked for it
		c.mustBe(t, "acme/a", "s0", "s2")
		if n := leaving.Router.Status().Resolve.Placements; n.ByLeaving == 0 {
			t.Errorf("%+v", n)
		}
	})
}
