package directory_test

import (
	"slices"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// queried takes the open slot query to a member.
func (f *fixture) queried(name string) (*clustertest.Ask, wire.SlotQuery) {
	f.t.Helper()
	return clustertest.TakeFrom[wire.SlotQuery](f.peers, name)
}

// protocol §5
func TestSlotQueriesAskOnlyWhatIsMissingAfter30MillisecondsAndThenEvery300(t *testing.T) {
	f := newFixture(t)
	f.claimed(wire.Claim{Head: f.head(b), CompleteFor: all()})
	f.clock.Run(29 * ms)
	f.peers.Silent()
	f.clock.Run(ms)
	_, q := f.queried("c")
	_, _ = f.queried("me")
	f.peers.Silent() // b has told everything
	owned, _ := f.owner.Owned()
	if len(q.Slots) != owned {
		t.Fatalf("asked for %d of %d slots", len(q.Slots), owned)
	}
	for _, g := range q.Slots {
		if g.Acquired != f.view.Key() {
			t.Fatalf("%+v", g)
		}
	}
	f.clock.Run(299 * ms)
	f.peers.Silent()
	f.clock.Run(ms)
	_, _ = f.queried("c")
}

// protocol §5; protocol §9: a static cluster is silent.
func TestASettledOwnerAsksNothing(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.clock.Run(time.Hour)
	f.peers.Silent()
	if f.clock.Timers() > 0 {
		t.Fatalf("%d timers", f.clock.Timers())
	}
}

// protocol §4
func TestAnAnswerToASlotQueryStrikesTheMemberAndInstallsWhatItServes(t *testing.T) {
	f := newFixture(t)
	for _, m := range []membership.Member{me, b} {
		f.claimed(wire.Claim{Head: f.head(m), CompleteFor: all()})
	}
	f.clock.Run(30 * ms)
	a, _ := f.queried("c")
	other := f.ownedBy(b)
	a.Answer(wire.SlotIs{Key: f.view.Key(), Slots: all(), Items: []wire.ClaimItem{process(f.addr, 3), kept(f.node, 4), process(clustertest.InSlot(other, slots, "portal", 0), 5)}})
	f.holds(f.addr, c, 3)
	f.holds(f.node, c, 4)
	if !f.owner.Slot(f.slot).Settled || f.owner.Slot(other).Entries > 0 {
		t.Fatalf("%+v, %+v", f.owner.Slot(f.slot), f.owner.Slot(other))
	}
}

// protocol §4: exception (a)
func TestASlotThatTheMemberDoesNotCoverStaysUnsettledAndViewsAreExchanged(t *testing.T) {
	f := newFixture(t)
	for _, m := range []membership.Member{me, b} {
		f.claimed(wire.Claim{Head: f.head(m), CompleteFor: all()})
	}
	f.clock.Run(30 * ms)
	a, _ := f.queried("c")
	a.Answer(wire.SlotIs{Key: older})
	if s := f.owner.Slot(f.slot); s.Settled || !slices.Equal(s.Waiting, []membership.Epoch{c.Epoch}) {
		t.Fatalf("%+v", s)
	}
	if len(f.peers.Seen) == 0 || f.peers.Seen[0].Key != older {
		t.Fatalf("seen %v", f.peers.Seen)
	}
}

// protocol §4
func TestAnAnswerToASlotQueryOfAnEarlierTurnOfTheSlotCountsForNothing(t *testing.T) {
	f := newFixture(t)
	f.clock.Run(30 * ms)
	a, _ := f.queried("c")
	f.apply(clustertest.View(6, clustertest.Leaving(me), b, c))
	f.apply(clustertest.View(7, me, b, c)) // lost and regained
	a.Answer(wire.SlotIs{Key: f.view.Key(), Slots: all(), Items: []wire.ClaimItem{process(f.addr, 3)}})
	if s := f.owner.Slot(f.slot); s.Settled || len(s.Waiting) != 3 || s.Entries != 0 {
		t.Fatalf("%+v", s)
	}
}

// fault 10
func TestAnAnswerOfASiloThatHasLeftTheViewCountsForNothing(t *testing.T) {
	f := newFixture(t)
	f.clock.Run(30 * ms)
	a, _ := f.queried("c")
	f.apply(clustertest.View(6, me, b))
	a.Answer(wire.SlotIs{Key: f.view.Key(), Slots: all(), Items: []wire.ClaimItem{process(f.addr, 3)}})
	if _, ok := f.entry(f.addr); ok {
		t.Fatal("an entry of a silo that is in no view")
	}
	for _, m := range []membership.Member{me, b} {
		f.claimed(wire.Claim{Head: f.head(m), CompleteFor: all()})
	}
	if !f.owner.Slot(f.slot).Settled {
		t.Fatal("it waits for a silo that is in no view")
	}
}

// protocol §3
func TestAWrongEpochInAnswerToASlotQueryExchangesViews(t *testing.T) {
	f := newFixture(t)
	f.clock.Run(30 * ms)
	a, _ := f.queried("c")
	a.Answer(wire.WrongEpoch{Key: newer})
	if len(f.peers.Seen) != 1 || f.peers.Seen[0].Key != newer || f.owner.Slot(f.slot).Settled {
		t.Fatalf("seen %v", f.peers.Seen)
	}
}

// protocol §4
func TestAnAnswerToAnEvictedOwnerCountsForNothing(t *testing.T) {
	f := newFixture(t)
	l := f.lookup(f.addr)
	g := f.claim(wire.Claim{Head: f.head(b), Items: []wire.ClaimItem{wanted(f.node, 3)}})
	f.clock.Run(30 * ms)
	a, _ := f.queried("c")
	f.owner.Evict()
	a.Answer(wire.SlotIs{Key: f.view.Key(), Slots: all(), Items: []wire.ClaimItem{process(f.addr, 3)}})
	for _, q := range f.peers.Waiting() {
		q.Fail(clustertest.ErrLost)
	}
	f.clock.Run(2 * time.Second)
	mustBe[wire.NotOwner](t, l)
	if len(g.Results) != 1 || g.Results[0].Verdict != wire.Elsewhere {
		t.Fatalf("%+v", g)
	}
	if owned, _ := f.owner.Owned(); owned != 0 {
		t.Fatal("it owns slots")
	}
}
