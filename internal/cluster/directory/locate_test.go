package directory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/directory"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

func (f *fixture) ask(addr string, of ...membership.Member) *[]directory.Found {
	var got []directory.Found
	f.locator.Locate(wire.LocateItem{Addr: addr}, func() []membership.Member { return of }, func(x directory.Found) { got = append(got, x) })
	return &got
}

func found(t *testing.T, a *[]directory.Found) directory.Found {
	t.Helper()
	if len(*a) != 1 {
		t.Fatalf("answered %d times, want once", len(*a))
	}
	return (*a)[0]
}

// protocol §4
func TestQuestionsOfOneMillisecondShareAFrameForEachMember(t *testing.T) {
	f := newFixture(t)
	var got []*[]directory.Found
	for i := range 5 {
		got = append(got, f.ask(fmt.Sprintf("x/%d", i), b, c))
	}
	f.clock.Run(ms - 1)
	f.peers.Silent()
	f.clock.Run(1)
	for _, m := range []string{"b", "c"} {
		if q := f.locate(m, wire.LocatedItem{}); len(q.Items) != 5 {
			t.Fatalf("%d questions in the frame to %s", len(q.Items), m)
		}
	}
	for _, a := range got {
		if x := found(t, a); x.Asked != 2 || len(x.Missing) > 0 || x.Entry != nil {
			t.Fatalf("%+v", x)
		}
	}
	f.peers.Silent()
}

// protocol §4
func TestOneFrameIsUnderWayToAMemberAtATime(t *testing.T) {
	f := newFixture(t, func(cfg *directory.Config) { cfg.LocateFrame = 4 })
	f.settle()
	f.ask("x/0", b)
	f.clock.Run(ms)
	first, _ := clustertest.Take[wire.Locate](f.peers)
	for i := range 6 {
		f.ask(fmt.Sprintf("y/%d", i), b)
	}
	f.clock.Run(100 * ms)
	f.peers.Silent()
	if f.locator.Waiting() != 6 {
		t.Fatalf("%d wait", f.locator.Waiting())
	}
	first.Answer(wire.Located{Key: f.view.Key(), Items: make([]wire.LocatedItem, 1)})
	if q := f.locate("b", wire.LocatedItem{}); len(q.Items) != 4 {
		t.Fatalf("%d questions, a frame holds 4", len(q.Items))
	}
	if q := f.locate("b", wire.LocatedItem{}); len(q.Items) != 2 {
		t.Fatalf("%d questions", len(q.Items))
	}
}

// protocol §4
func TestWhoeverJoinsARoundTakesItsPositiveAnswer(t *testing.T) {
	f := newFixture(t)
	f.settle()
	first := f.ask("x", b)
	f.clock.Run(ms)
	second := f.ask("x", b)
	f.locate("b", wire.LocatedItem{Status: wire.Serving, Reg: 3})
	for _, a := range []*[]directory.Found{first, second} {
		if x := found(t, a); x.Entry == nil || x.Entry.Epoch != b.Epoch || x.Entry.Reg != 3 {
			t.Fatalf("%+v", x)
		}
	}
	f.clock.Run(time.Second)
	f.peers.Silent()
}

// issue 3: one frozen silo in the view delays no answer by more than the locate bound
func TestAPositiveAnswerWaitsForNobodyAndANegativeOneForEveryMember(t *testing.T) {
	f := newFixture(t)
	f.settle()
	served := f.ask("x", b, c)
	f.clock.Run(ms)
	f.locate("b", wire.LocatedItem{Status: wire.Serving, Reg: 3})
	if x := found(t, served); x.Entry == nil || x.Entry.Epoch != b.Epoch {
		t.Fatalf("%+v", x)
	}
	again := f.ask("x", b, c) // what was found is perhaps what is asked about: it begins a new round
	f.clock.Run(ms)
	f.locate("b", wire.LocatedItem{})
	f.locate("c", wire.LocatedItem{Status: wire.Serving, Reg: 9}) // of the first round
	if len(*again) > 0 {
		t.Fatal("it was told before c has said no")
	}
	f.clock.Run(ms)
	f.locate("c", wire.LocatedItem{})
	if x := found(t, again); x.Entry != nil || len(x.Missing) > 0 {
		t.Fatalf("%+v", x)
	}
	f.clock.Run(time.Second)
	f.peers.Silent()
}

// protocol §4; protocol §8; protocol §10: a registration inside a running locate.
func TestWhoeverJoinsARoundDoesNotTakeItsNegativeAnswer(t *testing.T) {
	f := newFixture(t)
	first := f.ask("x", b, c)
	f.clock.Run(ms)
	f.locate("b", wire.LocatedItem{}) // b says no; then x is registered there
	second, third := f.ask("x", b, c), f.ask("x", b, c)
	f.locate("c", wire.LocatedItem{})
	if x := found(t, first); x.Entry != nil {
		t.Fatalf("%+v", x)
	}
	if len(*second)+len(*third) > 0 {
		t.Fatal("joiners were told what was true before they asked")
	}
	f.clock.Run(ms)
	f.locate("b", wire.LocatedItem{Status: wire.Serving, Reg: 1})
	f.locate("c", wire.LocatedItem{})
	for _, a := range []*[]directory.Found{second, third} { // one round for both
		if x := found(t, a); x.Entry == nil || x.Entry.Epoch != b.Epoch {
			t.Fatalf("%+v", x)
		}
	}
	f.peers.Silent()
}

// protocol §4: there is no negative cache.
func TestNothingIsRememberedBetweenRounds(t *testing.T) {
	f := newFixture(t)
	for i := range 3 {
		a := f.ask("x", b)
		f.clock.Run(ms)
		f.locate("b", wire.LocatedItem{})
		found(t, a)
		if n := clustertest.Count[wire.Locate](f.peers); n != i+1 {
			t.Fatalf("%d frames after %d rounds", n, i+1)
		}
	}
}

// protocol §7
func TestAMemberThatDoesNotAnswerIsMissingAfter600Milliseconds(t *testing.T) {
	f := newFixture(t)
	a := f.ask("x", b, c)
	f.clock.Run(ms)
	f.locate("b", wire.LocatedItem{})
	f.clock.Run(599 * ms)
	if len(*a) > 0 {
		t.Fatal("answered before the bound")
	}
	f.clock.Run(ms)
	if x := found(t, a); len(x.Missing) != 1 || x.Missing[0].Name != "c" || x.Busy {
		t.Fatalf("%+v", x)
	}
}

// protocol §4; protocol §11: one frozen silo delays no answer by more than the bound.
func TestASilentMemberReleasesTheQuestionsBehindItsFrame(t *testing.T) {
	f := newFixture(t)
	first := f.ask("x/0", b)
	f.clock.Run(100 * ms)
	behind := f.ask("x/1", b)
	f.clock.Run(501 * ms)
	found(t, first)
	if x := found(t, behind); len(x.Missing) != 1 {
		t.Fatalf("%+v", x)
	}
	again := f.ask("x/2", b) // it is asked anew, with a bound of its own
	f.clock.Run(ms)
	f.locate("b", wire.LocatedItem{Status: wire.Serving, Reg: 1})
	if x := found(t, again); x.Entry == nil {
		t.Fatalf("%+v", x)
	}
}

// protocol §4
func TestBeyond4096WaitingQuestionsTheAnswerIsBusy(t *testing.T) {
	f := newFixture(t)
	var got []*[]directory.Found
	for i := range 4096 + 1000 + 3 {
		got = append(got, f.ask(fmt.Sprintf("x/%d", i), b))
		if i == 999 {
			f.clock.Run(ms) // a frame leaves with these
		}
	}
	if f.locator.Waiting() != 4096 {
		t.Fatalf("%d wait", f.locator.Waiting())
	}
	f.clock.Flush()
	for i, a := range got {
		if late := i >= 4096+1000; late != (len(*a) == 1) {
			t.Fatalf("question %d: answered %d times", i, len(*a))
		} else if late && (!(*a)[0].Busy || len((*a)[0].Missing) != 1) {
			t.Fatalf("question %d: %+v", i, (*a)[0])
		}
	}
	for range 6 {
		f.locate("b", wire.LocatedItem{})
	}
	for i, a := range got {
		if x := found(t, a); x.Busy != (i >= 4096+1000) {
			t.Fatalf("question %d: %+v", i, x)
		}
	}
	f.peers.Silent()
}

// protocol §4
func TestABusyLineMakesALookupUnknownAndNeverGrants(t *testing.T) {
	f := newFixture(t, func(cfg *directory.Config) { cfg.LocateQueue = 1 })
	f.clock.Run(3 * time.Second) // long after the bound of an unsure grant
	for _, q := range f.peers.Waiting() {
		q.Fail(clustertest.ErrLost)
	}
	f.ask("x/0", me, b, c)
	f.clock.Run(ms)
	f.ask("x/1", me, b, c)
	a := f.lookup(f.addr)
	g := f.claim(wire.Claim{Head: f.head(b), Items: []wire.ClaimItem{wanted(f.node, 3)}})
	f.clock.Flush()
	if u := mustBe[wire.Unknown](t, a); u.Why != wire.WhyBusy || len(u.Missing) != 3 {
		t.Fatalf("%+v", u)
	}
	if len(g.Results) != 1 || g.Results[0].Verdict != wire.Unsettled {
		t.Fatalf("%+v", g)
	}
}

// protocol §4
func TestTheWordOfASiloThatHasLeftTheViewFindsNothing(t *testing.T) {
	f := newFixture(t)
	a := f.ask("x", b, c)
	f.clock.Run(ms)
	f.locate("b", wire.LocatedItem{})
	f.apply(clustertest.View(6, me, b))
	f.locate("c", wire.LocatedItem{Status: wire.Serving, Reg: 1})
	if x := found(t, a); x.Entry != nil {
		t.Fatalf("%+v", x)
	}
}

// protocol §3
func TestAnAnswerThatDoesNotFitTheQuestionIsNoAnswer(t *testing.T) {
	for name, answer := range map[string]wire.Answer{
		"too few items": wire.Located{}, "too many": wire.Located{Items: make([]wire.LocatedItem, 2)},
		"another answer": wire.OK{}, "a wrong epoch": wire.WrongEpoch{Key: newer},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			a := f.ask("x", b)
			f.clock.Run(ms)
			q, _ := clustertest.Take[wire.Locate](f.peers)
			q.Answer(answer)
			f.clock.Flush()
			if x := found(t, a); len(x.Missing) != 1 {
				t.Fatalf("%+v", x)
			}
			if _, wrong := answer.(wire.WrongEpoch); wrong != (len(f.peers.Seen) == 1) {
				t.Fatalf("seen %v", f.peers.Seen)
			}
		})
	}
}

func TestALocateOfNobodyAnswersAfterItHasReturned(t *testing.T) {
	f := newFixture(t)
	a := f.ask("x")
	if len(*a) > 0 {
		t.Fatal("answered inside Locate")
	}
	f.clock.Flush()
	if x := found(t, a); x.Asked != 0 || x.Entry != nil {
		t.Fatalf("%+v", x)
	}
}

// protocol §4: exclusive and plain questions about one address are two rounds.
func TestAnExclusiveQuestionDoesNotJoinAPlainRound(t *testing.T) {
	f := newFixture(t)
	plain := f.ask("x", b)
	var exclusive []directory.Found
	f.locator.Locate(wire.LocateItem{Addr: "x", Exclusive: true, Slot: 1, Acquired: f.view.Key()}, func() []membership.Member { return []membership.Member{b} }, func(x directory.Found) { exclusive = append(exclusive, x) })
	f.clock.Run(ms)
	if q := f.locate("b", wire.LocatedItem{}); len(q.Items) != 2 {
		t.Fatalf("%+v", q.Items)
	}
	found(t, plain)
	found(t, &exclusive)
}

// protocol §10: whoever is answered may ask again at once; the joiners join that round.
func TestAQuestionAskedFromWithinAnAnswerStartsTheRoundThatJoinersJoin(t *testing.T) {
	f := newFixture(t)
	var again, joined []directory.Found
	to := func() []membership.Member { return []membership.Member{b} }
	f.locator.Locate(wire.LocateItem{Addr: "x"}, to, func(directory.Found) {
		f.locator.Locate(wire.LocateItem{Addr: "x"}, to, func(x directory.Found) { again = append(again, x) })
	})
	f.locator.Locate(wire.LocateItem{Addr: "x"}, to, func(x directory.Found) { joined = append(joined, x) })
	f.clock.Run(ms)
	f.locate("b", wire.LocatedItem{})
	f.clock.Run(ms)
	f.locate("b", wire.LocatedItem{})
	if len(again) != 1 {
		t.Fatalf("answered %d times", len(again))
	}
	f.locate("b", wire.LocatedItem{}) // it had joined the round under way, whose negative answer it does not take
	if len(joined) != 1 {
		t.Fatalf("answered %d times", len(joined))
	}
	f.peers.Silent()
}

// protocol §5
// Each member answers after 5 ms, and 64 ask for one address that nobody serves at one moment: one round answers the
// first, the next one everybody else.
func TestThoseWhoJoinARoundBeginTheNextOneTogether(t *testing.T) {
	f := newFixture(t)
	f.settle()
	f.peers.Script = func(a *clustertest.Ask) {
		if m, ok := a.Message.(wire.Locate); ok {
			f.clock.After(5*ms, func() {
				a.Answer(wire.Located{Key: f.view.Key(), Items: make([]wire.LocatedItem, len(m.Items))})
			})
		}
	}
	start, last, got := f.clock.Now(), time.Duration(0), 0
	for range 64 {
		f.owner.Lookup(wire.Lookup{Head: f.head(b), Addr: f.addr}, func(a wire.Answer) {
			if _, ok := a.(wire.NotHere); !ok {
				t.Errorf("%T", a)
			}
			last = f.clock.Now() - start
			got++
		})
	}
	f.clock.Run(20 * time.Second)
	if got != 64 || last > 20*ms {
		t.Errorf("%d were answered, the last after %v", got, last)
	}
}
