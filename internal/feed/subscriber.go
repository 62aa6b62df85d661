package feed

import (
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
)

// patience is how long a publication waits for a subscriber that is busy with what others wrote. Then the
// subscriber is told when it gets to it, and no publication waits for it until it has caught up.
const patience = time.Second

// subscriber is one of the invalidation channel. Its goroutine tells it what others wrote; a publisher tells
// it what it published. Whoever does takes it out of the queue while holding turn, so that a path's calls
// stand in the order of the queue.
type subscriber struct {
	name  string
	fn    func(Invalidation)
	queue *queue        // guarded by the relay's mu
	turn  chan struct{} // capacity 1: who has the token may call fn
	wake  chan struct{} // capacity 1
	ended chan struct{}
	once  sync.Once
	gone  chan struct{} // its goroutine has returned

	stalled bool // a publisher has lost its patience; guarded by the relay's mu
}

// Invalidations subscribes to the invalidation channel. fn is called by one goroutine at a time: by the one
// that commits, before the writer is answered and in the order of subscription, so it must be short, and must
// not write; or by one of its own, for what others wrote. A panic in it is contained and counted, and loses it
// that one event (CF-5). name is for logs and metrics. cancel ends the subscription and waits for a running
// call; it may be called more than once, but not by fn.
func (r *Relay) Invalidations(name string, fn func(Invalidation)) (cancel func()) {
	s := &subscriber{name: name, fn: fn, queue: newQueue(mostQueued), turn: make(chan struct{}, 1), wake: make(chan struct{}, 1), ended: make(chan struct{}), gone: make(chan struct{})}
	s.turn <- struct{}{}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return func() {}
	}
	r.subs = append(slices.Clip(r.subs), s)
	go r.tell(s)
	return func() { r.end(s) }
}

func (r *Relay) end(s *subscriber) {
	r.mu.Lock()
	r.subs = slices.DeleteFunc(slices.Clone(r.subs), func(other *subscriber) bool { return other == s })
	r.mu.Unlock()
	s.once.Do(func() { close(s.ended) })
	<-s.gone
}

// tell is the goroutine of a subscriber; [Relay.end] waits for it.
func (r *Relay) tell(s *subscriber) {
	defer close(s.gone)
	for {
		select {
		case <-s.ended:
			<-s.turn // for good: after a running call there is no other
			r.mu.Lock()
			marks := s.queue.marks()
			r.mu.Unlock()
			for _, told := range marks {
				told()
			}
			return
		case <-s.wake:
		}
		for r.tellNext(s) {
		}
	}
}

func (r *Relay) tellNext(s *subscriber) bool {
	select {
	case <-s.ended:
		return false
	default:
	}
	<-s.turn
	defer func() { s.turn <- struct{}{} }()
	r.mu.Lock()
	if told := s.queue.marked(); told != nil {
		r.mu.Unlock()
		told()
		return true
	}
	i, ok := s.queue.pop()
	s.stalled = s.stalled && ok
	r.mu.Unlock()
	if ok {
		r.call(s, i)
	}
	return ok
}

// flush tells a subscriber what is newest of a path that was just published, unless it has been told already.
func (r *Relay) flush(s *subscriber, path node.Path) {
	if !r.turnOf(s, path) {
		return
	}
	defer func() { s.turn <- struct{}{} }()
	r.mu.Lock()
	i, ok := s.queue.take(path)
	r.mu.Unlock()
	if ok {
		r.call(s, i)
	}
}

// turnOf waits for a subscriber's turn; without success it leaves the path to the subscriber's goroutine.
func (r *Relay) turnOf(s *subscriber, path node.Path) bool {
	select {
	case <-s.turn:
		return true
	default:
	}
	r.mu.Lock()
	stalled := s.stalled
	r.mu.Unlock()
	if !stalled {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-s.turn:
			return true
		case <-s.ended:
			return false
		case <-timer.C:
			r.log.Warn("a subscriber of the feed is busy for long; writes do not wait for it any more", "subscriber", s.name, "waited", patience)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.stalled = true
	s.queue.leave(path)
	r.stats.Stalled++
	wake(s.wake)
	return false
}

// call tells a subscriber; its turn is held.
func (r *Relay) call(s *subscriber, i Invalidation) {
	defer func() {
		if value := recover(); value != nil {
			r.panicked(s.name, value, debug.Stack())
		}
	}()
	s.fn(i)
}
