package transport

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Memory is a silo's end of a [Network]. Its methods may be called from any goroutine and never block,
// Close included.
type Memory struct {
	net        *Network
	cfg        Config
	notices    notices
	epoch      uint64
	generation uint64
	closed     bool // Close: its own pending calls are still told
	dead       bool // Crash: nothing of it runs any more
	held       bool
	links      map[uint64]*memoryLink // look-ups, or sorted
	suspects   map[uint64]bool
	accepted   map[uint64]*memoryPeer // look-ups, or sorted
	events     []func()
	busy       bool // an event runs
	lastLocal  time.Duration
}

var _ Transport = (*Memory)(nil)

// memoryLink is one incarnation that this endpoint calls.
type memoryLink struct {
	book
	flow   *flow // nil when book.s is nil
	isOpen bool
	armed  time.Duration // when the timer for lapses fires; 0: not set
	disarm func() bool
}

// memoryPeer is one incarnation that has dialled this endpoint.
type memoryPeer struct {
	from       Peer
	generation uint64
	flow       *flow // nil when it has ended
	fenced     uint64
	traffic    traffic
}

func (m *Memory) alive() bool { return m != nil && !m.dead && !m.closed }

// Self is this incarnation.
func (m *Memory) Self() Peer {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	self := m.cfg.Self
	self.Epoch = m.epoch
	return self
}

// After runs f as an event of this endpoint, so in a test of silos their own timers stand still with
// them and vanish with them.
func (m *Memory) After(d time.Duration, f func()) (stop func() bool) { return m.after(d, f) }

// after queues f as an event.
func (m *Memory) after(d time.Duration, f func()) (stop func() bool) {
	return m.at(m.net.sched.Now()+max(d, 0), f)
}

// at queues f as an event of that moment. Events of one moment come in the order of at.
func (m *Memory) at(at time.Duration, f func()) (stop func() bool) {
	return m.net.sched.At(at, func() {
		m.net.mu.Lock()
		if !m.dead {
			m.events = append(m.events, f)
		}
		m.net.mu.Unlock()
		m.drain()
	})
}

// drain runs the events that wait, unless they are held or another drain does.
func (m *Memory) drain() {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	if m.busy {
		return
	}
	m.busy = true
	for len(m.events) > 0 && !m.held && !m.dead {
		f := m.events[0]
		m.events[0] = nil
		m.events = m.events[1:]
		m.unlocked(f)
	}
	if len(m.events) == 0 {
		m.events = nil
	}
	m.busy = false
}

func (m *Memory) unlocked(f func()) {
	m.net.mu.Unlock()
	defer m.net.mu.Lock()
	f()
}

// local runs f as an event soon, after those that were made so before. The caller holds the lock.
func (m *Memory) local(f func()) {
	m.lastLocal = max(m.net.sched.Now()+localDelay, m.lastLocal+1)
	m.at(m.lastLocal, f)
}

func (m *Memory) tell(told ...outcome) {
	if len(told) == 0 {
		return
	}
	m.local(func() {
		for _, o := range told {
			o.done(o.a)
		}
	})
}

func (m *Memory) connected(waiters []func(error), err error) {
	for _, w := range waiters {
		m.local(func() { w(err) })
	}
}

func (m *Memory) link(to Peer) *memoryLink {
	l := m.links[to.Epoch]
	if l != nil {
		return l
	}
	l = &memoryLink{book: book{peer: to, limits: &m.cfg.Limits, suspect: m.suspects[to.Epoch]}}
	switch {
	case m.closed:
		l.shut = errClosed
		return l
	case m.epoch == 0:
		l.shut = errNoEpoch
	}
	delete(m.suspects, to.Epoch)
	m.links[to.Epoch] = l
	return l
}

// Call: see Transport.
func (m *Memory) Call(to Peer, r Request, done func(Answer)) {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	now := m.net.sched.Now()
	l := m.link(to)
	refusal := l.admit(r.Class)
	if refusal == nil && l.s == nil {
		if refusal = l.resting(int64(now)); refusal == nil {
			m.dial(l, to)
		}
	}
	// A cut fills the queue of a real connection, once the kernels' buffers are full.
	if refusal == nil && r.Class != Ping && len(l.flow.stalled[toServer]) >= l.limits.QueueFrames {
		refusal = &NotSentError{Peer: to, Reason: Overloaded}
	}
	if refusal == nil {
		refusal = l.s.add(&r, int64(now), done)
	}
	if refusal != nil {
		m.tell(l.refuse(refusal, done))
		return
	}
	if r.Within > 0 {
		m.arm(l)
	}
	if l.isOpen {
		m.flush(l)
	}
}

// flush writes what is queued.
func (m *Memory) flush(l *memoryLink) {
	f := l.flow
	frames, _ := f.s.take(nil, nil)
	for _, r := range frames {
		f.send(toServer, packet{free: r.class == Control, run: func() { f.server.receive(f, r) }})
	}
}

// Connect: see Transport.
func (m *Memory) Connect(to Peer, done func(error)) {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	l := m.link(to)
	switch {
	case l.shut != nil:
		m.connected([]func(error){done}, &NotSentError{Peer: to, Reason: shutReason(l.shut), Cause: l.shut})
	case l.isOpen:
		m.connected([]func(error){done}, nil)
	default:
		if l.s == nil {
			m.dial(l, to)
		}
		l.waiters = append(l.waiters, done)
	}
}

// Drop: see Transport.
func (m *Memory) Drop(epoch uint64, cause error) {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	if l := m.links[epoch]; l != nil {
		m.drop(l, cause)
	}
}

// Forget: see Transport.
func (m *Memory) Forget(epoch uint64) {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	if l := m.links[epoch]; l != nil {
		l.shut = errForgotten
		m.drop(l, errForgotten)
		delete(m.links, epoch)
	}
	delete(m.suspects, epoch)
	if p := m.accepted[epoch]; p != nil && p.flow == nil {
		delete(m.accepted, epoch)
	}
}

// Suspect: see Transport.
func (m *Memory) Suspect(epoch uint64, on bool) {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	if l := m.links[epoch]; l != nil {
		m.tell(l.mark(on)...)
		return
	}
	delete(m.suspects, epoch)
	if on && !m.closed {
		m.suspects[epoch] = true
	}
}

// SetEpoch: see Transport.
func (m *Memory) SetEpoch(epoch uint64) {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	m.epoch = epoch
	for _, key := range slices.Sorted(maps.Keys(m.links)) {
		l := m.links[key]
		if l.shut == nil || l.shut == errNoEpoch {
			l.shut = nil
			if epoch == 0 {
				l.shut = errNoEpoch
			}
		}
		m.drop(l, errRejoined)
	}
	m.hangUp()
}

// hangUp closes what others have dialled.
func (m *Memory) hangUp() {
	for _, key := range slices.Sorted(maps.Keys(m.accepted)) {
		p := m.accepted[key]
		if p.flow != nil {
			p.flow.hangUp(toClient)
			p.flow = nil
		}
	}
}

// Peers: see Transport.
func (m *Memory) Peers() []PeerStats {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	known := map[uint64]*PeerStats{}
	for epoch, l := range m.links {
		s := l.stats()
		s.Connected = l.isOpen
		known[epoch] = &s
	}
	for epoch, p := range m.accepted {
		s := known[epoch]
		if s == nil {
			s = &PeerStats{Peer: p.from}
			known[epoch] = s
		}
		s.Accepted = p.flow != nil
		s.Fenced += p.fenced
		s.addTraffic(p.traffic)
	}
	all := make([]PeerStats, 0, len(known))
	for _, s := range known {
		all = append(all, *s)
	}
	sortStats(all)
	return all
}

// Close: see Transport. It does not wait: what is pending is told before it returns unless an event of
// this endpoint runs, and then right after that event.
func (m *Memory) Close(context.Context) error {
	m.net.mu.Lock()
	if m.closed || m.dead {
		m.net.mu.Unlock()
		return nil
	}
	m.closed = true
	var ends []func()
	for _, key := range slices.Sorted(maps.Keys(m.links)) {
		l := m.links[key]
		l.shut = errClosed
		told, waiters := m.shut(l, Closed, errClosed)
		for _, o := range told {
			ends = append(ends, func() { o.done(o.a) })
		}
		for _, w := range waiters {
			ends = append(ends, func() { w(&DialError{Peer: l.peer, Cause: errClosed}) })
		}
	}
	m.hangUp()
	m.events = append(m.events, ends...)
	m.net.mu.Unlock()
	m.drain()
	return nil
}

// drop closes the connection or ends the dial, and tells those who waited.
func (m *Memory) drop(l *memoryLink, cause error) {
	told, waiters := m.shut(l, Dropped, cause)
	m.tell(told...)
	m.connected(waiters, &DialError{Peer: l.peer, Cause: cause})
}

func (m *Memory) shut(l *memoryLink, reason Reason, cause error) ([]outcome, []func(error)) {
	if f := l.flow; f != nil {
		f.undial()
		f.hangUp(toServer)
	}
	l.flow, l.isOpen = nil, false
	m.disarm(l)
	told, waiters := l.end(reason, cause)
	m.net.prune()
	return told, waiters
}

// arm sets the timer for the earliest lapse.
func (m *Memory) arm(l *memoryLink) {
	if l.s == nil || l.s.next == never {
		return
	}
	at := time.Duration(l.s.next)
	if l.disarm != nil && l.armed <= at {
		return
	}
	m.disarm(l)
	l.armed = at
	l.disarm = m.at(at, func() {
		m.net.mu.Lock()
		l.disarm = nil
		var told []outcome
		if l.s != nil {
			told = l.s.expire(int64(m.net.sched.Now()))
			m.arm(l)
		}
		m.net.mu.Unlock()
		for _, o := range told {
			o.done(o.a)
		}
	})
}

func (m *Memory) disarm(l *memoryLink) {
	if l.disarm != nil {
		l.disarm()
		l.disarm = nil
	}
}
