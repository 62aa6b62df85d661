package route

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

// wagon is the process around a lane. Every answer is the test's.
type wagon struct {
	t     *testing.T
	clock *clustertest.Clock
	lane  *Lane[int]

	asked  []cluster.Question
	answer func(cluster.Resolution) // the open resolution; nil: none
	sent   []letter
	number uint64
	over   map[int]bool
	gone   map[membership.Epoch]bool
	ends   []string // what messages were told without having been executed
}

type letter struct {
	m    int
	to   wire.Entry
	lane uint64
	done func(Disposition)
}

func newWagon(t *testing.T, node bool) *wagon {
	w := &wagon{t: t, clock: &clustertest.Clock{}, over: map[int]bool{}, gone: map[membership.Epoch]bool{}}
	w.lane = NewLane(Carrier[int](w), "portal/1", node)
	return w
}

func (w *wagon) After(d time.Duration, f func()) { w.clock.After(d, f) }

func (w *wagon) Resolve(q cluster.Question, done func(cluster.Resolution)) {
	if w.answer != nil {
		w.t.Error("two resolutions at once")
	}
	w.asked = append(w.asked, q)
	w.answer = done
}

func (w *wagon) Send(to wire.Entry, lane uint64, i *Item[int]) {
	w.sent = append(w.sent, letter{i.Message(), to, lane, i.Returned})
}

func (w *wagon) Lose(m int) { w.ends = append(w.ends, fmt.Sprintf("%d lost", m)) }
func (w *wagon) Refuse(m int, r cluster.Refusal) {
	w.ends = append(w.ends, fmt.Sprintf("%d %s", m, r.Reason))
}
func (w *wagon) Over(m int) bool             { return w.over[m] }
func (w *wagon) Until(m int) time.Duration   { return time.Duration(m) * time.Second }
func (w *wagon) Reachable(e wire.Entry) bool { return !w.gone[e.Epoch] }
func (w *wagon) Lane() uint64                { w.number++; return w.number }

func (w *wagon) resolved(r cluster.Resolution) {
	w.t.Helper()
	if w.answer == nil {
		w.t.Fatal("nobody asks")
	}
	done := w.answer
	w.answer = nil
	done(r)
}

func to(epoch membership.Epoch, reg uint64) cluster.Resolution {
	return cluster.Resolution{Entry: &wire.Entry{Epoch: epoch, Reg: reg}}
}

func (w *wagon) refused(reason cluster.Reason) {
	w.t.Helper()
	w.resolved(cluster.Resolution{Refusal: cluster.Refusal{Reason: reason}})
}

// take returns the messages that were sent since the last call.
func (w *wagon) take() []letter {
	p := w.sent
	w.sent = nil
	return p
}

func numbers(ps []letter) []int {
	var out []int
	for _, p := range ps {
		out = append(out, p.m)
	}
	return out
}

func (w *wagon) mustSend(lane uint64, want ...int) []letter {
	w.t.Helper()
	ps := w.take()
	if !slices.Equal(numbers(ps), want) {
		w.t.Fatalf("sent %v, want %v", numbers(ps), want)
	}
	for _, p := range ps {
		if p.lane != lane {
			w.t.Fatalf("%d was sent on lane %d, want %d", p.m, p.lane, lane)
		}
	}
	return ps
}

func (w *wagon) mustBe(s LaneState) {
	w.t.Helper()
	got := w.lane.Describe()
	got.Target, got.Number = wire.Entry{}, 0
	if got != s {
		w.t.Fatalf("%+v, want %+v", got, s)
	}
}

func (w *wagon) mustEnd(want ...string) {
	w.t.Helper()
	if !slices.Equal(w.ends, want) {
		w.t.Fatalf("ended %q, want %q", w.ends, want)
	}
	w.ends = nil
}

// opened is a lane that is open to silo 2.
func opened(t *testing.T) *wagon {
	w := newWagon(t, false)
	w.lane.Submit(1)
	w.resolved(to(2, 1))
	w.mustSend(1, 1)[0].done(Answered)
	return w
}

// protocol §6; C30
func TestALaneResolvesOnceAndSendsInOrder(t *testing.T) {
	w := newWagon(t, true)
	w.mustBe(LaneState{State: "idle"})
	for m := 1; m <= 3; m++ {
		w.lane.Submit(m)
	}
	w.mustBe(LaneState{State: "resolving", Waiting: 3})
	if len(w.asked) != 1 || w.asked[0].Addr != "portal/1" || !w.asked[0].Node || w.asked[0].Until != time.Second {
		t.Fatalf("%+v", w.asked)
	}
	w.resolved(to(2, 1))
	ps := w.mustSend(1, 1, 2, 3)
	w.mustBe(LaneState{State: "open", Outstanding: 3})
	w.lane.Submit(4) // straight on; nothing waits for an answer
	ps = append(ps, w.mustSend(1, 4)...)
	for _, p := range ps {
		p.done(Answered)
	}
	if !w.lane.Idle() || len(w.asked) != 1 {
		t.Fatal("not idle, or asked again")
	}
	w.mustEnd()
}

// protocol §6; protocol §10: a burst across a move of the hub.
func TestTheFirstRefusalStopsTheLaneAndTheRefusedGoFirstInTheirOrder(t *testing.T) {
	w := newWagon(t, false)
	for m := 1; m <= 4; m++ {
		w.lane.Submit(m)
	}
	w.resolved(to(2, 1))
	ps := w.mustSend(1, 1, 2, 3, 4)
	ps[0].done(Answered)
	ps[3].done(Denied) // answers come in any order
	w.lane.Submit(5)
	w.mustBe(LaneState{State: "draining", Waiting: 1, Outstanding: 2, Refused: 1})
	ps[1].done(Denied)
	w.mustSend(0)
	if w.answer != nil {
		t.Fatal("it resolves while answers are outstanding")
	}
	ps[2].done(Denied)
	w.mustBe(LaneState{State: "draining", Waiting: 4})
	w.clock.Run(2 * time.Millisecond)
	w.mustBe(LaneState{State: "resolving", Waiting: 4})
	w.resolved(to(3, 7))
	w.mustSend(2, 2, 3, 4, 5)
	w.mustEnd()
}

// protocol §6; protocol §8: a stale report needs an explicit word of that very incarnation.
func TestOnlyADenialIsAStaleReport(t *testing.T) {
	for d, want := range map[Disposition]bool{Denied: true, Unsent: false, Lost: false} {
		w := opened(t)
		w.lane.Submit(2)
		w.lane.Submit(3)
		ps := w.mustSend(1, 2, 3)
		ps[0].done(d)
		ps[1].done(Unsent)
		w.clock.Run(time.Second)
		q := w.asked[len(w.asked)-1]
		if (q.Stale != nil) != want || want && (q.Stale.Epoch != 2 || q.Stale.Reg != 1) {
			t.Errorf("disposition %d: stale %+v", d, q.Stale)
		}
		w.resolved(to(3, 1))
		for _, p := range w.take() {
			p.done(Unsent)
		}
		asked := len(w.asked)
		w.clock.Run(time.Second)
		if q := w.asked[len(w.asked)-1]; len(w.asked) != asked+1 || q.Stale != nil {
			t.Errorf("disposition %d: reported a second time", d)
		}
	}
}

// protocol §6; protocol §9: a request that may have been executed is never sent again.
func TestALostMessageIsAnsweredAsLostAndNeverRepeated(t *testing.T) {
	w := opened(t)
	for m := 2; m <= 4; m++ {
		w.lane.Submit(m)
	}
	ps := w.mustSend(1, 2, 3, 4)
	ps[0].done(Lost)
	ps[1].done(Deferred)
	ps[2].done(Lost)
	w.mustEnd("2 lost", "4 lost")
	w.clock.Run(time.Second)
	w.resolved(to(3, 1))
	w.mustSend(2, 3)
}

// protocol §6; protocol §8: the joiner asks anew.
func TestAVerdictIsForThoseWhoWaitedWhenTheQuestionWasPut(t *testing.T) {
	w := newWagon(t, false)
	w.lane.Submit(1)
	w.lane.Submit(2) // the question had been put for 1 alone, at this very moment
	w.refused(cluster.NoEntry)
	w.mustEnd("1 no-entry")
	w.mustBe(LaneState{State: "resolving", Waiting: 1})
	w.lane.Submit(3)
	w.refused(cluster.Released)
	w.mustEnd("2 released")
	w.resolved(to(2, 1)) // it was registered meanwhile
	w.mustSend(1, 3)
}

// protocol §6
func TestTheBudgetOfAQuestionIsTheLongestOfThoseWhoWait(t *testing.T) {
	w := newWagon(t, false)
	w.lane.Submit(1)
	w.lane.Submit(9)
	w.lane.Submit(4)
	w.refused(cluster.NoEntry)
	if q := w.asked[1]; q.Until != 9*time.Second {
		t.Fatalf("%+v", q)
	}
}

// protocol §6; protocol §8: at most eight times.
// invariant 45
func TestAMessageThatIsRefusedMoreThanEightTimesIsAnswered(t *testing.T) {
	w := newWagon(t, false)
	w.lane.Submit(1)
	for range 9 {
		w.mustEnd()
		w.resolved(to(2, 1))
		ps := w.take()
		if !slices.Equal(numbers(ps), []int{1}) {
			t.Fatalf("sent %v", numbers(ps))
		}
		ps[0].done(Denied)
		w.clock.Run(time.Second)
	}
	w.mustEnd("1 unknown")
	if !w.lane.Idle() {
		t.Fatal("not idle")
	}
}

// protocol §6
func TestThePauseBetweenDrainsDoublesAndAnAnswerResetsIt(t *testing.T) {
	w := newWagon(t, false)
	w.lane.Submit(1)
	pause := func(want time.Duration) {
		t.Helper()
		w.resolved(to(2, 1))
		w.take()[0].done(Unsent)
		w.clock.Run(want - 1)
		if w.answer != nil {
			t.Fatalf("it resolves before %v", want)
		}
		w.clock.Run(1)
		if w.answer == nil {
			t.Fatalf("it does not resolve after %v", want)
		}
	}
	for _, d := range []time.Duration{2, 4, 8} {
		pause(d * time.Millisecond)
	}
	w.resolved(to(2, 1))
	w.take()[0].done(Answered)
	w.lane.Submit(2)
	w.take()[0].done(Unsent)
	w.clock.Run(2 * time.Millisecond)
	if w.answer == nil {
		t.Fatal("the pause is not short again")
	}
}

// protocol §6
func TestA4097thWaitingMessageIsRefusedAsOverloaded(t *testing.T) {
	w := newWagon(t, false)
	for m := 1; m <= maxLane; m++ {
		w.lane.Submit(m)
	}
	w.mustEnd()
	w.lane.Submit(maxLane + 1)
	w.mustEnd(fmt.Sprintf("%d overloaded", maxLane+1))
	w.resolved(to(2, 1))
	if ps := w.take(); len(ps) != maxLane {
		t.Fatalf("sent %d", len(ps))
	}
	w.lane.Submit(maxLane + 2) // outstanding ones are not in the queue
	w.mustSend(1, maxLane+2)
}

// protocol §6: a delivery whose budget is spent when its turn comes is not run.
func TestAMessageThatNobodyWaitsForIsNotSentAndNotAnsweredTwice(t *testing.T) {
	w := newWagon(t, false)
	w.lane.Submit(1)
	w.lane.Submit(2)
	w.over[1] = true
	w.resolved(to(2, 1))
	ps := w.mustSend(1, 2)
	w.over[2] = true
	ps[0].done(Lost)
	w.lane.Submit(3)
	w.clock.Run(time.Second)
	w.over[3] = true
	w.refused(cluster.NoEntry)
	w.mustEnd()
}

// fault 6; protocol §6
func TestATargetThatHasLeftTheViewIsResolvedAnewWhenNothingIsOutstanding(t *testing.T) {
	w := opened(t)
	w.gone[2] = true
	w.lane.Submit(2)
	w.mustSend(0)
	w.resolved(to(3, 1))
	w.mustSend(2, 2)

	w = opened(t) // a control: with something outstanding its end decides
	w.lane.Submit(2)
	p := w.mustSend(1, 2)[0]
	w.gone[2] = true
	w.lane.Submit(3)
	w.mustSend(1, 3)
	p.done(Lost)
	w.mustEnd("2 lost")
}

// protocol §6
func TestALaneMayBeForgottenOnlyWhenItHoldsNothing(t *testing.T) {
	w := newWagon(t, false)
	if !w.lane.Idle() {
		t.Fatal("a new lane holds nothing")
	}
	w.lane.Submit(1)
	if w.lane.Idle() {
		t.Fatal("it resolves")
	}
	w.resolved(to(2, 1))
	if w.lane.Idle() {
		t.Fatal("a message is outstanding")
	}
	w.take()[0].done(Unsent)
	if w.lane.Idle() {
		t.Fatal("it drains")
	}
	w.clock.Run(time.Second)
	w.refused(cluster.NoEntry)
	if !w.lane.Idle() {
		t.Fatal("everything has ended")
	}
}

// protocol §6: whoever is answered by a refusal may submit at once.
func TestAMessageSubmittedWhileTheLaneDrainsWaitsBehindTheRefused(t *testing.T) {
	w := opened(t)
	w.lane.Submit(2)
	w.lane.Submit(3)
	ps := w.mustSend(1, 2, 3)
	ps[0].done(Denied)
	for m := 4; m <= 6; m++ {
		w.lane.Submit(m)
	}
	w.mustSend(0)
	ps[1].done(Denied)
	w.clock.Run(2 * time.Millisecond)
	w.resolved(to(3, 1))
	w.mustSend(2, 2, 3, 4, 5, 6)
}

// C30, protocol §6: seed 1074 of the simulation
func TestAMessageThatWasNotSentIsAnsweredWhereALaterOneWasTaken(t *testing.T) {
	for end, again := range map[Disposition]bool{Unsent: false, Missing: false, Deferred: true, Denied: true} {
		w := opened(t)
		w.lane.Submit(5)
		w.lane.Submit(6)
		ps := w.mustSend(1, 5, 6)
		ps[0].done(end)
		ps[1].done(Answered)
		w.clock.Run(time.Second)
		if got := !slices.Contains(w.ends, "5 unknown"); got != again {
			t.Errorf("disposition %d: ended %q", end, w.ends)
		}
	}
}
