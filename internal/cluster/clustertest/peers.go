package clustertest

import (
	"errors"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/directory"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// ErrLate ends a question that nobody answered within its bound, and ErrLost one that the test loses.
var (
	ErrLate = errors.New("no answer in time")
	ErrLost = errors.New("the connection broke")
)

// Ask is one question that a machine has asked.
type Ask struct {
	To      membership.Member
	Message wire.Request // as it comes out of its bytes
	Within  time.Duration
	At      time.Duration // when it was asked

	t     testing.TB
	done  func(wire.Answer, error)
	stop  func()
	taken bool
}

// Open tells whether the question has no answer yet.
func (a *Ask) Open() bool { return a.done != nil }

// Answer gives the answer, through its bytes. An answer to a question that is over counts for nothing.
func (a *Ask) Answer(x wire.Answer) {
	got, err := wire.DecodeAnswer(wire.EncodeAnswer(x))
	if err != nil {
		a.t.Fatalf("the answer %T to %s cannot be read: %v", x, a.Message.Kind(), err)
	}
	a.end(got, nil)
}

// Fail says that no answer will come.
func (a *Ask) Fail(err error) { a.end(nil, err) }

func (a *Ask) end(x wire.Answer, err error) {
	if done := a.done; done != nil {
		a.done = nil
		a.stop()
		done(x, err)
	}
}

// Sight is a view's key that a machine has seen at a peer.
type Sight struct {
	From membership.Member
	Key  membership.Key
}

// Peers is the other silos, as a machine asks them. It keeps every question until the test answers it;
// one that the test leaves alone lapses at its bound.
type Peers struct {
	// Script, where set, is given each question once Ask has returned, and may answer it.
	Script func(*Ask)
	// Asks are all questions in their order.
	Asks []*Ask
	// Seen are the keys that the machine has noted.
	Seen []Sight

	t     testing.TB
	clock *Clock
}

var _ directory.Peers = (*Peers)(nil)

// NewPeers returns silos that answer nothing yet.
func NewPeers(t testing.TB, c *Clock) *Peers { return &Peers{t: t, clock: c} }

// Ask implements [directory.Peers].
func (p *Peers) Ask(to membership.Member, m wire.Request, within time.Duration, done func(wire.Answer, error)) {
	got, err := wire.Decode(m.Kind(), wire.Encode(m))
	if err != nil {
		p.t.Fatalf("the request %s cannot be read: %v", m.Kind(), err)
	}
	a := &Ask{To: to, Message: got, Within: within, At: p.clock.Now(), t: p.t, done: done}
	a.stop = p.clock.After(within, func() { a.Fail(ErrLate) })
	p.Asks = append(p.Asks, a)
	if p.Script != nil {
		p.clock.After(0, func() { p.Script(a) })
	}
}

// Call is Ask under the name that a core calls it by.
func (p *Peers) Call(to membership.Member, m wire.Request, within time.Duration, done func(wire.Answer, error)) {
	p.Ask(to, m, within, done)
}

// Saw implements [directory.Peers].
func (p *Peers) Saw(from membership.Member, key membership.Key) {
	p.Seen = append(p.Seen, Sight{from, key})
}

// Waiting lists the open questions that the test has not taken.
func (p *Peers) Waiting() []*Ask {
	var out []*Ask
	for _, a := range p.Asks {
		if !a.taken && a.Open() {
			out = append(out, a)
		}
	}
	return out
}

// Silent fails the test where a question waits.
func (p *Peers) Silent() {
	p.t.Helper()
	for _, a := range p.Waiting() {
		p.t.Fatalf("%s was asked %s %+v, nothing was expected", a.To.Name, a.Message.Kind(), a.Message)
	}
}

// Take takes the oldest open question of a kind.
func Take[M wire.Request](p *Peers) (*Ask, M) {
	p.t.Helper()
	for _, a := range p.Waiting() {
		if m, ok := a.Message.(M); ok {
			a.taken = true
			return a, m
		}
	}
	var m M
	p.t.Fatalf("no open %s; these wait: %v", m.Kind(), kinds(p.Waiting()))
	return nil, m
}

// TakeFrom takes the oldest open question of a kind to one silo.
func TakeFrom[M wire.Request](p *Peers, name string) (*Ask, M) {
	p.t.Helper()
	for _, a := range p.Waiting() {
		if m, ok := a.Message.(M); ok && a.To.Name == name {
			a.taken = true
			return a, m
		}
	}
	var m M
	p.t.Fatalf("no open %s to %s; these wait: %v", m.Kind(), name, kinds(p.Waiting()))
	return nil, m
}

// Count is the number of questions of a kind so far, answered or not.
func Count[M wire.Request](p *Peers) int {
	n := 0
	for _, a := range p.Asks {
		if _, ok := a.Message.(M); ok {
			n++
		}
	}
	return n
}

func kinds(asks []*Ask) []string {
	out := []string{}
	for _, a := range asks {
		out = append(out, a.Message.Kind().String()+" to "+a.To.Name)
	}
	return out
}
