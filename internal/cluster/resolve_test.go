package cluster_test

import (
	"slices"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// C1; protocol §6
func TestALocalHubIsServedWithoutACall(t *testing.T) {
	f := joined(t)
	f.local["portal/1"] = 7
	r := resolved(t, f.resolve(cluster.Question{Addr: "portal/1"}))
	if !r.Local || r.Entry.Reg != 7 || r.Entry.Epoch != me.Epoch {
		t.Fatalf("%+v", r)
	}
	f.peers.Silent()
}

// fault 15
func TestBeforeTheSiloHasJoinedEverythingIsStarting(t *testing.T) {
	f := newFixture(t)
	refused(t, f.resolve(cluster.Question{Addr: "portal/1"}), cluster.Starting)
	refused(t, f.resolve(cluster.Question{Addr: "acme/n", Node: true}), cluster.Starting)
}

// protocol §6; C24: a verdict names the silo that has answered.
func TestTheSlotOwnersVerdictIsFinalAndNamesIt(t *testing.T) {
	f := joined(t)
	addr := f.of(b, "portal")
	got := f.resolve(cluster.Question{Addr: addr})
	if m := f.lookup(wire.NotHere{Asked: 3}); m.Addr != addr || m.Stale != nil || m.Key != f.core.View().Key() {
		t.Fatalf("%+v", m)
	}
	if r := refused(t, got, cluster.NoEntry); r.By != "b" {
		t.Fatalf("%+v", r)
	}
	got = f.resolve(cluster.Question{Addr: addr}) // nothing was remembered
	f.lookup(wire.Closed{Asked: 3, Age: time.Minute})
	if r := refused(t, got, cluster.Released); r.By != "b" || r.Age != time.Minute {
		t.Fatalf("%+v", r)
	}
}

// protocol §4
func TestAnOwnerThatDoesNotKnowYetIsAskedAgainAfter2MillisecondsDoublingInsideTheBudget(t *testing.T) {
	for name, no := range map[string]wire.Answer{"not owner": wire.NotOwner{}, "another incarnation": wire.WrongEpoch{}} {
		t.Run(name, func(t *testing.T) {
			f := joined(t)
			got := f.resolve(cluster.Question{Addr: f.of(b, "portal"), Until: f.clock.Now() + 100*ms})
			pause := 2 * ms
			for try := range 5 {
				f.lookup(no)
				p, m := clustertest.Take[wire.ViewPush](f.peers)
				if p.To.Epoch != b.Epoch || m.View.Key() != f.core.View().Key() {
					t.Fatal("the one that is behind is not given the view")
				}
				p.Answer(wire.OK{})
				f.clock.Run(pause - 1)
				if n := clustertest.Count[wire.Lookup](f.peers); n != try+1 {
					t.Fatalf("%d lookups before %v", n, pause)
				}
				f.clock.Run(1)
				pause *= 2
			}
			f.lookup(no) // 62 ms have gone, 64 more would be beyond the budget
			refused(t, got, cluster.Unknown)
		})
	}
}

// protocol §6; protocol §10: owner dead with the database away.
func TestWhereTheOwnerCannotBeReachedEveryMemberIsAskedByTheRouterItself(t *testing.T) {
	f := joined(t)
	addr := f.of(b, "portal")
	got := f.resolve(cluster.Question{Addr: addr})
	a, _ := clustertest.Take[wire.Lookup](f.peers)
	a.Fail(clustertest.ErrLost)
	f.clock.Run(ms)
	f.locate("c", wire.LocatedItem{Status: wire.Serving, Reg: 4})
	b2, _ := clustertest.TakeFrom[wire.Locate](f.peers, "b")
	b2.Fail(clustertest.ErrLost)
	f.clock.Flush()
	if r := resolved(t, got); r.Entry == nil || r.Entry.Epoch != c.Epoch || r.Entry.Reg != 4 {
		t.Fatalf("%+v", r)
	}
	if f.core.Counts().AskedEverybody != 1 {
		t.Fatalf("%+v", f.core.Counts())
	}
}

// protocol §6: the router's own locate never makes a verdict.
func TestWhereTheOwnerCannotSayNobodysWordMakesItNotHere(t *testing.T) {
	f := joined(t)
	got := f.resolve(cluster.Question{Addr: f.of(b, "portal")})
	f.lookup(wire.Unknown{Missing: []string{"c"}, Why: wire.WhyMissing})
	f.clock.Run(ms)
	f.locate("b", wire.LocatedItem{})
	f.locate("c", wire.LocatedItem{Status: wire.ClosedHere, Age: time.Second})
	if r := refused(t, got, cluster.Unknown); r.By != "b" || r.Detail != wire.WhyMissing || !slices.Equal(r.Missing, []string{"c"}) {
		t.Fatalf("%+v", r)
	}
}

// protocol §6
func TestAnOwnerThatDoesNotAnswerIsNamedAsMissing(t *testing.T) {
	f := joined(t)
	got := f.resolve(cluster.Question{Addr: f.of(b, "portal"), Until: f.clock.Now() + 10*time.Second})
	f.clock.Run(2*time.Second + ms) // the bound of a lookup, then the router asks everybody
	f.locate("b", wire.LocatedItem{})
	f.locate("c", wire.LocatedItem{})
	if r := refused(t, got, cluster.Unknown); r.By != "b" || !slices.Equal(r.Missing, []string{"b"}) {
		t.Fatalf("%+v", r)
	}
}

// protocol §7: a locate takes no more than what remains to its caller, less a margin
func TestWhoHasLittleTimeIsToldBeforeItLapsesWhoDidNotAnswer(t *testing.T) {
	for name, little := range map[string]time.Duration{"30 ms": 30 * ms, "300 ms": 300 * ms, "700 ms, in which the others are asked": 700 * ms} {
		t.Run(name, func(t *testing.T) {
			f := joined(t)
			got := f.resolve(cluster.Question{Addr: f.of(b, "portal"), Until: f.clock.Now() + little})
			f.clock.Run(little - ms)
			if r := refused(t, got, cluster.Unknown); !slices.Equal(r.Missing, []string{"b"}) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// protocol §6
func TestADeniedEntryIsReportedAsStaleAndItsCacheIsLeft(t *testing.T) {
	f := joined(t)
	addr := f.of(b, "portal")
	f.resolve(cluster.Question{Addr: addr})
	f.lookup(wire.Hit{Entry: wire.Entry{Epoch: c.Epoch, Reg: 1}})
	stale := wire.Entry{Epoch: c.Epoch, Reg: 1}
	got := f.resolve(cluster.Question{Addr: addr, Stale: &stale})
	if m := f.lookup(wire.Hit{Entry: stale}); m.Stale == nil || *m.Stale != stale {
		t.Fatalf("%+v", m)
	}
	if len(*got) > 0 {
		t.Fatal("sent to what has denied it")
	}
	f.clock.Run(10 * ms)
	f.lookup(wire.Hit{Entry: wire.Entry{Epoch: c.Epoch, Reg: 2}})
	if r := resolved(t, got); r.Entry.Reg != 2 {
		t.Fatalf("%+v", r)
	}
	if r := resolved(t, f.resolve(cluster.Question{Addr: addr})); r.Entry.Reg != 2 { // remembered
		t.Fatalf("%+v", r)
	}
	// Another entry is remembered meanwhile than the one that was denied: it is used.
	if r := resolved(t, f.resolve(cluster.Question{Addr: addr, Stale: &stale})); r.Entry.Reg != 2 {
		t.Fatalf("%+v", r)
	}
}

// protocol §8: suspicion, loss and lapse are no stale report; only [cluster.Question.Stale] is one.
func TestForgettingAnEntryReportsNothing(t *testing.T) {
	f := joined(t)
	addr := f.of(b, "portal")
	e := wire.Entry{Epoch: c.Epoch, Reg: 1}
	f.resolve(cluster.Question{Addr: addr})
	f.lookup(wire.Hit{Entry: e})
	f.core.Doubt(addr, wire.Entry{Epoch: c.Epoch, Reg: 2}) // another
	if resolved(t, f.resolve(cluster.Question{Addr: addr})).Entry.Reg != 1 {
		t.Fatal("it forgot another entry")
	}
	f.core.Doubt(addr, e)
	f.resolve(cluster.Question{Addr: addr})
	if m := f.lookup(wire.NotHere{}); m.Stale != nil {
		t.Fatalf("%+v", m.Stale)
	}
}

// protocol §6: a node path that nobody serves is claimed directly.
func TestANodePathIsClaimedAtItsOwnerDirectly(t *testing.T) {
	f := joined(t)
	node := f.of(b, "acme")
	got, same := f.resolve(cluster.Question{Addr: node, Node: true}), f.resolve(cluster.Question{Addr: node, Node: true})
	a, m := clustertest.Take[wire.Claim](f.peers)
	f.peers.Silent()
	if len(m.Items) != 1 || m.Items[0].Phase != wire.Wanted {
		t.Fatalf("%+v", m.Items)
	}
	a.Answer(wire.Claimed{Key: m.Key, Results: make([]wire.ClaimResult, 1)})
	if r := resolved(t, got); !r.Local || !r.Entry.Node {
		t.Fatalf("%+v", r)
	}
	resolved(t, same)
	if r := resolved(t, f.resolve(cluster.Question{Addr: node, Node: true})); !r.Local {
		t.Fatalf("%+v", r)
	}
	f.stopping[node] = true
	again := f.resolve(cluster.Question{Addr: node, Node: true, Until: f.clock.Now() + 50*ms})
	f.clock.Run(time.Second)
	refused(t, again, cluster.Stopping)
}

// protocol §6
func TestANodePathThatAnotherSiloHoldsIsSentThere(t *testing.T) {
	f := joined(t)
	node := f.of(b, "acme")
	got := f.resolve(cluster.Question{Addr: node, Node: true})
	a, m := clustertest.Take[wire.Claim](f.peers)
	a.Answer(wire.Claimed{Key: m.Key, Results: []wire.ClaimResult{{Verdict: wire.Held, Holder: wire.Entry{Epoch: c.Epoch, Reg: 5, Node: true}}}})
	if r := resolved(t, got); r.Local || r.Entry.Epoch != c.Epoch {
		t.Fatalf("%+v", r)
	}
	if r := resolved(t, f.resolve(cluster.Question{Addr: node, Node: true})); r.Entry.Epoch != c.Epoch {
		t.Fatalf("%+v", r) // remembered
	}
	f.peers.Silent()
}

// protocol §6: a node path whose holder has denied it is looked up, and then claimed.
func TestADeniedNodePathIsReportedBeforeItIsClaimed(t *testing.T) {
	f := joined(t)
	node := f.of(b, "acme")
	got := f.resolve(cluster.Question{Addr: node, Node: true, Stale: &wire.Entry{Epoch: c.Epoch, Reg: 5, Node: true}})
	if m := f.lookup(wire.NotHere{Asked: 3}); m.Stale == nil {
		t.Fatalf("%+v", m)
	}
	f.clock.Run(ms)
	a, m := clustertest.Take[wire.Claim](f.peers)
	a.Answer(wire.Claimed{Key: m.Key, Results: make([]wire.ClaimResult, 1)})
	if r := resolved(t, got); !r.Local {
		t.Fatalf("%+v", r)
	}
}

// protocol §2
func TestALeavingSiloActivatesNothingAndSaysSo(t *testing.T) {
	f := joined(t)
	f.core.Apply(clustertest.View(6, clustertest.Leaving(me), b, c))
	f.accept()
	node := f.of(b, "acme")
	got := f.resolve(cluster.Question{Addr: node, Node: true, Until: f.clock.Now() + 20*ms})
	for len(*got) == 0 {
		f.lookup(wire.NotHere{Asked: 3})
		f.clock.Run(2 * ms)
	}
	refused(t, got, cluster.Stopping)
	got = f.resolve(cluster.Question{Addr: node, Node: true})
	f.lookup(wire.Hit{Entry: wire.Entry{Epoch: c.Epoch, Reg: 1, Node: true}})
	if r := resolved(t, got); r.Entry.Epoch != c.Epoch {
		t.Fatalf("%+v", r)
	}
}

// protocol §6
func TestAnOwnerThatNamesThisSiloIsToldThatItDoesNotServe(t *testing.T) {
	f := joined(t)
	got := f.resolve(cluster.Question{Addr: f.of(b, "portal")})
	f.lookup(wire.Hit{Entry: wire.Entry{Epoch: me.Epoch, Reg: 3}})
	f.clock.Run(5 * ms)
	if m := f.lookup(wire.NotHere{}); m.Stale == nil || m.Stale.Epoch != me.Epoch || m.Stale.Reg != 3 {
		t.Fatalf("%+v", m)
	}
	refused(t, got, cluster.NoEntry)
}

// fault 7
func TestAHolderThatIsInNoViewOfThisSiloIsNotSentTo(t *testing.T) {
	f := joined(t)
	got := f.resolve(cluster.Question{Addr: f.of(b, "portal"), Until: f.clock.Now() + 8*ms})
	f.lookup(wire.Hit{Entry: wire.Entry{Epoch: 99, Reg: 3}})
	f.clock.Run(5 * ms)
	f.lookup(wire.Hit{Entry: wire.Entry{Epoch: 99, Reg: 3}})
	refused(t, got, cluster.Unknown)
}

// protocol §8
func TestAResolutionThatAnEvictionOvertakesIsStarting(t *testing.T) {
	f := joined(t)
	byLookup := f.resolve(cluster.Question{Addr: f.of(b, "portal")})
	a, _ := clustertest.Take[wire.Lookup](f.peers)
	byGrant := f.resolve(cluster.Question{Addr: f.of(b, "acme"), Node: true})
	byLocate := f.resolve(cluster.Question{Addr: f.of(c, "portal")})
	f.lookup(wire.Unknown{Why: wire.WhyMissing})
	f.clock.Run(ms)
	f.core.Apply(clustertest.View(6, b, c))
	refused(t, byGrant, cluster.Starting)
	a.Answer(wire.NotHere{})
	refused(t, byLookup, cluster.Starting)
	f.clock.Run(time.Second)
	refused(t, byLocate, cluster.Starting)
}

// protocol §7
func TestRememberedAnswersAreBounded(t *testing.T) {
	f := joined(t, func(cfg *cluster.Config) { cfg.Cache = 2 })
	for n := range 5 {
		f.resolve(cluster.Question{Addr: clustertest.Owned(f.core.Table(), b, "portal", n)})
		f.lookup(wire.Hit{Entry: wire.Entry{Epoch: c.Epoch, Reg: uint64(n)}})
	}
	hits := 0
	for n := range 5 {
		if got := f.resolve(cluster.Question{Addr: clustertest.Owned(f.core.Table(), b, "portal", n)}); len(*got) == 1 {
			hits++
		}
	}
	if hits != 2 {
		t.Fatalf("%d are remembered", hits)
	}
}

// protocol §6: a refusal of a grant says why.
func TestAGrantThatIsNotHadIsUnknown(t *testing.T) {
	f := joined(t)
	got := f.resolve(cluster.Question{Addr: f.of(b, "acme"), Node: true, Until: f.clock.Now() + time.Minute})
	for len(*got) == 0 {
		for _, a := range f.peers.Waiting() {
			switch m := a.Message.(type) {
			case wire.Claim:
				a.Answer(wire.Claimed{Key: m.Key, Results: []wire.ClaimResult{{Verdict: wire.Unsettled}}})
			case wire.Locate:
				a.Answer(wire.Located{Key: m.Key, Items: make([]wire.LocatedItem, len(m.Items))})
			}
		}
		f.clock.Run(ms)
	}
	if r := refused(t, got, cluster.Unknown); r.Detail != "its grant was not had: unsettled" {
		t.Fatalf("%+v", r)
	}
}

// decision 5: the wait is bounded, never the work.
func TestWhoeverAsksForAGrantIsAnsweredWithinItsOwnBoundAndTheGrantGoesOn(t *testing.T) {
	f := joined(t)
	node := f.of(b, "acme")
	ask := func(budget time.Duration) *[]cluster.Resolution {
		return f.resolve(cluster.Question{Addr: node, Node: true, Until: f.clock.Now() + budget})
	}
	patient, hasty := ask(time.Minute), ask(100*ms)
	f.clock.Run(80*ms - 1)
	if len(*hasty) > 0 {
		t.Fatal("it is answered with time left")
	}
	f.clock.Run(1) // what is left is for the answer's way back
	if r := refused(t, hasty, cluster.Unknown); r.Detail != "its grant is still under way" {
		t.Fatalf("%+v", r)
	}
	joiner := ask(0 - ms) // nobody waits for it any more
	refused(t, joiner, cluster.Unknown)
	if tiny := ask(5 * ms); len(*tiny) > 0 { // a small budget is not eaten up by the margin
		t.Fatal("it is refused at once")
	}
	a, m := clustertest.Take[wire.Claim](f.peers)
	a.Answer(wire.Claimed{Key: m.Key, Results: make([]wire.ClaimResult, 1)})
	if r := resolved(t, patient); !r.Local {
		t.Fatalf("%+v", r)
	}
	f.clock.Run(time.Hour)
	resolved(t, hasty)
	resolved(t, patient)
	// The silo that was chosen for a node says in time that it has not got it: another can be asked.
	var placed []wire.Answer
	f.core.Handle(wire.Place{Head: f.head(c), Addr: clustertest.Owned(f.core.Table(), b, "acme", 1)}, func(a wire.Answer) { placed = append(placed, a) })
	f.clock.Run(cluster.Defaults().Placement.Bound - 1)
	if len(placed) != 1 {
		t.Fatalf("%d answers to who placed it", len(placed))
	}
	if is, ok := placed[0].(wire.Unknown); !ok || is.Why != "its grant is still under way" {
		t.Fatalf("%+v", placed[0])
	}
}
