package directory_test

import (
	"slices"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// protocol §4
func TestWhoeverDoesNotOwnASlotSaysSoToEveryRequest(t *testing.T) {
	f := newFixture(t)
	other := f.ownedBy(b)
	addr := clustertest.InSlot(other, slots, "portal", 0)
	if a := mustBe[wire.NotOwner](t, f.lookup(addr)); a.Key != f.view.Key() {
		t.Errorf("lookup: key %v", a.Key)
	}
	for _, it := range []wire.ClaimItem{process(addr, 1), kept(addr, 1), wanted(addr, 1)} {
		if r := f.one(b, it); r.Verdict != wire.Elsewhere {
			t.Errorf("claim %+v: %v", it, r.Verdict)
		}
	}
	if v := f.detach(b, wire.DetachItem{Addr: addr, Reg: 1}); v != wire.Elsewhere {
		t.Errorf("detach: %v", v)
	}
	if a := f.claimed(wire.Claim{Head: f.head(b), CompleteFor: all(other)}); !a.Complete.Empty() {
		t.Errorf("completeness: %v", a.Complete)
	}
	for _, slot := range []int{other, slots, 1 << 20} {
		if a, ok := f.owner.HandOver(wire.HandOver{Head: f.head(b), Slot: slot}).(wire.NotOwner); !ok {
			t.Errorf("hand-over of %d: %T", slot, a)
		}
	}
	if _, ok := f.entry(addr); ok {
		t.Error("it keeps an entry of a slot that is another's")
	}
}

// protocol §4
func TestASlotThatIsGainedWaitsForEveryMemberItselfIncluded(t *testing.T) {
	f := newFixture(t)
	s := f.owner.Slot(f.slot)
	if !s.Owned || s.Settled || s.Acquired != f.view.Key() || !slices.Equal(s.Waiting, []membership.Epoch{b.Epoch, c.Epoch, me.Epoch}) {
		t.Fatalf("%+v", s)
	}
	if owned, settled := f.owner.Owned(); owned == 0 || settled != 0 {
		t.Fatalf("%d owned, %d settled", owned, settled)
	}
}

// protocol §4
func TestAnEntryOfTheViewIsHitInEitherState(t *testing.T) {
	for name, settle := range map[string]bool{"unsettled": false, "settled": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if settle {
				f.settle()
			}
			if r := f.one(b, process(f.addr, 7)); r.Verdict != wire.Landed {
				t.Fatal(r)
			}
			if h := mustBe[wire.Hit](t, f.lookup(f.addr)); h.Entry != (wire.Entry{Epoch: b.Epoch, Reg: 7}) {
				t.Fatalf("%+v", h)
			}
			f.peers.Silent()
		})
	}
}

// protocol §4; C24
func TestAMissAsksEveryMemberBeforeItIsANegativeAnswerInEitherState(t *testing.T) {
	for name, settle := range map[string]bool{"unsettled": false, "settled": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if settle {
				f.settle()
			}
			a := f.lookup(f.addr)
			f.clock.Run(ms)
			for _, m := range []string{"b", "c"} {
				if q := f.locate(m, wire.LocatedItem{}); q.Items[0].Exclusive || q.Items[0].Addr != f.addr {
					t.Fatalf("asked %+v", q.Items)
				}
			}
			if *a != nil {
				t.Fatal("answered before every member was heard")
			}
			f.locate("me", wire.LocatedItem{})
			if n := mustBe[wire.NotHere](t, a); n.Asked != 3 {
				t.Fatalf("%+v", n)
			}
		})
	}
}

// protocol §4
func TestWhatALocateFindsIsInstalledAndItsHolderIsTold(t *testing.T) {
	f := newFixture(t)
	a := f.lookup(f.addr)
	f.clock.Run(ms)
	f.locate("b", wire.LocatedItem{})
	f.locate("c", wire.LocatedItem{Status: wire.Serving, Reg: 9})
	f.locate("me", wire.LocatedItem{})
	if h := mustBe[wire.Hit](t, a); h.Entry.Epoch != c.Epoch || h.Entry.Reg != 9 {
		t.Fatalf("%+v", h)
	}
	f.holds(f.addr, c, 9)
	ask, m := clustertest.Take[wire.Restored](f.peers)
	if ask.To.Name != "c" || m.Addr != f.addr || m.Reg != 9 {
		t.Fatalf("told %s %+v", ask.To.Name, m)
	}
}

// protocol §4; protocol §8
func TestAMissingMemberMakesTheAnswerUnknownHoweverLong(t *testing.T) {
	f := newFixture(t)
	f.settle()
	for range 3 {
		a := f.lookup(f.addr)
		f.clock.Run(ms)
		f.locate("b", wire.LocatedItem{})
		f.locate("me", wire.LocatedItem{})
		f.clock.Run(600 * ms) // the bound of one member's answer
		if u := mustBe[wire.Unknown](t, a); u.Why != wire.WhyMissing || !slices.Equal(u.Missing, []string{"c"}) {
			t.Fatalf("%+v", u)
		}
	}
}

// fault 10
func TestNoLookupWaitsForAMemberThatHasLeftTheView(t *testing.T) {
	f := newFixture(t)
	f.settle()
	a := f.lookup(f.addr)
	f.clock.Run(ms)
	f.locate("b", wire.LocatedItem{})
	f.locate("me", wire.LocatedItem{})
	f.apply(clustertest.View(6, me, b)) // c is gone; its answer never comes
	clustertestFail(f, "c")
	mustBe[wire.NotHere](t, a)
}

func clustertestFail(f *fixture, name string) {
	a, _ := clustertest.TakeFrom[wire.Locate](f.peers, name)
	a.Fail(clustertest.ErrLost)
	f.clock.Flush()
}

// protocol §4
func TestAClaimThatArrivesDuringALocateMakesTheAnswerAHit(t *testing.T) {
	f := newFixture(t)
	a := f.lookup(f.addr)
	f.clock.Run(ms)
	f.locate("b", wire.LocatedItem{})
	f.one(c, process(f.addr, 4))
	f.locate("c", wire.LocatedItem{}) // answered before it was registered there
	f.locate("me", wire.LocatedItem{})
	mustBe[wire.Hit](t, a)
}

// protocol §4
func TestAProcessHubsClaimAndAHeldNodeHubsClaimLandInEitherState(t *testing.T) {
	for name, settle := range map[string]bool{"unsettled": false, "settled": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if settle {
				f.settle()
			}
			if r := f.one(b, process(f.addr, 1)); r.Verdict != wire.Landed {
				t.Errorf("process: %v", r.Verdict)
			}
			if r := f.one(c, kept(f.node, 2)); r.Verdict != wire.Landed {
				t.Errorf("node: %v", r.Verdict)
			}
			f.holds(f.addr, b, 1)
			f.holds(f.node, c, 2)
			f.peers.Silent()
		})
	}
}

// protocol §4
func TestANewNodeHubInAnUnsettledSlotIsGrantedAfterEveryWaitingMemberWasAskedExclusively(t *testing.T) {
	f := newFixture(t)
	f.claimed(wire.Claim{Head: f.head(c), CompleteFor: all()}) // c has told everything; it is not asked
	a := f.claim(wire.Claim{Head: f.head(b), Items: []wire.ClaimItem{wanted(f.node, 3)}})
	f.clock.Run(ms)
	for _, m := range []string{"b", "me"} {
		q := f.locate(m, wire.LocatedItem{})
		if it := q.Items[0]; !it.Exclusive || it.Slot != f.slot || it.Acquired != f.view.Key() {
			t.Fatalf("asked %+v", it)
		}
	}
	f.peers.Silent()
	if len(a.Results) != 1 || a.Results[0].Verdict != wire.Landed {
		t.Fatalf("%+v", a)
	}
	f.holds(f.node, b, 3)
}

// protocol §4
func TestAnExclusiveLocateThatFindsAHolderTellsTheClaimantWhoItIs(t *testing.T) {
	f := newFixture(t)
	a := f.claim(wire.Claim{Head: f.head(b), Items: []wire.ClaimItem{wanted(f.node, 3)}})
	f.clock.Run(ms)
	f.locate("b", wire.LocatedItem{})
	f.locate("c", wire.LocatedItem{Status: wire.Serving, Reg: 8, Node: true})
	f.locate("me", wire.LocatedItem{})
	if len(a.Results) != 1 || a.Results[0].Verdict != wire.Held || a.Results[0].Holder.Epoch != c.Epoch || a.Results[0].Holder.Reg != 8 {
		t.Fatalf("%+v", a)
	}
	f.holds(f.node, c, 8)
}

// protocol §4
func TestANewNodeHubIsNotGrantedWhileAWaitingMemberIsMissing(t *testing.T) {
	f := newFixture(t)
	a := f.claim(wire.Claim{Head: f.head(b), Items: []wire.ClaimItem{wanted(f.node, 3)}})
	f.clock.Run(ms)
	f.locate("b", wire.LocatedItem{})
	f.locate("me", wire.LocatedItem{})
	clustertestFail(f, "c")
	if len(a.Results) != 1 || a.Results[0].Verdict != wire.Unsettled {
		t.Fatalf("%+v", a)
	}
	if _, ok := f.entry(f.node); ok {
		t.Fatal("it was granted")
	}
}

// protocol §4
func TestInASettledSlotTheFirstNewNodeHubWinsAndTheSecondIsToldWhoHoldsIt(t *testing.T) {
	f := newFixture(t)
	f.settle()
	if r := f.one(b, wanted(f.node, 1)); r.Verdict != wire.Landed {
		t.Fatal(r)
	}
	if r := f.one(c, wanted(f.node, 1)); r.Verdict != wire.Held || r.Holder.Epoch != b.Epoch {
		t.Fatalf("%+v", r)
	}
	if r := f.one(b, wanted(f.node, 1)); r.Verdict != wire.Landed { // it asks again: the answer was lost
		t.Fatal(r)
	}
	f.peers.Silent()
}

// protocol §7
func TestAnUnsettledSlotGrantsMarkedAndCountedAfterTwoSecondsWithAMemberMissing(t *testing.T) {
	f := newFixture(t)
	f.clock.Run(2*time.Second - 10*ms)
	for _, a := range f.peers.Waiting() {
		a.Fail(clustertest.ErrLost) // slot queries
	}
	ask := func(m membership.Member) wire.ClaimResult {
		a := f.claim(wire.Claim{Head: f.head(m), Items: []wire.ClaimItem{wanted(f.node, 3)}})
		f.clock.Run(ms)
		f.locate("b", wire.LocatedItem{})
		f.locate("me", wire.LocatedItem{})
		clustertestFail(f, "c")
		return a.Results[0]
	}
	if r := ask(b); r.Verdict != wire.Unsettled {
		t.Fatalf("before two seconds: %+v", r)
	}
	f.clock.Run(20 * ms)
	if r := ask(b); r.Verdict != wire.Landed || f.owner.Counts().Unsure != 1 {
		t.Fatalf("after them: %+v, %d counted", r, f.owner.Counts().Unsure)
	}
	if e, _ := f.entry(f.node); !e.Unsure {
		t.Fatal("the entry is not marked")
	}
	if r := f.one(c, wanted(f.node, 1)); r.Verdict != wire.Held {
		t.Fatalf("another claimant: %+v", r)
	}
}

// protocol §4
func TestDetachRemovesTheEntryOfTheSameEpochUpToItsRegistrationOnly(t *testing.T) {
	tests := []struct {
		name    string
		from    membership.Member
		reg     uint64
		removed bool
	}{
		{"the same registration", b, 5, true},
		{"a later one, of which no claim has come", b, 6, true},
		{"an older one", b, 4, false},
		{"another incarnation's", c, 9, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			f.one(b, process(f.addr, 5))
			if v := f.detach(test.from, wire.DetachItem{Addr: f.addr, Reg: test.reg}); v != wire.Landed {
				t.Fatal(v)
			}
			if _, ok := f.entry(f.addr); ok == test.removed {
				t.Fatalf("there: %v", ok)
			}
		})
	}
}

// protocol §4; fault 9
func TestASlotThatIsKeptDropsOnlyWhatBelongsToDepartedSilos(t *testing.T) {
	f := newFixture(t)
	other := clustertest.InSlot(f.slot, slots, "portal", 1)
	f.one(b, process(f.addr, 1))
	f.one(c, process(other, 1))
	f.one(c, kept(f.node, 2))
	f.apply(clustertest.View(6, me, b))
	s := f.owner.Slot(f.slot)
	if s.Settled || s.Acquired != (membership.Key{Timeline: 1, Number: 5}) || !slices.Equal(s.Waiting, []membership.Epoch{b.Epoch, me.Epoch}) {
		t.Fatalf("%+v", s)
	}
	f.holds(f.addr, b, 1)
	for _, a := range []string{other, f.node} {
		if _, ok := f.entry(a); ok {
			t.Errorf("%s of a departed silo is still there", a)
		}
	}
}

// protocol §4; fault 10
func TestASlotSettlesWhenTheLastThatItWaitedForDeparts(t *testing.T) {
	f := newFixture(t)
	for _, m := range []membership.Member{me, b} {
		f.claimed(wire.Claim{Head: f.head(m), CompleteFor: all()})
	}
	f.apply(clustertest.View(6, me, b))
	if !f.owner.Slot(f.slot).Settled {
		t.Fatal("it waits for a silo that is in no view")
	}
}

// protocol §4
func TestASlotThatWasLostAndRegainedBeginsUnsettled(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.apply(clustertest.View(6, clustertest.Leaving(me), b, c))
	if f.owner.Slot(f.slot).Owned {
		t.Fatal("a leaving silo owns it")
	}
	f.apply(clustertest.View(7, me, b, c))
	if s := f.owner.Slot(f.slot); s.Settled || s.Acquired.Number != 7 || len(s.Waiting) != 3 {
		t.Fatalf("%+v", s)
	}
}

// protocol §10: a view in which the slot was another's has been skipped; the timeline tells.
func TestAChangeOfTheTimelineUnsettlesEverySlotThatIsKept(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.one(b, process(f.addr, 1))
	f.apply(clustertest.ViewAt(membership.Key{Timeline: 2, Number: 4}, me, b, c))
	if s := f.owner.Slot(f.slot); s.Settled || len(s.Waiting) != 3 || s.Acquired.Timeline != 2 {
		t.Fatalf("%+v", s)
	}
	f.holds(f.addr, b, 1) // what it knows it still serves
	mustBe[wire.Hit](t, f.lookup(f.addr))
}

// protocol §8
func TestAnEvictedSiloForgetsItsSlots(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.one(b, process(f.addr, 1))
	f.owner.Evict()
	if owned, _ := f.owner.Owned(); owned != 0 {
		t.Fatalf("%d slots", owned)
	}
	f.clock.Run(5 * time.Second)
	f.peers.Silent()
}
