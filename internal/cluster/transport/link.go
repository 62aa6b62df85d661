package transport

import (
	"maps"
	"sync"
)

// link is one incarnation that this silo calls.
type link struct {
	t  *TCP
	mu sync.Mutex
	book
	out *dialled // the present connection or dial; nil when book.s is nil
}

// link returns the link to an incarnation, and makes it at its first use.
func (t *TCP) link(to Peer) *link {
	if l := (*t.links.Load())[to.Epoch]; l != nil {
		return l
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	old := *t.links.Load()
	if l := old[to.Epoch]; l != nil {
		return l
	}
	l := &link{t: t, book: book{peer: to, limits: &t.cfg.Limits, suspect: t.suspects[to.Epoch]}}
	switch {
	case t.closed:
		l.shut = errClosed
		return l // known to its caller only
	case t.epoch.Load() == 0:
		l.shut = errNoEpoch
	}
	delete(t.suspects, to.Epoch)
	links := maps.Clone(old)
	links[to.Epoch] = l
	t.links.Store(&links)
	return l
}

// Call: see Transport.
func (t *TCP) Call(to Peer, r Request, done func(Answer)) {
	l := t.link(to)
	var now int64
	if r.Within > 0 {
		now = t.now()
	}
	l.mu.Lock()
	refusal := l.admit(r.Class)
	if refusal == nil && l.s == nil {
		if refusal = l.resting(t.now()); refusal == nil {
			l.dial(to)
		}
	}
	if refusal == nil {
		refusal = l.s.add(&r, now, done)
	}
	if refusal != nil {
		told := l.refuse(refusal, done)
		l.mu.Unlock()
		t.clerk.tell(told)
		return
	}
	out := l.out
	written := out.hurry()
	l.mu.Unlock()
	if !written {
		out.wake.Signal() // after the lock, which the writer takes first of all
	}
	if r.Within > 0 {
		t.sweeper.before(now + int64(r.Within))
	}
}

// Connect: see Transport.
func (t *TCP) Connect(to Peer, done func(error)) {
	l := t.link(to)
	l.mu.Lock()
	var err error
	switch {
	case l.shut != nil:
		err = &NotSentError{Peer: to, Reason: shutReason(l.shut), Cause: l.shut}
	case l.out != nil && l.out.open:
	default:
		if l.s == nil {
			l.dial(to)
		}
		l.waiters = append(l.waiters, done)
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	t.clerk.do(func() { done(err) })
}

// Drop: see Transport.
func (t *TCP) Drop(epoch uint64, cause error) {
	if l := (*t.links.Load())[epoch]; l != nil {
		l.drop(cause, func(old error) error { return old })
	}
}

// Forget: see Transport.
func (t *TCP) Forget(epoch uint64) {
	t.mu.Lock()
	old := *t.links.Load()
	l := old[epoch]
	links := maps.Clone(old)
	delete(links, epoch)
	t.links.Store(&links)
	delete(t.suspects, epoch)
	if a := t.accepted[epoch]; a != nil && a.idle() {
		delete(t.accepted, epoch)
	}
	t.mu.Unlock()
	if l != nil {
		l.drop(errForgotten, func(error) error { return errForgotten })
	}
}

// Suspect: see Transport.
func (t *TCP) Suspect(epoch uint64, on bool) {
	t.mu.Lock()
	l := (*t.links.Load())[epoch]
	if l == nil {
		delete(t.suspects, epoch)
		if on && !t.closed {
			t.suspects[epoch] = true
		}
	}
	t.mu.Unlock()
	if l == nil {
		return
	}
	l.mu.Lock()
	told := l.mark(on)
	l.mu.Unlock()
	t.clerk.tell(told...)
}

// drop closes the connection or ends the dial. shut is what calls are refused with from now on, made
// from what it has been so far.
func (l *link) drop(cause error, shut func(old error) error) {
	l.mu.Lock()
	l.shut = shut(l.shut)
	reason := Dropped
	if cause == errClosed {
		reason = Closed
	}
	told, waiters := l.end(reason, cause)
	peer, out := l.peer, l.out
	l.out = nil
	if out != nil {
		out.stop(cause)
	}
	l.mu.Unlock()
	l.t.clerk.tell(told...)
	if len(waiters) > 0 {
		l.t.clerk.connected(waiters, &DialError{Peer: peer, Cause: cause})
	}
}

func (l *link) expire(now int64) (next int64) {
	l.mu.Lock()
	next = never
	var told []outcome
	if l.s != nil {
		told = l.s.expire(now)
		next = l.s.next
	}
	l.mu.Unlock()
	l.t.clerk.tell(told...)
	return next
}

func (l *link) stats() PeerStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.book.stats()
	s.Connected = l.out != nil && l.out.open
	return s
}
