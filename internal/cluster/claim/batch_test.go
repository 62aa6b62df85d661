package claim_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/claim"
	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/directory"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// protocol §5
func TestAViewSendsOneCompleteBatchToEachOwnerEvenAnEmptyOne(t *testing.T) {
	f := idle(t)
	f.register(f.addr)
	f.apply(1, me, b, c)
	for _, m := range f.view.Members() {
		a, batch := clustertest.TakeFrom[wire.Claim](f.peers, m.Name)
		for s := range slots {
			o, _ := f.table.Owner(s)
			if batch.CompleteFor.Has(s) != (o.Epoch == m.Epoch) {
				t.Errorf("slot %d of %s in the mark for %s: %v", s, o, m, batch.CompleteFor.Has(s))
			}
		}
		if batch.To != m.Epoch || batch.From != me.Epoch || batch.Key != f.view.Key() {
			t.Errorf("%+v", batch.Head)
		}
		a.Answer(f.landed(batch))
	}
	f.clock.Run(time.Minute)
	f.peers.Silent()
}

// protocol §5
func TestBatchesHoldWholeSlots(t *testing.T) {
	f := idle(t, func(cfg *claim.Config) { cfg.Batch = 10 })
	for i := range 200 {
		f.register(fmt.Sprintf("portal/%d", i))
	}
	f.apply(1, me, b, c)
	if n := len(f.peers.Waiting()); n > 3 {
		t.Fatalf("%d batches in one turn, to three owners", n)
	}
	f.clock.Flush()
	seen, marked := map[string]int{}, map[int]bool{}
	for _, a := range f.peers.Waiting() {
		m := a.Message.(wire.Claim)
		for s := range slots {
			if m.CompleteFor.Has(s) {
				if marked[s] {
					t.Fatalf("slot %d is marked twice", s)
				}
				marked[s] = true
			}
		}
		for _, it := range m.Items {
			seen[it.Addr]++
			if !m.CompleteFor.Has(directory.SlotOf(it.Addr, slots)) {
				t.Fatalf("%s is in a batch that is not complete for its slot", it.Addr)
			}
		}
	}
	if len(seen) != 200 || len(marked) != slots {
		t.Fatalf("%d addresses in %d slots", len(seen), len(marked))
	}
	for addr, n := range seen {
		if n != 1 {
			t.Fatalf("%s is in %d batches", addr, n)
		}
	}
}

// protocol §5; protocol §8
func TestAMarkThatIsNotAcceptedIsRepeatedWithWhatWasRegisteredMeanwhile(t *testing.T) {
	f := idle(t)
	f.register(f.addr)
	f.apply(1, me, b, c)
	a, m, _ := f.take(f.addr)
	f.accept()
	behind := f.landed(m)
	behind.Complete, behind.Key = nil, membership.Key{Timeline: 1}
	a.Answer(behind)
	if len(f.peers.Seen) != 1 || f.peers.Seen[0].From.Epoch != b.Epoch {
		t.Fatalf("the owner is behind and is not given the view: %v", f.peers.Seen)
	}
	later := clustertest.Owned(f.table, b, "portal", 1)
	f.register(later)
	f.clock.Run(ms)
	f.accept()
	f.clock.Run(99 * ms)
	a, m, _ = f.take(f.addr)
	if m.CompleteFor.Empty() || !slices.ContainsFunc(m.Items, func(it wire.ClaimItem) bool { return it.Addr == later }) {
		t.Fatalf("%+v", m)
	}
	a.Answer(f.landed(m))
	f.clock.Run(time.Minute)
	f.peers.Silent()
}

// protocol §5
func TestAMarkIsNotRepeatedUnderAnOldView(t *testing.T) {
	f := idle(t)
	f.register(f.addr)
	f.apply(1, me, b, c)
	a, m, _ := f.take(f.addr)
	f.accept()
	behind := f.landed(m)
	behind.Complete = nil
	a.Answer(behind)
	f.apply(2, me, b, c)
	f.accept()
	f.clock.Run(time.Minute)
	if n := clustertest.Count[wire.Claim](f.peers); n != 6 {
		t.Fatalf("%d batches, there are three owners and two views", n)
	}
}

// protocol §5
func TestBatchesThatHaveNotLeftWhenANewerViewComesNeverDo(t *testing.T) {
	f := idle(t, func(cfg *claim.Config) { cfg.Batch = 10 })
	for i := range 200 {
		f.register(fmt.Sprintf("portal/%d", i))
	}
	f.apply(1, me, b, c)
	f.apply(2, me, b, c)
	f.clock.Flush()
	old := 0
	for _, a := range f.peers.Waiting() {
		if a.Message.(wire.Claim).Key.Number == 1 {
			old++
		}
	}
	if old > 3 {
		t.Errorf("%d batches under the older view", old)
	}
	f.accept()
	if n := f.claim.Landed(); n != 200 {
		t.Errorf("%d of 200 claims have landed", n)
	}
}

// fault 16
func TestAMembershipChangeWith10000ClaimsIsAFewBatchesWithOneRoundInFlightForEachAddress(t *testing.T) {
	f := idle(t)
	for i := range 10_000 {
		f.register(fmt.Sprintf("portal/%d", i))
	}
	f.apply(1, me, b, c)
	f.clock.Flush()
	f.accept()
	before := len(f.peers.Asks)
	f.apply(2, me, b, c)
	f.clock.Flush()
	if n := len(f.peers.Asks) - before; n > 13 {
		t.Fatalf("%d messages", n)
	}
	items := 0
	for _, a := range f.peers.Asks[before:] {
		items += len(a.Message.(wire.Claim).Items)
	}
	if items != 10_000 {
		t.Fatalf("%d claims", items)
	}
	f.accept()
	if f.claim.Landed() != 10_000 {
		t.Fatalf("%d landed", f.claim.Landed())
	}
}

// protocol §5
func TestClaimsAndDetachesOfOneMillisecondShareABatchClaimsFirst(t *testing.T) {
	f := up(t)
	before := len(f.peers.Asks)
	old := f.register(f.addr)
	f.clock.Run(ms)
	f.accept()
	f.dispose(f.addr, old)
	for i := range 20 {
		f.register(clustertest.Owned(f.table, b, "portal", i+1))
	}
	f.clock.Run(ms)
	asks := f.peers.Asks[before+1:]
	if len(asks) != 2 || asks[0].Message.Kind() != wire.KindClaim || asks[1].Message.Kind() != wire.KindDetach {
		t.Fatalf("%d messages", len(asks))
	}
	if m := asks[0].Message.(wire.Claim); len(m.Items) != 20 || !m.CompleteFor.Empty() {
		t.Fatalf("%d items", len(m.Items))
	}
}

// protocol §5
func TestADetachIsRepeatedUntilAnOwnerHasHeardIt(t *testing.T) {
	f := up(t)
	h := f.register(f.addr)
	other := clustertest.Owned(f.table, b, "portal", 1)
	g := f.register(other)
	f.clock.Run(ms)
	f.accept()
	f.dispose(f.addr, h)
	f.dispose(other, g)
	f.clock.Run(ms)

	a, m := clustertest.Take[wire.Detach](f.peers)
	if len(m.Items) != 2 || a.To.Epoch != b.Epoch {
		t.Fatalf("%+v", m)
	}
	a.Fail(clustertest.ErrLost)
	f.clock.Run(100*ms - 1)
	f.peers.Silent()
	f.clock.Run(1)

	a, m = clustertest.Take[wire.Detach](f.peers)
	a.Answer(wire.Detached{Key: membership.Key{Timeline: 1, Number: 9}, Verdicts: []wire.Verdict{wire.Landed, wire.Elsewhere}})
	if len(f.peers.Seen) != 1 {
		t.Fatal("views are not exchanged")
	}
	f.apply(2, me, c) // b is gone
	f.accept()
	f.clock.Run(200 * ms)
	a, m = clustertest.Take[wire.Detach](f.peers)
	if len(m.Items) != 1 || m.Items[0].Addr != other || a.To.Epoch != c.Epoch || m.Key != f.view.Key() {
		t.Fatalf("to %s: %+v", a.To, m)
	}
	a.Answer(wire.WrongEpoch{})
	f.clock.Run(400 * ms)
	f.accept()
	f.clock.Run(time.Minute)
	f.peers.Silent()
}

// protocol §5: while the epoch lives.
func TestADetachIsNotRepeatedInAnotherLife(t *testing.T) {
	f := up(t)
	h := f.register(f.addr)
	f.clock.Run(ms)
	f.accept()
	f.dispose(f.addr, h)
	f.clock.Run(ms)
	a, _ := clustertest.Take[wire.Detach](f.peers)
	f.claim.Evict()
	self := clustertest.Silo("me", 9)
	f.claim.Apply(clustertest.View(3, self, b, c), f.table, self.Epoch)
	f.accept()
	a.Fail(clustertest.ErrLost)
	f.clock.Run(time.Minute)
	if n := clustertest.Count[wire.Detach](f.peers); n != 1 {
		t.Fatalf("%d detaches", n)
	}
}

// quiet is the observer and the host of a silo with many registrations.
type quiet struct{}

func (quiet) Serving(string) (uint64, bool)                                 { return 0, false }
func (quiet) Granted(string, uint64)                                        {}
func (quiet) StepAside(string, uint64)                                      {}
func (quiet) Claiming(string, uint64, uint32, membership.Member, bool)      {}
func (quiet) Settled(string, uint64, uint32, bool)                          {}
func (quiet) Detaching(string, uint64)                                      {}
func (quiet) Landed(string, uint64, membership.Member, time.Duration, bool) {}
func (quiet) NotLanding(string, uint64, membership.Member, string)          {}
func (quiet) Lost(string, uint64, membership.Member)                        {}

// protocol §5; protocol §11: 100,000 claims on one silo.
func TestAHundredThousandRegistrationsHaveNoGoroutineAndNoTimerEachAndAtMost400Bytes(t *testing.T) {
	const n = 100_000
	clock := &clustertest.Clock{}
	peers := clustertest.NewPeers(t, clock)
	cl := claim.New(clock, peers, quiet{}, quiet{}, claim.Defaults())
	view := clustertest.View(1, me, b, c)
	table := directory.NewTable(view, directory.DefaultSlots)
	cl.Apply(view, table, me.Epoch)
	land := func() {
		for _, a := range peers.Waiting() {
			m := a.Message.(wire.Claim)
			a.Answer(wire.Claimed{Key: view.Key(), Results: make([]wire.ClaimResult, len(m.Items)), Complete: m.CompleteFor})
		}
	}
	land()
	addrs := make([]string, n)
	for i := range addrs {
		addrs[i] = fmt.Sprintf("portal/%d", i)
	}
	handles := make([]*claim.Handle, n)
	peers.Asks = nil
	goroutines := runtime.NumGoroutine()
	before := live()
	for i := range addrs {
		handles[i] = cl.Handle(clock, addrs[i])
		handles[i].Attach()
	}
	clock.Run(ms)
	batches := len(peers.Asks)
	if batches > n/1000+3 {
		t.Errorf("%d batches for %d registrations", batches, n)
	}
	if timers := clock.Timers(); timers > batches {
		t.Errorf("%d timers, one for each of %d batches is allowed", timers, batches)
	}
	land()
	peers.Asks = nil
	if cl.Landed() != n || clock.Timers() > 0 {
		t.Fatalf("%d landed, %d timers", cl.Landed(), clock.Timers())
	}
	if g := runtime.NumGoroutine(); g > goroutines {
		t.Errorf("%d goroutines more", g-goroutines)
	}
	each := int64(live()-before) / n
	t.Logf("%d bytes for a registration, its address not counted", each)
	if each > 400 {
		t.Errorf("%d bytes for a registration", each)
	}
	runtime.KeepAlive(handles)
	runtime.KeepAlive(cl)
}

// live is the bytes of what is reachable.
func live() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// protocol §5; decision 4: maximum message 4 MiB
func TestAnAssertionOfVeryLongAddressesFitsIntoFrames(t *testing.T) {
	clock := &clustertest.Clock{}
	peers := clustertest.NewPeers(t, clock)
	cl := claim.New(clock, peers, quiet{}, quiet{}, claim.Defaults())
	apply := func(number uint64) {
		view := clustertest.View(number, me, b, c)
		cl.Apply(view, directory.NewTable(view, directory.DefaultSlots), me.Epoch)
	}
	apply(1)
	for i := range 24_000 {
		addr := fmt.Sprintf("portal/%d", i)
		cl.Handle(clock, addr+strings.Repeat("x", 4096-len(addr))).Attach()
	}
	clock.Run(ms)
	peers.Asks = nil
	apply(2)
	clock.Run(100 * ms)
	items := 0
	for _, a := range peers.Waiting() {
		m, ok := a.Message.(wire.Claim)
		if n := len(wire.Encode(m)); !ok || n > 4<<20 {
			t.Errorf("%T of %d items and %d bytes", a.Message, len(m.Items), n)
		}
		items += len(m.Items)
	}
	if items != 24_000 {
		t.Errorf("%d are claimed", items)
	}
}
