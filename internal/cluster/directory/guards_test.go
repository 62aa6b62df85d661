package directory_test

import (
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/directory"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// C20; protocol §10: a claim that arrives on an older connection after its own detach.
func TestAClaimThatArrivesAfterItsOwnDetachIsRefused(t *testing.T) {
	f := newFixture(t)
	f.detach(b, wire.DetachItem{Addr: f.addr, Reg: 5})
	for reg, want := range map[uint64]wire.Verdict{4: wire.Ended, 5: wire.Ended} {
		if r := f.one(b, process(f.addr, reg)); r.Verdict != want {
			t.Errorf("registration %d: %v", reg, r.Verdict)
		}
	}
	if _, ok := f.entry(f.addr); ok {
		t.Fatal("it was installed")
	}
	if r := f.one(b, process(f.addr, 6)); r.Verdict != wire.Landed {
		t.Fatalf("a later registration: %v", r.Verdict)
	}
	f.detach(b, wire.DetachItem{Addr: f.addr, Reg: 5}) // the old detach once more
	f.holds(f.addr, b, 6)
}

// protocol §4
func TestAGuardSaysNothingAboutAnotherIncarnation(t *testing.T) {
	f := newFixture(t)
	f.detach(b, wire.DetachItem{Addr: f.addr, Reg: 5})
	if r := f.one(c, process(f.addr, 1)); r.Verdict != wire.Landed {
		t.Fatal(r)
	}
}

// protocol §4
func TestALocateDoesNotInstallWhatWasDetachedMeanwhile(t *testing.T) {
	f := newFixture(t)
	a := f.lookup(f.addr)
	f.clock.Run(ms)
	f.detach(b, wire.DetachItem{Addr: f.addr, Reg: 5}) // it has overtaken what b has said before
	f.locate("b", wire.LocatedItem{Status: wire.Serving, Reg: 5})
	if _, ok := f.entry(f.addr); ok || *a != nil {
		t.Fatal("it was installed, or the others were not waited for")
	}
	f.locate("c", wire.LocatedItem{})
	f.locate("me", wire.LocatedItem{})
	mustBe[wire.Closed](t, a)
}

// protocol §4: a grant in an unsettled slot waits for every member's word
func TestTheWordOfWhoHasEndedDoesNotStandForThoseWhoHaveNotAnswered(t *testing.T) {
	for _, ended := range []bool{true, false} { // the control
		f := newFixture(t)
		a := f.claim(wire.Claim{Head: f.head(c), Items: []wire.ClaimItem{wanted(f.node, 3)}})
		f.clock.Run(ms)
		if ended {
			f.detach(b, wire.DetachItem{Addr: f.node, Reg: 5, Node: true}) // it has overtaken what b has said before
		}
		f.locate("b", wire.LocatedItem{Status: wire.Serving, Reg: 5, Node: true})
		holder := b
		if ended {
			if len(a.Results) > 0 {
				t.Fatalf("decided before the others were heard: %+v", a)
			}
			f.locate("me", wire.LocatedItem{Status: wire.Serving, Reg: 2, Node: true})
			holder = me
		}
		if len(a.Results) != 1 || a.Results[0].Verdict != wire.Held || a.Results[0].Holder.Epoch != holder.Epoch {
			t.Fatalf("%+v; want it held by %s", a, holder)
		}
	}
}

// protocol §8; decision 11
func TestAReleasedProcessAddressIsClosedOnlyAfterEveryMemberWasAsked(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.one(b, process(f.addr, 5))
	f.detach(b, wire.DetachItem{Addr: f.addr, Reg: 5})
	f.clock.Run(3 * time.Second)
	a := f.lookup(f.addr)
	if *a != nil {
		t.Fatal("the tombstone answers by itself")
	}
	f.nobody()
	if x := mustBe[wire.Closed](t, a); x.Age != 3*time.Second+ms || x.Asked != 3 {
		t.Fatalf("%+v", x)
	}
}

// protocol §10: a tombstone here, and at another silo a hub whose claim has not landed.
func TestATombstoneGivesWayToASiloThatServesTheAddress(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.detach(b, wire.DetachItem{Addr: f.addr, Reg: 5})
	a := f.lookup(f.addr)
	f.clock.Run(ms)
	f.locate("b", wire.LocatedItem{Status: wire.ClosedHere, Age: time.Second})
	f.locate("c", wire.LocatedItem{Status: wire.Serving, Reg: 1})
	f.locate("me", wire.LocatedItem{})
	mustBe[wire.Hit](t, a)
}

// protocol §4
func TestAMemberThatLetGoOfTheAddressMakesItClosedWithTheYoungestAge(t *testing.T) {
	f := newFixture(t)
	f.settle()
	a := f.lookup(f.addr)
	f.clock.Run(ms)
	f.locate("b", wire.LocatedItem{Status: wire.ClosedHere, Age: 9 * time.Second})
	f.locate("c", wire.LocatedItem{Status: wire.ClosedHere, Age: 2 * time.Second})
	f.locate("me", wire.LocatedItem{})
	if x := mustBe[wire.Closed](t, a); x.Age != 2*time.Second {
		t.Fatalf("%+v", x)
	}
}

// protocol §8
func TestAStoppedNodeHubLeavesAGuardAndNoTombstone(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.one(b, wanted(f.node, 5))
	f.detach(b, wire.DetachItem{Addr: f.node, Reg: 5, Node: true})
	a := f.lookup(f.node)
	f.nobody()
	mustBe[wire.NotHere](t, a)
	if r := f.one(b, kept(f.node, 5)); r.Verdict != wire.Ended {
		t.Fatal(r)
	}
}

// protocol §8; decision 11: a claim of another epoch or with a greater registration clears the tombstone.
func TestALaterClaimClearsTheTombstoneAndKeepsTheGuard(t *testing.T) {
	for name, later := range map[string]struct {
		m   membership.Member
		reg uint64
	}{"of another epoch": {c, 1}, "with a greater registration": {b, 6}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.settle()
			f.detach(b, wire.DetachItem{Addr: f.addr, Reg: 5})
			if r := f.one(later.m, process(f.addr, later.reg)); r.Verdict != wire.Landed {
				t.Fatal(r)
			}
			// It was served again, and then its silo died: that is no release.
			a := f.lookup(f.addr, func(m *wire.Lookup) { m.Stale = &wire.Entry{Epoch: later.m.Epoch, Reg: later.reg} })
			f.nobody()
			mustBe[wire.NotHere](t, a)
			if r := f.one(b, process(f.addr, 5)); r.Verdict != wire.Ended {
				t.Fatalf("the old registration again: %+v", r)
			}
		})
	}
}

// protocol §7
func TestATombstoneIsKeptTenMinutesAndANodesGuardThirtySeconds(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.detach(b, wire.DetachItem{Addr: f.addr, Reg: 5})
	f.detach(b, wire.DetachItem{Addr: f.node, Reg: 5, Node: true})
	refused := func(it wire.ClaimItem) bool {
		f.owner.HandOver(wire.HandOver{Head: f.head(c), Slot: f.slot, Guards: []wire.Guard{
			{Addr: clustertest.InSlot(f.slot, slots, "other", int(f.clock.Now()%97)), Epoch: 77, Reg: uint64(f.clock.Now()), Left: time.Hour},
		}}) // whatever comes in lets old guards go
		return f.one(b, it).Verdict == wire.Ended
	}
	f.clock.Run(30*time.Second - ms)
	if !refused(kept(f.node, 5)) {
		t.Fatal("the node's guard is gone before 30 s")
	}
	f.clock.Run(ms)
	if refused(kept(f.node, 5)) {
		t.Fatal("the node's guard is there after 30 s")
	}
	f.clock.Run(10*time.Minute - 31*time.Second)
	if !refused(process(f.addr, 5)) {
		t.Fatal("the tombstone is gone before 10 min")
	}
	f.clock.Run(2 * time.Second)
	a := f.lookup(f.addr)
	f.nobody()
	mustBe[wire.NotHere](t, a)
	if refused(process(f.addr, 5)) {
		t.Fatal("the tombstone refuses after 10 min")
	}
}

// protocol §7
func TestWhatIsRememberedOfEndedRegistrationsIsForgottenWhenItsTimeIsOver(t *testing.T) {
	f := newFixture(t)
	remembers := func(want int, when string) {
		t.Helper()
		f.owner.Sweep()
		if n := f.owner.Remembered(); n != want {
			t.Fatalf("%d ends are remembered %s, want %d", n, when, want)
		}
	}
	for i := range 100 {
		f.detach(b, wire.DetachItem{Addr: clustertest.InSlot(f.slot, slots, "portal", i), Reg: 1})
		f.detach(b, wire.DetachItem{Addr: clustertest.InSlot(f.slot, slots, "acme", i), Reg: 1, Node: true})
	}
	// A former owner cannot have it remembered for longer.
	f.owner.HandOver(wire.HandOver{Head: f.head(c), Slot: f.slot, Guards: []wire.Guard{
		{Addr: clustertest.InSlot(f.slot, slots, "portal", 100), Epoch: c.Epoch, Reg: 1, Closed: true, Left: 1000 * time.Hour},
	}})
	remembers(201, "at once")
	f.clock.Run(30 * time.Second)
	remembers(101, "after 30 s")
	f.clock.Run(10*time.Minute - 31*time.Second)
	remembers(101, "before 10 min")
	f.clock.Run(time.Second)
	remembers(0, "after 10 min")
}

// protocol §7
func TestGuardsAreBoundedAndTheOldestGoProcessAndNodeApart(t *testing.T) {
	f := newFixture(t, func(cfg *directory.Config) { cfg.Guards = 3 })
	addr := func(i int) string { return clustertest.InSlot(f.slot, slots, "portal", i) }
	f.detach(b, wire.DetachItem{Addr: f.node, Reg: 1, Node: true})
	for i := range 5 {
		f.detach(b, wire.DetachItem{Addr: addr(i), Reg: 1})
	}
	for i := range 5 {
		want := wire.Landed
		if i >= 2 {
			want = wire.Ended
		}
		if r := f.one(b, process(addr(i), 1)); r.Verdict != want {
			t.Errorf("%d: %v, want %v", i, r.Verdict, want)
		}
	}
	if r := f.one(b, kept(f.node, 1)); r.Verdict != wire.Ended {
		t.Error("process addresses have pushed out a node's guard")
	}
}

// protocol §4; decision 11
func TestALostSlotIsHandedToItsNewOwnerWithEntriesAndGuards(t *testing.T) {
	f := newFixture(t)
	f.settle()
	closed, other := clustertest.InSlot(f.slot, slots, "portal", 1), clustertest.InSlot(f.slot, slots, "portal", 2)
	f.one(b, process(f.addr, 1))
	f.one(c, kept(f.node, 2))
	f.detach(b, wire.DetachItem{Addr: closed, Reg: 3})
	f.detach(b, wire.DetachItem{Addr: other, Reg: 4, Node: true})
	f.clock.Run(10 * time.Second)
	f.apply(clustertest.View(6, clustertest.Leaving(me), b, c))
	var got *wire.HandOver
	sent := map[int]bool{}
	for _, a := range f.peers.Waiting() {
		m, ok := a.Message.(wire.HandOver)
		if !ok {
			continue
		}
		if owner, _ := f.table.Owner(m.Slot); owner.Epoch != a.To.Epoch || m.To != owner.Epoch || m.Key != f.view.Key() || sent[m.Slot] {
			t.Fatalf("slot %d to %s under %v", m.Slot, a.To, m.Key)
		}
		sent[m.Slot] = true
		if m.Slot == f.slot {
			got = &m
		}
	}
	if got == nil || !got.Settled || len(got.Entries) != 2 || len(got.Guards) != 2 {
		t.Fatalf("%+v", got)
	}
	for _, g := range got.Guards {
		left := 10*time.Minute - 10*time.Second
		if g.Addr == other {
			left = 20 * time.Second
		}
		if g.Left != left || g.Age != 10*time.Second || g.Closed != (g.Addr == closed) || g.Epoch != b.Epoch {
			t.Errorf("%+v", g)
		}
	}
	if r := f.one(b, process(f.addr, 1)); r.Verdict != wire.Elsewhere {
		t.Fatal("it keeps the slot")
	}

	next := newFixture(t) // the new owner, which happens to be called me as well
	got.Head = next.head(c)
	if _, ok := next.owner.HandOver(*got).(wire.OK); !ok {
		t.Fatal("refused")
	}
	next.holds(f.addr, b, 1)
	next.holds(f.node, c, 2)
	if s := next.owner.Slot(f.slot); !s.Settled || next.owner.Counts().SettledByHandOver != 1 {
		t.Fatalf("%+v", s)
	}
	if r := next.one(b, process(closed, 3)); r.Verdict != wire.Ended {
		t.Fatalf("the guard did not come along: %+v", r)
	}
	a := next.lookup(closed)
	next.nobody()
	if x := mustBe[wire.Closed](t, a); x.Age != 10*time.Second+ms {
		t.Fatalf("%+v", x)
	}
}

// protocol §4
func TestAHandOverFromAnUnsettledOwnerIsMergedAndSettlesNothing(t *testing.T) {
	f := newFixture(t)
	newerThere, gone := clustertest.InSlot(f.slot, slots, "portal", 1), clustertest.InSlot(f.slot, slots, "portal", 2)
	elsewhere := clustertest.InSlot((f.slot+1)%slots, slots, "portal", 0)
	f.one(b, process(f.addr, 5))
	f.one(b, process(newerThere, 1))
	f.detach(b, wire.DetachItem{Addr: f.node, Reg: 3, Node: true})
	f.owner.HandOver(wire.HandOver{Head: f.head(c), Slot: f.slot, Entries: []wire.AddressedEntry{
		{Addr: f.addr, Entry: wire.Entry{Epoch: b.Epoch, Reg: 4}},
		{Addr: newerThere, Entry: wire.Entry{Epoch: b.Epoch, Reg: 2}},
		{Addr: f.node, Entry: wire.Entry{Epoch: b.Epoch, Reg: 3, Node: true}},
		{Addr: gone, Entry: wire.Entry{Epoch: 99, Reg: 1}},
		{Addr: elsewhere, Entry: wire.Entry{Epoch: b.Epoch, Reg: 1}},
	}})
	f.holds(f.addr, b, 5)
	f.holds(newerThere, b, 2)
	for _, a := range []string{f.node, gone, elsewhere} {
		if _, ok := f.entry(a); ok {
			t.Errorf("%s was merged", a)
		}
	}
	if s := f.owner.Slot(f.slot); s.Settled || len(s.Waiting) != 3 {
		t.Fatalf("%+v", s)
	}
}

// protocol §4
func TestAHandOverIsRepeatedToANewOwnerThatIsAViewBehind(t *testing.T) {
	f := newFixture(t)
	f.settle()
	before := f.view.Key()
	f.apply(clustertest.View(6, clustertest.Leaving(me), b, c))
	for _, a := range f.peers.Waiting() {
		if m := a.Message.(wire.HandOver); m.Slot != f.slot {
			a.Answer(wire.OK{})
		}
	}
	for try := range 5 {
		a, m := clustertest.Take[wire.HandOver](f.peers)
		if m.Slot != f.slot {
			t.Fatalf("%+v", m)
		}
		a.Answer(wire.NotOwner{Key: before})
		if len(f.peers.Seen) != try+1 {
			t.Fatal("the new owner is not given the view")
		}
		f.peers.Silent()
		f.clock.Run(5 * ms << try)
	}
	f.peers.Silent() // it is not repeated for ever: the members' own word settles the slot
}

// protocol §4
func TestAHandOverIsNotRepeatedToASiloThatKnowsBetter(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.apply(clustertest.View(6, clustertest.Leaving(me), b, c))
	for _, a := range f.peers.Waiting() {
		a.Answer(wire.NotOwner{Key: newer})
	}
	f.clock.Run(time.Second)
	f.peers.Silent()
}
