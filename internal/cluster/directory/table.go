package directory

import (
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

// DefaultSlots is the number of slots of a cluster. All silos of a cluster have the same.
const DefaultSlots = 1024

// SlotOf is the slot of an address, the same in every process.
func SlotOf(addr string, slots int) int { return int(mix(hash(addr)) % uint64(slots)) }

// hash is FNV-1a, written out: it must never change between builds, as maphash would.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// mix spreads a hash over all its bits.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// Rank is a silo's rank for an address by rendezvous, the same in every process: whoever has to choose one of
// some silos for an address chooses the one that all others choose.
func Rank(name, addr string) uint64 { return mix(hash(name) ^ mix(hash(addr))) }

// Table says who owns each slot under one view. It is immutable.
type Table struct {
	view   *membership.View
	owners []int32 // index of the member, -1 where there is none
}

// NewTable assigns the slots of a view by rendezvous over the names of the members that are not
// leaving; where all are leaving, over all of them.
func NewTable(v *membership.View, slots int) *Table {
	t := &Table{view: v, owners: make([]int32, slots)}
	staying := false
	for _, m := range v.Members() {
		staying = staying || !m.Leaving
	}
	best := make([]uint64, slots)
	for s := range t.owners {
		t.owners[s] = -1
	}
	for i, m := range v.Members() {
		if m.Leaving && staying {
			continue
		}
		name := hash(m.Name)
		for s := range t.owners {
			if score := mix(name ^ mix(uint64(s)+0x9e3779b97f4a7c15)); t.owners[s] < 0 || score > best[s] {
				best[s], t.owners[s] = score, int32(i)
			}
		}
	}
	return t
}

// Slots is the number of slots.
func (t *Table) Slots() int {
	if t == nil {
		return 0
	}
	return len(t.owners)
}

// Owner is the member that owns a slot; false in a view without members.
func (t *Table) Owner(slot int) (membership.Member, bool) {
	if t == nil || slot < 0 || slot >= len(t.owners) || t.owners[slot] < 0 {
		return membership.Member{}, false
	}
	return t.view.Members()[t.owners[slot]], true
}

// OwnerOf is the member that owns the slot of an address.
func (t *Table) OwnerOf(addr string) (membership.Member, bool) {
	if t == nil {
		return membership.Member{}, false
	}
	return t.Owner(SlotOf(addr, len(t.owners)))
}
