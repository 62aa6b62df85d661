package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// tell tells the others of a commit, within two seconds. What is returned is set once.
func (f *fixture) tell(addrs ...string) *[][]cluster.Untold {
	var got [][]cluster.Untold
	f.core.Tell(addrs, 2*time.Second, func(left []cluster.Untold) { got = append(got, left) })
	return &got
}

// mustEnd wants a commit to have been told, but to those that are named.
func mustEnd(t *testing.T, got *[][]cluster.Untold, left ...cluster.Untold) {
	t.Helper()
	if want := [][]cluster.Untold{left}; fmt.Sprint(*got) != fmt.Sprint(want) {
		t.Errorf("told %v, want %v", *got, want)
	}
}

func (f *fixture) committed(name string) (*clustertest.Ask, wire.Committed) {
	f.t.Helper()
	return clustertest.TakeFrom[wire.Committed](f.peers, name)
}

// data §1.3, issue 5: whoever acknowledges has told, waited until they are out of the view, or names the bound
func TestACommitIsToldToEveryMemberUntilItHasAnsweredOrIsOutOfTheViewOrTheTimeIsOver(t *testing.T) {
	t.Run("all answer", func(t *testing.T) {
		f := joined(t)
		got := f.tell("acme/x")
		for _, name := range []string{"b", "c"} {
			if len(*got) != 0 {
				t.Fatal("it did not wait for", name)
			}
			ask, m := f.committed(name)
			if len(m.Addrs) != 1 || m.Addrs[0] != "acme/x" {
				t.Errorf("%s is told of %v", name, m.Addrs)
			}
			ask.Answer(wire.OK{})
		}
		mustEnd(t, got)
	})
	t.Run("one can not at first and is told again", func(t *testing.T) {
		f := joined(t)
		got := f.tell("acme/x")
		ask, _ := f.committed("b")
		ask.Answer(wire.OK{})
		for _, a := range []func(*clustertest.Ask){
			func(a *clustertest.Ask) { a.Answer(wire.Unknown{Why: "its feed is late"}) },
			func(a *clustertest.Ask) { a.Fail(clustertest.ErrLost) },
			func(a *clustertest.Ask) { a.Answer(wire.OK{}) },
		} {
			if len(*got) != 0 {
				t.Fatal("it did not wait")
			}
			ask, _ := f.committed("c")
			a(ask)
			f.clock.Run(60 * ms)
		}
		mustEnd(t, got)
	})
	t.Run("one is put out", func(t *testing.T) {
		f := joined(t)
		got := f.tell("acme/x")
		ask, _ := f.committed("b")
		ask.Answer(wire.OK{})
		ask, _ = f.committed("c")
		f.core.Apply(clustertest.View(6, me, b))
		ask.Fail(clustertest.ErrLost)
		mustEnd(t, got)
	})
	t.Run("one has started anew", func(t *testing.T) {
		f := joined(t)
		got := f.tell("acme/x")
		for _, name := range []string{"b", "c"} {
			ask, _ := f.committed(name)
			ask.Answer(wire.WrongEpoch{})
		}
		mustEnd(t, got)
	})
	t.Run("one is silent, and what it said before is told", func(t *testing.T) {
		f := joined(t)
		got := f.tell("acme/x")
		ask, _ := f.committed("b")
		ask.Answer(wire.OK{})
		ask, _ = f.committed("c")
		ask.Answer(wire.Unknown{Why: "its feed is late"})
		f.clock.Run(1900 * ms)
		if len(*got) != 0 {
			t.Fatal("it did not wait")
		}
		f.clock.Run(100 * ms)
		mustEnd(t, got, cluster.Untold{Silo: "c", Why: "its feed is late"})
	})
	t.Run("this silo is in no view", func(t *testing.T) {
		f := newFixture(t)
		mustEnd(t, f.tell("acme/x"), cluster.Untold{Silo: "this silo", Why: "is in no view, and told nobody"})
	})
	t.Run("of many addresses none is named", func(t *testing.T) {
		f := joined(t)
		for _, n := range []int{256, 257} {
			f.tell(addresses(n)...)
			_, m := f.committed("b")
			if want := map[int]int{256: 256, 257: 0}[n]; len(m.Addrs) != want {
				t.Errorf("%d of %d addresses are told", len(m.Addrs), n)
			}
		}
	})
}

func addresses(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("acme/n", i)
	}
	return all
}
