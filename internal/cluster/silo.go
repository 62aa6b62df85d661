package cluster

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/claim"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/cluster/turn"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// Network is what a silo needs of its transport.
type Network interface {
	Call(to transport.Peer, r transport.Request, done func(transport.Answer))
	Connect(to transport.Peer, done func(error))
	Drop(epoch uint64, cause error)
	Forget(epoch uint64)
	Suspect(epoch uint64, on bool)
	SetEpoch(epoch uint64)
}

// Deliveries takes the messages to hubs of this silo that peers send. It is called off the turn.
type Deliveries interface {
	Deliver(from transport.Peer, body []byte, reply func([]byte))
}

// Parts are what a silo is put together from.
type Parts struct {
	Clock   turn.Clock
	Do      func(func()) // runs something on the turn; it must not be called on the turn
	Table   membership.Table
	Host    Host
	Watch   claim.Observer
	Deliver Deliveries
	Rand    *rand.Rand
	Log     *slog.Logger
	Me      membership.Member
	Config  Config
	Pace    membership.Pace
	Timing  membership.Timing
	// Waiting hears why an attempt to join came to nothing: see [membership.Events]. nil: nobody does.
	Waiting func(error)
}

var _ transport.Handler = (*Silo)(nil)

// Silo is one process in the cluster: its core, its place in the membership, and its judgement of the
// others, over one network. Its methods run on the turn, those of [transport.Handler] off it.
type Silo struct {
	*Core
	Detector *membership.Detector
	Member   *membership.Silo

	parts       Parts
	net         Network
	stopBalance func()
}

// NewSilo returns a silo that has not joined. [Silo.Use] gives it its network, then [Silo.Start] begins.
func NewSilo(p Parts) *Silo {
	s := &Silo{parts: p}
	s.Core = New(p.Clock, s, host{p.Host, s}, p.Watch, p.Config)
	s.explain, s.follow = s.explainTo, s.committed
	s.Detector = membership.NewDetector(p.Clock, s, p.Pace, func(m membership.Member) { s.Member.Vote(m) })
	s.judge = s.Detector
	s.Member = membership.NewSilo(p.Clock, p.Table, s, p.Rand, p.Timing, p.Me, membership.Events{
		Chosen: func(e membership.Epoch) {
			s.net.SetEpoch(uint64(e))
			s.Detector.Renew()
		},
		Joined: s.Joined,
		Viewed: s.Apply, Waiting: p.Waiting,
	})
	return s
}

// Use gives the silo its network, once.
func (s *Silo) Use(n Network) { s.net = n }

// Start begins to join and to judge.
func (s *Silo) Start() {
	s.Detector.Start()
	s.Member.Start()
	s.balance()
}

// balance compares this silo with the others now and then, and hands node hubs over where it has much more. It
// also forgets what has been remembered for long enough of registrations that have ended.
func (s *Silo) balance() {
	s.stopBalance = s.clock.After(s.config.Placement.Look, func() {
		s.Owner.Sweep()
		s.Claims.Sweep()
		if n := s.Surplus(); n > 0 {
			s.host.HandOver(n, s.HandedOver)
		}
		s.balance()
	})
}

// Stop ends the silo: nothing leaves any more.
func (s *Silo) Stop() {
	if s.stopBalance != nil {
		s.stopBalance()
	}
	s.Core.Stop()
}

// host sees to it that the other parts of the silo hear of views before the process does.
type host struct {
	Host
	silo *Silo
}

func (h host) Applied(v *membership.View) {
	h.silo.Detector.Apply(v, h.silo.self)
	h.silo.Member.Applied(v.Key())
	h.Host.Applied(v)
}

func (h host) Evicted() {
	h.Host.Evicted()
	h.silo.Member.Evicted()
}

// Isolated tells whether the permit of this silo has run out: others may have put it out and serve in its
// place, so it must not answer from what it holds (decision 1), unless [Silo.Confirm] says otherwise. It may
// be called off the turn.
func (s *Silo) Isolated() bool { return !s.Detector.Permit().Valid(s.parts.Clock.Now()) }

// Confirm asks the table, where the permit has run out, whether this silo was still a member after the call.
// It may be called off the turn only, and ends with ctx.
func (s *Silo) Confirm(ctx context.Context) bool {
	asked := make(chan *membership.Confirmation, 1)
	s.parts.Do(func() { asked <- s.Member.Confirm() })
	select {
	case c := <-asked:
		select {
		case <-c.Done():
			return c.In() || !s.Isolated()
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
	return !s.Isolated()
}

func peerOf(m membership.Member) transport.Peer {
	return transport.Peer{Name: m.Name, Epoch: uint64(m.Epoch), Addr: m.Addr}
}

func memberOf(p transport.Peer) membership.Member {
	return membership.Member{Name: p.Name, Epoch: membership.Epoch(p.Epoch), Addr: p.Addr}
}

// Call implements [Caller].
func (s *Silo) Call(to membership.Member, m wire.Request, within time.Duration, done func(wire.Answer, error)) {
	buf := scratch.Get().(*[]byte)
	defer free(buf)
	*buf = wire.Append(*buf, m)
	r := transport.Request{Kind: uint8(m.Kind()), Class: classOf(m), Body: *buf, Within: within}
	s.net.Call(peerOf(to), r, func(a transport.Answer) {
		if a.Err != nil {
			s.parts.Do(func() { done(nil, a.Err) })
			return
		}
		answer, err := wire.DecodeAnswer(a.Body)
		if err != nil {
			s.parts.Log.Error("A silo sent an answer that cannot be read", "silo", to.Name, "epoch", to.Epoch.String(), "request", m.Kind().String(), "error", err)
		}
		s.parts.Do(func() { done(answer, err) })
	})
}

// scratch holds empty buffers in which messages are put together; the transport copies what it is given.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// maxScratch is the largest buffer that is kept for the next message.
const maxScratch = 256 << 10

// free gives a buffer back whose bytes nobody reads any more.
func free(buf *[]byte) {
	if cap(*buf) <= maxScratch {
		*buf = (*buf)[:0]
		scratch.Put(buf)
	}
}

// classOf: questions about who serves an address are answered at once when their silo becomes suspect.
// Nothing can have changed by them, and others can be asked: a frozen silo delays nobody further. A handshake
// finds out, as a ping does, whether a suspect silo is there.
func classOf(m wire.Request) transport.Class {
	switch m.(type) {
	case wire.Hello:
		return transport.Ping
	case wire.Lookup, wire.Locate:
		return transport.Read
	}
	return transport.Control
}

// Dial implements [membership.Links].
func (s *Silo) Dial(to membership.Member, done func(error)) {
	s.net.Connect(peerOf(to), func(err error) { s.parts.Do(func() { done(err) }) })
}

// Ping implements [membership.Links].
func (s *Silo) Ping(to membership.Member, pong func(membership.Pong)) {
	r := transport.Request{Kind: uint8(wire.KindPing), Class: transport.Ping, Within: s.parts.Pace.Outsider}
	s.net.Call(peerOf(to), r, func(a transport.Answer) {
		if a.Err == nil {
			answer, _ := wire.DecodeAnswer(a.Body) // whatever it says, it is a sign of life
			s.parts.Do(func() {
				is, _ := answer.(wire.Pong)
				pong(membership.Pong(is))
			})
		}
	})
}

// Differs implements [membership.Links].
func (s *Silo) Differs(from membership.Member, theirs membership.Key) { s.Saw(from, theirs) }

// Suspect implements [membership.Links].
func (s *Silo) Suspect(to membership.Member, on bool) { s.net.Suspect(uint64(to.Epoch), on) }

// Drop implements [membership.Links].
func (s *Silo) Drop(to membership.Member, cause error) { s.net.Drop(uint64(to.Epoch), cause) }

// Forget implements [membership.Links].
func (s *Silo) Forget(to membership.Member) { s.net.Forget(uint64(to.Epoch)) }

// errGreeting is what a member that answers something else than a handshake is joined with.
var errGreeting = errors.New("cluster: the member did not answer the handshake")

// Greet implements [membership.Greeter].
func (s *Silo) Greet(to membership.Member, within time.Duration, done func(error)) {
	s.Call(to, wire.Hello{}, within, func(a wire.Answer, err error) {
		if _, ok := a.(wire.OK); !ok && err == nil {
			err = errGreeting
		}
		done(err)
	})
}

// Handle implements the transport's handler: a request of a peer.
func (s *Silo) Handle(from transport.Peer, r transport.Request, reply func([]byte)) {
	kind := wire.Kind(r.Kind)
	if kind == wire.KindDeliver {
		s.parts.Deliver.Deliver(from, r.Body, reply)
		return
	}
	m, err := wire.Decode(kind, r.Body)
	if err != nil {
		s.parts.Log.Error("A silo sent a request that cannot be read", "silo", from.Name, "request", kind.String(), "error", err)
		reply(wire.EncodeAnswer(wire.Unknown{Why: "malformed"}))
		return
	}
	s.parts.Do(func() {
		answer := s.Core.Handle
		if _, ok := m.(wire.Ping); ok {
			answer = func(_ wire.Request, to func(wire.Answer)) { to(s.pong(membership.Epoch(from.Epoch))) }
		}
		answer(m, func(a wire.Answer) {
			buf := scratch.Get().(*[]byte)
			defer free(buf)
			*buf = wire.AppendAnswer(*buf, a)
			reply(*buf)
		})
	})
}

// pong answers a ping of a peer.
func (s *Silo) pong(from membership.Epoch) wire.Pong {
	heard, hears := s.Detector.Promise(from)
	return wire.Pong{Load: s.Core.host.Load(), Key: s.view.Key(), Heard: heard, Hears: hears}
}

// Accepted implements the transport's handler: a peer has opened a connection to this silo.
func (s *Silo) Accepted(from transport.Peer) {
	s.parts.Do(func() { s.Claims.Accepted(membership.Epoch(from.Epoch)) })
}

// Broken implements the transport's handler: a connection that this silo had dialled has broken, or a
// dial has failed, whoever asked for it.
func (s *Silo) Broken(to transport.Peer, cause error) {
	var dial *transport.DialError
	s.parts.Do(func() {
		if errors.As(cause, &dial) {
			s.Detector.Failed(memberOf(to))
		} else {
			s.Detector.Broken(memberOf(to))
		}
	})
}
