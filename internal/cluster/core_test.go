package cluster_test

import (
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// protocol §2
func TestWhoeverSeesAnOlderKeyGivesItsView(t *testing.T) {
	f := joined(t)
	f.core.Saw(b, membership.Key{Timeline: 1, Number: 4})
	a, m := clustertest.Take[wire.ViewPush](f.peers)
	if a.To.Epoch != b.Epoch || m.View.Key() != f.core.View().Key() || len(m.View.Members()) != 3 {
		t.Fatalf("to %s: %v", a.To, m.View)
	}
}

// protocol §2
func TestWhoeverSeesANewerKeyFetchesTheViewOnceAtATime(t *testing.T) {
	f := joined(t)
	f.events = nil
	for range 3 {
		f.core.Saw(b, membership.Key{Timeline: 1, Number: 7})
	}
	a, _ := clustertest.Take[wire.ViewGet](f.peers)
	f.peers.Silent()
	a.Answer(wire.ViewIs{View: clustertest.View(7, me, b)})
	f.mustTell("applied 7")
	f.accept()
	f.core.Saw(b, membership.Key{Timeline: 1, Number: 9}) // the way is free again
	a, _ = clustertest.Take[wire.ViewGet](f.peers)
	a.Answer(wire.ViewIs{View: clustertest.View(6, me, b)}) // older than its own by now
	f.core.Saw(b, membership.Key{Timeline: 1, Number: 9})
	a, _ = clustertest.Take[wire.ViewGet](f.peers)
	a.Fail(clustertest.ErrLost)
	f.core.Saw(b, membership.Key{Timeline: 1, Number: 9})
	a, _ = clustertest.Take[wire.ViewGet](f.peers)
	a.Answer(wire.ViewIs{}) // a peer without a view
	f.mustTell()
}

// protocol §2
func TestAPeerThatIsSeenBehindManyTimesGetsOnePushAtATimeAndThenTheNewestView(t *testing.T) {
	f := joined(t)
	behind := membership.Key{Timeline: 1, Number: 1}
	pushed := func(to string, number uint64) *clustertest.Ask {
		t.Helper()
		a, m := clustertest.TakeFrom[wire.ViewPush](f.peers, to)
		if m.View.Key().Number != number {
			t.Fatalf("%s gets view %s, want %d", to, m.View.Key(), number)
		}
		f.peers.Silent()
		return a
	}
	for range 1024 {
		f.core.Saw(b, behind)
	}
	first := pushed("b", 5)
	f.core.Saw(c, behind) // another peer waits for nobody
	pushed("c", 5).Answer(wire.OK{})
	f.peers.Script = func(a *clustertest.Ask) { // what the newer views bring beside
		if _, is := a.Message.(wire.ViewPush); !is {
			a.Answer(wire.OK{})
		}
	}
	for n := uint64(6); n < 9; n++ {
		f.core.Apply(clustertest.View(n, me, b, c))
		f.core.Saw(b, behind)
	}
	f.clock.Flush()
	if n := clustertest.Count[wire.ViewPush](f.peers); n != 2 {
		t.Fatalf("%d pushes while the first is under way", n)
	}
	f.peers.Script = nil
	first.Answer(wire.OK{})
	a, m := clustertest.TakeFrom[wire.ViewPush](f.peers, "b")
	if m.View.Key().Number != 8 {
		t.Fatalf("the second push has view %s", m.View.Key())
	}
	f.core.Saw(b, behind) // of before the view that is under way arrived
	a.Answer(wire.OK{})
	f.core.Saw(b, behind) // it still is behind
	a, _ = clustertest.TakeFrom[wire.ViewPush](f.peers, "b")
	f.core.Apply(clustertest.View(9, me, b, c))
	f.core.Saw(b, behind)
	a.Fail(clustertest.ErrLost) // whoever does not answer is asked nothing more
	if n := clustertest.Count[wire.ViewPush](f.peers); n != 4 {
		t.Fatalf("%d pushes", n)
	}
	f.core.Saw(b, behind) // the way is free again
	if _, m = clustertest.TakeFrom[wire.ViewPush](f.peers, "b"); m.View.Key().Number != 9 {
		t.Fatalf("the last push has view %s", m.View.Key())
	}
}

// protocol §2
func TestTheSameKeyAndTheOwnKeyExchangeNothing(t *testing.T) {
	f := joined(t)
	f.core.Saw(b, f.core.View().Key())
	f.core.Saw(me, membership.Key{Timeline: 9, Number: 9})
	f.core.Saw(me, membership.Key{})
	f.peers.Silent()
}

// protocol §2; protocol §8
func TestAViewMaySkipAndNeverGoesBack(t *testing.T) {
	f := joined(t)
	f.events = nil
	f.core.Apply(clustertest.View(9, me, b))
	f.core.Apply(clustertest.View(7, me, b, c))
	f.handle(wire.ViewPush{View: clustertest.View(9, me)})
	f.handle(wire.ViewPush{})
	f.core.Apply(nil)
	f.mustTell("applied 9")
	if is := f.handle(wire.ViewGet{}).(wire.ViewIs); is.View.Key().Number != 9 || len(is.View.Members()) != 2 {
		t.Fatalf("%v", is.View)
	}
}

// protocol §3
func TestARequestForAnotherIncarnationIsAnsweredWrongEpochWithTheKey(t *testing.T) {
	f := joined(t)
	h := wire.Head{From: b.Epoch, To: 77, Key: f.core.View().Key()}
	requests := []wire.Request{wire.Claim{Head: h}, wire.Detach{Head: h}, wire.Lookup{Head: h}, wire.Locate{Head: h}, wire.SlotQuery{Head: h}, wire.HandOver{Head: h}, wire.Restored{Head: h}}
	check := func(want membership.Key) {
		t.Helper()
		for _, m := range requests {
			if a, ok := f.handle(m).(wire.WrongEpoch); !ok || a.Key != want {
				t.Errorf("%s: %+v", m.Kind(), a)
			}
		}
	}
	check(f.core.View().Key())
	f = newFixture(t) // a silo in no view
	check(membership.Key{})
	for i := range requests {
		if c, ok := requests[i].(wire.Claim); ok {
			c.To = 0
			requests[i] = c
		}
	}
	check(membership.Key{}) // nor is 0 anybody's epoch
}

// protocol §3
func TestAHandshakeIsAnsweredBeforeTheSiloHasJoined(t *testing.T) {
	f := newFixture(t)
	if _, ok := f.handle(wire.Hello{}).(wire.OK); !ok {
		t.Error("a handshake is not answered")
	}
	if is := f.handle(wire.ViewGet{}).(wire.ViewIs); is.View != nil {
		t.Fatalf("%v", is.View)
	}
}

// protocol §8
func TestEvictionTakesTheEpochFirstAndThenWhateverWasServedAndOwned(t *testing.T) {
	f := joined(t)
	f.settle()
	node := f.of(b, "acme")
	got := f.resolve(cluster.Question{Addr: node, Node: true})
	f.accept()
	if r := resolved(t, got); !r.Local {
		t.Fatalf("%+v", r)
	}
	f.events = nil
	f.core.Apply(clustertest.View(6, b, c))
	f.mustTell("evicted", "applied 6")
	if f.selves[0] != 0 || f.core.Self() != 0 {
		t.Fatal("the epoch is still there when the hubs are killed")
	}
	if owned, _ := f.core.Owner.Owned(); owned != 0 || f.core.Claims.Len() != 0 {
		t.Fatalf("%d slots, %d claims", owned, f.core.Claims.Len())
	}
	refused(t, f.resolve(cluster.Question{Addr: "portal/x"}), cluster.Starting)
	if _, ok := f.handle(wire.Lookup{Head: wire.Head{From: b.Epoch, To: me.Epoch}}).(wire.WrongEpoch); !ok {
		t.Fatal("it answers for its former life")
	}
	f.core.Joined(9, clustertest.View(7, clustertest.Silo("me", 9), b, c))
	if f.core.Self() != 9 {
		t.Fatal("it has not joined anew")
	}
}

// protocol §2
func TestAJoinWhoseViewHasBeenOvertakenCountsTheNewerOne(t *testing.T) {
	f := newFixture(t)
	f.core.Apply(clustertest.View(8, me, b, c)) // pushed by a peer before the table has answered
	if f.core.Self() != 0 || clustertest.Count[wire.Claim](f.peers) != 0 {
		t.Fatal("a silo does not know its epoch before it has joined")
	}
	f.core.Joined(me.Epoch, clustertest.View(6, me, b))
	if f.core.View().Key().Number != 8 || f.core.Self() != me.Epoch {
		t.Fatalf("%v", f.core.View())
	}
	if clustertest.Count[wire.Claim](f.peers) != 2 { // b and c; the silo itself is asked without the network
		t.Fatalf("%d batches", clustertest.Count[wire.Claim](f.peers))
	}
	f = newFixture(t)
	f.core.Apply(clustertest.View(8, b, c)) // voted out again before it knew that it was in
	f.core.Joined(me.Epoch, clustertest.View(6, me, b))
	if f.core.Self() != 0 {
		t.Fatal("it believes that it is a member")
	}
}

// protocol §4: the silo is a member like the others, and the way to itself is the shortest.
func TestASilosQuestionsToItselfTakeNoNetworkAndAreNeverAnsweredInsideTheCall(t *testing.T) {
	f := joined(t)
	done := false
	f.core.Ask(me, wire.Locate{Head: f.head(me), Items: []wire.LocateItem{{Addr: "x"}}}, time.Second, func(a wire.Answer, err error) {
		if _, ok := a.(wire.Located); !ok || err != nil {
			t.Errorf("%T, %v", a, err)
		}
		done = true
	})
	if done {
		t.Fatal("answered inside the call")
	}
	f.clock.Flush()
	f.peers.Silent()
	if !done {
		t.Fatal("not answered")
	}
}

// fault 6
func TestNoRememberedRouteToASiloOutlivesTheViewThatDropsIt(t *testing.T) {
	f := joined(t)
	addr := f.of(b, "portal")
	f.resolve(cluster.Question{Addr: addr})
	f.lookup(wire.Hit{Entry: wire.Entry{Epoch: c.Epoch, Reg: 1}})
	if r := resolved(t, f.resolve(cluster.Question{Addr: addr})); r.Entry.Epoch != c.Epoch || f.core.Counts().FromCache != 1 {
		t.Fatalf("%+v", r)
	}
	f.core.Apply(clustertest.View(6, me, b, clustertest.Silo("c", 33))) // c has restarted
	f.accept()
	got := f.resolve(cluster.Question{Addr: addr})
	f.lookup(wire.Hit{Entry: wire.Entry{Epoch: 33, Reg: 1}})
	if r := resolved(t, got); r.Entry.Epoch != 33 {
		t.Fatalf("%+v", r)
	}
}

// C17
func TestAStoppedCoreSendsNothingMore(t *testing.T) {
	f := joined(t)
	f.core.Claims.Handle(f.clock, f.of(b, "portal")).Attach()
	f.core.Stop()
	f.clock.Run(time.Minute)
	f.peers.Silent()
	refused(t, f.resolve(cluster.Question{Addr: "portal/x"}), cluster.Starting)
}
