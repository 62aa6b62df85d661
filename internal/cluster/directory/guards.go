package directory

import (
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// guards remember registrations that have ended, so that a claim which arrives after its own detach is
// refused, and so that a released process address is told from one that never was. They are bounded:
// beyond the bound the oldest go, process and node apart.
type guards struct {
	limit int
	at    map[incarnation]guard
	addrs map[string][]membership.Epoch // the incarnations that have a guard, by address
	queue [2][]expiry                   // in order of expiry: node hubs, process hubs
}

type incarnation struct {
	addr  string
	epoch membership.Epoch
}

type guard struct {
	reg    uint64
	closed bool
	begun  time.Duration
	until  time.Duration
}

type expiry struct {
	incarnation
	until time.Duration
}

func newGuards(limit int) *guards {
	return &guards{limit: limit, at: map[incarnation]guard{}, addrs: map[string][]membership.Epoch{}}
}

func lane(closed bool) int {
	if closed {
		return 1
	}
	return 0
}

// put remembers the end of a registration; an older one of the same incarnation is replaced.
func (g *guards) put(in incarnation, x guard, now time.Duration) {
	g.expire(now)
	old, known := g.at[in]
	if known && old.reg >= x.reg {
		return
	}
	if !known {
		g.addrs[in.addr] = append(g.addrs[in.addr], in.epoch)
	}
	g.at[in] = x
	q := &g.queue[lane(x.closed)]
	*q = append(*q, expiry{in, x.until})
	for len(*q) > g.limit {
		g.drop((*q)[0])
		*q = (*q)[1:]
	}
}

// drop removes the guard that an expiry speaks of; a newer one of the same incarnation stays.
func (g *guards) drop(e expiry) {
	if x, ok := g.at[e.incarnation]; ok && x.until == e.until {
		g.remove(e.incarnation)
	}
}

func (g *guards) remove(in incarnation) {
	delete(g.at, in)
	kept := g.addrs[in.addr][:0]
	for _, e := range g.addrs[in.addr] {
		if e != in.epoch {
			kept = append(kept, e)
		}
	}
	if len(kept) == 0 {
		delete(g.addrs, in.addr)
		return
	}
	g.addrs[in.addr] = kept
}

func (g *guards) expire(now time.Duration) {
	for i := range g.queue {
		q := g.queue[i]
		for len(q) > 0 && q[0].until <= now {
			g.drop(q[0])
			q = q[1:]
		}
		g.queue[i] = q
	}
}

// refuses tells whether a claim belongs to a registration that has ended.
func (g *guards) refuses(in incarnation, reg uint64) bool {
	x, ok := g.at[in]
	return ok && x.reg >= reg
}

// reopen notes that an address is served again: the ends of its registrations still refuse their own late
// claims, and are tombstones no more.
func (g *guards) reopen(addr string) {
	for _, e := range g.addrs[addr] {
		in := incarnation{addr, e}
		x := g.at[in]
		x.closed = false
		g.at[in] = x
	}
}

// closed tells whether a process address was released, and how long ago the last time.
func (g *guards) closed(addr string, now time.Duration) (time.Duration, bool) {
	var age time.Duration
	found := false
	for _, e := range g.addrs[addr] {
		if x := g.at[incarnation{addr, e}]; x.closed && x.until > now && (!found || now-x.begun < age) {
			age, found = now-x.begun, true
		}
	}
	return age, found
}

// take removes the guards of the slots that lost names and returns them by slot, in order of expiry.
func (g *guards) take(lost map[int]bool, slots int, now time.Duration) map[int][]wire.Guard {
	g.expire(now)
	out := map[int][]wire.Guard{}
	for i := range g.queue {
		kept := g.queue[i][:0:0]
		for _, e := range g.queue[i] {
			slot := SlotOf(e.addr, slots)
			x, ok := g.at[e.incarnation]
			switch {
			case !ok || x.until != e.until:
			case lost[slot]:
				out[slot] = append(out[slot], wire.Guard{Addr: e.addr, Epoch: e.epoch, Reg: x.reg, Closed: x.closed, Left: x.until - now, Age: now - x.begun})
				g.remove(e.incarnation)
			default:
				kept = append(kept, e)
			}
		}
		g.queue[i] = kept
	}
	return out
}
