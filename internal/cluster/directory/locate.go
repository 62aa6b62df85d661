package directory

import (
	"errors"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/turn"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// Found is what the members said of one address.
type Found struct {
	Entry   *wire.Entry // who serves it; nil where nobody who answered does
	Closed  bool        // a member let go of it Age ago
	Age     time.Duration
	Asked   int
	Missing []membership.Member // those who did not answer
	Busy    bool                // some were not asked: too many questions wait
}

// Locator asks members whether they serve an address. Questions of one kind about one address share a
// round. Whoever joins a round that is under way takes its positive answer only; a silo may have
// answered before the joiner's address was registered there, so for a negative one the joiners start the
// next round together. Nothing is remembered between rounds. All of it runs on the turn.
type Locator struct {
	clock  turn.Clock
	peers  Peers
	config Config
	view   *membership.View
	self   membership.Epoch
	// ended tells of a registration that an owner of slots knows to have ended: its detach has overtaken what its
	// silo said before. nil: nobody knows of any.
	ended func(addr string, e wire.Entry) bool

	rounds map[wire.LocateItem]*round
	lines  map[membership.Epoch]*line
}

type round struct {
	item    wire.LocateItem
	to      func() []membership.Member
	waiting []func(Found)
	next    []joiner
	open    int // members that have not answered
	found   Found
	begun   bool // Locate has returned
	over    bool // its questions are answered; what still comes is for nobody
}

type joiner struct {
	to   func() []membership.Member
	done func(Found)
}

// line is the questions to one member: some in a frame under way, the others waiting for the next.
type line struct {
	to       membership.Member
	queue    []question
	inFlight bool
	armed    bool // the first question of a frame waits for more
}

type question struct {
	round *round
	tries int
}

// errBusy answers a question that found the line full.
var errBusy = errors.New("too many locate questions wait for this member")

// maxBehind is how often a member whose view is older than the question is asked again.
const maxBehind = 4

// NewLocator returns a locator without a view.
func NewLocator(c turn.Clock, p Peers, cfg Config) *Locator {
	return &Locator{clock: c, peers: p, config: cfg, rounds: map[wire.LocateItem]*round{}, lines: map[membership.Epoch]*line{}}
}

// Apply sets the view in which answers count and the incarnation that asks.
func (l *Locator) Apply(v *membership.View, self membership.Epoch) {
	l.view, l.self = v, self
	for e, ln := range l.lines {
		if !v.Has(e) && len(ln.queue) == 0 && !ln.inFlight {
			delete(l.lines, e)
		}
	}
}

// Waiting is the number of questions that wait to be sent.
func (l *Locator) Waiting() int {
	n := 0
	for _, ln := range l.lines {
		n += len(ln.queue)
	}
	return n
}

// Locate asks the members that to names when the round begins. done is called once, on the turn.
func (l *Locator) Locate(item wire.LocateItem, to func() []membership.Member, done func(Found)) {
	if r := l.rounds[item]; r != nil {
		r.next = append(r.next, joiner{to, done})
		return
	}
	l.begin(item, to, []func(Found){done})
}

func (l *Locator) begin(item wire.LocateItem, to func() []membership.Member, waiting []func(Found)) {
	r := &round{item: item, to: to, waiting: waiting, open: 1}
	l.rounds[item] = r
	for _, m := range to() {
		r.open++
		r.found.Asked++
		l.put(m, question{round: r})
	}
	l.clock.After(0, func() { // never before Locate has returned
		r.begun = true
		l.close(r)
	})
}

// close ends one member's part of a round, or the part that opened it. The round is over with the last one, or as
// soon as somebody serves the address: one that stands still must not keep what another one says.
func (l *Locator) close(r *round) {
	r.open--
	if r.over || !r.begun || r.open > 0 && r.found.Entry == nil {
		return
	}
	r.over = true
	delete(l.rounds, r.item)
	for _, done := range r.waiting {
		done(r.found)
	}
	if len(r.next) == 0 {
		return
	}
	if r.found.Entry != nil {
		for _, j := range r.next {
			j.done(r.found)
		}
		return
	}
	// An answer above may have begun a round of its own; then these join it. Otherwise they begin the next one
	// together: one after the other, each would wait for a round of its own.
	if now := l.rounds[r.item]; now != nil {
		now.next = append(now.next, r.next...)
		return
	}
	together := make([]func(Found), len(r.next))
	for i, j := range r.next {
		together[i] = j.done
	}
	l.begin(r.item, r.next[len(r.next)-1].to, together)
}

func (l *Locator) put(m membership.Member, q question) {
	ln := l.lines[m.Epoch]
	if ln == nil {
		ln = &line{to: m}
		l.lines[m.Epoch] = ln
	}
	if len(ln.queue) >= l.config.LocateQueue {
		l.clock.After(0, func() { l.missing(ln, q, errBusy) })
		return
	}
	ln.queue = append(ln.queue, q)
	if !ln.inFlight && !ln.armed {
		ln.armed = true
		l.clock.After(l.config.LocateGather, func() {
			ln.armed = false
			l.send(ln)
		})
	}
}

// send puts what waits for a member into one frame. There is one under way at a time.
func (l *Locator) send(ln *line) {
	if ln.inFlight || len(ln.queue) == 0 {
		return
	}
	n := min(len(ln.queue), l.config.LocateFrame)
	asked := ln.queue[:n:n]
	ln.queue = ln.queue[n:]
	m := wire.Locate{Head: wire.Head{From: l.self, To: ln.to.Epoch, Key: l.view.Key()}, Items: make([]wire.LocateItem, n)}
	for i, q := range asked {
		m.Items[i] = q.round.item
	}
	ln.inFlight = true
	l.peers.Ask(ln.to, m, l.config.LocateBound, func(a wire.Answer, err error) {
		ln.inFlight = false
		l.answered(ln, asked, a, err)
		l.send(ln)
	})
}

func (l *Locator) answered(ln *line, asked []question, a wire.Answer, err error) {
	located, ok := a.(wire.Located)
	if !ok || len(located.Items) != len(asked) {
		if w, wrong := a.(wire.WrongEpoch); wrong {
			l.peers.Saw(ln.to, w.Key)
		}
		// The member does not answer: those who wait behind this frame do not wait for another bound.
		asked = append(asked, ln.queue...)
		ln.queue = nil
		for _, q := range asked {
			l.missing(ln, q, err)
		}
		return
	}
	for i, q := range asked {
		l.note(ln, q, located.Key, located.Items[i])
	}
}

func (l *Locator) note(ln *line, q question, key membership.Key, it wire.LocatedItem) {
	r := q.round
	if r.over {
		return
	}
	switch it.Status {
	case wire.Serving:
		e := wire.Entry{Epoch: ln.to.Epoch, Reg: it.Reg, Node: it.Node}
		if l.view.Has(e.Epoch) && (l.ended == nil || !l.ended(r.item.Addr, e)) {
			r.found.Entry = &e // only what can be entered may end the round for those who have not answered yet
		}
	case wire.ClosedHere:
		if !r.found.Closed || it.Age < r.found.Age {
			r.found.Closed, r.found.Age = true, it.Age
		}
	case wire.NotYours:
		l.peers.Saw(ln.to, key)
		if key.Before(l.view.Key()) && q.tries < maxBehind {
			q.tries++
			l.clock.After(3*time.Millisecond<<q.tries, func() { l.put(ln.to, q) })
			return
		}
		r.found.Missing = append(r.found.Missing, ln.to)
	}
	l.close(r)
}

func (l *Locator) missing(ln *line, q question, err error) {
	if q.round.over {
		return
	}
	if errors.Is(err, errBusy) {
		q.round.found.Busy = true
	}
	q.round.found.Missing = append(q.round.found.Missing, ln.to)
	l.close(q.round)
}
