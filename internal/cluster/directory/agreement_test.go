package directory_test

import (
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

var (
	older = membership.Key{Timeline: 1, Number: 4}
	newer = membership.Key{Timeline: 1, Number: 9}
)

func (f *fixture) headAt(from membership.Member, k membership.Key) wire.Head {
	return wire.Head{From: from.Epoch, To: me.Epoch, Key: k}
}

// protocol §4; protocol §8
func TestAnOwnerHandlesWhatItsOwnViewGivesItWhateverTheNumberOfTheAskersView(t *testing.T) {
	for name, key := range map[string]membership.Key{"older": older, "newer": newer, "of a lost timeline": {Timeline: 0, Number: 99}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.settle()
			a := f.claimed(wire.Claim{Head: f.headAt(b, key), Items: []wire.ClaimItem{process(f.addr, 1), wanted(f.node, 2)}})
			if a.Results[0].Verdict != wire.Landed || a.Results[1].Verdict != wire.Landed {
				t.Fatalf("%+v", a)
			}
			mustBe[wire.Hit](t, f.lookup(f.addr, func(m *wire.Lookup) { m.Key = key }))
			d := f.owner.Detach(wire.Detach{Head: f.headAt(b, key), Items: []wire.DetachItem{{Addr: f.addr, Reg: 1}}}).(wire.Detached)
			if d.Verdicts[0] != wire.Landed {
				t.Fatalf("%+v", d)
			}
		})
	}
}

// protocol §4: exception (b). protocol §10: a completeness mark to an owner one view behind, and back.
func TestAMarkOfCompletenessFromBeforeTheSlotWasGainedSaysNothing(t *testing.T) {
	f := newFixture(t)
	f.one(b, process(f.addr, 1))
	a := f.claimed(wire.Claim{Head: f.headAt(b, older), CompleteFor: all()})
	if !a.Complete.Empty() || len(f.owner.Slot(f.slot).Waiting) != 3 {
		t.Fatalf("accepted %v, waiting %v", a.Complete, f.owner.Slot(f.slot).Waiting)
	}
	f.holds(f.addr, b, 1) // nor does it prune
	for _, k := range []membership.Key{f.view.Key(), newer} {
		if a := f.claimed(wire.Claim{Head: f.headAt(b, k), Items: []wire.ClaimItem{process(f.addr, 1)}, CompleteFor: all()}); !a.Complete.Has(f.slot) {
			t.Fatalf("%v is not accepted", k)
		}
	}
	if w := f.owner.Slot(f.slot).Waiting; len(w) != 2 {
		t.Fatalf("waiting %v", w)
	}
}

// protocol §4: exception (b)
func TestAHandOverFromBeforeTheSlotWasGainedIsRefused(t *testing.T) {
	f := newFixture(t)
	m := wire.HandOver{Head: f.headAt(b, older), Slot: f.slot, Settled: true}
	if a, ok := f.owner.HandOver(m).(wire.NotOwner); !ok || a.Key != f.view.Key() || f.owner.Slot(f.slot).Settled {
		t.Fatalf("%+v", a)
	}
	m.Key = f.view.Key()
	if _, ok := f.owner.HandOver(m).(wire.OK); !ok || !f.owner.Slot(f.slot).Settled {
		t.Fatal("one from the view that gave it is refused")
	}
}

// protocol §4: exception (c)
func TestANegativeAnswerNeedsAViewAtLeastAsNewAsTheAskers(t *testing.T) {
	f := newFixture(t)
	f.settle()
	a := mustBe[wire.NotOwner](t, f.lookup(f.addr, func(m *wire.Lookup) { m.Key = newer }))
	if a.Key != f.view.Key() {
		t.Fatalf("key %v", a.Key)
	}
	f.peers.Silent()
	for _, k := range []membership.Key{older, f.view.Key()} { // a control
		got := f.lookup(f.addr, func(m *wire.Lookup) { m.Key = k })
		f.nobody()
		mustBe[wire.NotHere](t, got)
	}
}

// protocol §4: exception (a). The member that is behind gets the view and is asked again.
func TestAMemberThatDoesNotNameTheAskerAsOwnerIsGivenTheViewAndAskedAgain(t *testing.T) {
	f := newFixture(t)
	for _, m := range []membership.Member{me, b} {
		f.claimed(wire.Claim{Head: f.head(m), CompleteFor: all()})
	}
	a := f.claim(wire.Claim{Head: f.head(b), Items: []wire.ClaimItem{wanted(f.node, 3)}})
	f.clock.Run(ms)
	behind := func() {
		ask, _ := clustertest.TakeFrom[wire.Locate](f.peers, "c")
		ask.Answer(wire.Located{Key: older, Items: []wire.LocatedItem{{Status: wire.NotYours}}})
	}
	behind()
	if len(f.peers.Seen) != 1 || f.peers.Seen[0].Key != older || len(a.Results) != 0 {
		t.Fatalf("seen %v, answered %+v", f.peers.Seen, a)
	}
	f.clock.Run(8 * ms)
	f.locate("c", wire.LocatedItem{})
	if len(a.Results) != 1 || a.Results[0].Verdict != wire.Landed {
		t.Fatalf("%+v", a)
	}

	second := f.claim(wire.Claim{Head: f.head(b), Items: []wire.ClaimItem{wanted(clustertest.InSlot(f.slot, slots, "acme", 1), 4)}})
	for range 5 { // it stays behind
		f.clock.Run(60 * ms)
		for _, q := range f.peers.Waiting() {
			if _, is := q.Message.(wire.SlotQuery); is {
				q.Fail(clustertest.ErrLost)
			}
		}
		behind()
	}
	if len(second.Results) != 1 || second.Results[0].Verdict != wire.Unsettled {
		t.Fatalf("a member that stays behind is missing: %+v", second)
	}
}

// protocol §4
func TestAClaimOfASiloThatIsInNoViewOfTheOwnerIsToldSo(t *testing.T) {
	f := newFixture(t)
	a := f.claimed(wire.Claim{Head: f.head(clustertest.Silo("new", 9)), Items: []wire.ClaimItem{process(f.addr, 1), wanted(f.node, 2)}, CompleteFor: all()})
	if a.Results[0].Verdict != wire.UnknownEpoch || a.Results[1].Verdict != wire.UnknownEpoch || !a.Complete.Empty() {
		t.Fatalf("%+v", a)
	}
	if _, ok := f.entry(f.addr); ok {
		t.Fatal("it was installed")
	}
}

// protocol §4
func TestTheGreaterRegistrationOfOneIncarnationStays(t *testing.T) {
	f := newFixture(t)
	f.one(b, process(f.addr, 5))
	if r := f.one(b, process(f.addr, 4)); r.Verdict != wire.Landed {
		t.Fatal(r)
	}
	f.holds(f.addr, b, 5)
	f.one(b, process(f.addr, 6))
	f.holds(f.addr, b, 6)
}

// fault 3
func TestRegisteringOverAnEntryWhoseSiloIsNotInTheViewSucceedsInOneCall(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.one(c, process(f.addr, 1))
	f.one(c, kept(f.node, 2))
	f.apply(clustertest.View(6, me, b))
	if r := f.one(b, process(f.addr, 1)); r.Verdict != wire.Landed {
		t.Fatalf("process: %+v", r)
	}
	if r := f.one(b, wanted(f.node, 2)); r.Verdict != wire.Landed {
		t.Fatalf("node: %+v", r)
	}
	f.peers.Silent()
}

// protocol §4
func TestAnotherIncarnationOfTheViewHoldsTheAddressAndIsAskedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		says  wire.LocatedItem
		stays bool
	}{
		"serving that registration":  {wire.LocatedItem{Status: wire.Serving, Reg: 5}, true},
		"claiming that registration": {wire.LocatedItem{Status: wire.Claiming, Reg: 5, Node: true}, true},
		"serving another":            {wire.LocatedItem{Status: wire.Serving, Reg: 6}, false},
		"serving nothing":            {wire.LocatedItem{}, false},
		"closed":                     {wire.LocatedItem{Status: wire.ClosedHere, Age: time.Second}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.settle()
			f.one(b, process(f.addr, 5))
			if r := f.one(c, process(f.addr, 1)); r.Verdict != wire.Held || r.Holder.Epoch != b.Epoch || r.Holder.Reg != 5 {
				t.Fatalf("%+v", r)
			}
			q := f.locate("b", test.says)
			if len(q.Items) != 1 || q.Items[0].Exclusive || q.Items[0].Addr != f.addr {
				t.Fatalf("asked %+v", q.Items)
			}
			f.peers.Silent() // once
			want := wire.Landed
			if test.stays {
				want = wire.Held
			}
			if r := f.one(c, process(f.addr, 1)); r.Verdict != want {
				t.Fatalf("the next attempt: %+v, want %v", r, want)
			}
		})
	}
}

// protocol §8: only an explicit word of that very registration removes an entry.
func TestAnIncumbentThatDoesNotAnswerKeepsItsEntry(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.one(b, process(f.addr, 5))
	f.one(c, process(f.addr, 1))
	clustertestFail(f, "b")
	f.holds(f.addr, b, 5)
}

// protocol §10: Verify while a newer registration of the incumbent lands.
func TestADenialOfAnOldRegistrationDoesNotRemoveTheNewOne(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.one(b, process(f.addr, 5))
	f.one(c, process(f.addr, 1)) // the incumbent is asked about 5
	ask, _ := clustertest.TakeFrom[wire.Locate](f.peers, "b")
	f.one(b, process(f.addr, 6))
	ask.Answer(wire.Located{Key: f.view.Key(), Items: []wire.LocatedItem{{}}})
	f.holds(f.addr, b, 6)
}

// protocol §4; protocol §8
func TestAStaleReportRemovesExactlyThatEntry(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.one(b, process(f.addr, 5))
	for _, other := range []wire.Entry{{Epoch: b.Epoch, Reg: 4}, {Epoch: b.Epoch, Reg: 6}, {Epoch: c.Epoch, Reg: 5}} {
		mustBe[wire.Hit](t, f.lookup(f.addr, func(m *wire.Lookup) { m.Stale = &other }))
	}
	a := f.lookup(f.addr, func(m *wire.Lookup) { m.Stale = &wire.Entry{Epoch: b.Epoch, Reg: 5} })
	f.nobody()
	mustBe[wire.NotHere](t, a)
	if f.owner.Counts().Refuted != 1 {
		t.Fatalf("%+v", f.owner.Counts())
	}
}

// protocol §5; protocol §8: the detach of a registration went to another owner while this one was away.
func TestACompleteClaimPrunesWhatTheSiloDoesNotNameAnyMore(t *testing.T) {
	f := newFixture(t)
	gone, stays, pending := f.addr, clustertest.InSlot(f.slot, slots, "portal", 1), f.node
	f.one(b, process(gone, 1))
	f.one(b, process(stays, 2))
	f.one(b, kept(pending, 3))
	f.one(c, process(clustertest.InSlot(f.slot, slots, "portal", 2), 1))
	younger := clustertest.InSlot(f.slot, slots, "acme", 1)
	f.one(b, kept(younger, 5)) // its claim has overtaken the mark
	a := f.claimed(wire.Claim{Head: f.head(b), CompleteFor: all(f.slot), UpTo: 4, Items: []wire.ClaimItem{
		process(stays, 2), {Addr: pending, Reg: 4, Node: true, Phase: wire.Pending},
	}})
	f.holds(younger, b, 5)
	if !a.Complete.Has(f.slot) || f.owner.Counts().Pruned != 1 {
		t.Fatalf("%+v, %+v", a, f.owner.Counts())
	}
	if _, ok := f.entry(gone); ok {
		t.Fatal("what it does not name is still there")
	}
	f.holds(stays, b, 2)
	f.holds(pending, b, 3)
	f.holds(clustertest.InSlot(f.slot, slots, "portal", 2), c, 1)
}

// protocol §4: coalesced grants; the first of two claimants wins, the other is told.
func TestTwoClaimantsOfOneNewNodeInAnUnsettledSlotGetOneGrant(t *testing.T) {
	f := newFixture(t)
	first := f.claim(wire.Claim{Head: f.head(b), Items: []wire.ClaimItem{wanted(f.node, 3)}})
	f.clock.Run(ms) // the questions are on their way
	second := f.claim(wire.Claim{Head: f.head(c), Items: []wire.ClaimItem{wanted(f.node, 4)}})
	for _, m := range []string{"b", "c", "me"} {
		f.locate(m, wire.LocatedItem{Status: wire.Claiming, Reg: 3, Node: true})
	}
	if len(first.Results) != 1 || first.Results[0].Verdict != wire.Landed {
		t.Fatalf("first: %+v", first)
	}
	f.clock.Run(ms)
	for _, m := range []string{"b", "c", "me"} { // the second takes no old negative: a round of its own
		f.locate(m, wire.LocatedItem{})
	}
	if len(second.Results) != 1 || second.Results[0].Verdict != wire.Held || second.Results[0].Holder.Epoch != b.Epoch {
		t.Fatalf("second: %+v", second)
	}
}

// protocol §4
func TestAGrantWhoseSlotMovesMeanwhileIsNotGiven(t *testing.T) {
	f := newFixture(t)
	a := f.claim(wire.Claim{Head: f.head(b), Items: []wire.ClaimItem{wanted(f.node, 3)}})
	f.clock.Run(ms)
	f.apply(clustertest.View(6, clustertest.Leaving(me), b, c))
	f.apply(clustertest.View(7, me, b, c)) // lost and regained
	for _, m := range []string{"b", "c", "me"} {
		ask, _ := clustertest.TakeFrom[wire.Locate](f.peers, m)
		ask.Answer(wire.Located{Key: f.view.Key(), Items: []wire.LocatedItem{{}}})
	}
	f.clock.Flush()
	if len(a.Results) != 1 || a.Results[0].Verdict != wire.Elsewhere {
		t.Fatalf("%+v", a)
	}
}

// protocol §4
func TestAGrantForASiloThatLeavesTheViewMeanwhileIsNotGiven(t *testing.T) {
	f := newFixture(t)
	a := f.claim(wire.Claim{Head: f.head(b), Items: []wire.ClaimItem{wanted(f.node, 3)}})
	f.clock.Run(ms)
	f.apply(clustertest.View(6, me, c))
	for _, m := range []string{"b", "c", "me"} {
		ask, _ := clustertest.TakeFrom[wire.Locate](f.peers, m)
		ask.Answer(wire.Located{Key: f.view.Key(), Items: []wire.LocatedItem{{}}})
	}
	f.clock.Flush()
	if len(a.Results) != 1 || a.Results[0].Verdict != wire.UnknownEpoch {
		t.Fatalf("%+v", a)
	}
}
