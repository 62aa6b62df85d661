package claim_test

import (
	"errors"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/claim"
	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/directory"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// C7; C10; fault 15: a silo in no view cannot be the owner of anything, so it does not claim.
func TestTheFirstClaimWaitsUntilTheSiloIsActive(t *testing.T) {
	f := idle(t)
	f.register(f.addr)
	f.clock.Run(time.Minute)
	f.peers.Silent()
	f.apply(1, me, b, c)
	if f.claims(f.addr) != 1 {
		t.Fatalf("%d claims with the first view", f.claims(f.addr))
	}
	f.accept()
	f.clock.Run(time.Minute)
	if f.claims(f.addr) != 1 {
		t.Fatalf("%d claims", f.claims(f.addr))
	}
}

// C11; fault 1
func TestLandingIsNotTerminalAndEachViewHasOneClaimMore(t *testing.T) {
	f := up(t)
	f.register(f.addr)
	f.clock.Run(ms)
	f.accept()
	for n := range 5 {
		f.apply(uint64(2+n), me, b, c)
		f.accept()
		f.clock.Run(10 * time.Second)
		if got := f.claims(f.addr); got != 2+n {
			t.Fatalf("%d claims after %d changes", got, n+1)
		}
		if s, _ := f.claim.State(f.addr); s.Landed != b.Epoch {
			t.Fatalf("%+v", s)
		}
	}
}

// C23: a claim is told when it leaves, so that one that was never made is told from one without an answer.
func TestAClaimIsToldWhenItLeavesAndAgainWhenItsRoundIsOver(t *testing.T) {
	f := up(t)
	f.register(f.addr)
	f.clock.Run(ms)
	if f.claims(f.addr) != 1 {
		t.Fatalf("%d claims", f.claims(f.addr))
	}
	if s, _ := f.claim.State(f.addr); s.Round != 1 || s.Landed != 0 {
		t.Fatalf("before the answer: %+v", s)
	}
	f.accept()
	if s, _ := f.claim.State(f.addr); s.Round != 1 || s.Landed != b.Epoch {
		t.Fatalf("after it: %+v", s)
	}
}

// C13; C22
func TestAStaticClusterIsNeverClaimedAgain(t *testing.T) {
	f := up(t)
	f.register(f.addr)
	f.granted()
	f.clock.Run(ms)
	f.accept()
	before := len(f.peers.Asks)
	f.clock.Run(24 * time.Hour)
	if len(f.peers.Asks) != before || f.clock.Timers() != 0 {
		t.Fatalf("%d messages and %d timers in a cluster that does not change", len(f.peers.Asks)-before, f.clock.Timers())
	}
}

// C12: whoever is alone is the owner of every slot, has one view and asserts in it once.
func TestAProcessAloneAssertsExactlyOnce(t *testing.T) {
	f := idle(t)
	f.register(f.addr)
	f.register("portal/before") // before the view
	f.view = membership.Alone(me)
	f.table = directory.NewTable(f.view, slots)
	f.claim.Apply(f.view, f.table, me.Epoch)
	f.register("portal/after")
	a, m := clustertest.Take[wire.Claim](f.peers)
	every := wire.NewSlots(slots)
	for s := range slots {
		every.Add(s)
	}
	if a.To.Epoch != me.Epoch || len(m.Items) != 2 || !m.CompleteFor.Covers(every) {
		t.Fatalf("to %s: %+v", a.To, m)
	}
	a.Answer(f.landed(m))
	f.clock.Run(ms)
	f.accept()
	f.clock.Run(24 * time.Hour)
	for _, addr := range []string{f.addr, "portal/before", "portal/after"} {
		if s, _ := f.claim.State(addr); f.claims(addr) != 1 || s.Landed != me.Epoch || s.Round != 1 {
			t.Errorf("%s: %d claims, %+v", addr, f.claims(addr), s)
		}
	}
	if n := len(f.peers.Asks); n != 2 || f.clock.Timers() != 0 {
		t.Errorf("%d messages and %d timers", n, f.clock.Timers())
	}
}

// C15; C18; C19; fault 2. Each case parks a view change at one point of a round and counts the rounds.
func TestAChangeAtAnyPointOfARoundGivesExactlyOneFurtherRound(t *testing.T) {
	tests := []struct {
		name   string
		rounds int // before the change
		to     func(f *fixture)
	}{
		{"before the first claim has left", 0, func(*fixture) {}},
		{"inside the first claim", 1, func(f *fixture) { f.clock.Run(ms) }},
		{"after it has landed", 1, func(f *fixture) { f.clock.Run(ms); f.accept() }},
		{"after it was refused, during the backoff", 1, func(f *fixture) {
			f.clock.Run(ms)
			a, m, _ := f.take(f.addr)
			a.Answer(f.all(m, wire.Elsewhere))
			f.clock.Run(50 * ms)
		}},
		{"inside the second attempt of a retrying round", 2, func(f *fixture) {
			f.clock.Run(ms)
			a, _, _ := f.take(f.addr)
			a.Fail(clustertest.ErrLost)
			f.clock.Run(100 * ms)
		}},
		{"during the backoff after its budget", 7, func(f *fixture) {
			f.clock.Run(ms)
			for range 7 {
				a, m, _ := f.take(f.addr)
				a.Answer(f.all(m, wire.Held))
				if f.claims(f.addr) < 7 {
					f.clock.Run(2 * time.Second)
				}
			}
		}},
		{"inside the claim of a change before it", 2, func(f *fixture) {
			f.clock.Run(ms)
			f.accept()
			f.apply(9, me, b, c)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := up(t)
			f.register(f.addr)
			test.to(f)
			if got := f.claims(f.addr); got != test.rounds {
				t.Fatalf("%d rounds before the change, want %d", got, test.rounds)
			}
			f.apply(10, me, b, c)
			if got := f.claims(f.addr); got != test.rounds+1 {
				t.Fatalf("%d rounds with the change, want %d", got, test.rounds+1)
			}
			f.accept()
			f.clock.Run(time.Minute)
			if got := f.claims(f.addr); got != test.rounds+1 {
				t.Fatalf("%d rounds after the change, want %d", got, test.rounds+1)
			}
			if s, _ := f.claim.State(f.addr); s.Landed != b.Epoch {
				t.Fatalf("%+v", s)
			}
		})
	}
}

// C14; protocol §5
func TestAnswersOfARoundThatWasReplacedCountForNothing(t *testing.T) {
	for name, answer := range map[string]func(f *fixture, a *clustertest.Ask, m wire.Claim){
		"landed":    func(f *fixture, a *clustertest.Ask, m wire.Claim) { a.Answer(f.landed(m)) },
		"not owner": func(f *fixture, a *clustertest.Ask, m wire.Claim) { a.Answer(f.all(m, wire.Elsewhere)) },
		"lost":      func(_ *fixture, a *clustertest.Ask, _ wire.Claim) { a.Fail(clustertest.ErrLost) },
	} {
		t.Run(name, func(t *testing.T) {
			f := up(t)
			f.register(f.addr)
			f.clock.Run(ms)
			old, m, _ := f.take(f.addr)
			f.apply(2, me, c) // b is gone: another owns it now
			answer(f, old, m)
			if s, _ := f.claim.State(f.addr); s.Landed != 0 || s.Tries != 0 {
				t.Fatalf("%+v", s)
			}
			if len(f.told()) > 0 {
				t.Fatal("the old answer was reported")
			}
			f.accept()
			f.clock.Run(time.Minute)
			owner, _ := f.table.OwnerOf(f.addr)
			if s, _ := f.claim.State(f.addr); s.Landed != owner.Epoch || f.claims(f.addr) != 2 {
				t.Fatalf("%+v, %d claims", s, f.claims(f.addr))
			}
		})
	}
}

// C8
func TestAClaimIsRepeatedAfter100MillisecondsDoublingUpToTwoSecondsFreshForEachRound(t *testing.T) {
	f := up(t)
	f.register(f.addr)
	f.clock.Run(ms)
	series := func(n int) {
		t.Helper()
		want := 100 * ms
		for range n {
			a, _, _ := f.take(f.addr)
			a.Fail(clustertest.ErrLost)
			before := f.claims(f.addr)
			f.clock.Run(want - 1)
			if f.claims(f.addr) != before {
				t.Fatalf("repeated before %v", want)
			}
			f.clock.Run(1)
			if f.claims(f.addr) != before+1 {
				t.Fatalf("not repeated after %v", want)
			}
			want = min(2*want, 2*time.Second)
		}
	}
	series(9)
	_, _, _ = f.take(f.addr) // under way, and replaced
	f.apply(2, me, b, c)     // a new trigger: a new round
	for _, a := range f.peers.Waiting() {
		if m := a.Message.(wire.Claim); a.To.Epoch != b.Epoch {
			a.Answer(f.landed(m))
		}
	}
	series(3)
	f.accept()
	if s, _ := f.claim.State(f.addr); s.Landed != b.Epoch || s.Tries != 0 {
		t.Fatalf("%+v", s)
	}
}

// C9: the other terminals, disposal and the end of the silo, have tests of their own.
func TestNothingButTheThreeTerminalsEndsAClaim(t *testing.T) {
	f := up(t)
	f.register(f.addr)
	f.clock.Run(ms)
	for i, v := range []wire.Verdict{wire.Elsewhere, wire.Held, wire.Ended, wire.Unsettled, wire.UnknownEpoch} {
		a, m, _ := f.take(f.addr)
		a.Answer(f.all(m, v))
		f.clock.Run(2 * time.Second)
		if got := f.claims(f.addr); got != i+2 {
			t.Fatalf("after %v: %d claims", v, got)
		}
	}
	for i, answer := range []wire.Answer{wire.WrongEpoch{}, wire.OK{}, wire.Claimed{Results: make([]wire.ClaimResult, 7)}} {
		a, _, _ := f.take(f.addr)
		a.Answer(answer)
		f.clock.Run(2 * time.Second)
		if got := f.claims(f.addr); got != i+7 {
			t.Fatalf("after %+v: %d claims", answer, got)
		}
	}
	f.clock.Run(2 * time.Second) // and no answer at all
	f.clock.Run(2 * time.Second)
	if got := f.claims(f.addr); got != 10 {
		t.Fatalf("%d claims", got)
	}
}

// C8; C32; C33; fault 5
func TestAClaimThatDoesNotLandIsReportedOnceAfterSixAttemptsAndOnceWhenItDoes(t *testing.T) {
	f := up(t)
	f.register(f.addr)
	f.clock.Run(ms)
	began := f.clock.Now()
	for try := range 10 {
		a, m, _ := f.take(f.addr)
		r := f.all(m, wire.Held)
		r.Results[0].Holder = wire.Entry{Epoch: c.Epoch, Reg: 3}
		a.Answer(r)
		switch try {
		case 5:
			f.mustTell("not landing " + f.addr + " at b: held by " + c.Epoch.String())
			if d := f.clock.Now() - began; d < 2900*ms || d > 3300*ms {
				t.Fatalf("reported after %v, the budget is about 3 s", d)
			}
		default:
			f.mustTell()
		}
		f.clock.Run(min(100*ms<<try, 2*time.Second))
	}
	f.accept()
	f.mustTell("landed " + f.addr + " at b late=true")
	f.apply(2, me, b, c)
	f.accept()
	f.mustTell()
}

// C33
func TestTheFirstLandingIsReportedOnceAndAssertionsNeverRepeatIt(t *testing.T) {
	f := up(t)
	f.register(f.addr)
	f.clock.Run(ms)
	f.accept()
	f.mustTell("landed " + f.addr + " at b late=false")
	for n := range uint64(3) {
		f.apply(2+n, me, b, c)
		f.accept()
		f.clock.Run(time.Second)
	}
	f.mustTell()
}

// C32: a claim that had landed and then stays out is reported anew, once.
func TestAClaimThatStopsLandingIsReported(t *testing.T) {
	f := up(t)
	f.register(f.addr)
	f.clock.Run(ms)
	f.accept()
	f.told()
	f.apply(2, me, b, c)
	for range 8 {
		for _, a := range f.peers.Waiting() {
			m := a.Message.(wire.Claim)
			if a.To.Epoch == b.Epoch {
				a.Answer(f.all(m, wire.Elsewhere))
			} else {
				a.Answer(f.landed(m))
			}
		}
		f.clock.Run(2 * time.Second)
	}
	f.mustTell("not landing " + f.addr + " at b: not-owner")
	f.accept()
	f.mustTell("landed " + f.addr + " at b late=true")
}

// protocol §4
func TestAnOwnerWhoseViewDiffersIsToldOfTheViews(t *testing.T) {
	f := up(t)
	f.register(f.addr)
	f.clock.Run(ms)
	a, m, _ := f.take(f.addr)
	r := f.all(m, wire.Elsewhere)
	r.Key.Number = 99
	a.Answer(r)
	if len(f.peers.Seen) != 1 || f.peers.Seen[0].From.Epoch != b.Epoch || f.peers.Seen[0].Key.Number != 99 {
		t.Fatalf("seen %v", f.peers.Seen)
	}
	f.clock.Run(100 * ms)
	a, _, _ = f.take(f.addr)
	a.Answer(wire.WrongEpoch{Key: r.Key})
	if len(f.peers.Seen) != 2 {
		t.Fatalf("seen %v", f.peers.Seen)
	}
}

// protocol §5
func TestANewConnectionFromAnOwnerHasItsSlotsClaimedAfter30Milliseconds(t *testing.T) {
	f := up(t)
	f.register(f.addr)
	other := clustertest.Owned(f.table, c, "portal", 0)
	f.register(other)
	f.clock.Run(ms)
	f.accept()
	before := len(f.peers.Asks)
	f.claim.Accepted(b.Epoch)
	f.clock.Run(29 * ms)
	f.peers.Silent()
	f.clock.Run(ms)
	a, m, _ := f.take(f.addr)
	if a.To.Epoch != b.Epoch || m.CompleteFor.Empty() || len(f.peers.Asks) != before+1 {
		t.Fatalf("to %s: %+v", a.To, m)
	}
	for range 3 { // more connections meanwhile: one assertion is pending
		f.claim.Accepted(b.Epoch)
		f.clock.Run(100 * ms)
	}
	f.peers.Silent()
	a.Answer(f.landed(m))
	f.clock.Run(29 * ms)
	f.peers.Silent()
	f.clock.Run(ms)
	a, m, _ = f.take(f.addr)
	a.Answer(f.landed(m))
	f.clock.Run(time.Minute)
	f.peers.Silent()
	if f.claims(f.addr) != 3 || f.claims(other) != 1 {
		t.Fatalf("%d and %d claims", f.claims(f.addr), f.claims(other))
	}
}

// protocol §5
func TestConnectionsWithin30MillisecondsAreOneAssertion(t *testing.T) {
	f := up(t)
	f.register(f.addr)
	f.clock.Run(ms)
	f.accept()
	for range 10 {
		f.claim.Accepted(b.Epoch)
		f.clock.Run(2 * ms)
	}
	f.claim.Accepted(99) // in no view
	f.clock.Run(time.Second)
	if f.claims(f.addr) != 2 {
		t.Fatalf("%d claims", f.claims(f.addr))
	}
}

// protocol §5
func TestAConnectionOfASiloThatLeavesTheViewAssertsNothing(t *testing.T) {
	f := up(t)
	f.claim.Accepted(b.Epoch)
	f.apply(2, me, c)
	f.accept()
	f.clock.Run(time.Second)
	f.peers.Silent()
}

// C34 as amended: the owner that lost an acknowledged claim says so; a claim that is under way was not lost.
func TestOnlyAClaimThatWasAcknowledgedWithNoneUnderWayWasLost(t *testing.T) {
	f := up(t)
	h := f.register(f.addr)
	restored := func(from uint64, reg uint64) {
		m := wire.Restored{Addr: f.addr, Reg: reg}
		m.From = b.Epoch
		if from != 2 {
			m.From = c.Epoch
		}
		f.claim.Restored(m)
	}
	restored(2, h.Reg()) // before the first claim
	f.clock.Run(ms)
	restored(2, h.Reg()) // inside it
	f.accept()
	f.told()
	restored(3, h.Reg())   // not its owner
	restored(2, h.Reg()+1) // not its registration
	f.mustTell()
	restored(2, h.Reg())
	f.mustTell("lost " + f.addr + " at b")
	f.apply(2, me, b, c) // it is claimed again at the same owner, which has acknowledged it before
	restored(2, h.Reg())
	f.mustTell()
	f.accept()
	restored(2, h.Reg())
	f.mustTell("lost " + f.addr + " at b")
}

// C11, what /ready reads: an owner that does not take the claim again has it no more
func TestAClaimThatFailsAfterItHadLandedIsNotInUntilItLandsAgain(t *testing.T) {
	f := up(t)
	f.register(f.addr)
	f.clock.Run(ms)
	f.accept()
	f.apply(2, me, b, c)
	if f.claim.Landed() != 1 || f.claim.Counts().ProcessesLanded != 1 {
		t.Fatalf("while it is made again: %+v", f.claim.Counts())
	}
	a, _, _ := f.take(f.addr)
	a.Fail(errors.New("the connection was lost"))
	if s, _ := f.claim.State(f.addr); f.claim.Landed() != 0 || f.claim.Counts().ProcessesLanded != 0 || s.Landed != 0 {
		t.Fatalf("after it failed: %+v, %+v", f.claim.Counts(), s)
	}
	f.clock.Run(time.Second)
	f.accept()
	if f.claim.Landed() != 1 || f.claim.Counts().ProcessesLanded != 1 {
		t.Fatalf("after it landed again: %+v", f.claim.Counts())
	}
}

// protocol §5
func TestStateAndLandedTellWhatTheOwnersHaveAcknowledged(t *testing.T) {
	f := up(t)
	if _, ok := f.claim.State(f.addr); ok {
		t.Fatal("a state of nothing")
	}
	f.register(f.addr)
	f.register(clustertest.Owned(f.table, c, "portal", 0))
	f.clock.Run(ms)
	a, m, _ := f.take(f.addr)
	a.Answer(f.landed(m))
	if f.claim.Len() != 2 || f.claim.Landed() != 1 {
		t.Fatalf("%d of %d", f.claim.Landed(), f.claim.Len())
	}
	f.accept()
	if f.claim.Landed() != 2 {
		t.Fatalf("%d of %d", f.claim.Landed(), f.claim.Len())
	}
	f.claim.Activate(f.node, nil, func(claim.Outcome) {})
	if s, _ := f.claim.State(f.node); s.Phase != "claiming" || !s.Node {
		t.Fatalf("%+v", s)
	}
}
