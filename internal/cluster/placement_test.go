package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// opinions is what a silo thinks of the others.
type opinions struct {
	suspect map[membership.Epoch]bool
	load    map[membership.Epoch]int
}

func (o *opinions) Suspected(e membership.Epoch) bool { return o.suspect[e] }
func (o *opinions) Load(e membership.Epoch) (int, bool) {
	n, ok := o.load[e]
	return n, ok && !o.suspect[e]
}
func (o *opinions) Placed(e membership.Epoch) { o.load[e]++ }

func typed(m membership.Member, types ...string) membership.Member {
	m.Types = types
	return m
}

// among is a fixture among silos of which nothing is known yet.
func among(t *testing.T, members ...membership.Member) (*fixture, *opinions) {
	t.Helper()
	f := newFixture(t)
	o := &opinions{suspect: map[membership.Epoch]bool{}, load: map[membership.Epoch]int{}}
	f.core.SetJudge(o)
	f.types = map[string]string{}
	f.core.Joined(me.Epoch, clustertest.View(5, members...))
	f.accept()
	f.events = nil
	return f, o
}

// place takes the open request to serve a node.
func (f *fixture) place(to membership.Member) *clustertest.Ask {
	f.t.Helper()
	a, _ := clustertest.TakeFrom[wire.Place](f.peers, to.Name)
	return a
}

func (f *fixture) ask(node string) *[]cluster.Resolution {
	f.t.Helper()
	got := f.resolve(cluster.Question{Addr: node, Node: true})
	f.clock.Flush()
	return got
}

func served(by membership.Member) wire.Answer {
	return wire.Hit{Entry: wire.Entry{Epoch: by.Epoch, Reg: 3, Node: true}}
}

// decision 3
func TestASiloIsMuchMoreLoadedBeyondTwiceAnotherAndAMargin(t *testing.T) {
	p := cluster.DefaultPlacement()
	for _, test := range []struct {
		load, least int
		much        bool
	}{{0, 0, false}, {255, 0, false}, {256, 0, true}, {600, 300, false}, {601, 300, true}, {500, 245, false}, {501, 245, true}, {10_000, 5_000, false}, {10_001, 5_000, true}} {
		if got := p.Much(test.load, test.least); got != test.much {
			t.Errorf("%d against %d: %v", test.load, test.least, got)
		}
	}
	for load := 0; load < 3000; load += 7 {
		for least := 0; least < 800; least += 11 {
			n := p.Excess(load, least)
			if p.Much(load-n, least+n) || n > 0 && !p.Much(load-n+1, least+n-1) {
				t.Fatalf("%d against %d: %d move", load, least, n)
			}
			if n > 0 && p.Much(least+n, load-n) {
				t.Fatalf("%d against %d: %d move, and would come back", load, least, n)
			}
		}
	}
}

// decision 3: the hot path reads nothing.
func TestWhereAllHandleAllTypesANodeIsClaimedByItsCallersSiloAndNothingIsRead(t *testing.T) {
	f, o := among(t, me, b, c)
	f.load, o.load[b.Epoch], o.load[c.Epoch] = 255, 0, 0
	f.ask("acme/n")
	if _, m := clustertest.Take[wire.Claim](f.peers); m.Items[0].Phase != wire.Wanted {
		t.Fatalf("%+v", m)
	}
	f.mustTell()
	f.load = 10_000
	o.load[b.Epoch], o.load[c.Epoch] = 6000, 5000 // more, but not much more
	f.ask("acme/m")
	clustertest.Take[wire.Claim](f.peers)
	f.mustTell()
	f.peers.Silent()
}

// decision 1, decision 3
func TestANodeWhoseTypeItsCallersSiloDoesNotHandleIsPlacedOnASiloThatDoes(t *testing.T) {
	f, _ := among(t, typed(me, "A"), typed(b, "A", "B"), typed(c, "C"))
	f.types["acme/n"] = "B"
	got := f.ask("acme/n")
	f.mustTell("read acme/n")
	a := f.place(b)
	if m := a.Message.(wire.Place); m.Addr != "acme/n" || m.To != b.Epoch || a.Within != 500*ms {
		t.Fatalf("%+v within %v", m, a.Within)
	}
	a.Answer(served(b))
	if r := resolved(t, got); r.Local || r.Entry.Epoch != b.Epoch || r.Entry.Reg != 3 {
		t.Fatalf("%+v", r)
	}
	if r := resolved(t, f.ask("acme/n")); r.Entry.Epoch != b.Epoch { // remembered
		t.Fatalf("%+v", r)
	}
	if n := f.core.Counts().Placements; n.ByType != 1 || n.Failed != 0 {
		t.Fatalf("%+v", n)
	}
	f.types["acme/m"] = "A" // its caller's silo is preferred
	f.ask("acme/m")
	clustertest.Take[wire.Claim](f.peers)
	f.peers.Silent()
}

// decision 3
func TestANodeThatIsNotThereIsLookedForByItsCallersSilo(t *testing.T) {
	f, _ := among(t, typed(me, "A"), typed(b, "B"))
	f.ask(f.of(b, "acme"))
	clustertest.Take[wire.Claim](f.peers)
	f.peers.Silent()
}

// decision 2: no silo for the type
func TestWithoutASiloForTheTypeANodeIsRefusedInMillisecondsUntilOneJoins(t *testing.T) {
	f, _ := among(t, typed(me, "A"), typed(b, "A"), clustertest.Leaving(c))
	addr := f.of(b, "acme")
	f.types[addr] = "B"
	begin := f.clock.Now()
	got := f.ask(addr)
	f.lookup(wire.NotHere{Asked: 3}) // it may be served all the same, by the one that leaves
	f.clock.Run(ms)
	if r := refused(t, got, cluster.NoSilo); f.clock.Now()-begin > 5*ms {
		t.Fatalf("%+v after %v", r, f.clock.Now()-begin)
	}
	f.peers.Silent()
	if n := f.core.Counts().Placements; n.NoSilo != 1 {
		t.Fatalf("%+v", n)
	}
	d := typed(clustertest.Silo("d", 4), "B")
	f.core.Apply(clustertest.View(6, typed(me, "A"), typed(b, "A"), clustertest.Leaving(c), d))
	f.accept()
	got = f.ask(addr)
	f.place(d).Answer(served(d))
	if r := resolved(t, got); r.Entry.Epoch != d.Epoch {
		t.Fatalf("%+v", r)
	}
}

// decision 3: what is served already needs no place.
func TestWithoutASiloForTheTypeWhoeverServesTheNodeStillIsFound(t *testing.T) {
	f, _ := among(t, typed(me, "A"), typed(b, "A"), clustertest.Leaving(c))
	addr := f.of(b, "acme")
	f.types[addr] = "B"
	got := f.ask(addr)
	f.lookup(wire.Hit{Entry: wire.Entry{Epoch: c.Epoch, Reg: 9, Node: true}})
	if r := resolved(t, got); r.Entry.Epoch != c.Epoch {
		t.Fatalf("%+v", r)
	}
}

// decision 3: a silo that refuses, does not answer or is suspect is passed over.
func TestAChosenSiloThatDoesNotTakeANodeIsFollowedByAnother(t *testing.T) {
	for name, end := range map[string]func(*fixture, *clustertest.Ask){
		"refuses":    func(_ *fixture, a *clustertest.Ask) { a.Answer(wire.Unknown{Why: wire.WhyLeaving}) },
		"is another": func(_ *fixture, a *clustertest.Ask) { a.Answer(wire.WrongEpoch{}) },
		"is lost":    func(_ *fixture, a *clustertest.Ask) { a.Fail(clustertest.ErrLost) },
		"is silent":  func(f *fixture, _ *clustertest.Ask) { f.clock.Run(500 * ms) },
	} {
		t.Run(name, func(t *testing.T) {
			f, o := among(t, typed(me, "A"), typed(b, "B"), typed(c, "B"), typed(clustertest.Silo("d", 4), "B"))
			o.suspect[4] = true
			f.types["acme/n"] = "B"
			got := f.ask("acme/n")
			first, _ := clustertest.Take[wire.Place](f.peers)
			if clustertest.Count[wire.Place](f.peers) != 1 || first.To.Epoch == 4 {
				t.Fatalf("%s is asked", first.To)
			}
			end(f, first)
			f.clock.Flush()
			last, _ := clustertest.Take[wire.Place](f.peers)
			if last.To.Epoch == first.To.Epoch || last.To.Epoch == 4 {
				t.Fatalf("%s is asked", last.To)
			}
			last.Answer(served(last.To))
			if r := resolved(t, got); r.Entry.Epoch != last.To.Epoch {
				t.Fatalf("%+v", r)
			}
			if n := f.core.Counts().Placements; n.ByType != 2 || n.Failed != 1 {
				t.Fatalf("%+v", n)
			}
		})
	}
}

// decision 3: the wait nests inside the request's budget.
func TestAPlacementWaitsForHalfOfWhatIsLeftAtMost(t *testing.T) {
	f, _ := among(t, typed(me, "A"), typed(b, "B"))
	f.types["acme/n"] = "B"
	got := f.resolve(cluster.Question{Addr: "acme/n", Node: true, Until: f.clock.Now() + 100*ms})
	f.clock.Flush()
	if a := f.place(b); a.Within != 50*ms {
		t.Fatalf("%v", a.Within)
	}
	f.clock.Run(200 * ms)
	if r := refused(t, got, cluster.Unknown); !slices.Equal(r.Missing, []string{"b"}) {
		t.Fatalf("%+v", r)
	}
}

// decision 2: suspect
func TestWhereTheOnlySiloForTheTypeIsSuspectTheRefusalNamesIt(t *testing.T) {
	f, o := among(t, typed(me, "A"), typed(b, "B"), typed(c, "C"))
	o.suspect[b.Epoch] = true
	f.types["acme/n"] = "B"
	got := f.ask("acme/n")
	f.lookup(wire.NotHere{Asked: 3})
	f.clock.Run(ms)
	if r := refused(t, got, cluster.Unknown); !slices.Equal(r.Missing, []string{"b"}) {
		t.Fatalf("%+v", r)
	}
}

// decision 3
func TestANodeIsPlacedElsewhereWhereItsCallersSiloIsMuchMoreLoaded(t *testing.T) {
	f, o := among(t, me, b, c)
	f.load, o.load[b.Epoch], o.load[c.Epoch] = 1000, 900, 100
	f.types["acme/n"] = "A"
	got := f.ask("acme/n")
	f.place(c).Answer(wire.Unknown{Why: "busy"})
	f.clock.Flush()
	clustertest.Take[wire.Claim](f.peers) // compared with b it is not much more loaded
	f.peers.Silent()
	if len(*got) > 0 {
		t.Fatalf("%+v", *got)
	}
	if o.load[c.Epoch] != 101 {
		t.Fatalf("c is thought to serve %d", o.load[c.Epoch])
	}
	if n := f.core.Counts().Placements; n.ByLoad != 1 {
		t.Fatalf("%+v", n)
	}
	delete(o.load, b.Epoch)
	delete(o.load, c.Epoch) // nothing is known of them
	f.ask("acme/m")
	clustertest.Take[wire.Claim](f.peers)
	f.peers.Silent()
}

// decision 3: two that choose choose the same.
func TestAllThatPlaceANodeChooseTheSameSiloAndNotOneForAllNodes(t *testing.T) {
	d, e := typed(clustertest.Silo("d", 4), "B"), typed(clustertest.Silo("e", 5), "B")
	chosen := map[membership.Epoch]int{}
	for n := range 40 {
		addr := fmt.Sprintf("acme/%d", n)
		var to []membership.Epoch
		for _, loads := range [][2]int{{3, 90}, {80, 0}} { // each asker knows other loads, none much higher
			f, o := among(t, typed(me, "A"), typed(b, "A"), d, e)
			o.load[d.Epoch], o.load[e.Epoch] = loads[0], loads[1]
			f.types[addr] = "B"
			f.ask(addr)
			a, _ := clustertest.Take[wire.Place](f.peers)
			to = append(to, a.To.Epoch)
		}
		if to[0] != to[1] {
			t.Fatalf("%s: %v", addr, to)
		}
		chosen[to[0]]++
	}
	if chosen[4] < 8 || chosen[5] < 8 {
		t.Fatalf("%v", chosen)
	}
}

// decision 3: a leaving silo gets no placement and gives none to itself.
func TestALeavingSiloPlacesOnAnotherWhatNobodyServes(t *testing.T) {
	f, _ := among(t, clustertest.Leaving(me), b)
	f.types["acme/n"] = "A"
	got := f.ask("acme/n")
	f.lookup(wire.NotHere{Asked: 2})
	f.clock.Run(ms)
	f.place(b).Answer(served(b))
	if r := resolved(t, got); r.Entry.Epoch != b.Epoch {
		t.Fatalf("%+v", r)
	}
	if n := f.core.Counts().Placements; n.ByLeaving != 1 {
		t.Fatalf("%+v", n)
	}
	a, ok := f.handle(wire.Place{Head: f.head(b), Addr: "acme/m"}).(wire.Unknown)
	if !ok || a.Why != wire.WhyLeaving {
		t.Fatalf("%+v", a)
	}
	f.peers.Silent()
}

// decision 3: a placement is a hint.
func TestTheChosenSiloAnswersOnlyWithAGrantOrWithWhoHoldsIt(t *testing.T) {
	f, o := among(t, typed(me, "A"), b, c)
	f.load, o.load[b.Epoch], o.load[c.Epoch] = 10_000, 0, 0 // it is placed no further
	place := func(addr string) (got *wire.Answer) {
		got = new(wire.Answer)
		f.core.Handle(wire.Place{Head: f.head(b), Addr: addr}, func(a wire.Answer) { *got = a })
		return got
	}
	one := f.of(b, "acme")
	got := place(one)
	a, m := clustertest.Take[wire.Claim](f.peers)
	if *got != nil || m.Items[0].Phase != wire.Wanted {
		t.Fatalf("%+v before its claim %+v", *got, m)
	}
	a.Answer(wire.Claimed{Key: m.Key, Results: make([]wire.ClaimResult, 1)})
	if hit, ok := (*got).(wire.Hit); !ok || hit.Entry.Epoch != me.Epoch {
		t.Fatalf("%+v", *got)
	}
	f.mustTell("granted " + one)
	two := clustertest.Owned(f.core.Table(), b, "acme", 1)
	got = place(two)
	a, m = clustertest.Take[wire.Claim](f.peers)
	a.Answer(wire.Claimed{Key: m.Key, Results: []wire.ClaimResult{{Verdict: wire.Held, Holder: wire.Entry{Epoch: c.Epoch, Reg: 5, Node: true}}}})
	if hit, ok := (*got).(wire.Hit); !ok || hit.Entry.Epoch != c.Epoch {
		t.Fatalf("%+v", *got)
	}
	// What it remembers of the node is no answer: whoever asks may have been denied by it.
	place(two)
	clustertest.Take[wire.Claim](f.peers)
	if n := f.core.Counts().Placements; n.Taken != 3 || n.ByLoad+n.ByType > 0 {
		t.Fatalf("%+v", n)
	}
	if a, ok := f.handle(wire.Place{Head: wire.Head{From: b.Epoch, To: 99}, Addr: one}).(wire.WrongEpoch); !ok {
		t.Fatalf("%+v", a)
	}
}

// decision 3: handed over when much more loaded, without going back and forth.
func TestAHandOverBeginsOnlyAfterSomeLooksMovesNoMoreThanNeededAndIsFollowedByAPause(t *testing.T) {
	f, o := among(t, me, b, typed(c, "A"))
	p := cluster.DefaultPlacement()
	look := func() int {
		f.clock.Run(p.Look)
		n := f.core.Surplus()
		if n > 0 {
			if f.core.Surplus() != 0 {
				t.Fatal("it is asked twice at once")
			}
			f.core.HandedOver(n)
		}
		return n
	}
	f.load, o.load[b.Epoch] = 1000, 100
	o.load[c.Epoch] = 0 // it does not handle all that this silo does: what is handed over might come back
	for range p.Steady - 1 {
		if n := look(); n > 0 {
			t.Fatalf("%d at once", n)
		}
	}
	moved := 0
	for range 30 {
		n := look()
		if n > p.Batch {
			t.Fatalf("%d at one look", n)
		}
		moved += n // nobody asks for them: neither load changes
	}
	if want := p.Excess(1000, 100); moved != want {
		t.Fatalf("%d moved, want %d", moved, want)
	}
	f.clock.Run(p.Pause)
	if n := look(); n == 0 {
		t.Fatal("nothing moves after the pause, though it still is much more loaded")
	}
	f.load = 300 // in the middle of a hand-over it is not needed any more
	if n := look(); n != 0 {
		t.Fatalf("%d", n)
	}
	f.load = 1000
	f.core.Apply(clustertest.View(6, clustertest.Leaving(me), b))
	for range 2 * p.Steady {
		if n := look(); n != 0 {
			t.Fatalf("a leaving silo hands %d over beside what it ends anyway", n)
		}
	}
}
