package membership

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/turn"
)

// Row is one member as the table holds it.
type Row struct {
	Member
	Fresh bool // its heartbeat is younger than the table's limit, by the table's clock
}

// Table is where views come from: rows of members, each change of which raises the view's key, in one
// transaction. Every call returns at once; done is called on the turn, once, never before the call has
// returned, with an error where the outcome is not known.
type Table interface {
	Read(done func([]Row, error))
	// Join puts in a member, replaces the row at its name or address, and removes the stale rows
	// among those named.
	Join(m Member, stale []Epoch, done func(*View, error))
	// Beat refreshes a member's heartbeat and returns the key of the view.
	Beat(self Epoch, done func(Key, error))
	// View returns the view.
	View(done func(*View, error))
	// Vote counts a vote against a member, and removes it where the votes suffice. It is refused
	// where the voter has no row.
	Vote(target Member, voter Epoch, done func(error))
	// Leave marks a member as leaving, and Gone removes it.
	Leave(self Epoch, done func(*View, error))
	Gone(self Epoch, done func(error))
}

// ClosingTable is a table as one silo uses it, closed with the silo.
type ClosingTable interface {
	Table
	Close()
}

// Needed is how many votes remove a member, given how many other members have a fresh heartbeat: two, or
// one where there is only one other, so that the survivor of two that died together is not stuck.
func Needed(others int) int { return min(2, max(1, others)) }

// Greeter shakes hands: a silo joins only when every member has answered it.
type Greeter interface {
	Greet(to Member, within time.Duration, done func(error))
}

// Phase is where a silo stands.
type Phase uint8

// The phases.
const (
	Joining Phase = iota
	Up
	Leaving
	Left
)

func (p Phase) String() string { return [...]string{"joining", "up", "leaving", "left"}[p] }

// Timing is the pace of a silo's dealings with the table.
type Timing struct {
	Beat      time.Duration // between two heartbeats
	Greet     time.Duration // one handshake of a join
	RetryFrom time.Duration // the pause before the next attempt to join is drawn from [RetryFrom, RetryTo]
	RetryTo   time.Duration
}

// DefaultTiming is that of protocol.md §2.
func DefaultTiming() Timing {
	return Timing{Beat: time.Second, Greet: time.Second, RetryFrom: 100 * time.Millisecond, RetryTo: 300 * time.Millisecond}
}

// Silo is this process in the table: it joins, keeps its heartbeat, votes, leaves, and joins anew after
// an eviction. It runs on the turn.
type Silo struct {
	clock  turn.Clock
	table  Table
	greet  Greeter
	rand   *rand.Rand
	timing Timing
	me     Member
	phase  Phase
	trial  Epoch // chosen for a join, and not written to the table yet
	known  Key
	asking bool // a heartbeat is on its way
	next   *Confirmation
	events Events
}

// Events are what a silo in the table tells whoever runs it, on the turn.
type Events struct {
	// Chosen: the silo is about to shake hands and to join under an epoch; its connections carry it.
	Chosen func(Epoch)
	// Joined: it stands in the table under that epoch, in this view.
	Joined func(Epoch, *View)
	// Viewed: a view was read. Whoever gets it compares keys.
	Viewed func(*View)
	// Waiting: an attempt to join has come to nothing, and why; may be nil. What a member
	// causes is a *[BlockedError] or a *[NameError], anything else is the table's.
	Waiting func(error)
}

// BlockedError says which member keeps a silo from joining: its heartbeat is fresh, and it does not answer.
type BlockedError struct {
	Member Member
	Cause  error
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("silo %s at %s does not answer the handshake: %v", e.Member.Name, e.Member.Addr, e.Cause)
}

func (e *BlockedError) Unwrap() error { return e.Cause }

// NameError refuses a silo whose name another one has that lives.
type NameError struct{ Member Member }

func (e *NameError) Error() string {
	return fmt.Sprintf("another silo has the name %s: it answers at %s", e.Member.Name, e.Member.Addr)
}

// NewSilo returns a silo that has not joined. me.Epoch is ignored: each attempt to join chooses one.
func NewSilo(c turn.Clock, t Table, g Greeter, r *rand.Rand, timing Timing, me Member, e Events) *Silo {
	me.Epoch = 0
	return &Silo{clock: c, table: t, greet: g, rand: r, timing: timing, me: me, events: e}
}

// Phase is where the silo stands, and Self its epoch, 0 while it joins.
func (s *Silo) Phase() Phase { return s.phase }

// Self is the silo's epoch, 0 while it joins.
func (s *Silo) Self() Epoch { return s.me.Epoch }

// Start begins to join and to keep the heartbeat.
func (s *Silo) Start() {
	s.join()
	s.beat()
}

func (s *Silo) again(why error) {
	if s.events.Waiting != nil {
		s.events.Waiting(why)
	}
	spread := s.timing.RetryTo - s.timing.RetryFrom
	s.clock.After(s.timing.RetryFrom+time.Duration(s.rand.Int64N(int64(spread)+1)), s.join)
}

// join reads the rows and shakes hands with every other member. A member that does not answer blocks
// the join while its heartbeat is fresh; a stale one is removed by it.
func (s *Silo) join() {
	if s.phase != Joining {
		return
	}
	s.table.Read(func(rows []Row, err error) {
		if err != nil {
			s.again(err)
			return
		}
		var others []Row // and who has this silo's name at another address
		for _, r := range rows {
			if r.Addr != s.me.Addr {
				others = append(others, r)
			}
		}
		m := s.me
		m.Epoch = s.choose()
		open, blocked := len(others), error(nil)
		var stale []Epoch
		if open == 0 {
			s.enter(m, nil)
			return
		}
		for _, r := range others {
			s.greet.Greet(r.Member, s.timing.Greet, func(err error) {
				switch twin := r.Name == s.me.Name; {
				case err == nil && twin:
					blocked = &NameError{Member: r.Member}
				case err == nil, twin: // the row of one that has moved is replaced
				case r.Fresh:
					blocked = &BlockedError{Member: r.Member, Cause: err}
				default:
					stale = append(stale, r.Epoch)
				}
				if open--; open > 0 {
					return
				}
				if blocked != nil {
					s.again(blocked)
					return
				}
				s.enter(m, stale)
			})
		}
	})
}

// choose returns the epoch of the next attempt to join. Attempts that fail before the table has seen their epoch
// share it, and with it the connections that they have opened: on a busy machine none might ever be done in time.
func (s *Silo) choose() Epoch {
	if s.trial == 0 {
		for s.trial == 0 {
			s.trial = Epoch(s.rand.Uint64())
		}
		s.events.Chosen(s.trial)
	}
	return s.trial
}

func (s *Silo) enter(m Member, stale []Epoch) {
	if s.phase != Joining {
		return
	}
	s.trial = 0
	s.table.Join(m, stale, func(v *View, err error) {
		if s.phase == Left { // meanwhile; the row may be there
			s.table.Gone(m.Epoch, func(error) {})
		}
		if s.phase != Joining {
			return
		}
		if err != nil { // it may have been written: the next attempt replaces the row
			s.again(err)
			return
		}
		s.me, s.phase = m, Up
		s.events.Joined(m.Epoch, v)
	})
}

// Evicted says that this silo is in no view any more. It joins anew, with another epoch; a silo that
// was leaving has left.
func (s *Silo) Evicted() {
	s.me.Epoch = 0
	if s.phase == Leaving {
		s.phase = Left
	}
	if s.phase == Left {
		return
	}
	s.phase = Joining
	s.clock.After(time.Duration(s.rand.Int64N(int64(20*time.Millisecond))), s.join)
}

func (s *Silo) beat() {
	if s.phase == Left {
		return
	}
	s.clock.After(s.timing.Beat, s.beat)
	s.ask()
}

// Confirmation is whether this silo stood in the table's view at some time after it was asked for.
type Confirmation struct {
	done chan struct{}
	in   bool
}

// Done is closed when it is known. Any goroutine may wait.
func (c *Confirmation) Done() <-chan struct{} { return c.done }

// In is the answer, once Done is closed; false also where the table did not say.
func (c *Confirmation) In() bool { return c.in }

func (c *Confirmation) settle(in bool) {
	if c != nil {
		c.in = in
		close(c.done)
	}
}

// Confirm asks the table whether this silo still stands in its view. All who ask while a heartbeat is on
// its way share the next one.
func (s *Silo) Confirm() *Confirmation {
	if s.next == nil {
		s.next = &Confirmation{done: make(chan struct{})}
	}
	c := s.next
	s.ask()
	return c
}

// ask sends a heartbeat, unless one is on its way.
func (s *Silo) ask() {
	if s.asking {
		return
	}
	c := s.next
	s.next = nil
	self := s.me.Epoch
	if self == 0 {
		c.settle(false)
		return
	}
	s.asking = true
	s.table.Beat(self, func(k Key, err error) {
		s.asking = false
		switch {
		case err != nil:
			c.settle(false)
		case k != s.known: // perhaps this silo has been put out
			s.refresh(func(v *View) { c.settle(v.Has(self) && s.me.Epoch == self) })
		default:
			c.settle(s.me.Epoch == self)
		}
		if s.next != nil {
			s.ask()
		}
	})
}

// Applied notes the key of the view that this silo works with, so that a heartbeat whose answer has
// another one makes up for a lost notification.
func (s *Silo) Applied(k Key) { s.known = k }

// Refresh reads the view: a change was notified.
func (s *Silo) Refresh() { s.refresh(func(*View) {}) }

// refresh reads the view and then calls read with it, nil where there was none to read.
func (s *Silo) refresh(read func(*View)) {
	if s.phase == Left {
		read(nil)
		return
	}
	s.table.View(func(v *View, err error) {
		if err != nil {
			read(nil)
			return
		}
		s.events.Viewed(v)
		read(v)
	})
}

// Vote casts a vote against a member.
func (s *Silo) Vote(target Member) {
	if s.phase != Up || target.Epoch == s.me.Epoch {
		return
	}
	s.table.Vote(target, s.me.Epoch, func(error) {})
}

// Leave marks this silo as leaving and then calls done with the view that says so, or with nil where
// the table cannot be asked, the mesh is then to be told directly, or where this silo is in no view: it has
// left, and joins no more.
func (s *Silo) Leave(done func(*View)) {
	if s.phase == Joining {
		s.phase = Left
	}
	if s.phase != Up {
		done(nil)
		return
	}
	self := s.me.Epoch
	s.table.Leave(self, func(v *View, err error) {
		if s.me.Epoch != self { // put out meanwhile
			s.phase = Left
			done(nil)
			return
		}
		s.phase = Leaving
		if err != nil {
			v = nil
		}
		done(v)
	})
}

// Gone removes this silo's row, after everything has been handed over and drained. One that has been put out
// while it left has none.
func (s *Silo) Gone(done func(error)) {
	switch s.phase {
	case Left:
		done(nil)
		return
	case Joining, Up:
		done(errors.New("membership: not leaving"))
		return
	case Leaving:
	}
	s.table.Gone(s.me.Epoch, func(err error) {
		s.phase = Left
		done(err)
	})
}
