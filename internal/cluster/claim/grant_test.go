package claim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/claim"
	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// outcome writes down how an activation ended.
func outcome(to *[]string) func(claim.Outcome) {
	return func(o claim.Outcome) {
		switch {
		case o.Granted:
			*to = append(*to, "granted")
		case o.Holder != nil:
			*to = append(*to, "held by "+o.Holder.Epoch.String())
		default:
			*to = append(*to, "none: "+o.Why)
		}
	}
}

func (f *fixture) activate() *[]string {
	var out []string
	f.claim.Activate(f.node, nil, outcome(&out))
	return &out
}

func (f *fixture) granted() {
	f.t.Helper()
	out := f.activate()
	a, m, _ := f.take(f.node)
	a.Answer(f.landed(m))
	if !slices.Equal(*out, []string{"granted"}) {
		f.t.Fatalf("%v", *out)
	}
	f.told()
}

// protocol §5: claiming parks
func TestWhatParksIsToldTheEndOfTheGrantWhicheverItIs(t *testing.T) {
	f := up(t)
	ends := 0
	await := func() { f.claim.Await(f.node, func() { ends++ }) }
	if await(); ends != 1 {
		t.Fatal("it waits for a grant that nobody has asked for")
	}
	f.activate()
	await()
	await()
	a, m, _ := f.take(f.node)
	if ends != 1 {
		t.Fatal("it is told before the grant has ended")
	}
	a.Answer(f.landed(m))
	if ends != 3 {
		t.Fatalf("%d of 2 are told of the grant", ends-1)
	}
	f.claim.Ended(f.node, m.Items[0].Reg)
	f.activate()
	await()
	f.claim.Evict()
	if ends != 4 {
		t.Fatal("it is not told of an eviction")
	}
}

// protocol §5
func TestWhileAGrantIsUnderWayTheSiloIsClaimingAndDoesNotSayNotHere(t *testing.T) {
	f := up(t)
	out := f.activate()
	f.activate() // whoever asks meanwhile waits for the same
	if n := f.claims(f.node); n != 1 || !f.claim.Claims(f.node) {
		t.Fatalf("%d claims", n)
	}
	a, m, i := f.take(f.node)
	if it := m.Items[i]; it.Phase != wire.Wanted || !it.Node {
		t.Fatalf("%+v", it)
	}
	it := f.claim.Locate(b.Epoch, wire.LocateItem{Addr: f.node})
	if it.Status != wire.Claiming || it.Reg != m.Items[i].Reg || !it.Node {
		t.Fatalf("%+v", it)
	}
	a.Answer(f.landed(m))
	if _, serves := f.claim.Serves(f.node); !serves || f.claim.Claims(f.node) || !slices.Equal(*out, []string{"granted"}) {
		t.Fatalf("%v", *out)
	}
	f.mustTell("landed "+f.node+" at b late=false", "granted "+f.node)
	if it := f.claim.Locate(b.Epoch, wire.LocateItem{Addr: f.node}); it.Status != wire.Serving {
		t.Fatalf("%+v", it)
	}
}

// protocol §10: a delivery between the owner's grant and its acknowledgement finds a silo that claims.
func TestBetweenTheGrantAndItsAcknowledgementTheSiloIsClaiming(t *testing.T) {
	f := up(t)
	f.activate()
	_, _, _ = f.take(f.node) // granted at the owner; the answer is on its way
	if !f.claim.Claims(f.node) {
		t.Fatal("deliveries would not park")
	}
}

// protocol §4
func TestAGrantThatAnotherHoldsNamesTheHolder(t *testing.T) {
	f := up(t)
	out := f.activate()
	a, m, _ := f.take(f.node)
	r := f.landed(m)
	r.Results[0] = wire.ClaimResult{Verdict: wire.Held, Holder: wire.Entry{Epoch: c.Epoch, Reg: 4, Node: true}}
	a.Answer(r)
	if !slices.Equal(*out, []string{"held by " + c.Epoch.String()}) || f.claim.Len() != 0 {
		t.Fatalf("%v", *out)
	}
	f.clock.Run(time.Minute)
	f.peers.Silent()
}

// protocol §5
func TestAnUnsettledGrantIsAskedForAgainAfter5MillisecondsDoublingToHalfASecondTenTimes(t *testing.T) {
	f := up(t)
	out := f.activate()
	want := 5 * ms
	for try := range 11 {
		a, m, _ := f.take(f.node)
		a.Answer(f.all(m, wire.Unsettled))
		if try == 10 {
			break
		}
		f.clock.Run(want - 1)
		if n := f.claims(f.node); n != try+1 {
			t.Fatalf("%d claims before %v", n, want)
		}
		f.clock.Run(1)
		want = min(2*want, 500*ms)
	}
	if !slices.Equal(*out, []string{"none: unsettled"}) || f.claim.Len() != 0 {
		t.Fatalf("%v", *out)
	}
	f.clock.Run(ms)
	if _, m := clustertest.Take[wire.Detach](f.peers); len(m.Items) != 1 || !m.Items[0].Node {
		t.Fatalf("what may have been granted is not detached: %+v", m)
	}
}

// protocol §5
func TestWhileTheOwnerCannotSayEverybodyIsAskedForTheNode(t *testing.T) {
	f := up(t)
	var out []string
	asked, tell := 0, func(*wire.Entry) {}
	f.claim.Activate(f.node, func(_ string, done func(*wire.Entry)) {
		asked++
		tell = done
	}, outcome(&out))
	for range 2 {
		a, _, _ := f.take(f.node)
		a.Fail(clustertest.ErrLost)
		f.clock.Run(10 * ms)
	}
	if asked != 1 {
		t.Fatalf("everybody was asked %d times", asked)
	}
	tell(&wire.Entry{Epoch: c.Epoch, Reg: 4, Node: true}) // in the next round already: it is too old
	if len(out) > 0 {
		t.Fatalf("%v", out)
	}
	for range 3 {
		a, _, _ := f.take(f.node)
		a.Fail(clustertest.ErrLost)
		if asked == 2 {
			break
		}
		f.clock.Run(100 * ms)
	}
	tell(&wire.Entry{Epoch: c.Epoch, Reg: 4, Node: true})
	if !slices.Equal(out, []string{"held by " + c.Epoch.String()}) {
		t.Fatalf("%v after %d", out, asked)
	}
	f.clock.Run(ms)
	_, _ = clustertest.Take[wire.Detach](f.peers)
	f.clock.Run(time.Minute)
}

// C14; protocol §5: an acknowledgement by a former owner never counts.
func TestAViewReplacesTheRoundOfAGrantAndTheFormerOwnersAnswerCountsForNothing(t *testing.T) {
	f := up(t)
	out := f.activate()
	old, m, _ := f.take(f.node)
	f.apply(2, me, c)
	a, m2, i := f.take(f.node)
	old.Answer(f.landed(m))
	if len(*out) > 0 || !f.claim.Claims(f.node) {
		t.Fatalf("%v", *out)
	}
	if it := m2.Items[i]; it.Phase != wire.Wanted || it.Reg != m.Items[0].Reg || m2.Key != f.view.Key() {
		t.Fatalf("%+v", m2)
	}
	a.Answer(f.landed(m2))
	if !slices.Equal(*out, []string{"granted"}) {
		t.Fatalf("%v", *out)
	}
}

// protocol §5; protocol §10: a view that the owner has still to see may take the slot from it and give it back.
func TestAGrantOfAnOwnerThatIsAViewBehindCountsForNothing(t *testing.T) {
	f := up(t)
	out := f.activate()
	f.apply(3, me, b, c)
	_, _, _ = f.take(f.node) // the round of the view before
	var a *clustertest.Ask
	var m wire.Claim
	for m.Key != f.view.Key() || !m.CompleteFor.Empty() {
		a, m, _ = f.take(f.node)
	}
	old := f.landed(m)
	old.Key.Number = 2
	a.Answer(old)
	if len(*out) > 0 || !f.claim.Claims(f.node) || len(f.peers.Seen) != 1 || f.peers.Seen[0].Key != old.Key {
		t.Fatalf("%v, seen %v", *out, f.peers.Seen)
	}
	f.clock.Run(5 * ms)
	for !a.Open() || !m.CompleteFor.Empty() {
		a, m, _ = f.take(f.node)
	}
	a.Answer(f.landed(m))
	if !slices.Equal(*out, []string{"granted"}) {
		t.Fatalf("%v", *out)
	}
}

// protocol §5: a grant under way is named in the complete batch, so that it is not taken for gone.
func TestACompleteBatchNamesTheGrantsThatAreUnderWay(t *testing.T) {
	f := up(t)
	f.activate()
	f.apply(2, me, b, c)
	pending := 0
	for _, a := range f.peers.Waiting() {
		if m, ok := a.Message.(wire.Claim); ok && !m.CompleteFor.Empty() {
			for _, it := range m.Items {
				if it.Addr == f.node && it.Phase == wire.Pending {
					pending++
				}
			}
		}
	}
	if pending != 1 {
		t.Fatalf("named %d times", pending)
	}
}

// C14; protocol §5
func TestAHeldNodeHubThatAnotherHoldsStepsAside(t *testing.T) {
	f := up(t)
	f.granted()
	f.apply(2, me, b, c)
	a, m, i := f.take(f.node)
	if it := m.Items[i]; it.Phase != wire.Kept || !it.Node {
		t.Fatalf("%+v", it)
	}
	r := f.landed(m)
	r.Results[i] = wire.ClaimResult{Verdict: wire.Held, Holder: wire.Entry{Epoch: c.Epoch, Reg: 1, Node: true}}
	a.Answer(r)
	f.mustTell("step aside " + f.node)
	if _, serves := f.claim.Serves(f.node); serves {
		t.Fatal("it serves on")
	}
	f.clock.Run(time.Minute)
	if f.claims(f.node) != 2 {
		t.Fatalf("%d claims", f.claims(f.node))
	}
}

// protocol §8
func TestEvictionForgetsGrantsAndKeepsProcessHubs(t *testing.T) {
	f := up(t)
	h := f.register(f.addr)
	f.clock.Run(ms)
	f.accept()
	f.granted()
	other := clustertest.Owned(f.table, c, "acme", 0)
	var under []string
	f.claim.Activate(other, nil, outcome(&under))
	late, m, _ := f.take(other)
	f.claim.Evict()
	if !slices.Equal(under, []string{"none: evicted"}) {
		t.Fatalf("%v", under)
	}
	if _, serves := f.claim.Serves(f.node); serves || f.claim.Len() != 1 {
		t.Fatalf("%d registrations", f.claim.Len())
	}
	late.Answer(f.landed(m))
	f.clock.Run(time.Minute)
	before := len(f.peers.Asks)
	f.register("portal/later")
	f.clock.Run(time.Minute)
	if len(f.peers.Asks) != before {
		t.Fatal("a silo in no view claims")
	}
	self := clustertest.Silo("me", 9) // it comes back as another incarnation
	f.view = clustertest.View(5, self, b, c)
	f.claim.Apply(f.view, f.table, self.Epoch)
	a, m, i := f.take(f.addr)
	if m.Items[i].Reg != h.Reg() || m.From != self.Epoch {
		t.Fatalf("%+v", m)
	}
	a.Answer(f.landed(m))
	if s, _ := f.claim.State(f.addr); s.Landed != b.Epoch {
		t.Fatalf("%+v", s)
	}
}

// protocol §5
func TestANodeHubThatHasStoppedIsDetachedByItsRegistration(t *testing.T) {
	f := up(t)
	f.granted()
	reg, _ := f.claim.Serves(f.node)
	f.claim.Ended(f.node, reg+1) // another registration's end
	if _, serves := f.claim.Serves(f.node); !serves {
		t.Fatal("it was ended by another registration's end")
	}
	f.claim.Ended(f.node, reg)
	f.clock.Run(ms)
	if _, m := clustertest.Take[wire.Detach](f.peers); !slices.Equal(m.Items, []wire.DetachItem{{Addr: f.node, Reg: reg, Node: true}}) {
		t.Fatalf("%+v", m)
	}
	if it := f.claim.Locate(b.Epoch, wire.LocateItem{Addr: f.node}); it.Status != wire.None {
		t.Fatalf("%+v: a node hub leaves no tombstone", it)
	}
}

// protocol §4
func TestAGrantThatWasDetachedOrWhoseHolderIsUnknownEndsSo(t *testing.T) {
	for name, test := range map[string]struct {
		result wire.ClaimResult
		want   string
	}{
		"detached":                         {wire.ClaimResult{Verdict: wire.Ended}, "none: detached"},
		"a holder in no view of this silo": {wire.ClaimResult{Verdict: wire.Held, Holder: wire.Entry{Epoch: 99, Reg: 1, Node: true}}, "none: holder-unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			f := up(t)
			out := f.activate()
			a, m, _ := f.take(f.node)
			r := f.landed(m)
			r.Results[0] = test.result
			a.Answer(r)
			if !slices.Equal(*out, []string{test.want}) || f.claim.Len() != 0 {
				t.Fatalf("%v", *out)
			}
		})
	}
}

// protocol §4: exception (a)
func TestAnExclusiveQuestionIsAnsweredOnlyToWhomTheOwnViewNamesOwner(t *testing.T) {
	f := up(t)
	f.granted()
	slot := 0
	for o, _ := f.table.Owner(slot); o.Name != "b" || clustertest.InSlot(slot, slots, "acme", 0) != f.node; o, _ = f.table.Owner(slot) {
		slot++
	}
	q := wire.LocateItem{Addr: f.node, Exclusive: true, Slot: slot, Acquired: f.view.Key()}
	if it := f.claim.Locate(b.Epoch, q); it.Status != wire.Serving {
		t.Fatalf("the owner: %+v", it)
	}
	if it := f.claim.Locate(c.Epoch, q); it.Status != wire.NotYours {
		t.Fatalf("another: %+v", it)
	}
	q.Acquired.Number++
	if it := f.claim.Locate(b.Epoch, q); it.Status != wire.NotYours {
		t.Fatalf("an owner by a newer view: %+v", it)
	}
	q.Exclusive = false
	if it := f.claim.Locate(c.Epoch, q); it.Status != wire.Serving {
		t.Fatalf("a plain question: %+v", it)
	}
}

// protocol §4: exception (a)
func TestASlotQueryIsAnsweredForTheSlotsThatTheOwnViewGivesTheAsker(t *testing.T) {
	f := up(t)
	f.register(f.addr)
	f.clock.Run(ms)
	f.accept()
	f.granted()
	f.claim.Activate(clustertest.Owned(f.table, b, "acme", 1), nil, func(claim.Outcome) {})
	var q wire.SlotQuery
	q.From = b.Epoch
	mine, newer := 0, f.view.Key()
	newer.Number++
	for s := range slots {
		q.Slots = append(q.Slots, wire.Gained{Slot: s, Acquired: f.view.Key()})
		if o, _ := f.table.Owner(s); o.Name == "b" {
			mine++
		}
	}
	a := f.claim.SlotQuery(q).(wire.SlotIs)
	got := 0
	for s := range slots {
		if a.Slots.Has(s) {
			got++
		}
	}
	if got != mine || len(a.Items) != 2 { // the grant that is under way is not served yet
		t.Fatalf("%d of %d slots, %+v", got, mine, a.Items)
	}
	for i := range q.Slots {
		q.Slots[i].Acquired = newer
	}
	if a := f.claim.SlotQuery(q).(wire.SlotIs); !a.Slots.Empty() || len(a.Items) != 0 {
		t.Fatalf("a slot gained by a newer view: %+v", a)
	}
}

// issue 3: one frozen silo in the view delays no answer by more than the locate bound
func TestWhileTheSlotsOwnerIsSilentWhatAnotherServesIsFoundByAskingEverybody(t *testing.T) {
	for _, late := range []bool{true, false} { // the owner's answer: after the others were asked, and before
		f := up(t)
		var out []string
		var asked []string
		f.claim.Activate(f.node, func(addr string, done func(*wire.Entry)) {
			asked = append(asked, addr)
			done(&wire.Entry{Epoch: c.Epoch, Reg: 7, Node: true})
		}, outcome(&out))
		a, m, _ := f.take(f.node)
		if !late {
			a.Answer(f.landed(m))
		}
		f.clock.Run(claim.Defaults().GrantOthers)
		if !late { // the control
			if len(asked) != 0 || !slices.Equal(out, []string{"granted"}) {
				t.Errorf("%v; asked of %v", out, asked)
			}
			continue
		}
		if !slices.Equal(asked, []string{f.node}) || !slices.Equal(out, []string{"held by " + c.Epoch.String()}) || f.claim.Claims(f.node) {
			t.Errorf("%v; asked of %v", out, asked)
		}
		a.Answer(f.landed(m)) // it was granted nevertheless: what follows gives it back
		if _, ok := f.claim.Serves(f.node); ok || len(out) != 1 {
			t.Errorf("it serves: %v", out)
		}
		f.clock.Run(claim.Defaults().Gather)
		if d, m := clustertest.TakeFrom[wire.Detach](f.peers, b.Name); d == nil || m.Items[0].Addr != f.node {
			t.Error("the grant is not given back")
		}
	}
}
