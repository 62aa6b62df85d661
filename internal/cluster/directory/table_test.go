package directory_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/directory"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

func silos(n int) []membership.Member {
	out := make([]membership.Member, n)
	for i := range out {
		out[i] = clustertest.Silo(fmt.Sprintf("silo-%d", i), membership.Epoch(i+1))
	}
	return out
}

// protocol §4
func TestSlotsAreBalancedWithinAThirdAmongFewSilosAndWithinAFactorOfThreeAmongMany(t *testing.T) {
	for n, factor := range map[int]float64{3: 1.35, 8: 1.35, 64: 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			table := directory.NewTable(clustertest.View(1, silos(n)...), directory.DefaultSlots)
			count := map[string]int{}
			for s := range table.Slots() {
				m, ok := table.Owner(s)
				if !ok {
					t.Fatalf("slot %d has no owner", s)
				}
				count[m.Name]++
			}
			mean := float64(directory.DefaultSlots) / float64(n)
			for name, c := range count {
				if float64(c) > mean*factor || float64(c) < mean/factor {
					t.Errorf("%s owns %d slots, the mean is %.0f", name, c, mean)
				}
			}
			if len(count) != n {
				t.Errorf("%d of %d own slots", len(count), n)
			}
		})
	}
}

// fault 9
func TestOnlySlotsOfWhoCameOrWentMove(t *testing.T) {
	all := silos(8)
	before := directory.NewTable(clustertest.View(1, all...), directory.DefaultSlots)
	for gone := range all {
		rest := append(append([]membership.Member{}, all[:gone]...), all[gone+1:]...)
		after := directory.NewTable(clustertest.View(2, rest...), directory.DefaultSlots)
		moved := 0
		for s := range before.Slots() {
			a, _ := before.Owner(s)
			b, _ := after.Owner(s)
			if a.Name == b.Name {
				continue
			}
			moved++
			if a.Name != all[gone].Name {
				t.Fatalf("slot %d moved from %s to %s though %s went (or came)", s, a.Name, b.Name, all[gone].Name)
			}
		}
		if moved == 0 {
			t.Errorf("%s had no slot", all[gone].Name)
		}
	}
}

// protocol §1; protocol §4
func TestALeavingMemberOwnsNoSlotAndARestartKeepsTheSlots(t *testing.T) {
	all := silos(4)
	before := directory.NewTable(clustertest.View(1, all...), 256)
	leaving := append([]membership.Member{}, all...)
	leaving[1].Leaving = true
	leaving[2].Epoch = 99 // came back under its name
	after := directory.NewTable(clustertest.View(2, leaving...), 256)
	for s := range 256 {
		a, _ := before.Owner(s)
		b, _ := after.Owner(s)
		switch {
		case b.Leaving:
			t.Fatalf("slot %d is owned by %s", s, b)
		case a.Name != all[1].Name && a.Name != b.Name:
			t.Fatalf("slot %d moved from %s to %s", s, a, b)
		}
	}
}

// protocol §4
func TestWhereAllAreLeavingTheSlotsStayOwned(t *testing.T) {
	table := directory.NewTable(clustertest.View(1, clustertest.Leaving(clustertest.Silo("a", 1)), clustertest.Leaving(clustertest.Silo("b", 2))), 64)
	for s := range 64 {
		if _, ok := table.Owner(s); !ok {
			t.Fatalf("slot %d has no owner", s)
		}
	}
}

func TestNoViewAndAnEmptyViewHaveNoOwners(t *testing.T) {
	var none *directory.Table
	if _, ok := none.OwnerOf("portal/1"); ok || none.Slots() != 0 {
		t.Fatal("no table has no owner")
	}
	empty := directory.NewTable(clustertest.View(1), 16)
	for _, s := range []int{-1, 0, 15, 16} {
		if _, ok := empty.Owner(s); ok {
			t.Fatalf("slot %d of an empty view has an owner", s)
		}
	}
}

// protocol §4: every silo must find the same slot, whatever it was built with.
func TestTheSlotOfAnAddressNeverChanges(t *testing.T) {
	for addr, want := range map[string]int{"": 294, "portal/1": 764, "mesh/0-0": 970, "acme/n0": 424} {
		if got := directory.SlotOf(addr, directory.DefaultSlots); got != want {
			t.Errorf("%q is in slot %d, it was in %d", addr, got, want)
		}
	}
}

// fault 9
func TestAnyJoinsAndLeavesRemoveOnlyTheEntriesOfDepartedSilos(t *testing.T) {
	for seed := range uint64(40) {
		f := newFixture(t)
		r := rand.New(rand.NewPCG(seed, 9))
		members := map[string]membership.Member{"me": me, "b": b, "c": c}
		next, regs := membership.Epoch(10), uint64(0)
		want := map[string]wire.Entry{}
		for n := range uint64(30) {
			for _, name := range []string{"b", "c", "d", "e"} {
				switch _, in := members[name]; {
				case r.IntN(4) > 0:
				case in:
					delete(members, name)
				default:
					next++
					members[name] = clustertest.Silo(name, next)
				}
			}
			var list []membership.Member
			for _, m := range members {
				list = append(list, m)
			}
			owned := map[int]bool{}
			for s := range slots {
				owned[s] = f.owner.Slot(s).Owned
			}
			f.apply(clustertest.View(6+n, list...))
			for addr, e := range want {
				s := directory.SlotOf(addr, slots)
				kept := owned[s] && f.owner.Slot(s).Owned
				if !kept || !f.view.Has(e.Epoch) {
					delete(want, addr)
				}
			}
			got := map[string]wire.Entry{}
			f.owner.Entries(func(addr string, e wire.Entry) bool { got[addr] = e; return true })
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, view %d: want -, got +\n%s", seed, n, diff)
			}
			for _, m := range f.view.Members() {
				for i := range 3 {
					regs++
					addr := fmt.Sprintf("portal/%s-%d-%d", m.Name, n, i)
					if f.one(m, process(addr, regs)).Verdict == wire.Landed {
						want[addr] = wire.Entry{Epoch: m.Epoch, Reg: regs}
					}
				}
			}
		}
	}
}
