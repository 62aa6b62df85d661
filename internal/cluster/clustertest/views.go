package clustertest

import (
	"fmt"

	"github.com/hubmesh/hubmesh/internal/cluster/directory"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

// Silo is a member by its name and epoch.
func Silo(name string, epoch membership.Epoch) membership.Member {
	return membership.Member{Name: name, Epoch: epoch, Addr: name + ":1"}
}

// Leaving is the same member on its way out.
func Leaving(m membership.Member) membership.Member {
	m.Leaving = true
	return m
}

// View is the members under a number of the first timeline.
func View(number uint64, members ...membership.Member) *membership.View {
	return ViewAt(membership.Key{Timeline: 1, Number: number}, members...)
}

// ViewAt is the members under a key. It panics on what is no view.
func ViewAt(key membership.Key, members ...membership.Member) *membership.View {
	v, err := membership.NewView(key, members)
	if err != nil {
		panic(err)
	}
	return v
}

// Owned returns the n-th address "prefix/number" whose slot a member owns in a table, counted from 0.
func Owned(t *directory.Table, m membership.Member, prefix string, n int) string {
	for i := range 1_000_000 {
		a := fmt.Sprintf("%s/%d", prefix, i)
		if o, ok := t.OwnerOf(a); ok && o.Name == m.Name {
			if n--; n < 0 {
				return a
			}
		}
	}
	panic("no such address: " + prefix)
}

// InSlot returns the n-th address "prefix/number" of a slot, counted from 0.
func InSlot(slot, slots int, prefix string, n int) string {
	for i := range 1_000_000 {
		a := fmt.Sprintf("%s/%d", prefix, i)
		if directory.SlotOf(a, slots) == slot {
			if n--; n < 0 {
				return a
			}
		}
	}
	panic("no such address: " + prefix)
}
