package meshtest

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

// C3 C4, fault 7: a remembered entry that is denied is no verdict
// invariant 52
func TestAnAddressThatHasMovedIsFoundInsideTheCallersBudget(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		first := serve(t, c.Silo("s1"), "portal/x")
		if r, err := echo.Ask(system(t), c.Silo("s0").Mesh, "portal/x", &echoRequest{}); err != nil || r.Silo != "s1" {
			t.Fatalf("%+v %v", r, err)
		}
		first.Dispose()
		<-first.Done()
		serve(t, c.Silo("s2"), "portal/x")
		begin := time.Now()
		r, err := echo.Ask(system(t), c.Silo("s0").Mesh, "portal/x", &echoRequest{})
		if err != nil || r.Silo != "s2" {
			t.Fatalf("%+v %v", r, err)
		}
		if took := time.Since(begin); took > 200*time.Millisecond {
			t.Errorf("after %v", took)
		}
	})
}

// C6
func TestAQuestionForNobodyLeavesNothingBehind(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		before := map[string]int{}
		for _, s := range c.Silos() {
			before[s.Name] = s.Mesh.Len()
		}
		for _, s := range c.Silos() {
			for _, at := range []string{"portal/nobody", "acme/none"} {
				if _, err := echo.Ask(system(t), s.Mesh, at, &echoRequest{}); err == nil {
					t.Errorf("%s answers", at)
				}
			}
		}
		<-time.After(time.Second)
		for _, s := range c.Silos() {
			if s.Mesh.Len() != before[s.Name] {
				t.Errorf("%s has %d hubs, before %d", s.Name, s.Mesh.Len(), before[s.Name])
			}
			s.Router.Do(func(x *cluster.Silo) {
				for a, e := range x.Owner.Entries {
					if a == "portal/nobody" || a == "acme/none" {
						t.Errorf("%s has an entry %s: %v", s.Name, a, e)
					}
				}
			})
		}
	})
}

// C27
// invariant 56
func TestAFailureFromAnotherSiloNamesAddressMessageAndWhoAnswered(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		k := hub.NewKind("bad", hub.Limits{})
		hub.Handle(k, echo, func(context.Context, *hub.Hub, *echoRequest) (*echoReply, error) {
			return nil, errors.New("it does not work")
		})
		if _, err := c.Silo("s1").Mesh.Start(address.Of("portal/bad"), k, nil); err != nil {
			t.Fatal(err)
		}
		_, err := echo.Ask(system(t), c.Silo("s0").Mesh, "portal/bad", &echoRequest{})
		var f *message.Failure
		if !errors.As(err, &f) || f.Type != message.Unknown || f.Target != "portal/bad" || f.Operation != "test/echo" || f.AnsweredBy != "portal/bad" || f.Transient() {
			t.Errorf("%+v", f)
		}
		// A fault of the cluster's own life is transient.
		c.Silo("s1").Crash()
		if _, err := echo.Ask(system(t), c.Silo("s0").Mesh, "portal/bad", &echoRequest{}); !message.IsTransient(err) {
			t.Errorf("%v", err)
		}
	})
}

// C36 C37b
func TestASiloThatStepsAsideOrIsPutOutSaysSoAndEachDisposalHasItsLines(t *testing.T) {
	l := &lines{}
	mesh(t, Options{Logger: l.logger}, func(t *testing.T, c *Cluster) {
		c.create(t, "acme", "acme/a")
		s := c.Silo("s1")
		if _, err := s.Nodes.Get(system(t), "acme/a"); err != nil {
			t.Fatal(err)
		}
		s.Router.StepAside("acme/a", 0)
		c.Wait("the hub to be gone", func() bool { return s.Mesh.Find("acme/a") == nil })
		if got := l.with(slog.LevelInfo, "A node hub steps aside: another silo holds its address"); len(got) != 1 || got[0].level != slog.LevelInfo || got[0].attrs["address"] != "acme/a" {
			t.Errorf("%+v", got)
		}
		for _, phrase := range []string{"[QUIESCE-START]", "[QUIESCE-OK]"} {
			if got := l.with(slog.LevelInfo, phrase); len(got) == 0 || got[0].level != slog.LevelInfo {
				t.Errorf("%s: %+v", phrase, got)
			}
		}
		if got := l.with(slog.LevelDebug, "[ACTIVATE]"); len(got) != 1 || got[0].attrs["address"] != "acme/a" {
			t.Errorf("%+v", got)
		}
		c.Table.Remove(s.Epoch())
		c.Wait("it to be back", func() bool { return len(c.Table.View().Members()) == 3 && s.Epoch() != 0 })
		if got := l.with(slog.LevelWarn, "This silo was put out of the cluster"); len(got) != 1 || got[0].silo != "s1" {
			t.Errorf("%+v", got)
		}
		for _, s := range c.Silos() {
			if _, err := s.Nodes.Get(system(t), "acme/a"); err != nil {
				t.Errorf("from %s: %v", s.Name, err)
			}
		}
	})
}

// C39
// invariant 57
func TestAPathWithoutANodeIsNotFoundWithoutTheReadBudgetBeingPaid(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		c.create(t, "acme")
		for _, s := range c.Silos() {
			begin := time.Now()
			_, err := nodehub.Get.AskWithin(system(t), s.Mesh, "acme/none", &nodehub.GetRequest{}, budget.Read)
			var f *message.Failure
			var missing *store.NotFoundError
			if !errors.As(err, &f) || f.Type != message.NotFound || !errors.As(err, &missing) || !strings.Contains(f.Message, "No node found at 'acme/none'") {
				t.Errorf("from %s: %+v", s.Name, err)
			}
			if took := time.Since(begin); took > 200*time.Millisecond {
				t.Errorf("from %s after %v", s.Name, took)
			}
		}
	})
}

// C40: what a lapse says was observed, at the owner or here
func TestALapseWithoutAnAnswerSaysOnlyWhatThisSiloHasSeen(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		release := make(chan struct{})
		k := hub.NewKind("slow", hub.Limits{})
		hub.Handle(k, echo, func(context.Context, *hub.Hub, *echoRequest) (*echoReply, error) {
			<-release
			return &echoReply{}, nil
		})
		if _, err := c.Silo("s1").Mesh.Start(address.Of("portal/slow"), k, nil); err != nil {
			t.Fatal(err)
		}
		_, err := echo.AskWithin(system(t), c.Silo("s0").Mesh, "portal/slow", &echoRequest{}, budget.Read)
		var l *budget.Lapse
		if !errors.As(err, &l) || l.ReportedBy != budget.ByOwner || l.Progress != budget.Started || !strings.Contains(l.Clause, "Executing") {
			t.Errorf("told by the owner: %+v", err)
		}
		c.Network.CutBoth("s0", "s1")
		_, err = echo.AskWithin(system(t), c.Silo("s0").Mesh, "portal/slow", &echoRequest{}, budget.Read)
		if err == nil || strings.Contains(err.Error(), "never activated") {
			t.Errorf("%v", err)
		}
		close(release)
		c.Network.HealBoth("s0", "s1")
	})
}

// decision 1: a silo to which nobody promises that it is still a member answers nothing from what it holds
func TestASiloThatIsCutOffFromEverybodyServesNothingStale(t *testing.T) {
	mesh(t, Options{}, func(t *testing.T, c *Cluster) {
		c.create(t, "acme", "acme/a")
		s := c.Silo("s1")
		get := func() error {
			_, err := s.Nodes.Get(system(t), "acme/a")
			return err
		}
		if err := get(); err != nil {
			t.Fatal(err)
		}
		c.Table.SetAway(true) // nobody is put out
		<-time.After(3 * time.Second)
		if err := get(); err != nil {
			t.Errorf("with its peers, and the table away: %v", err)
		}
		c.Network.CutBoth("s1", "s0")
		c.Network.CutBoth("s1", "s2")
		<-time.After(500 * time.Millisecond)
		if err := get(); err != nil {
			t.Errorf("after 0.5 s of silence: %v", err)
		}
		<-time.After(700 * time.Millisecond)
		var f *message.Failure
		if err := get(); !errors.As(err, &f) || f.Reason != message.ReasonIsolated || !f.Transient() || f.TargetUnserved {
			t.Errorf("after 1.2 s of silence: %+v", err)
		}
		c.Table.SetAway(false) // the table confirms it until the others have put it out
		if err := get(); err != nil {
			t.Errorf("the table has it as a member: %v", err)
		}
		c.Network.HealBoth("s1", "s0")
		c.Network.HealBoth("s1", "s2")
		c.Wait("it to answer again", func() bool { return get() == nil })
	})
}

// C26 C37: client-hosted by declaration, never by the answer
func TestOnlyADeclaredTypeIsHandedOnWhereNobodyServesIt(t *testing.T) {
	l := &lines{}
	var handed []string
	mesh(t, Options{Logger: l.logger, ClientHosted: map[string]func(*hub.Delivery){"client": func(d *hub.Delivery) {
		handed = append(handed, d.Target().Path())
		d.Answer(&echoReply{Silo: "client"})
	}}}, func(t *testing.T, c *Cluster) {
		if r, err := echo.Ask(system(t), c.Silo("s0").Mesh, "client/1", &echoRequest{}); err != nil || r.Silo != "client" || len(handed) != 1 {
			t.Errorf("%+v %v %v", r, err, handed)
		}
		if got := l.with(slog.LevelInfo, "falling back to the stream publish"); len(got) != 1 || got[0].level != slog.LevelInfo {
			t.Errorf("%+v", got)
		}
		if _, err := echo.Ask(system(t), c.Silo("s0").Mesh, "clients/1", &echoRequest{}); err == nil {
			t.Error("another type is handed on")
		}
		if _, err := echo.Ask(system(t), c.Silo("s0").Mesh, "portal/1", &echoRequest{}); err == nil || len(handed) != 1 {
			t.Error("an undeclared type is handed on")
		}
		serve(t, c.Silo("s1"), "client/2")
		if r, err := echo.Ask(system(t), c.Silo("s0").Mesh, "client/2", &echoRequest{}); err != nil || r.Silo != "s1" {
			t.Errorf("one that is served: %+v %v", r, err)
		}
	})
}
