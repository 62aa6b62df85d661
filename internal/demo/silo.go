package demo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
)

// The states of a silo.
const (
	starting = "starting"
	up       = "up"
	frozen   = "frozen"
	killed   = "killed"
	leaving  = "leaving"
	left     = "left"
	failed   = "failed"
)

const (
	// observeEvery is how often a silo is looked at.
	observeEvery = 250 * time.Millisecond
	// buryWithin bounds the end of what is left of a silo in this process.
	buryWithin = 30 * time.Second
)

// silo is one of the three: one incarnation after the other under one name and one HTTP address.
type silo struct {
	d    *Demo
	name string

	mu       sync.Mutex
	state    string
	since    time.Time
	why      string // of failed
	addr     string // of its HTTP server; the first start chooses it
	life     *life  // nil before the first start
	status   json.RawMessage
	statusAt time.Time
	serves   bool // the demo's node
	door     door
}

// life is one incarnation.
type life struct {
	was     *life // the one before, until it has ended
	gate    *gate
	l       *listener     // nil until it listens
	mesh    *hubmesh.Mesh // nil until it is up
	serving context.Context
	stop    context.CancelFunc // ends its HTTP server
	ended   chan struct{}      // closed once nothing of it is left
}

// StateError answers an action that the state of a silo does not allow.
type StateError struct{ Silo, Action, State, Try string }

func (e *StateError) Error() string {
	return fmt.Sprintf("%s is %s: it can not be told to %s; %s", e.Silo, e.State, e.Action, e.Try)
}

// change takes the silo from one of the states to another one; s.mu is held.
func (s *silo) change(action, to string, try string, from ...string) (*life, error) {
	for _, f := range from {
		if s.state == f {
			s.enter(to)
			return s.life, nil
		}
	}
	return nil, &StateError{Silo: s.name, Action: action, State: s.state, Try: try}
}

// act is change for what is done to a life.
func (s *silo) act(action, to string, try string, from ...string) (*life, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.change(action, to, try, from...)
}

// enter notes a new state; s.mu is held.
func (s *silo) enter(state string) {
	s.state, s.since, s.why = state, time.Now().UTC(), ""
	if state != up {
		s.serves = false
	}
}

// settle notes the state that follows, unless something else has happened to this life.
func (s *silo) settle(l *life, from, to, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life == l && s.state == from {
		s.enter(to)
		s.why = why
	}
}

// start begins a life. It returns once the silo has joined the others, or could not.
func (s *silo) start() error {
	l, err := s.born()
	if err != nil {
		return err
	}
	return s.run(l)
}

// restart is start in the background.
func (s *silo) restart() error {
	l, err := s.born()
	if err == nil {
		s.d.work.Go(func() { _ = s.run(l) }) // what it comes to is told by the state
	}
	return err
}

// born makes the next life, which can be killed from now on.
func (s *silo) born() (*life, error) {
	l := &life{gate: newGate(), ended: make(chan struct{})}
	l.serving, l.stop = context.WithCancel(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	was, err := s.change("start", starting, "kill it first", "", killed, left, failed)
	if err != nil {
		l.stop()
		return nil, err
	}
	l.was, s.life = was, l
	return l, nil
}

// run runs a life after the one before.
func (s *silo) run(l *life) error {
	if l.was != nil {
		<-l.was.ended
		l.was = nil
	}
	err := s.begin(l)
	if err != nil {
		s.settle(l, starting, failed, err.Error())
		s.d.events.add(Event{Silo: s.name, Kind: "action", Level: "error", Text: "did not start: " + err.Error()})
		l.stop()
		close(l.ended)
		return err
	}
	s.settle(l, starting, up, "")
	return nil
}

// listen opens the HTTP server of a life, at the address of the first one.
func (s *silo) listen(l *life) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, err := net.Listen("tcp", s.addr)
	if err != nil {
		return fmt.Errorf("its HTTP server: %w", err)
	}
	s.addr, l.l = raw.Addr().String(), behind(raw, l.gate)
	return nil
}

func (s *silo) begin(l *life) error {
	if isClosed(l.gate.dead) {
		return errKilled
	}
	if err := s.listen(l); err != nil {
		return err
	}
	mesh, err := hubmesh.New(hubmesh.Options{Logger: slog.New(logger{silo: s.name, dead: l.gate.dead, events: s.d.events, next: s.d.opts.Log}), Embedded: &hubmesh.Embedded{
		Name: s.name, Store: &lease{s.d.store, l.gate, s.name + "-" + rand.Text()[:8]}, Content: s.d.content, Dead: l.gate.dead,
		Join: func(self transport.Peer, h transport.Handler) (transport.Transport, error) {
			if isClosed(l.gate.dead) {
				return nil, errKilled
			}
			return s.d.net.JoinWith(transport.Config{Self: self, Handler: h})
		},
		Table: func(do func(func()), changed func()) membership.ClosingTable {
			return open(s.d.table, l.gate, do, changed)
		},
	}})
	if err != nil {
		l.l.cut()
		return err
	}
	s.mu.Lock()
	l.mesh = mesh
	s.mu.Unlock()
	served := make(chan error, 1)
	s.d.work.Go(func() {
		served <- l.mesh.Serve(l.serving, l.l, hubmesh.ServeOptions{Version: s.d.opts.Version, Drain: 2 * checkEvery})
	})
	s.d.work.Go(func() { s.observe(l) })
	s.d.work.Go(func() { s.bury(l, <-served) })
	return nil
}

// bury ends what is left of a life whose HTTP server has ended.
func (s *silo) bury(l *life, served error) {
	defer close(l.ended)
	bound, cancel := context.WithTimeoutCause(context.Background(), buryWithin, errors.New("the end of a silo took more than "+buryWithin.String()))
	defer cancel()
	err := l.mesh.Close(bound)
	select {
	case <-l.gate.dead: // nobody hears what it says
		return
	default:
	}
	if err = errors.Join(served, err); err != nil {
		s.d.events.add(Event{Silo: s.name, Kind: "action", Level: "warn", Text: "has left: " + err.Error()})
	}
	s.settle(l, leaving, left, "")
}

// kill ends the silo as a SIGKILL does: nothing of it happens any more.
func (s *silo) kill() error {
	l, err := s.act("kill", killed, "start it first", starting, up, frozen, leaving)
	if err != nil {
		return err
	}
	l.gate.kill()
	s.d.net.Crash(s.name)
	l.stop()
	s.mu.Lock()
	http := l.l
	s.mu.Unlock()
	if http != nil {
		http.cut()
	}
	return nil
}

// freeze stops everything that goes in or out, as a SIGSTOP does.
func (s *silo) freeze() error {
	l, err := s.act("freeze", frozen, "only one that is up can freeze", up)
	if err != nil {
		return err
	}
	s.d.net.Hold(s.name)
	l.gate.freeze()
	return nil
}

// thaw lets a frozen silo go on.
func (s *silo) thaw() error {
	l, err := s.act("thaw", up, "freeze it first", frozen)
	if err != nil {
		return err
	}
	s.d.net.Release(s.name)
	if !l.gate.thaw() {
		s.d.events.add(Event{Silo: s.name, Kind: "action", Level: "error", Text: "was frozen for so long that it can not go on; it is killed"})
		return s.kill()
	}
	return nil
}

// leave has the silo hand over, leave and stop.
func (s *silo) leave() error {
	l, err := s.act("leave", leaving, "only one that is up can leave", up)
	if err != nil {
		return err
	}
	l.stop()
	return nil
}

// observe looks at a life until it has ended.
func (s *silo) observe(l *life) {
	every := time.NewTicker(observeEvery)
	defer every.Stop()
	for {
		select {
		case <-l.ended:
			return
		case <-every.C:
		}
		s.mu.Lock()
		seen := s.life == l && (s.state == up || s.state == leaving)
		s.mu.Unlock()
		if !seen {
			continue
		}
		status, serves := l.mesh.Report(), l.mesh.Serves(NodePath)
		s.mu.Lock()
		if s.life == l && (s.state == up || s.state == leaving) { // what was seen of one that is frozen now is too late to be told
			s.status, s.statusAt, s.serves = status, time.Now().UTC(), serves
		}
		s.mu.Unlock()
	}
}
