package directory_test

import (
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/directory"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

const (
	ms    = time.Millisecond
	slots = 16
)

var (
	me = clustertest.Silo("me", 1)
	b  = clustertest.Silo("b", 2)
	c  = clustertest.Silo("c", 3)
)

// fixture is one slot owner in a view of me, b and c, which has just gained its slots.
type fixture struct {
	t       *testing.T
	clock   *clustertest.Clock
	peers   *clustertest.Peers
	locator *directory.Locator
	owner   *directory.Owner
	view    *membership.View
	table   *directory.Table
	slot    int    // one that me owns in every view of these tests
	addr    string // in that slot
	node    string // in that slot
}

func newFixture(t *testing.T, change ...func(*directory.Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: &clustertest.Clock{}}
	f.peers = clustertest.NewPeers(t, f.clock)
	cfg := directory.Defaults()
	cfg.LocateGather = ms
	cfg.Slots = slots
	for _, ch := range change {
		ch(&cfg)
	}
	f.locator = directory.NewLocator(f.clock, f.peers, cfg)
	f.owner = directory.NewOwner(f.clock, f.peers, f.locator, cfg)
	f.apply(clustertest.View(5, me, b, c))
	f.slot = f.ownedBy(me)
	f.addr, f.node = clustertest.InSlot(f.slot, slots, "portal", 0), clustertest.InSlot(f.slot, slots, "acme", 0)
	return f
}

// apply makes a view count, and sets its table.
func (f *fixture) apply(v *membership.View) {
	f.view, f.table = v, directory.NewTable(v, slots)
	f.locator.Apply(v, me.Epoch)
	f.owner.Apply(v, f.table, me.Epoch)
}

func (f *fixture) ownedBy(m membership.Member) int {
	f.t.Helper()
	for s := range slots {
		if o, ok := f.table.Owner(s); ok && o.Name == m.Name {
			return s
		}
	}
	f.t.Fatalf("%s owns no slot", m.Name)
	return 0
}

func (f *fixture) head(from membership.Member) wire.Head {
	return wire.Head{From: from.Epoch, To: me.Epoch, Key: f.view.Key()}
}

func all(mark ...int) wire.Slots {
	s := wire.NewSlots(slots)
	for i := range slots {
		if len(mark) == 0 {
			s.Add(i)
		}
	}
	for _, i := range mark {
		s.Add(i)
	}
	return s
}

// settle has every member say that it serves nothing.
func (f *fixture) settle() {
	f.t.Helper()
	for _, m := range f.view.Members() {
		f.claimed(wire.Claim{Head: f.head(m), CompleteFor: all()})
	}
	if !f.owner.Slot(f.slot).Settled {
		f.t.Fatal("the slot is not settled")
	}
}

// claim puts a claim; the answer is nil until it comes.
func (f *fixture) claim(m wire.Claim) *wire.Claimed {
	var a wire.Claimed
	got := &a
	answered := 0
	f.owner.Claim(m, func(x wire.Claimed) {
		if answered++; answered > 1 {
			f.t.Error("a claim was answered twice")
		}
		*got = x
	})
	return got
}

// claimed puts a claim that is decided at once.
func (f *fixture) claimed(m wire.Claim) wire.Claimed {
	f.t.Helper()
	a := f.claim(m)
	if len(a.Results) != len(m.Items) || a.Key == (membership.Key{}) {
		f.t.Fatalf("not decided at once: %+v", a)
	}
	return *a
}

func (f *fixture) one(from membership.Member, it wire.ClaimItem) wire.ClaimResult {
	f.t.Helper()
	return f.claimed(wire.Claim{Head: f.head(from), Items: []wire.ClaimItem{it}}).Results[0]
}

func process(addr string, reg uint64) wire.ClaimItem {
	return wire.ClaimItem{Addr: addr, Reg: reg, Phase: wire.Kept}
}

func kept(addr string, reg uint64) wire.ClaimItem {
	return wire.ClaimItem{Addr: addr, Reg: reg, Node: true, Phase: wire.Kept}
}

func wanted(addr string, reg uint64) wire.ClaimItem {
	return wire.ClaimItem{Addr: addr, Reg: reg, Node: true, Phase: wire.Wanted}
}

// lookup asks for an address; the answer is nil until it comes.
func (f *fixture) lookup(addr string, change ...func(*wire.Lookup)) *wire.Answer {
	m := wire.Lookup{Head: f.head(b), Addr: addr}
	for _, ch := range change {
		ch(&m)
	}
	var a wire.Answer
	got := &a
	f.owner.Lookup(m, func(x wire.Answer) {
		if *got != nil {
			f.t.Error("a lookup was answered twice")
		}
		*got = x
	})
	return got
}

func (f *fixture) detach(from membership.Member, it wire.DetachItem) wire.Verdict {
	f.t.Helper()
	return f.owner.Detach(wire.Detach{Head: f.head(from), Items: []wire.DetachItem{it}}).(wire.Detached).Verdicts[0]
}

// locate answers the open locate to a member with the same for each item.
func (f *fixture) locate(name string, it wire.LocatedItem) wire.Locate {
	f.t.Helper()
	a, m := clustertest.TakeFrom[wire.Locate](f.peers, name)
	items := make([]wire.LocatedItem, len(m.Items))
	for i := range items {
		items[i] = it
	}
	a.Answer(wire.Located{Key: f.view.Key(), Items: items})
	f.clock.Flush()
	return m
}

// nobody has every member say that it does not serve what it is asked for.
func (f *fixture) nobody() {
	f.t.Helper()
	f.clock.Run(ms)
	for _, m := range f.view.Members() {
		f.locate(m.Name, wire.LocatedItem{})
	}
}

func mustBe[A wire.Answer](t *testing.T, a *wire.Answer) A {
	t.Helper()
	x, ok := (*a).(A)
	if !ok {
		t.Fatalf("answered %T %+v, want %T", *a, *a, x)
	}
	return x
}

func (f *fixture) entry(addr string) (wire.Entry, bool) { return f.owner.Entry(addr) }

func (f *fixture) holds(addr string, m membership.Member, reg uint64) {
	f.t.Helper()
	if e, ok := f.entry(addr); !ok || e.Epoch != m.Epoch || e.Reg != reg {
		f.t.Fatalf("%s: %+v, %v; want %s/%d", addr, e, ok, m.Name, reg)
	}
}
