package memtable_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/membership/tabletest"
	"github.com/hubmesh/hubmesh/internal/cluster/memtable"
)

type world struct {
	*memtable.Table
	old map[membership.Epoch]bool
}

func at(f func()) { f() }

func (w world) Client(t *testing.T) membership.Table {
	c := w.Table.Client(at, func() {})
	t.Cleanup(c.Close)
	return c
}

func (w world) Age(_ *testing.T, e membership.Epoch, by time.Duration) {
	w.old[e] = true
	w.Pass(by, w.old)
}

// protocol.md §2
func TestTheTableOfOneProcessKeepsTheRulesOfATable(t *testing.T) {
	tabletest.Run(t, func(*testing.T) tabletest.World { return world{memtable.New(), map[membership.Epoch]bool{}} })
}

// protocol §2
func TestEverySiloIsToldOfAChangeAndNoneThatHasClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := memtable.New()
		told := map[string]int{}
		a := table.Client(at, func() { told["a"]++ })
		b := table.Client(at, func() { told["b"]++ })
		join := func(c *memtable.Client, name string, epoch membership.Epoch) {
			c.Join(membership.Member{Name: name, Addr: name + ":1", Epoch: epoch}, nil, func(*membership.View, error) { told["joined "+name]++ })
			<-time.After(time.Second) // virtual
			synctest.Wait()
		}
		join(a, "a", 1)
		b.Close()
		join(a, "c", 2)
		join(b, "b", 3)
		if told["a"] != 2 || told["b"] != 1 || told["joined c"] != 1 || told["joined b"] != 0 {
			t.Errorf("told %v; want a of both changes, b of the first one, and nothing of b's own call after it closed", told)
		}
	})
}

// fault 7
func TestATableThatIsAwayEndsEveryCallWithAnErrorAndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := memtable.New()
		c := table.Client(at, func() { t.Error("told of a change") })
		defer c.Close()
		table.SetAway(true)
		var got error
		c.Join(membership.Member{Name: "a", Addr: "a:1", Epoch: 1}, nil, func(_ *membership.View, err error) { got = err })
		<-time.After(time.Minute) // virtual
		synctest.Wait()
		if !errors.Is(got, memtable.ErrAway) || len(table.View().Members()) != 0 {
			t.Errorf("the call ended with %v and the members are %v; want ErrAway and none", got, table.View())
		}
	})
}
