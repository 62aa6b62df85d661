package claim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/claim"
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

// fixture is one silo's claims among slot owners that the test answers for.
type fixture struct {
	t     *testing.T
	clock *clustertest.Clock
	peers *clustertest.Peers
	claim *claim.Claimant
	view  *membership.View
	table *directory.Table
	addr  string // in a slot of b, in every view that has b
	node  string // likewise

	local  map[string]uint64 // process hubs by the local route
	events []string          // what the observer and the host are told
	open   map[string]bool   // addresses with a claim in flight
}

// idle returns a fixture whose silo is in no view.
func idle(t *testing.T, change ...func(*claim.Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: &clustertest.Clock{}, local: map[string]uint64{}, open: map[string]bool{}}
	f.peers = clustertest.NewPeers(t, f.clock)
	cfg := claim.Defaults()
	cfg.Slots = slots
	for _, ch := range change {
		ch(&cfg)
	}
	f.claim = claim.New(f.clock, f.peers, f, f, cfg)
	table := directory.NewTable(clustertest.View(1, me, b, c), slots)
	f.addr, f.node = clustertest.Owned(table, b, "portal", 0), clustertest.Owned(table, b, "acme", 0)
	return f
}

// up returns a fixture in a view of me, b and c, whose first assertions have been accepted.
func up(t *testing.T, change ...func(*claim.Config)) *fixture {
	t.Helper()
	f := idle(t, change...)
	f.apply(1, me, b, c)
	f.accept()
	return f
}

func (f *fixture) apply(number uint64, members ...membership.Member) {
	f.view = clustertest.View(number, members...)
	f.table = directory.NewTable(f.view, slots)
	f.claim.Apply(f.view, f.table, me.Epoch)
}

// landed is the answer to a claim whose every item lands.
func (f *fixture) landed(m wire.Claim) wire.Claimed {
	return wire.Claimed{Key: f.view.Key(), Results: make([]wire.ClaimResult, len(m.Items)), Complete: m.CompleteFor}
}

// all is the answer to a claim with one verdict for every item, and the mark accepted.
func (f *fixture) all(m wire.Claim, v wire.Verdict) wire.Claimed {
	a := f.landed(m)
	for i := range a.Results {
		a.Results[i].Verdict = v
	}
	return a
}

// accept has every open claim and detach land.
func (f *fixture) accept() {
	f.t.Helper()
	for _, a := range f.peers.Waiting() {
		switch m := a.Message.(type) {
		case wire.Claim:
			a.Answer(f.landed(m))
		case wire.Detach:
			a.Answer(wire.Detached{Key: f.view.Key(), Verdicts: make([]wire.Verdict, len(m.Items))})
		}
	}
}

// take takes the open claim that names an address; its item is at the returned index.
func (f *fixture) take(addr string) (*clustertest.Ask, wire.Claim, int) {
	f.t.Helper()
	for _, a := range f.peers.Waiting() {
		if m, ok := a.Message.(wire.Claim); ok {
			if i := slices.IndexFunc(m.Items, func(it wire.ClaimItem) bool { return it.Addr == addr }); i >= 0 {
				taken, _ := clustertest.TakeFrom[wire.Claim](f.peers, a.To.Name)
				for taken != a { // others to the same silo, without the address
					taken, _ = clustertest.TakeFrom[wire.Claim](f.peers, a.To.Name)
				}
				return a, m, i
			}
		}
	}
	f.t.Fatalf("no open claim of %s", addr)
	return nil, wire.Claim{}, 0
}

// claims counts the claims of an address that have left.
func (f *fixture) claims(addr string) int {
	n := 0
	for _, a := range f.peers.Asks {
		if m, ok := a.Message.(wire.Claim); ok {
			for _, it := range m.Items {
				if it.Addr == addr && it.Phase != wire.Pending {
					n++
				}
			}
		}
	}
	return n
}

// register is a process hub: the local route, then the claim.
func (f *fixture) register(addr string) *claim.Handle {
	h := f.claim.Handle(f.clock, addr)
	f.local[addr] = h.Reg()
	h.Attach()
	return h
}

func (f *fixture) dispose(addr string, h *claim.Handle) {
	if f.local[addr] == h.Reg() {
		delete(f.local, addr)
	}
	h.Dispose()
}

func (f *fixture) event(format string, args ...any) {
	f.events = append(f.events, fmt.Sprintf(format, args...))
}

// told returns the events since the last call.
func (f *fixture) told() []string {
	e := f.events
	f.events = nil
	return e
}

func (f *fixture) mustTell(want ...string) {
	f.t.Helper()
	if got := f.told(); !slices.Equal(got, want) {
		f.t.Fatalf("told %q, want %q", got, want)
	}
}

// The fixture is the host and the observer of its claimant.

func (f *fixture) Serving(addr string) (uint64, bool) {
	reg, ok := f.local[addr]
	return reg, ok
}

func (f *fixture) Granted(addr string, reg uint64)   { f.event("granted %s", addr) }
func (f *fixture) StepAside(addr string, reg uint64) { f.event("step aside %s", addr) }

func (f *fixture) Claiming(addr string, _ uint64, round uint32, _ membership.Member, again bool) {
	if again && f.open[addr] {
		f.t.Errorf("%s is repeated while a claim of it is in flight", addr)
	}
	f.open[addr] = true
}

func (f *fixture) Settled(addr string, _ uint64, _ uint32, _ bool) { f.open[addr] = false }
func (f *fixture) Detaching(string, uint64)                        {}

func (f *fixture) Landed(addr string, _ uint64, owner membership.Member, _ time.Duration, late bool) {
	f.event("landed %s at %s late=%v", addr, owner.Name, late)
}

func (f *fixture) NotLanding(addr string, _ uint64, owner membership.Member, why string) {
	f.event("not landing %s at %s: %s", addr, owner.Name, why)
}

func (f *fixture) Lost(addr string, _ uint64, owner membership.Member) {
	f.event("lost %s at %s", addr, owner.Name)
}
