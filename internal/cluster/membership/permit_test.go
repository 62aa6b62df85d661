package membership_test

import (
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

// permitted is a detector whose peer tells at each ping that it hears this silo.
func permitted(t *testing.T) (*clustertest.Clock, *links, *membership.Detector) {
	t.Helper()
	c, l, d := watching(t)
	l.pong = membership.Pong{Key: membership.Key{Timeline: 1, Number: 1}, Hears: true, Heard: 100 * ms}
	c.Run(300 * ms)
	return c, l, d
}

// promised is until when the first pong of [permitted] lets it answer: its ping went at 300 ms, and its sender had heard
// this silo 100 ms before.
const promised = 300*ms - 100*ms + 1200*ms

func until(t *testing.T, d *membership.Detector, want time.Duration) {
	t.Helper()
	if !d.Permit().Valid(want-1) || d.Permit().Valid(want) {
		t.Errorf("it may answer at %v: %v, and at %v: %v", want-1, d.Permit().Valid(want-1), want, d.Permit().Valid(want))
	}
}

// decision 1: what a peer permits ends before it can vote, whenever its pong arrives
func TestAPongPermitsToAnswerUntilItsSenderMayVote(t *testing.T) {
	c, l, d := permitted(t)
	until(t, d, promised)
	l.delay = 500 * ms // it lies in a socket
	c.Run(300 * ms)
	l.mute = true
	c.Run(600 * ms)
	until(t, d, 600*ms-100*ms+membership.DefaultPace().Vote) // time counts from the ping
}

// decision 1; faults: a process that stood still answers nothing old when it goes on
func TestAnAnswerThatLayWaitingWhileTheSiloStoodStillPermitsNothing(t *testing.T) {
	for _, pause := range []time.Duration{1600 * ms, 30 * time.Second} {
		c, l, d := permitted(t)
		l.delay = pause // the pong of the last ping is read when the process goes on
		c.Run(300 * ms)
		l.mute = true
		c.Run(pause + ms)
		if now := c.Now(); d.Permit().Valid(now) {
			t.Errorf("after a pause of %v, at %v: permitted by a pong from before", pause, now)
		}
		l.mute, l.delay = false, 0
		c.Run(300 * ms)
		if !d.Permit().Valid(c.Now()) {
			t.Errorf("after %v: the peer answers, and nothing is permitted", pause)
		}
	}
}

// decision 1
func TestAPeerWithANewerViewPermitsNothingAndSaysSo(t *testing.T) {
	c, l, d := permitted(t)
	l.pong.Key.Number++
	c.Run(600 * ms)
	until(t, d, promised)
	if len(l.differs) == 0 || l.differs[0] != l.pong.Key {
		t.Errorf("told %v", l.differs)
	}
	d.Apply(clustertest.View(2, me, peer), me.Epoch) // it was the coming of another silo
	c.Run(300 * ms)
	until(t, d, promised+900*ms)
}

// decision 1
func TestAPeerThatHasNoConnectionToThisSiloPermitsNothing(t *testing.T) {
	c, l, d := permitted(t)
	l.pong.Hears = false
	c.Run(600 * ms)
	until(t, d, promised)
}

// decision 1: whoever cannot be reached any more may vote at once
func TestABrokenConnectionEndsWhatItsPeerHasPromised(t *testing.T) {
	c, _, d := permitted(t)
	d.Broken(peer)
	if d.Permit().Valid(c.Now()) {
		t.Fatal("permitted by a peer whose connection is broken")
	}
}

// decision 1: two votes put a silo out, so all the others but one have to promise
func TestAllTheOthersButOneHaveToPromise(t *testing.T) {
	fourth := clustertest.Silo("fourth", 4)
	p := membership.NewPermit(1200 * ms)
	says := membership.Pong{Key: membership.Key{Timeline: 1, Number: 1}, Hears: true}
	wants := func(view *membership.View, until time.Duration) {
		t.Helper()
		p.Apply(view, me.Epoch)
		if !p.Valid(until-1) || p.Valid(until) {
			t.Errorf("of %d not until %v", len(view.Members()), until)
		}
	}
	p.Apply(clustertest.View(1, me, peer, third, fourth), me.Epoch)
	p.Heard(peer.Epoch, 100*ms, says)
	p.Heard(third.Epoch, 300*ms, says)
	p.Heard(fourth.Epoch, 200*ms, says)
	p.Heard(fourth.Epoch, 150*ms, says) // a pong that was overtaken takes nothing back
	wants(clustertest.View(1, me, peer, third, fourth), 1400*ms)
	wants(clustertest.View(1, me, peer, fourth), 1400*ms)
	wants(clustertest.View(1, me, peer), 1300*ms)
	p.Apply(clustertest.View(1, me, third, fourth), me.Epoch) // neither has promised anything that counts
	if p.Valid(0) {
		t.Error("promises of those that were no members in between count")
	}
}

// decision 1: a vote counts for a while, whatever its caster hears since
func TestWhoHasVotedPromisesNothingWhileTheVoteMayCount(t *testing.T) {
	c, l, d := watching(t)
	c.Run(600 * ms)
	if age, ok := d.Promise(peer.Epoch); !ok || age != 0 {
		t.Fatalf("heard %v before, promised: %v", age, ok)
	}
	l.mute = true
	c.Run(1500 * ms)
	if len(l.votes) != 1 {
		t.Fatalf("the control: voted at %v", l.votes)
	}
	l.mute = false
	c.Run(600 * ms)
	if _, ok := d.Age(peer.Epoch); !ok {
		t.Fatal("the control: not heard again")
	}
	if _, ok := d.Promise(peer.Epoch); ok {
		t.Error("promised 0.6 s after the vote")
	}
	c.Run(membership.VoteFor + 3*time.Second)
	if _, ok := d.Promise(peer.Epoch); !ok {
		t.Error("not promised once the vote is forgotten")
	}
}

// decision 1
func TestASiloThatIsAloneInItsViewNeedsNoPermitAndOneThatIsPutOutHasNone(t *testing.T) {
	c, l, d := permitted(t)
	l.mute = true
	d.Apply(clustertest.View(2, me), me.Epoch)
	c.Run(time.Hour)
	if !d.Permit().Valid(c.Now()) {
		t.Error("alone, and not permitted")
	}
	d.Apply(clustertest.View(3, peer), 0)
	if d.Permit().Valid(c.Now()) {
		t.Error("put out of a view of one, and permitted")
	}
}

// decision 1
func TestWhoIsNoMemberAnyMorePermitsNothing(t *testing.T) {
	c, _, d := permitted(t)
	d.Apply(clustertest.View(2, me, third), me.Epoch)
	if d.Permit().Valid(c.Now()) {
		t.Error("permitted by a silo that was put out")
	}
}

// decided tells whether a confirmation is there, and what it says.
func decided(c *membership.Confirmation) (in, done bool) {
	select {
	case <-c.Done():
		return c.In(), true
	default:
		return false, false
	}
}

// decision 1
func TestAConfirmationIsOfATimeAfterItWasAskedForAndSharedByAllWhoAskMeanwhile(t *testing.T) {
	w := newTown(t)
	w.silo.Start()
	w.clock.Run(100 * ms)
	w.mustBe(t, membership.Up)
	w.beats = 0
	first := w.silo.Confirm()
	second, third := w.silo.Confirm(), w.silo.Confirm() // the one on its way may have been answered already
	if second == first || second != third || w.beats != 1 {
		t.Fatalf("%d heartbeats; shared: %v %v", w.beats, second == first, second == third)
	}
	w.clock.Run(10 * ms)
	for i, c := range []*membership.Confirmation{first, second} {
		if in, done := decided(c); !in || !done {
			t.Errorf("confirmation %d: in %v, done %v", i, in, done)
		}
	}
	if w.beats != 2 {
		t.Errorf("%d heartbeats", w.beats)
	}
}

// decision 1
func TestNothingIsConfirmedToWhoIsPutOutOrAsksInVain(t *testing.T) {
	w := newTown(t)
	w.silo.Start()
	w.clock.Run(100 * ms)
	ask := func(what string, want bool) {
		t.Helper()
		c := w.silo.Confirm()
		w.clock.Run(20 * ms)
		if in, done := decided(c); in != want || !done {
			t.Errorf("%s: in %v, done %v", what, in, done)
		}
	}
	w.away = true
	ask("the table is away", false)
	w.away = false
	ask("it is back", true)
	w.key.Number++ // somebody has come
	ask("the view is another one, with this silo", true)
	w.rows, w.key.Number = nil, w.key.Number+1
	ask("it was put out", false)
	w.silo.Evicted()
	if in, done := decided(w.silo.Confirm()); in || !done {
		t.Errorf("while it joins: in %v, done %v", in, done)
	}
}
