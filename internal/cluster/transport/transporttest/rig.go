package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
)

// Rig makes worlds of silos for the suite.
type Rig interface {
	// Bubble runs one test, in a bubble of virtual time where the implementation has it.
	Bubble(t *testing.T, test func(t *testing.T))
	// World is an empty network. It cleans up at the end of t, after the silos that were opened.
	World(t *testing.T) World
}

// World is one network of silos.
type World interface {
	// Open starts a silo. version is the wire version that it speaks; 0 is the present one. A silo of a
	// name that has crashed or is closed comes back at the same address.
	Open(t *testing.T, cfg transport.Config, version uint16) Silo
	// Crash ends the silo's process: its connections break and dials to it are refused.
	Crash(t *testing.T, name string)
	// Break breaks the connections that others have dialled to that silo.
	Break(t *testing.T, name string)
	// Mute is an address where connections open and no handshake is ever answered.
	Mute(t *testing.T) string
	// Lag holds back what from sends to the silo on its present connection, whatever becomes of the
	// connection. carries returns when something is on its way; release lets it arrive, and returns when it
	// has. New connections are not held back.
	Lag(t *testing.T, from, to string) (carries, release func())
}

// Silo is a transport with its own name.
type Silo interface {
	transport.Transport
	Self() transport.Peer
}

// Run proves the contract of transport.Transport on the silos of the rig.
func Run(t *testing.T, rig Rig) {
	for _, group := range []struct {
		name string
		run  func(*testing.T, Rig)
	}{
		{"order", runOrder}, {"refusals", runRefusals}, {"suspicion", runSuspicion}, {"breaks", runBreaks},
		{"handshake", runHandshake}, {"lapses", runLapses}, {"lifecycle", runLifecycle}, {"stress", runStress},
	} {
		t.Run(group.name, func(t *testing.T) { group.run(t, rig) })
	}
}

// node is an open silo with the handler above it.
type node struct {
	Silo
	self transport.Peer
	h    *handler
	log  *logged
}

// bench is a world and short verbs that fail the test.
type bench struct {
	t *testing.T
	World
}

// suite runs subtests, each on a fresh world.
type suite struct {
	t   *testing.T
	rig Rig
}

func (s suite) Run(sentence string, test func(b bench)) {
	s.t.Run(sentence, func(t *testing.T) {
		s.rig.Bubble(t, func(t *testing.T) { test(bench{t, s.rig.World(t)}) })
	})
}

type option func(cfg *transport.Config, version *uint16)

func limits(l transport.Limits) option {
	return func(cfg *transport.Config, _ *uint16) { cfg.Limits = l }
}

// slowDial makes a dial that nobody answers end soon, but long after a short request has lapsed.
func slowDial(cfg *transport.Config, _ *uint16) {
	table := budget.Defaults().With(budget.SiloDial, time.Second)
	cfg.Bounds = &table
}

func (b bench) open(name string, epoch uint64, options ...option) node {
	b.t.Helper()
	h, l := newHandler(), &logged{}
	cfg := transport.Config{Self: transport.Peer{Name: name, Epoch: epoch}, Cluster: "test", Handler: h, Logger: slog.New(l)}
	var version uint16
	for _, o := range options {
		o(&cfg, &version)
	}
	s := b.Open(b.t, cfg, version)
	b.t.Cleanup(func() { s.Close(context.Background()) })
	return node{s, s.Self(), h, l}
}

func (b bench) pair() (a, c node) { return b.open("a", 0xa1), b.open("b", 0xb1) }

// patience is how long the suite waits for what must happen; it is no bound of the contract.
const patience = 30 * time.Second

func wait[V any](t *testing.T, what string, from <-chan V) V {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("still waiting for %s", what)
		panic("unreachable")
	}
}

// call sends and returns where the answer comes; a second answer panics.
func (n node) call(to transport.Peer, r transport.Request) <-chan transport.Answer {
	answer := make(chan transport.Answer, 1)
	n.Call(to, r, func(a transport.Answer) {
		a.Body = bytes.Clone(a.Body)
		select {
		case answer <- a:
		default:
			panic("a call was answered twice")
		}
	})
	return answer
}

func (n node) ask(t *testing.T, to transport.Peer, class transport.Class, body string) transport.Answer {
	t.Helper()
	return wait(t, "the answer to "+body, n.call(to, transport.Request{Class: class, Body: []byte(body)}))
}

// answered asks and fails the test unless the peer echoes.
func (n node) answered(t *testing.T, to transport.Peer, body string) {
	t.Helper()
	if a := n.ask(t, to, transport.Write, body); a.Err != nil || string(a.Body) != body {
		t.Fatalf("%s: %q, %v", body, a.Body, a.Err)
	}
}

func (n node) connect(t *testing.T, to transport.Peer) error {
	t.Helper()
	done := make(chan error, 1)
	n.Connect(to, func(err error) { done <- err })
	return wait(t, "the connection", done)
}

func (n node) connected(t *testing.T, to transport.Peer) {
	t.Helper()
	if err := n.connect(t, to); err != nil {
		t.Fatal(err)
	}
}

func (n node) stats(epoch uint64) transport.PeerStats {
	for _, s := range n.Peers() {
		if s.Epoch == epoch {
			return s
		}
	}
	return transport.PeerStats{}
}

// write is a request of the class whose outcome matters.
func write(body string) transport.Request {
	return transport.Request{Class: transport.Write, Body: []byte(body)}
}

func notSent(t *testing.T, err error, reason transport.Reason) *transport.NotSentError {
	t.Helper()
	var e *transport.NotSentError
	if !errors.As(err, &e) || e.Reason != reason {
		t.Fatalf("got %v; want not sent, %v", err, reason)
	}
	return e
}

func lost(t *testing.T, err error, reason transport.Reason) *transport.LostError {
	t.Helper()
	var e *transport.LostError
	if !errors.As(err, &e) || e.Reason != reason {
		t.Fatalf("got %v; want outcome unknown, %v", err, reason)
	}
	return e
}

// handler records what arrives; it echoes unless act is set.
type handler struct {
	mu       sync.Mutex
	act      func(r transport.Request, reply func([]byte))
	got      []arrived
	bodies   map[string]int
	arrivals chan arrived
	accepted chan transport.Peer
	broken   chan broken
}

type arrived struct {
	from  transport.Peer
	r     transport.Request
	reply func([]byte)
}

type broken struct {
	to    transport.Peer
	cause error
}

func newHandler() *handler {
	return &handler{
		bodies:   map[string]int{},
		arrivals: make(chan arrived, 1<<17), accepted: make(chan transport.Peer, 1<<12), broken: make(chan broken, 1<<16),
	}
}

// silent keeps requests without an answer.
func silent(transport.Request, func([]byte)) {}

func (h *handler) does(act func(transport.Request, func([]byte))) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.act = act
}

func (h *handler) Handle(from transport.Peer, r transport.Request, reply func([]byte)) {
	h.mu.Lock()
	act := h.act
	a := arrived{from, r, reply}
	a.r.Body = bytes.Clone(r.Body)
	h.got = append(h.got, a)
	h.bodies[string(r.Body)]++
	h.mu.Unlock()
	h.arrivals <- a
	if act != nil {
		act(r, reply)
		return
	}
	reply(r.Body)
}

func (h *handler) Accepted(from transport.Peer)          { h.accepted <- from }
func (h *handler) Broken(to transport.Peer, cause error) { h.broken <- broken{to, cause} }
func (h *handler) handled(body string) int               { h.mu.Lock(); defer h.mu.Unlock(); return h.bodies[body] }
func (h *handler) next(t *testing.T) arrived             { t.Helper(); return wait(t, "a request", h.arrivals) }
func (h *handler) nextAccepted(t *testing.T) transport.Peer {
	t.Helper()
	return wait(t, "a connection", h.accepted)
}

// logged keeps what a silo logs.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Enabled(context.Context, slog.Level) bool { return true }
func (l *logged) WithAttrs(a []slog.Attr) slog.Handler     { return l }
func (l *logged) WithGroup(string) slog.Handler            { return l }
func (l *logged) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

func (l *logged) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}
