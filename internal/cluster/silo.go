package cluster

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
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

	heard atomic.Int64 // when a peer or the table was last heard, on the clock; read off the turn too
	alone atomic.Bool  // there is nobody else to be heard
}

// NewSilo returns a silo that has not joined. [Silo.Use] gives it its network, then [Silo.Start] begins.
func NewSilo(p Parts) *Silo {
	s := &Silo{parts: p}
	s.Core = New(p.Clock, s, host{p.Host, s}, p.Watch, p.Config)
	s.explain = s.explainTo
	s.Detector = membership.NewDetector(p.Clock, s, p.Pace, func(m membership.Member) { s.Member.Vote(m) })
	s.judge = s.Detector
	s.Member = membership.NewSilo(p.Clock, p.Table, s, p.Rand, p.Timing, p.Me, membership.Events{
		Heard:  s.hear,
		Chosen: func(e membership.Epoch) { s.net.SetEpoch(uint64(e)) },
		Joined: func(self membership.Epoch, v *membership.View) {
			s.hear() // the table has just answered
			s.Joined(self, v)
		},
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
	h.silo.alone.Store(len(v.Members()) < 2)
	h.silo.Detector.Apply(v, h.silo.self)
	h.silo.Member.Applied(v.Key())
	h.Host.Applied(v)
}

func (h host) Evicted() {
	h.Host.Evicted()
	h.silo.Member.Evicted()
}

// hear notes a sign of life of a peer or of the table.
func (s *Silo) hear() { s.heard.Store(int64(s.parts.Clock.Now())) }

// Isolated tells whether this silo has heard no peer and no table for longer than its permit: others may
// have put it out and serve in its place, so it must not answer from what it holds (decision 1). It may
// be called off the turn. A silo that is alone by its view is not isolated.
func (s *Silo) Isolated() bool {
	return !s.alone.Load() && s.parts.Clock.Now()-time.Duration(s.heard.Load()) > s.parts.Pace.Permit
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
// Nothing can have changed by them, and others can be asked: a frozen silo delays nobody further.
func classOf(m wire.Request) transport.Class {
	switch m.(type) {
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
func (s *Silo) Ping(to membership.Member, pong func(load int)) {
	r := transport.Request{Kind: uint8(wire.KindPing), Class: transport.Ping, Within: s.parts.Pace.Outsider}
	s.net.Call(peerOf(to), r, func(a transport.Answer) {
		if a.Err == nil {
			s.hear()
			answer, _ := wire.DecodeAnswer(a.Body) // whatever it says, it is a sign of life
			s.parts.Do(func() {
				is, _ := answer.(wire.Pong)
				pong(is.Load)
			})
		}
	})
}

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
		s.Core.Handle(m, func(a wire.Answer) {
			buf := scratch.Get().(*[]byte)
			defer free(buf)
			*buf = wire.AppendAnswer(*buf, a)
			reply(*buf)
		})
	})
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
