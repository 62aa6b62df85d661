package transport

import (
	"sync"
	"sync/atomic"
	"time"
)

// sweepPause is the least time from one sweep to the next.
const sweepPause = time.Millisecond

// sweeper finds requests whose bound has lapsed, with one timer for all. A deadline is stored first,
// then compared with the time for which the timer is set; only an earlier one sets it anew (hub.md §3).
type sweeper struct {
	t     *TCP
	armed atomic.Int64
	mu    sync.Mutex
	timer *time.Timer // nil once stopped
}

func (s *sweeper) init(t *TCP) {
	s.t = t
	s.armed.Store(never)
	s.timer = time.AfterFunc(time.Hour, func() { t.clerk.do(s.sweep) })
	s.timer.Stop()
}

// before makes sure that a sweep happens at the deadline.
func (s *sweeper) before(deadline int64) {
	if deadline >= s.armed.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil || deadline >= s.armed.Load() {
		return
	}
	s.armed.Store(deadline)
	s.timer.Reset(time.Duration(deadline - s.t.now()))
}

func (s *sweeper) sweep() {
	s.armed.Store(never)
	now, next := s.t.now(), int64(never)
	for _, l := range *s.t.links.Load() {
		next = min(next, l.expire(now))
	}
	if next != never {
		s.before(max(next, now+int64(sweepPause)))
	}
}

func (s *sweeper) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer.Stop()
	s.timer = nil
}
