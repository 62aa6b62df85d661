package claim_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// C20: released exactly once, never before the last round is out, nothing attached after it.
func TestGoroutinesThatAttachAndDisposeAtOnceReleaseExactlyOnce(t *testing.T) {
	f := up(t)
	turn := &guarded{}
	for i := range 300 {
		addr := fmt.Sprintf("portal/%d", i)
		h := f.claim.Handle(turn, addr)
		start := make(chan struct{})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { <-start; h.Attach() })
		}
		for range 2 {
			wg.Go(func() { <-start; h.Dispose() })
		}
		close(start)
		wg.Wait()
	}
	if n := f.claim.Len(); n != 0 {
		t.Fatalf("%d registrations are left", n)
	}
	f.clock.Run(5 * ms)
	f.accept()
	detached := map[string]int{}
	for _, a := range f.peers.Asks {
		switch m := a.Message.(type) {
		case wire.Detach:
			for _, it := range m.Items {
				detached[it.Addr]++
			}
		case wire.Claim:
			if len(m.Items) > 0 {
				t.Fatalf("a claim of what is disposed has left: %+v", m.Items)
			}
		}
	}
	for i := range 300 {
		if n := detached[fmt.Sprintf("portal/%d", i)]; n != 1 {
			t.Fatalf("portal/%d was detached %d times", i, n)
		}
	}
}

// guarded is a turn that is a mutex.
type guarded struct{ mu sync.Mutex }

func (g *guarded) Do(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// parking is a turn whose next step the test runs when it likes: the goroutine that asked for it was
// preempted before it got the turn.
type parking struct{ held []func() }

func (p *parking) Do(f func()) { p.held = append(p.held, f) }

// C20
func TestADisposalInsideTheAttachLeavesTheReleaseToTheRound(t *testing.T) {
	f := up(t)
	p := &parking{}
	h := f.claim.Handle(p, f.addr)
	h.Attach()
	h.Dispose()
	if len(p.held) != 1 {
		t.Fatalf("%d steps: the disposal has released while the attach is inside", len(p.held))
	}
	p.held[0]()
	f.clock.Run(ms)
	if f.claims(f.addr) != 0 || f.claim.Len() != 0 {
		t.Fatal("what was disposed is claimed")
	}
	if _, m := clustertest.Take[wire.Detach](f.peers); len(m.Items) != 1 || m.Items[0].Reg != h.Reg() {
		t.Fatalf("%+v", m)
	}
}

// C20
func TestAttachAfterDisposeDoesNothing(t *testing.T) {
	f := up(t)
	h := f.register(f.addr)
	f.clock.Run(ms)
	f.accept()
	f.dispose(f.addr, h)
	h.Attach()
	h.Dispose()
	f.clock.Run(ms)
	if _, m := clustertest.Take[wire.Detach](f.peers); len(m.Items) != 1 {
		t.Fatalf("%+v", m)
	}
	f.peers.Silent()
	if f.claims(f.addr) != 1 || f.claim.Len() != 0 {
		t.Fatal("it was attached")
	}
}

// C20
func TestASecondAttachHasNoEffect(t *testing.T) {
	f := up(t)
	h := f.register(f.addr)
	h.Attach()
	f.clock.Run(ms)
	a, m, _ := f.take(f.addr)
	if len(m.Items) != 1 {
		t.Fatalf("%+v", m.Items)
	}
	a.Answer(f.landed(m))
	h.Attach()
	f.clock.Run(ms)
	f.peers.Silent()
	if s, ok := f.claim.State(f.addr); !ok || s.Landed != b.Epoch || s.Phase != "process" {
		t.Fatalf("%+v, %v", s, ok)
	}
	f.apply(2, me, b, c)
	if f.claims(f.addr) != 2 {
		t.Fatal("it is not claimed with the next view")
	}
}

// C20; protocol §1: the greater registration stays, whichever gets the turn first.
func TestAnOldRegistrationWhoseAttachWasDelayedDoesNotReplaceTheNewOne(t *testing.T) {
	f := up(t)
	p := &parking{}
	old := f.claim.Handle(p, f.addr)
	old.Attach() // preempted before the turn
	old.Dispose()
	h := f.register(f.addr)
	for _, step := range p.held {
		step()
	}
	f.clock.Run(ms)
	if f.claims(f.addr) != 1 {
		t.Fatalf("%d claims of the live registration", f.claims(f.addr))
	}
	f.accept()
	if s, ok := f.claim.State(f.addr); !ok || s.Reg != h.Reg() || s.Landed != b.Epoch {
		t.Fatalf("%+v, %v", s, ok)
	}
}

// protocol §1
func TestANewRegistrationReplacesTheOldOneOfItsAddress(t *testing.T) {
	f := up(t)
	old := f.register(f.addr)
	f.clock.Run(ms)
	a, m, _ := f.take(f.addr)
	h := f.register(f.addr)
	a.Answer(f.landed(m)) // the old one's claim: it counts for nothing
	if s, _ := f.claim.State(f.addr); s.Reg != h.Reg() || s.Landed != 0 {
		t.Fatalf("%+v", s)
	}
	f.clock.Run(ms)
	f.accept()
	f.dispose(f.addr, old)
	f.clock.Run(ms)
	if _, m := clustertest.Take[wire.Detach](f.peers); m.Items[0].Reg != old.Reg() {
		t.Fatalf("%+v", m)
	}
	if s, ok := f.claim.State(f.addr); !ok || s.Reg != h.Reg() || s.Landed != b.Epoch {
		t.Fatalf("%+v, %v", s, ok)
	}
}

// C17
func TestDisposedBeforeTheSiloIsActiveNothingIsEverSent(t *testing.T) {
	f := idle(t)
	h := f.register(f.addr)
	f.clock.Run(time.Second)
	f.dispose(f.addr, h)
	f.clock.Run(time.Second)
	f.apply(1, me, b, c)
	f.accept()
	f.clock.Run(time.Minute)
	f.peers.Silent()
	if f.claims(f.addr)+clustertest.Count[wire.Detach](f.peers) != 0 {
		t.Fatal("a claim or a detach has left")
	}
}

// C16
func TestAfterDisposalLaterChangesClaimNothing(t *testing.T) {
	f := up(t)
	h := f.register(f.addr)
	f.clock.Run(ms)
	f.accept()
	f.dispose(f.addr, h)
	f.clock.Run(ms)
	f.accept()
	for n := range uint64(3) {
		f.apply(2+n, me, b, c)
		f.accept()
		f.clock.Run(time.Second)
	}
	f.claim.Accepted(b.Epoch)
	f.clock.Run(time.Second)
	if f.claims(f.addr) != 1 {
		t.Fatalf("%d claims", f.claims(f.addr))
	}
}

// C17
func TestAfterStoppingBeginsNeitherAttachNorDetachIsIssued(t *testing.T) {
	f := up(t)
	h := f.register(f.addr)
	f.clock.Run(ms)
	a, m, _ := f.take(f.addr)
	f.claim.Stop()
	a.Answer(f.all(m, wire.Elsewhere)) // re-read at each attempt: it is not repeated
	f.register(f.node + "/x")
	f.dispose(f.addr, h)
	f.claim.Accepted(b.Epoch)
	var out []string
	f.claim.Activate(f.node, nil, outcome(&out))
	f.clock.Run(time.Minute)
	f.peers.Silent()
	if len(out) != 1 || out[0] != "none: stopping" {
		t.Fatalf("%v", out)
	}
}

// C1: what is asked of this silo is answered from the local route, whatever has become of the claim.
func TestTheLocalRouteAnswersALocateBeforeTheFirstClaimHasLeft(t *testing.T) {
	f := up(t)
	h := f.claim.Handle(f.clock, f.addr)
	f.local[f.addr] = h.Reg()
	if it := f.claim.Locate(b.Epoch, wire.LocateItem{Addr: f.addr}); it.Status != wire.Serving || it.Reg != h.Reg() {
		t.Fatalf("%+v", it)
	}
}

// decision 11; protocol §7
func TestAReleasedAddressIsRememberedHereForTenMinutes(t *testing.T) {
	f := up(t)
	h := f.register(f.addr)
	f.clock.Run(ms)
	f.accept()
	f.dispose(f.addr, h)
	f.clock.Run(10*time.Minute - ms)
	if it := f.claim.Locate(b.Epoch, wire.LocateItem{Addr: f.addr}); it.Status != wire.ClosedHere || it.Age != 10*time.Minute-ms {
		t.Fatalf("%+v", it)
	}
	f.clock.Run(ms)
	if it := f.claim.Locate(b.Epoch, wire.LocateItem{Addr: f.addr}); it.Status != wire.None {
		t.Fatalf("%+v", it)
	}
	if f.claim.Sweep(); f.claim.Released() != 0 {
		t.Fatal("it is still remembered")
	}
	again := f.register(f.addr)
	if it := f.claim.Locate(b.Epoch, wire.LocateItem{Addr: f.addr}); it.Status != wire.Serving || it.Reg != again.Reg() {
		t.Fatalf("%+v", it)
	}
}
