package membership_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

var errAway = errors.New("the table does not answer")

// town is a table of rows and the members behind them, in the hands of the test.
type town struct {
	clock   *clustertest.Clock
	rows    []membership.Row
	key     membership.Key
	away    bool                       // every call fails
	slow    time.Duration              // from the writing to the answer
	lost    bool                       // the answer to a join is lost after it was written
	deaf    map[membership.Epoch]error // members that do not answer a handshake
	reads   int
	beats   int
	joins   [][]membership.Epoch // the stale ones that each join named
	greeted []string
	votes   []string
	left    []string

	chosen []membership.Epoch
	joined []membership.Epoch
	viewed []membership.Key
	waits  error // why the last attempt to join came to nothing
	silo   *membership.Silo
}

func newTown(t *testing.T, rows ...membership.Row) *town {
	t.Helper()
	w := &town{clock: &clustertest.Clock{}, rows: rows, key: membership.Key{Timeline: 1, Number: 10}, deaf: map[membership.Epoch]error{}}
	w.silo = membership.NewSilo(w.clock, w, w, rand.New(rand.NewPCG(7, 7)), membership.DefaultTiming(), membership.Member{Name: "me", Addr: "me:1"}, membership.Events{
		Chosen: func(e membership.Epoch) { w.chosen = append(w.chosen, e) },
		Joined: func(e membership.Epoch, v *membership.View) {
			w.joined = append(w.joined, e)
			w.silo.Applied(v.Key())
		},
		Viewed:  func(v *membership.View) { w.viewed = append(w.viewed, v.Key()) },
		Waiting: func(err error) { w.waits = err },
	})
	return w
}

func row(m membership.Member, fresh bool) membership.Row {
	return membership.Row{Member: m, Fresh: fresh}
}

func (w *town) call(f func(), done func(error)) {
	away := w.away
	w.clock.After(0, func() {
		if away {
			done(errAway)
			return
		}
		f()
		w.clock.After(w.slow, func() { done(nil) })
	})
}

func (w *town) view() *membership.View {
	var members []membership.Member
	for _, r := range w.rows {
		members = append(members, r.Member)
	}
	return clustertest.ViewAt(w.key, members...)
}

func (w *town) Read(done func([]membership.Row, error)) {
	w.reads++
	w.call(func() {}, func(err error) { done(slices.Clone(w.rows), err) })
}

func (w *town) Join(m membership.Member, stale []membership.Epoch, done func(*membership.View, error)) {
	w.call(func() {
		w.joins = append(w.joins, stale)
		w.rows = slices.DeleteFunc(w.rows, func(r membership.Row) bool {
			return r.Name == m.Name || r.Addr == m.Addr || !r.Fresh && slices.Contains(stale, r.Epoch)
		})
		w.rows = append(w.rows, row(m, true))
		w.key.Number++
	}, func(err error) {
		if w.lost {
			err = errAway
		}
		done(w.view(), err)
	})
}

func (w *town) Beat(_ membership.Epoch, done func(membership.Key, error)) {
	w.beats++
	w.call(func() {}, func(err error) { done(w.key, err) })
}

func (w *town) View(done func(*membership.View, error)) {
	w.call(func() {}, func(err error) { done(w.view(), err) })
}

func (w *town) Vote(m membership.Member, _ membership.Epoch, done func(error)) {
	w.votes = append(w.votes, m.Name)
	w.call(func() {}, done)
}

func (w *town) Leave(self membership.Epoch, done func(*membership.View, error)) {
	w.left = append(w.left, "leaving")
	w.call(func() {
		for i := range w.rows {
			if w.rows[i].Epoch == self {
				w.rows[i].Leaving = true
			}
		}
		w.key.Number++
	}, func(err error) { done(w.view(), err) })
}

func (w *town) Gone(self membership.Epoch, done func(error)) {
	w.left = append(w.left, "gone")
	w.call(func() {
		w.rows = slices.DeleteFunc(w.rows, func(r membership.Row) bool { return r.Epoch == self })
		w.key.Number++
	}, done)
}

func (w *town) Greet(to membership.Member, within time.Duration, done func(error)) {
	w.greeted = append(w.greeted, to.Name)
	if err := w.deaf[to.Epoch]; err != nil {
		w.clock.After(within, func() { done(err) })
		return
	}
	w.clock.After(0, func() { done(nil) })
}

func (w *town) mustBe(t *testing.T, p membership.Phase) {
	t.Helper()
	if w.silo.Phase() != p {
		t.Fatalf("%s, want %s (joins %v, greeted %v)", w.silo.Phase(), p, w.joins, w.greeted)
	}
}

// protocol §2
func TestASiloJoinsOnceEveryMemberHasShakenItsHand(t *testing.T) {
	w := newTown(t, row(peer, true), row(clustertest.Leaving(third), true))
	w.silo.Start()
	w.clock.Flush()
	w.mustBe(t, membership.Up)
	if !slices.Equal(w.greeted, []string{"peer", "third"}) {
		t.Fatalf("greeted %v", w.greeted)
	}
	if len(w.chosen) != 1 || !slices.Equal(w.joined, w.chosen) || w.silo.Self() != w.chosen[0] || w.chosen[0] == 0 {
		t.Fatalf("chosen %v, joined %v", w.chosen, w.joined)
	}
}

// protocol §2
func TestTheFirstSiloJoinsAlone(t *testing.T) {
	w := newTown(t)
	w.silo.Start()
	w.clock.Flush()
	w.mustBe(t, membership.Up)
}

// protocol §2
func TestAFreshMemberThatDoesNotAnswerBlocksTheJoin(t *testing.T) {
	w := newTown(t, row(peer, true), row(third, true))
	w.deaf[third.Epoch] = errors.New("no answer")
	w.silo.Start()
	w.clock.Run(10 * time.Second)
	w.mustBe(t, membership.Joining)
	if len(w.joins) > 0 || w.reads < 7 {
		t.Fatalf("%d joins, %d attempts", len(w.joins), w.reads)
	}
	delete(w.deaf, third.Epoch)  // the way to it is there again
	w.clock.Run(5 * time.Second) // a handshake that began before takes up to four times the first bound
	w.mustBe(t, membership.Up)
}

// protocol §2
func TestAStaleMemberThatDoesNotAnswerIsRemovedByTheJoin(t *testing.T) {
	w := newTown(t, row(peer, true), row(third, false))
	w.deaf[third.Epoch] = errors.New("no answer")
	w.silo.Start()
	w.clock.Run(time.Second)
	w.mustBe(t, membership.Up)
	if len(w.joins) != 1 || !slices.Equal(w.joins[0], []membership.Epoch{third.Epoch}) {
		t.Fatalf("joins named %v", w.joins)
	}
}

// protocol §2
func TestAStaleMemberThatAnswersStays(t *testing.T) {
	w := newTown(t, row(third, false))
	w.silo.Start()
	w.clock.Flush()
	if len(w.joins) != 1 || len(w.joins[0]) != 0 || len(w.rows) != 2 {
		t.Fatalf("joins named %v, rows %v", w.joins, w.rows)
	}
}

// protocol §2
func TestARowAtTheOwnAddressIsReplacedAndNotGreeted(t *testing.T) {
	before := membership.Member{Name: "old", Epoch: 41, Addr: "me:1"}
	w := newTown(t, row(before, true))
	w.deaf[before.Epoch] = errors.New("it is dead")
	w.silo.Start()
	w.clock.Flush()
	w.mustBe(t, membership.Up)
	if len(w.greeted) > 0 || len(w.rows) != 1 || w.rows[0].Epoch != w.silo.Self() {
		t.Fatalf("greeted %v, rows %v", w.greeted, w.rows)
	}
}

// protocol §2
func TestARowWithTheOwnNameIsReplacedUnlessSomebodyAnswersThere(t *testing.T) {
	before := membership.Member{Name: "me", Epoch: 40, Addr: "elsewhere:1"}
	w := newTown(t, row(before, true))
	w.silo.Start()
	w.clock.Run(10 * time.Second)
	w.mustBe(t, membership.Joining)
	var taken *membership.NameError
	if len(w.rows) != 1 || w.rows[0].Epoch != before.Epoch || !errors.As(w.waits, &taken) || taken.Member.Addr != before.Addr {
		t.Fatalf("rows %v, waits for %v", w.rows, w.waits)
	}
	w.deaf[before.Epoch] = errors.New("it is dead")
	w.clock.Run(5 * time.Second)
	w.mustBe(t, membership.Up)
	if len(w.rows) != 1 || w.rows[0].Epoch != w.silo.Self() {
		t.Fatalf("rows %v", w.rows)
	}
}

// issue 5: a start that can not succeed says why
func TestAnAttemptToJoinThatComesToNothingSaysWhoStandsInTheWay(t *testing.T) {
	w := newTown(t, row(peer, true))
	w.deaf[peer.Epoch] = errors.New("another secret")
	w.silo.Start()
	w.clock.Run(2 * time.Second)
	var blocked *membership.BlockedError
	if !errors.As(w.waits, &blocked) || blocked.Member.Name != "peer" || !errors.Is(w.waits, w.deaf[peer.Epoch]) {
		t.Fatalf("waits for %v", w.waits)
	}
	w.away = true
	w.clock.Run(2 * time.Second)
	if !errors.Is(w.waits, errAway) {
		t.Fatalf("waits for %v", w.waits)
	}
}

// protocol §1
func TestEachJoinThatTheTableMayHaveSeenHasAnEpochOfItsOwnThatIsNoCounter(t *testing.T) {
	w := newTown(t, row(peer, true))
	w.lost = true
	w.silo.Start()
	w.clock.Run(20 * time.Second)
	seen := map[membership.Epoch]bool{}
	for i, e := range w.chosen {
		if seen[e] || i > 0 && e == w.chosen[i-1]+1 {
			t.Fatalf("epochs %v", w.chosen)
		}
		seen[e] = true
	}
	if len(seen) < 10 || len(w.joins) != len(seen) {
		t.Fatalf("%d epochs for %d joins", len(seen), len(w.joins))
	}
}

// protocol §2: on a starved machine the connections that one attempt has opened serve the next
func TestAttemptsThatComeToNothingBeforeTheTableIsAskedShareTheirEpoch(t *testing.T) {
	w := newTown(t, row(peer, true))
	w.deaf[peer.Epoch] = errors.New("no answer")
	w.silo.Start()
	w.clock.Run(20 * time.Second)
	if len(w.greeted) < 10 || len(w.chosen) != 1 {
		t.Fatalf("%d handshakes under %d epochs", len(w.greeted), len(w.chosen))
	}
	delete(w.deaf, peer.Epoch)
	w.clock.Run(2 * time.Second)
	w.mustBe(t, membership.Up)
	if len(w.chosen) != 1 || w.silo.Self() != w.chosen[0] {
		t.Errorf("chosen %v, joined as %v", w.chosen, w.silo.Self())
	}
	w.rows, w.key.Number = w.rows[:1], w.key.Number+1
	w.silo.Evicted()
	w.clock.Run(time.Second)
	if len(w.chosen) != 2 || w.silo.Self() != w.chosen[1] {
		t.Errorf("after an eviction: chosen %v, joined as %v", w.chosen, w.silo.Self())
	}
}

// protocol §2
func TestAJoinWhoseAnswerWasLostIsReplacedByTheNextAttempt(t *testing.T) {
	w := newTown(t)
	w.lost = true
	w.silo.Start()
	w.clock.Flush()
	w.mustBe(t, membership.Joining)
	w.lost = false
	w.clock.Run(300 * time.Millisecond)
	w.mustBe(t, membership.Up)
	if len(w.rows) != 1 || w.rows[0].Epoch != w.silo.Self() {
		t.Fatalf("rows %v, self %v", w.rows, w.silo.Self())
	}
}

// protocol §2
func TestASiloWaitsForATableThatIsAway(t *testing.T) {
	w := newTown(t, row(peer, true))
	w.away = true
	w.silo.Start()
	w.clock.Run(10 * time.Second)
	w.mustBe(t, membership.Joining)
	if w.reads < 30 || w.reads > 101 {
		t.Fatalf("%d attempts in 10 s, want one each 100 to 300 ms", w.reads)
	}
	w.away = false
	w.clock.Run(300 * time.Millisecond)
	w.mustBe(t, membership.Up)
}

// protocol §2
func TestTheHeartbeatFindsAViewWhoseNotificationWasLost(t *testing.T) {
	w := newTown(t)
	w.silo.Start()
	w.clock.Flush()
	w.clock.Run(3 * time.Second)
	if len(w.viewed) > 0 {
		t.Fatalf("viewed %v though nothing has changed", w.viewed)
	}
	w.rows, w.key.Number = append(w.rows, row(peer, true)), w.key.Number+1 // nobody is told
	w.clock.Run(time.Second)
	if len(w.viewed) != 1 || w.viewed[0] != w.key {
		t.Fatalf("viewed %v, want %v within a heartbeat", w.viewed, w.key)
	}
	w.silo.Applied(w.key)
	w.clock.Run(3 * time.Second)
	if len(w.viewed) != 1 {
		t.Fatal("read again though nothing has changed since")
	}
}

// protocol §2
func TestANumberThatComesBackAfterAFailoverIsFoundByTheHeartbeat(t *testing.T) {
	w := newTown(t)
	w.silo.Start()
	w.clock.Flush()
	w.key = membership.Key{Timeline: 2, Number: w.key.Number - 3}
	w.clock.Run(time.Second)
	if len(w.viewed) != 1 || w.viewed[0] != w.key {
		t.Fatalf("viewed %v", w.viewed)
	}
}

// protocol §8
func TestAnEvictedSiloJoinsAnewOnlyAfterItHasShakenHandsAgain(t *testing.T) {
	w := newTown(t, row(peer, true))
	w.silo.Start()
	w.clock.Flush()
	first := w.silo.Self()
	w.deaf[peer.Epoch] = errors.New("cut off")
	w.silo.Evicted()
	if w.silo.Self() != 0 {
		t.Fatal("an evicted silo has no epoch")
	}
	w.clock.Run(8 * time.Second)
	w.mustBe(t, membership.Joining)
	delete(w.deaf, peer.Epoch)
	w.clock.Run(1500 * time.Millisecond)
	w.mustBe(t, membership.Up)
	if s := w.silo.Self(); s == 0 || s == first {
		t.Fatalf("epoch %v after %v", s, first)
	}
}

// protocol §2
func TestAnEvictionWhileAJoinIsUnderWayDoesNotJoinTwice(t *testing.T) {
	w := newTown(t)
	w.silo.Start()
	w.clock.Flush()
	w.silo.Evicted()
	w.clock.Run(time.Second)
	w.mustBe(t, membership.Up)
	if len(w.joined) != 2 || len(w.joins) != 2 {
		t.Fatalf("joined %v in %d joins", w.joined, len(w.joins))
	}
}

// protocol §2
func TestOnlyAMemberVotesAndNeverAgainstItself(t *testing.T) {
	w := newTown(t, row(peer, true))
	w.deaf[peer.Epoch] = errors.New("no answer")
	w.silo.Start()
	w.silo.Vote(peer) // it is joining
	delete(w.deaf, peer.Epoch)
	w.clock.Run(2 * time.Second)
	w.mustBe(t, membership.Up)
	w.silo.Vote(membership.Member{Name: "me", Epoch: w.silo.Self()})
	w.silo.Vote(peer)
	if !slices.Equal(w.votes, []string{"peer"}) {
		t.Fatalf("votes %v", w.votes)
	}
	w.silo.Leave(func(*membership.View) {})
	w.clock.Flush()
	w.silo.Vote(peer) // it is leaving
	if len(w.votes) != 1 {
		t.Fatalf("votes %v", w.votes)
	}
}

// protocol §8
func TestASiloLeavesByAViewThatSaysSoAndGoesOnlyAfterIt(t *testing.T) {
	w := newTown(t, row(peer, true))
	w.silo.Start()
	w.clock.Flush()
	refused := false
	w.silo.Gone(func(err error) { refused = err != nil })
	if !refused || len(w.left) > 0 {
		t.Fatal("a silo that does not leave is not gone")
	}
	var v *membership.View
	w.silo.Leave(func(got *membership.View) { v = got })
	w.clock.Flush()
	w.mustBe(t, membership.Leaving)
	if m, ok := v.Member(w.silo.Self()); !ok || !m.Leaving {
		t.Fatalf("the view %v does not say that it leaves", v)
	}
	w.silo.Gone(func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
	w.clock.Flush()
	w.mustBe(t, membership.Left)
	if !slices.Equal(w.left, []string{"leaving", "gone"}) || len(w.rows) != 1 {
		t.Fatalf("%v, rows %v", w.left, w.rows)
	}
	before := w.clock.Timers()
	w.clock.Run(5 * time.Second)
	if before > 1 || w.clock.Timers() > 0 {
		t.Fatal("a silo that has left keeps a heartbeat")
	}
}

// protocol §8
func TestASiloThatLeavesWhileTheTableIsAwayIsToldToTellTheMeshItself(t *testing.T) {
	w := newTown(t, row(peer, true))
	w.silo.Start()
	w.clock.Flush()
	w.away = true
	told := 0
	w.silo.Leave(func(v *membership.View) {
		told++
		if v != nil {
			t.Errorf("a view %v from a table that is away", v)
		}
	})
	w.clock.Flush()
	w.mustBe(t, membership.Leaving)
	w.silo.Gone(func(err error) {
		told++
		if !errors.Is(err, errAway) {
			t.Error(err)
		}
	})
	w.clock.Flush()
	w.mustBe(t, membership.Left)
	if told != 2 {
		t.Fatalf("told %d times", told)
	}
}

// protocol §2
func TestASiloThatIsEvictedWhileItLeavesHasLeft(t *testing.T) {
	w := newTown(t, row(peer, true))
	w.silo.Start()
	w.clock.Flush()
	w.silo.Leave(func(*membership.View) {})
	w.clock.Flush()
	w.silo.Evicted()
	w.clock.Run(5 * time.Second)
	w.mustBe(t, membership.Left)
	if len(w.joins) != 1 {
		t.Fatal("it came back")
	}
	gone := errors.New("not told")
	w.silo.Gone(func(err error) { gone = err })
	if gone != nil {
		t.Errorf("its row is gone already, and it is told %v", gone)
	}
}

// protocol §2
func TestASiloThatIsToldToLeaveWhileItJoinsJoinsNoMoreAndLeavesNoRow(t *testing.T) {
	for _, asked := range []bool{false, true} { // the table has been asked to take it in
		w := newTown(t, row(peer, true))
		w.deaf[peer.Epoch] = errors.New("no answer")
		w.silo.Start()
		w.clock.Run(time.Second)
		if asked {
			w.slow = 50 * time.Millisecond
			delete(w.deaf, peer.Epoch)
			for len(w.joins) == 0 && w.clock.Next(time.Minute) { // up to the moment at which the row is written

			}
		}
		told := errors.New("not told")
		w.silo.Leave(func(v *membership.View) {
			w.silo.Gone(func(err error) { told = err })
		})
		w.clock.Run(5 * time.Second)
		w.mustBe(t, membership.Left)
		if told != nil || len(w.joined) > 0 || len(w.rows) != 1 {
			t.Errorf("asked %v: told %v, joined %v, rows %v", asked, told, w.joined, w.rows)
		}
	}
}

// protocol §2
func TestAnEvictionThatOvertakesTheAnswerToALeaveAnswersItWithNoView(t *testing.T) {
	w := newTown(t, row(peer, true))
	w.silo.Start()
	w.clock.Flush()
	told := 0
	w.silo.Leave(func(v *membership.View) {
		told++
		if v != nil {
			t.Errorf("a view %v of another life", v)
		}
	})
	w.silo.Evicted()
	w.clock.Run(5 * time.Second)
	w.mustBe(t, membership.Left)
	if told != 1 || len(w.joins) != 1 {
		t.Fatalf("told %d times, joined %d times", told, len(w.joins))
	}
}

func TestPhasesHaveNames(t *testing.T) {
	for p, want := range map[membership.Phase]string{membership.Joining: "joining", membership.Up: "up", membership.Leaving: "leaving", membership.Left: "left"} {
		if p.String() != want {
			t.Errorf("%s, want %s", p, want)
		}
	}
}
