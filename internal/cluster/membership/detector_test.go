package membership_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

const ms = time.Millisecond

var (
	me    = clustertest.Silo("me", 1)
	peer  = clustertest.Silo("peer", 2)
	third = clustertest.Silo("third", 3)
)

// links are connections that the test answers for.
type links struct {
	clock *clustertest.Clock
	d     *membership.Detector
	delay time.Duration // of a pong
	mute  bool          // no pong comes
	pong  membership.Pong
	dial  error // what a dial ends with

	dials, pings []time.Duration
	suspects     []bool
	drops        []time.Duration
	votes        []time.Duration
	votedFor     []string
	forgotten    int
	differs      []membership.Key
}

func (l *links) Dial(m membership.Member, done func(error)) {
	l.dials = append(l.dials, l.clock.Now())
	l.clock.After(0, func() {
		if l.dial == nil {
			l.d.Connected(m)
		} else {
			l.d.Failed(m)
		}
		done(l.dial)
	})
}

func (l *links) Ping(_ membership.Member, pong func(membership.Pong)) {
	l.pings = append(l.pings, l.clock.Now())
	if is := l.pong; !l.mute {
		l.clock.After(l.delay, func() { pong(is) })
	}
}

func (l *links) Differs(_ membership.Member, theirs membership.Key) {
	l.differs = append(l.differs, theirs)
}

func (l *links) Forget(membership.Member) { l.forgotten++ }

func (l *links) Suspect(_ membership.Member, on bool) { l.suspects = append(l.suspects, on) }

func (l *links) Drop(m membership.Member, cause error) {
	if cause == nil {
		panic("a connection is closed for a reason")
	}
	l.drops = append(l.drops, l.clock.Now())
}

// watching is a detector that judges peer in a view with me, and has a connection to it.
func watching(t *testing.T) (*clustertest.Clock, *links, *membership.Detector) {
	t.Helper()
	c := &clustertest.Clock{}
	l := &links{clock: c}
	l.d = membership.NewDetector(c, l, membership.DefaultPace(), func(m membership.Member) {
		l.votes = append(l.votes, c.Now())
		l.votedFor = append(l.votedFor, m.Name)
	})
	l.d.Apply(clustertest.View(1, me, peer), me.Epoch)
	l.d.Connected(peer)
	l.d.Start()
	t.Cleanup(l.d.Stop)
	return c, l, l.d
}

// protocol §7
func TestASilentPeerIsSuspectedThenVotedAgainstThenClosed(t *testing.T) {
	c, l, d := watching(t)
	l.mute = true // the last sign of life is that of the connection, at 0
	c.Run(600 * ms)
	if d.Suspected(peer.Epoch) {
		t.Fatal("suspect at 600 ms; it is suspect after them")
	}
	c.Run(300 * ms)
	if !d.Suspected(peer.Epoch) || !slices.Equal(l.suspects, []bool{true}) {
		t.Fatal("not suspect at the tick after 600 ms, or told more than once")
	}
	c.Run(300 * ms) // 1.2 s
	if len(l.votes) > 0 {
		t.Fatalf("voted at %v, not after 1.2 s", l.votes)
	}
	c.Run(300 * ms) // 1.5 s
	if !slices.Equal(l.votes, []time.Duration{1500 * ms}) || len(l.drops) > 0 {
		t.Fatalf("votes at %v, closed at %v", l.votes, l.drops)
	}
	c.Run(300 * ms) // 1.8 s
	if !slices.Equal(l.drops, []time.Duration{1800 * ms}) || !slices.Equal(l.dials, []time.Duration{1800 * ms}) {
		t.Fatalf("closed at %v and dialled at %v, want both at the tick after 1.5 s", l.drops, l.dials)
	}
}

// protocol §2
func TestPingsGoEvery300MillisecondsOnTheConnectionThatWasDialled(t *testing.T) {
	c, l, _ := watching(t)
	c.Run(1200 * ms)
	if !slices.Equal(l.pings, []time.Duration{300 * ms, 600 * ms, 900 * ms, 1200 * ms}) {
		t.Fatalf("pings at %v", l.pings)
	}
}

// protocol §2
func TestADelayOf300MillisecondsRefusesNobody(t *testing.T) {
	c, l, d := watching(t)
	l.delay = 300 * ms // the age at a tick is up to 600 ms, which one ping's round trip would not forgive
	for range 40 {
		c.Run(300 * ms)
		if d.Suspected(peer.Epoch) {
			t.Fatalf("suspect at %v", c.Now())
		}
	}
	if len(l.votes)+len(l.drops) > 0 {
		t.Fatalf("votes %v, drops %v", l.votes, l.drops)
	}
}

// protocol §7
func TestAPongEndsTheSuspicion(t *testing.T) {
	c, l, d := watching(t)
	l.mute = true
	c.Run(1000 * ms)
	l.mute = false
	c.Run(300 * ms)
	if d.Suspected(peer.Epoch) || !slices.Equal(l.suspects, []bool{true, false}) || len(l.votes) > 0 {
		t.Fatalf("suspicions %v, votes %v", l.suspects, l.votes)
	}
	if age, ok := d.Age(peer.Epoch); !ok || age > 300*ms {
		t.Fatalf("age %v, %v", age, ok)
	}
}

// protocol §2
func TestAPauseOfOnesOwnResetsTheAgesAndCastsNoVote(t *testing.T) {
	c, l, d := watching(t)
	l.delay = 10 * ms
	c.Run(300 * ms)
	c.Freeze(3 * time.Second) // pongs came meanwhile, or did not: this process cannot know
	c.Flush()
	if len(l.votes)+len(l.drops) > 0 || d.Suspected(peer.Epoch) {
		t.Fatalf("after a pause: votes %v, drops %v, suspect %v", l.votes, l.drops, d.Suspected(peer.Epoch))
	}
	if age, _ := d.Age(peer.Epoch); age != 0 {
		t.Fatalf("age %v after a pause", age)
	}
	l.mute = true // a control: the same peer is judged again from here on
	c.Run(1500 * ms)
	if len(l.votes) == 0 || !d.Suspected(peer.Epoch) {
		t.Fatal("silence after the pause is not judged")
	}
}

// protocol §2; protocol §10
func TestAFailedDialCountsWhoeverAskedForIt(t *testing.T) {
	_, l, d := watching(t)
	d.Failed(peer) // a claim had wanted the connection
	if !slices.Equal(l.votedFor, []string{"peer"}) {
		t.Fatalf("votes for %v", l.votedFor)
	}
	d.Failed(third) // in no view
	d.Failed(clustertest.Silo("peer", 99))
	d.Failed(me)
	if len(l.votes) != 1 {
		t.Fatalf("voted for %v, of whom only peer can be voted out", l.votedFor)
	}
}

// protocol §10
func TestADialThatAClaimBeganFeedsTheDetectorThoughItsOwnTimersAreAligned(t *testing.T) {
	c, l, d := watching(t)
	l.mute, l.dial = true, errors.New("refused")
	d.Broken(peer)
	c.Run(0)
	after := len(l.votes)
	c.Freeze(2 * time.Second)
	d.Failed(peer) // begun by the claims of a new view at the very moment at which everything wakes up
	c.Flush()
	if len(l.votes) <= after {
		t.Fatal("the dial that a claim began fed nothing")
	}
}

// protocol §7
func TestABrokenConnectionIsRedialledAtOnceAndAfter20And50And100Milliseconds(t *testing.T) {
	c, l, d := watching(t)
	d.Broken(peer)
	c.Run(200 * ms)
	if want := []time.Duration{0, 20 * ms, 70 * ms, 170 * ms}; !slices.Equal(l.dials, want) {
		t.Fatalf("dials at %v, want %v", l.dials, want)
	}
}

// protocol §7
func TestAFailedRedialEndsTheSeriesAndVotes(t *testing.T) {
	c, l, d := watching(t)
	l.dial = errors.New("refused")
	d.Broken(peer)
	c.Run(200 * ms)
	if len(l.dials) != 1 || len(l.votes) != 1 {
		t.Fatalf("dials at %v, votes at %v", l.dials, l.votes)
	}
	c.Run(300 * ms) // the tick dials, and votes, again
	if len(l.dials) != 2 || len(l.votes) != 2 {
		t.Fatalf("dials at %v, votes at %v", l.dials, l.votes)
	}
}

// protocol §7
func TestAMemberThatLeftTheViewIsNotRedialled(t *testing.T) {
	c, l, d := watching(t)
	d.Broken(peer)
	d.Apply(clustertest.View(2, me), me.Epoch)
	c.Run(time.Second)
	if len(l.dials) > 0 {
		t.Fatalf("dials at %v", l.dials)
	}
}

// protocol §7
func TestAMemberWithoutAConnectionIsDialledOnceAtATime(t *testing.T) {
	c, l, d := watching(t)
	d.Apply(clustertest.View(2, me, peer, third), me.Epoch)
	hung := &hanging{links: l}
	d2 := membership.NewDetector(c, hung, membership.DefaultPace(), func(membership.Member) {})
	d2.Apply(clustertest.View(2, me, third), me.Epoch)
	d2.Start()
	defer d2.Stop()
	c.Run(2 * time.Second)
	if hung.asked != 1 {
		t.Fatalf("%d dials while the first is under way", hung.asked)
	}
	if len(l.dials) != 1 {
		t.Fatalf("third was dialled at %v, want once", l.dials)
	}
}

// hanging dials for ever.
type hanging struct {
	*links
	asked int
}

func (h *hanging) Dial(membership.Member, func(error)) { h.asked++ }

// A write in flight to a silo that was put out waits for no more than one to a member.
// protocol §7
func TestAConnectionToASilentOutsiderIsClosedAsOneToAMemberAndForgotten(t *testing.T) {
	c, l, d := watching(t)
	l.mute = true
	d.Apply(clustertest.View(2, me), me.Epoch)
	c.Run(1500 * ms)
	if len(l.drops) > 0 {
		t.Fatalf("closed at %v", l.drops)
	}
	c.Run(300 * ms)
	if len(l.drops) != 1 || len(l.votes) > 0 || len(l.dials) > 0 {
		t.Fatalf("closed at %v, votes %v, dials %v", l.drops, l.votes, l.dials)
	}
	c.Run(300 * ms)
	if _, ok := d.Age(peer.Epoch); ok {
		t.Fatal("it is remembered")
	}
}

// protocol §2
func TestASiloDoesNotJudgeItself(t *testing.T) {
	c, l, d := watching(t)
	d.Apply(clustertest.View(2, me), me.Epoch)
	d.Broken(me)
	c.Run(3 * time.Second)
	if slices.Contains(l.votedFor, "me") || len(l.dials) > 0 {
		t.Fatalf("votes %v, dials %v", l.votedFor, l.dials)
	}
}

// protocol §7
func TestADetectorThatWasStoppedDoesNothing(t *testing.T) {
	c, l, d := watching(t)
	c.Run(300 * ms)
	d.Stop()
	n := len(l.pings)
	c.Run(5 * time.Second)
	if len(l.pings) != n {
		t.Fatal("it pings")
	}
}

// decision 3: loads come with the pongs
func TestALoadIsThatOfTheLastPongAndOfWhatWasPlacedSince(t *testing.T) {
	c, l, d := watching(t)
	if n, known := d.Load(peer.Epoch); known {
		t.Fatalf("%d before the first pong", n)
	}
	d.Placed(peer.Epoch) // of what is not known nothing is counted
	l.pong.Load = 7
	c.Run(300 * ms)
	d.Placed(peer.Epoch)
	d.Placed(peer.Epoch)
	if n, known := d.Load(peer.Epoch); !known || n != 9 {
		t.Fatalf("%d, %v", n, known)
	}
	c.Run(300 * ms)
	if n, _ := d.Load(peer.Epoch); n != 7 {
		t.Fatalf("%d", n)
	}
	l.mute = true
	c.Run(900 * ms)
	if n, known := d.Load(peer.Epoch); known {
		t.Fatalf("%d of a suspect peer", n)
	}
	if _, known := d.Load(99); known {
		t.Fatal("of nobody")
	}
}

// protocol §2: what was held against peers does not keep a silo from shaking hands with them
func TestASiloThatOpensItsConnectionsAnewSuspectsNobody(t *testing.T) {
	c, l, d := watching(t)
	l.mute = true
	c.Run(900 * ms)
	if !d.Suspected(peer.Epoch) {
		t.Fatal("the control: not suspect")
	}
	d.Renew()
	if d.Suspected(peer.Epoch) || !slices.Equal(l.suspects, []bool{true, false}) {
		t.Errorf("suspects %v", l.suspects)
	}
	if _, known := d.Age(peer.Epoch); known {
		t.Error("a connection that was closed has an age")
	}
	l.mute, l.dials = false, nil
	c.Run(600 * ms)
	if len(l.dials) != 1 || len(l.votes) > 0 {
		t.Errorf("dialled at %v, voted at %v", l.dials, l.votes)
	}
}
