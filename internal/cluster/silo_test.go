package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// wires is a silo's network and its table, in the hands of the test.
type wires struct {
	clock   *clustertest.Clock
	silo    *cluster.Silo
	host    *fixture
	log     bytes.Buffer
	epoch   uint64
	calls   []call
	dials   []transport.Peer
	suspect map[uint64]bool
	drops   []uint64
	votes   []string
	rows    []membership.Row
	parcels []string
	dead    map[string]bool // a dial to them fails
	beats   chan struct{}   // has one when the table was asked
}

type call struct {
	to   transport.Peer
	r    transport.Request
	done func(transport.Answer)
}

func (w *wires) Call(to transport.Peer, r transport.Request, done func(transport.Answer)) {
	w.calls = append(w.calls, call{to, r, done})
}

func (w *wires) Connect(to transport.Peer, done func(error)) {
	w.dials = append(w.dials, to)
	w.clock.After(0, func() {
		if w.dead[to.Name] {
			w.silo.Broken(to, &transport.DialError{Peer: to, Cause: errors.New("refused")})
			done(errors.New("refused"))
			return
		}
		done(nil)
	})
}

func (w *wires) Drop(epoch uint64, _ error)    { w.drops = append(w.drops, epoch) }
func (w *wires) Forget(uint64)                 {}
func (w *wires) Suspect(epoch uint64, on bool) { w.suspect[epoch] = on }
func (w *wires) SetEpoch(epoch uint64)         { w.epoch = epoch }
func (w *wires) Deliver(from transport.Peer, body []byte, reply func([]byte)) {
	w.parcels = append(w.parcels, from.Name+": "+string(body))
	reply([]byte("done"))
}

func (w *wires) view() *membership.View {
	var members []membership.Member
	for _, r := range w.rows {
		members = append(members, r.Member)
	}
	return clustertest.View(uint64(len(members)), members...)
}

func (w *wires) Read(done func([]membership.Row, error)) {
	w.clock.After(0, func() { done(w.rows, nil) })
}
func (w *wires) Join(m membership.Member, _ []membership.Epoch, done func(*membership.View, error)) {
	w.clock.After(0, func() {
		w.rows = append(w.rows, membership.Row{Member: m, Fresh: true})
		done(w.view(), nil)
	})
}

func (w *wires) Beat(_ membership.Epoch, done func(membership.Key, error)) {
	w.clock.After(0, func() { done(w.view().Key(), nil) })
	select {
	case w.beats <- struct{}{}:
	default:
	}
}

func (w *wires) View(done func(*membership.View, error)) {
	w.clock.After(0, func() { done(w.view(), nil) })
}

func (w *wires) Vote(m membership.Member, _ membership.Epoch, _ func(error)) {
	w.votes = append(w.votes, m.Name)
}
func (w *wires) Leave(membership.Epoch, func(*membership.View, error)) {}
func (w *wires) Gone(membership.Epoch, func(error))                    {}

// take takes the oldest call of a kind.
func (w *wires) take(t *testing.T, k wire.Kind) call {
	t.Helper()
	for i, c := range w.calls {
		if wire.Kind(c.r.Kind) == k {
			w.calls = append(w.calls[:i:i], w.calls[i+1:]...)
			return c
		}
	}
	t.Fatalf("no call of %s", k)
	return call{}
}

func (c call) answer(a wire.Answer) { c.done(transport.Answer{Body: wire.EncodeAnswer(a)}) }

// started returns a silo that has begun to join a cluster of b alone.
func started(t *testing.T) *wires {
	t.Helper()
	w := &wires{clock: &clustertest.Clock{}, suspect: map[uint64]bool{}, dead: map[string]bool{}, beats: make(chan struct{}, 1), rows: []membership.Row{{Member: b, Fresh: true}}}
	f := &fixture{t: t, clock: w.clock, local: map[string]uint64{}, stopping: map[string]bool{}}
	cfg := cluster.Defaults()
	cfg.Directory.Slots, cfg.Claims.Slots = slots, slots
	w.silo = cluster.NewSilo(cluster.Parts{
		Clock: w.clock, Do: w.clock.Do, Table: w, Host: f, Watch: f, Deliver: w, Rand: rand.New(rand.NewPCG(1, 2)),
		Log: slog.New(slog.NewTextHandler(&w.log, nil)), Me: membership.Member{Name: "me", Addr: "me:1"},
		Config: cfg, Pace: membership.DefaultPace(), Timing: membership.DefaultTiming(),
	})
	f.core, w.host = w.silo.Core, f
	w.silo.Use(w)
	w.silo.Start()
	w.clock.Flush()
	return w
}

// up has the silo join.
func (w *wires) up(t *testing.T) {
	t.Helper()
	w.take(t, wire.KindHello).answer(wire.OK{})
	w.clock.Flush()
	if w.silo.Self() == 0 || w.silo.View().Key().Number != 2 {
		t.Fatalf("not joined: %v", w.silo.View())
	}
}

// protocol §2
func TestASilosConnectionsCarryItsEpochBeforeItShakesHandsAndJoins(t *testing.T) {
	w := started(t)
	if w.epoch == 0 || w.silo.Self() != 0 {
		t.Fatalf("epoch %d, self %v", w.epoch, w.silo.Self())
	}
	w.up(t)
	if w.epoch != uint64(w.silo.Self()) {
		t.Fatalf("connections carry %d, the silo is %v", w.epoch, w.silo.Self())
	}
}

// decision 1: where no peer promises anything the table is asked
func TestASiloThatNobodyPermitsToAnswerAsksTheTable(t *testing.T) {
	w := started(t)
	w.up(t)
	if !w.silo.Isolated() {
		t.Fatal("the control: no peer has promised anything yet, and it is not isolated")
	}
	confirmed := make(chan bool, 1)
	go func() { confirmed <- w.silo.Confirm(t.Context()) }()
	<-w.beats // its turn is the goroutine that asks, and it has nothing more to do there
	w.clock.Flush()
	if !<-confirmed {
		t.Error("the table has it as a member, and it is not confirmed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if w.silo.Confirm(ctx) {
		t.Error("confirmed without an answer")
	}
}

// C21
func TestAChangeOfTheMembershipIsTakenAfterItsNotificationHasReturned(t *testing.T) {
	w := started(t)
	w.up(t)
	before := w.silo.View().Key()
	w.rows = append(w.rows, membership.Row{Member: clustertest.Silo("late", 77), Fresh: true})
	w.silo.Member.Refresh()
	if w.silo.View().Key() != before {
		t.Fatal("the view was applied inside of the notification")
	}
	w.clock.Flush()
	if !before.Before(w.silo.View().Key()) {
		t.Fatal("the view was not applied")
	}
}

// protocol §2
func TestWhateverIsNoHandshakeDoesNotCountAsOne(t *testing.T) {
	for name, a := range map[string]transport.Answer{
		"another answer":           {Body: wire.EncodeAnswer(wire.WrongEpoch{})},
		"what cannot be read":      {Body: []byte{99}},
		"no answer":                {Err: &transport.LateError{}},
		"what has not left":        {Err: &transport.NotSentError{Reason: transport.Unreachable}},
		"a connection that broke":  {Err: &transport.LostError{Reason: transport.Broken}},
		"an answer without a body": {},
	} {
		t.Run(name, func(t *testing.T) {
			w := started(t)
			w.take(t, wire.KindHello).done(a)
			w.clock.Flush()
			if w.silo.Self() != 0 {
				t.Fatal("it has joined")
			}
			w.clock.Run(300 * ms)
			_ = w.take(t, wire.KindHello) // again
		})
	}
}

// bad input: a request and an answer of a peer that cannot be read
func TestWhatCannotBeReadIsAnsweredAndLogged(t *testing.T) {
	w := started(t)
	w.up(t)
	var got []byte
	w.silo.Handle(transport.Peer{Name: "b", Epoch: 2}, transport.Request{Kind: uint8(wire.KindClaim), Body: []byte{1}}, func(a []byte) { got = a })
	a, err := wire.DecodeAnswer(got)
	if u, ok := a.(wire.Unknown); err != nil || !ok || u.Why != "malformed" {
		t.Fatalf("%+v, %v", a, err)
	}
	w.silo.Handle(transport.Peer{Name: "b"}, transport.Request{Kind: 200}, func(a []byte) { got = a })
	if n := strings.Count(w.log.String(), "cannot be read"); n != 2 {
		t.Fatalf("%d lines: %s", n, w.log.String())
	}
	var failed error
	w.silo.Call(b, wire.Ping{}, time.Second, func(_ wire.Answer, err error) { failed = err })
	w.take(t, wire.KindPing).done(transport.Answer{Body: []byte{99}})
	if !errors.Is(failed, wire.ErrMalformed) || strings.Count(w.log.String(), "cannot be read") != 3 {
		t.Fatalf("%v: %s", failed, w.log.String())
	}
}

// protocol §3
func TestARequestOfAPeerIsHandledOnTheTurnAndADeliveryOffIt(t *testing.T) {
	w := started(t)
	w.up(t)
	var got []byte
	w.silo.Handle(transport.Peer{Name: "b", Epoch: 2}, transport.Request{Kind: uint8(wire.KindViewGet)}, func(a []byte) { got = a })
	if a, _ := wire.DecodeAnswer(got); a.(wire.ViewIs).View.Key() != w.silo.View().Key() {
		t.Fatalf("%+v", a)
	}
	w.silo.Handle(transport.Peer{Name: "b", Epoch: 2}, transport.Request{Kind: uint8(wire.KindDeliver), Body: []byte("x")}, func(a []byte) { got = a })
	if string(got) != "done" || len(w.parcels) != 1 || w.parcels[0] != "b: x" {
		t.Fatalf("%q, %v", got, w.parcels)
	}
}

// protocol §5
func TestANewConnectionOfAnOwnerReachesTheClaims(t *testing.T) {
	w := started(t)
	w.up(t)
	w.take(t, wire.KindClaim).answer(wire.Claimed{Key: w.silo.View().Key(), Complete: wire.Slots{1<<slots - 1}})
	w.calls = nil
	w.silo.Accepted(peer(b))
	w.clock.Run(30 * ms)
	if c := w.take(t, wire.KindClaim); c.to.Epoch != 2 || c.r.Class != transport.Control {
		t.Fatalf("%+v", c)
	}
}

func peer(m membership.Member) transport.Peer {
	return transport.Peer{Name: m.Name, Epoch: uint64(m.Epoch), Addr: m.Addr}
}

// protocol §2; protocol §7
func TestTheDetectorJudgesByTheNetworksPongsAndVotesAtTheTable(t *testing.T) {
	w := started(t)
	w.up(t)
	w.clock.Run(700 * ms)
	if len(w.dials) != 1 || w.dials[0].Name != "b" {
		t.Fatalf("dials %v", w.dials)
	}
	c := w.take(t, wire.KindPing)
	if c.r.Class != transport.Ping || c.to.Epoch != 2 {
		t.Fatalf("%+v", c)
	}
	c.done(transport.Answer{Body: wire.EncodeAnswer(wire.OK{})})
	w.clock.Run(time.Second)
	if !w.suspect[2] || len(w.votes) > 0 {
		t.Fatalf("suspect %v, votes %v", w.suspect, w.votes)
	}
	w.take(t, wire.KindPing).done(transport.Answer{Err: &transport.LostError{}}) // no pong
	if !w.suspect[2] {
		t.Fatal("an error is no sign of life")
	}
	w.take(t, wire.KindPing).done(transport.Answer{Body: wire.EncodeAnswer(wire.OK{})})
	if w.suspect[2] {
		t.Fatal("a pong ends the suspicion")
	}
	w.clock.Run(2 * time.Second)
	if len(w.votes) == 0 || w.votes[0] != "b" || len(w.drops) != 1 || w.drops[0] != 2 {
		t.Fatalf("votes %v, drops %v", w.votes, w.drops)
	}
}

// ping answers a ping of a peer.
func (w *wires) ping(t *testing.T, from transport.Peer) (is wire.Pong) {
	t.Helper()
	w.silo.Handle(from, transport.Request{Kind: uint8(wire.KindPing)}, func(b []byte) {
		a, err := wire.DecodeAnswer(b)
		if err != nil {
			t.Fatal(err)
		}
		is = a.(wire.Pong)
	})
	w.clock.Flush()
	return is
}

// protocol §3; decision 1
func TestAPongTellsLoadViewAndWhenItsAskerWasHeardLast(t *testing.T) {
	w := started(t)
	w.host.load = 7
	if is := w.ping(t, peer(b)); is != (wire.Pong{Load: 7}) {
		t.Errorf("before it has joined it says %+v", is)
	}
	w.up(t)
	w.clock.Run(600 * ms) // to the dial, and to the ping
	w.take(t, wire.KindPing).answer(wire.Pong{})
	w.clock.Run(200 * ms)
	if is := w.ping(t, peer(b)); is != (wire.Pong{Load: 7, Key: w.silo.View().Key(), Heard: 200 * ms, Hears: true}) {
		t.Errorf("it says %+v", is)
	}
	if is := w.ping(t, peer(clustertest.Silo("stranger", 99))); is.Hears {
		t.Errorf("it says to a stranger %+v", is)
	}
}

// decision 1: who has put this silo out says so with its next pong
func TestAPongOfANewerViewHasThatViewFetched(t *testing.T) {
	w := started(t)
	w.up(t)
	w.clock.Run(600 * ms)
	newer := clustertest.View(9, b)
	w.take(t, wire.KindPing).answer(wire.Pong{Key: newer.Key()})
	w.take(t, wire.KindViewGet).answer(wire.ViewIs{View: newer})
	if w.silo.Self() != 0 || !w.silo.Isolated() {
		t.Errorf("self %v, isolated %v", w.silo.Self(), w.silo.Isolated())
	}
}

// protocol §2
func TestADeadPeersDialVotesWhoeverAskedForIt(t *testing.T) {
	w := started(t)
	w.up(t)
	w.dead["b"] = true
	w.silo.Broken(peer(b), errors.New("reset"))
	w.clock.Flush()
	if len(w.votes) != 1 || w.votes[0] != "b" {
		t.Fatalf("votes %v", w.votes)
	}
}

// protocol §2: a suspect silo is let no other request than a ping
func TestASuspectMemberIsShakenHandsWith(t *testing.T) {
	w := started(t)
	if c := w.take(t, wire.KindHello); c.r.Class != transport.Ping {
		t.Errorf("a handshake is of class %v", c.r.Class)
	}
}

// protocol §8
func TestASiloThatIsPutOutOfTheViewJoinsAnewWithAnotherEpoch(t *testing.T) {
	w := started(t)
	w.up(t)
	first := w.epoch
	w.calls, w.rows = nil, w.rows[:1]
	w.silo.Apply(clustertest.View(9, b))
	if w.silo.Self() != 0 {
		t.Fatal("it believes that it is a member")
	}
	w.clock.Run(20 * ms)
	w.take(t, wire.KindHello).answer(wire.OK{})
	w.rows = append(w.rows, membership.Row{Member: clustertest.Silo("x", 50)}, membership.Row{Member: clustertest.Silo("y", 51)}, membership.Row{Member: clustertest.Silo("z", 52)},
		membership.Row{Member: clustertest.Silo("u", 53)}, membership.Row{Member: clustertest.Silo("v", 54)}, membership.Row{Member: clustertest.Silo("w", 55)},
		membership.Row{Member: clustertest.Silo("q", 56)}, membership.Row{Member: clustertest.Silo("r", 57)}, membership.Row{Member: clustertest.Silo("s", 58)}) // number 11
	w.clock.Flush()
	if s := uint64(w.silo.Self()); s == 0 || s == first || s != w.epoch {
		t.Fatalf("self %d, first %d, connections %d", s, first, w.epoch)
	}
}

// decision 3: handed over when much more loaded
func TestASiloThatStaysMuchMoreLoadedThanAPongSaysHandsOver(t *testing.T) {
	w := started(t)
	w.up(t)
	w.host.load = 1000
	for range 30 {
		w.clock.Run(300 * ms)
		for _, c := range w.calls {
			if wire.Kind(c.r.Kind) == wire.KindPing {
				c.answer(wire.Pong{Load: 10})
			}
		}
		w.calls = nil
	}
	if !slices.Contains(w.host.events, "hand over 100") {
		t.Fatalf("told %q", w.host.events)
	}
	st := w.silo.Status()
	for _, m := range st.Members {
		if want := map[string]int{"me": 1000, "b": 10}[m.Silo]; m.NodeHubs == nil || *m.NodeHubs != want {
			t.Errorf("%s is told to serve %v, want %d", m.Silo, m.NodeHubs, want)
		}
	}
	w.silo.Stop()
	w.host.events = nil
	w.clock.Run(time.Minute)
	if len(w.host.events) > 0 {
		t.Errorf("after its end it was told %q", w.host.events)
	}
}

// protocol §7
func TestASiloForgetsEndedRegistrationsWithoutAnyNewOnes(t *testing.T) {
	w := started(t)
	w.up(t)
	addr := clustertest.Owned(w.silo.Table(), membership.Member{Name: "me", Epoch: w.silo.Self()}, "portal", 0)
	h := w.silo.Claims.Handle(w.clock, addr)
	h.Attach()
	h.Dispose()
	w.clock.Run(time.Minute)
	if w.silo.Owner.Remembered() != 1 || w.silo.Claims.Released() != 1 {
		t.Fatalf("%d ends and %d released addresses are remembered", w.silo.Owner.Remembered(), w.silo.Claims.Released())
	}
	w.clock.Run(10 * time.Minute)
	if w.silo.Owner.Remembered() != 0 || w.silo.Claims.Released() != 0 {
		t.Fatalf("%d ends and %d released addresses are remembered after 10 min", w.silo.Owner.Remembered(), w.silo.Claims.Released())
	}
	w.silo.Stop()
}
