package membership_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

// bad input: members of a view that no table may give
func TestAViewRefusesMembersThatCannotBeTold(t *testing.T) {
	a, b := clustertest.Silo("a", 1), clustertest.Silo("b", 2)
	for name, members := range map[string][]membership.Member{
		"without a name":       {a, {Epoch: 3}},
		"without an epoch":     {a, {Name: "c"}},
		"the same epoch twice": {a, clustertest.Silo("c", 1)},
		"the same name twice":  {a, b, clustertest.Silo("b", 3)},
	} {
		t.Run(name, func(t *testing.T) {
			if v, err := membership.NewView(membership.Key{Timeline: 1, Number: 1}, members); !errors.Is(err, membership.ErrView) {
				t.Fatalf("%v, %v", v, err)
			}
		})
	}
}

// protocol §1
func TestAGreaterTimelineWinsThenAGreaterNumber(t *testing.T) {
	ordered := []membership.Key{{}, {Number: 9}, {Timeline: 1}, {Timeline: 1, Number: 1}, {Timeline: 1, Number: 2}, {Timeline: 2}, {Timeline: 2, Number: 1}}
	for i, k := range ordered {
		for j, o := range ordered {
			if k.Before(o) != (i < j) {
				t.Errorf("%v before %v: %v", k, o, k.Before(o))
			}
		}
	}
	mixed := slices.Clone(ordered)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	slices.SortFunc(mixed, membership.Key.Compare)
	if !slices.Equal(mixed, ordered) {
		t.Fatalf("sorted to %v", mixed)
	}
}

// protocol §1
func TestAViewIsOrderedByNameAndDoesNotShareItsMembers(t *testing.T) {
	members := []membership.Member{clustertest.Silo("b", 2), clustertest.Silo("a", 1)}
	v := clustertest.View(1, members...)
	members[0].Name = "z"
	if got := v.Members(); got[0].Name != "a" || got[1].Name != "b" {
		t.Fatalf("%v", got)
	}
	if m, ok := v.Member(2); !ok || m.Name != "b" || v.Has(3) {
		t.Fatal("a member is found by its epoch alone")
	}
}

// fault 7
func TestASiloThatRestartedOnItsAddressIsAnotherMember(t *testing.T) {
	v := clustertest.View(2, clustertest.Silo("a", 11))
	if v.Has(10) || !v.Has(11) {
		t.Fatal("the epoch tells the incarnations apart")
	}
}

// protocol §1
func TestNoViewIsOlderThanEveryView(t *testing.T) {
	var v *membership.View
	if !v.Key().Before(clustertest.View(0).Key()) || v.Has(1) || len(v.Members()) != 0 {
		t.Fatal("no view has a key before all others and no members")
	}
}

// protocol §2; protocol §8
func TestTwoVotesRemoveAMemberAndOneWhereOnlyOneCanVote(t *testing.T) {
	for others, want := range []int{1, 1, 2, 2, 2} {
		if got := membership.Needed(others); got != want {
			t.Errorf("%d others: %d votes, want %d", others, got, want)
		}
	}
}

func TestAMemberWithoutAListHandlesEveryType(t *testing.T) {
	all, none, orders := membership.Member{}, membership.Member{Types: []string{}}, membership.Member{Types: []string{"Order"}}
	if !all.Handles("Order") || none.Handles("Order") || !orders.Handles("Order") || orders.Handles("Thread") {
		t.Fatal("a list says what is handled, an empty one that nothing is")
	}
}
