package cluster_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
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

// fixture is one silo's core among silos that the test answers for.
type fixture struct {
	t     *testing.T
	clock *clustertest.Clock
	peers *clustertest.Peers
	core  *cluster.Core

	local    map[string]uint64 // process hubs by the local route
	stopping map[string]bool   // node hubs on their way down
	load     int
	types    map[string]string // of nodes whose row is there
	events   []string
	// epochs of this silo when it was told of its eviction and of each view
	selves []membership.Epoch
}

// joined returns a fixture that is a member with b and c, and whose first assertions have been accepted.
func joined(t *testing.T, change ...func(*cluster.Config)) *fixture {
	t.Helper()
	f := newFixture(t, change...)
	f.core.Joined(me.Epoch, clustertest.View(5, me, b, c))
	f.accept()
	return f
}

func newFixture(t *testing.T, change ...func(*cluster.Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: &clustertest.Clock{}, local: map[string]uint64{}, stopping: map[string]bool{}}
	f.peers = clustertest.NewPeers(t, f.clock)
	cfg := cluster.Defaults()
	cfg.Directory.Slots, cfg.Claims.Slots = slots, slots
	for _, ch := range change {
		ch(&cfg)
	}
	f.core = cluster.New(f.clock, f.peers, f, f, cfg)
	return f
}

// accept has every open claim, detach, slot query and view push succeed.
func (f *fixture) accept() {
	f.t.Helper()
	f.clock.Flush()
	for _, a := range f.peers.Waiting() {
		switch m := a.Message.(type) {
		case wire.Claim:
			a.Answer(wire.Claimed{Key: m.Key, Results: make([]wire.ClaimResult, len(m.Items)), Complete: m.CompleteFor})
		case wire.Detach:
			a.Answer(wire.Detached{Key: m.Key, Verdicts: make([]wire.Verdict, len(m.Items))})
		case wire.SlotQuery:
			every := wire.NewSlots(slots)
			for _, g := range m.Slots {
				every.Add(g.Slot)
			}
			a.Answer(wire.SlotIs{Key: m.Key, Slots: every})
		case wire.ViewPush:
			a.Answer(wire.OK{})
		case wire.HandOver:
			a.Answer(wire.OK{})
		}
	}
	f.clock.Flush()
}

// settle has the other members say that they serve nothing, so that the own slots are settled.
func (f *fixture) settle() {
	f.t.Helper()
	every := wire.NewSlots(slots)
	for s := range slots {
		every.Add(s)
	}
	for _, m := range []membership.Member{b, c} {
		f.handle(wire.Claim{Head: f.head(m), CompleteFor: every})
	}
}

func (f *fixture) head(from membership.Member) wire.Head {
	return wire.Head{From: from.Epoch, To: f.core.Self(), Key: f.core.View().Key()}
}

// handle puts a request that is answered at once.
func (f *fixture) handle(m wire.Request) wire.Answer {
	f.t.Helper()
	var got wire.Answer
	f.core.Handle(m, func(a wire.Answer) { got = a })
	if got == nil {
		f.t.Fatalf("%s is not answered at once", m.Kind())
	}
	return got
}

// of is an address "prefix/number" in a slot of a member.
func (f *fixture) of(m membership.Member, prefix string) string {
	return clustertest.Owned(f.core.Table(), m, prefix, 0)
}

// resolve asks who serves an address, with a budget of two seconds.
func (f *fixture) resolve(q cluster.Question) *[]cluster.Resolution {
	var got []cluster.Resolution
	if q.Until == 0 {
		q.Until = f.clock.Now() + 2*time.Second
	}
	f.core.Resolve(q, func(r cluster.Resolution) { got = append(got, r) })
	return &got
}

func resolved(t *testing.T, r *[]cluster.Resolution) cluster.Resolution {
	t.Helper()
	if len(*r) != 1 {
		t.Fatalf("resolved %d times, want once", len(*r))
	}
	return (*r)[0]
}

// refused ends in a refusal for one reason.
func refused(t *testing.T, r *[]cluster.Resolution, reason cluster.Reason) cluster.Refusal {
	t.Helper()
	x := resolved(t, r)
	if x.Entry != nil || x.Refusal.Reason != reason {
		t.Fatalf("%+v, want a refusal %s", x, reason)
	}
	if x.Refusal.By == "" {
		t.Fatalf("%+v does not say who refuses", x.Refusal)
	}
	return x.Refusal
}

// lookup takes the open lookup and answers it.
func (f *fixture) lookup(a wire.Answer) wire.Lookup {
	f.t.Helper()
	ask, m := clustertest.Take[wire.Lookup](f.peers)
	ask.Answer(a)
	f.clock.Flush()
	return m
}

// locate answers the open locate to a member.
func (f *fixture) locate(name string, it wire.LocatedItem) {
	f.t.Helper()
	ask, m := clustertest.TakeFrom[wire.Locate](f.peers, name)
	items := make([]wire.LocatedItem, len(m.Items))
	for i := range items {
		items[i] = it
	}
	ask.Answer(wire.Located{Key: f.core.View().Key(), Items: items})
	f.clock.Flush()
}

func (f *fixture) mustTell(want ...string) {
	f.t.Helper()
	if !slices.Equal(f.events, want) {
		f.t.Fatalf("told %q, want %q", f.events, want)
	}
	f.events = nil
}

func (f *fixture) event(format string, args ...any) {
	f.events = append(f.events, fmt.Sprintf(format, args...))
}

// The fixture is the host and the observer of its core.

func (f *fixture) Serving(addr string) (uint64, bool) {
	reg, ok := f.local[addr]
	return reg, ok
}

func (f *fixture) Stopping(addr string) bool       { return f.stopping[addr] }
func (f *fixture) Granted(addr string, _ uint64)   { f.event("granted %s", addr) }
func (f *fixture) StepAside(addr string, _ uint64) { f.event("step aside %s", addr) }

func (f *fixture) Load() int                      { return f.load }
func (f *fixture) HandOver(n int, done func(int)) { f.event("hand over %d", n); done(n) }
func (f *fixture) TypeOf(addr string, done func(string, bool)) {
	f.clock.After(0, func() {
		f.event("read %s", addr)
		t, ok := f.types[addr]
		done(t, ok)
	})
}

func (f *fixture) Evicted() {
	f.selves = append(f.selves, f.core.Self())
	f.event("evicted")
}

func (f *fixture) Applied(v *membership.View) { f.event("applied %d", v.Key().Number) }

func (f *fixture) Claiming(string, uint64, uint32, membership.Member, bool)      {}
func (f *fixture) Settled(string, uint64, uint32, bool)                          {}
func (f *fixture) Detaching(string, uint64)                                      {}
func (f *fixture) Landed(string, uint64, membership.Member, time.Duration, bool) {}
func (f *fixture) NotLanding(string, uint64, membership.Member, string)          {}
func (f *fixture) Lost(addr string, _ uint64, _ membership.Member)               { f.event("lost %s", addr) }
