package store

import (
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
)

// Fanout hands committed changes to subscribers. Stores embed one. Each subscriber is isolated: a
// panic loses it that one change, is counted and reported, and touches nobody else (data.md §2.2,
// CF-5). The zero value is ready.
type Fanout struct {
	// OnPanic, if set, is told of a contained panic. It runs on the publishing goroutine.
	OnPanic func(value any, stack []byte)

	publishing sync.Mutex // orders publishers: subscribers agree on the order (CF-4)
	mu         sync.Mutex // guards subscribers; the slice is replaced, never changed
	subs       []*subscriber
	panics     atomic.Int64
}

type subscriber struct {
	fn      func(Change)
	running sync.Mutex // held while fn runs
	ended   bool       // guarded by running
}

// Subscribe registers fn; see [Store.Subscribe]. cancel may be called more than once, from any
// goroutine but the one on which fn runs.
func (f *Fanout) Subscribe(fn func(Change)) (cancel func()) {
	s := &subscriber{fn: fn}
	f.mu.Lock()
	f.subs = append(slices.Clip(f.subs), s)
	f.mu.Unlock()
	return func() {
		f.mu.Lock()
		f.subs = slices.DeleteFunc(slices.Clone(f.subs), func(other *subscriber) bool { return other == s })
		f.mu.Unlock()
		s.running.Lock()
		s.ended = true
		s.running.Unlock()
	}
}

// Publish hands the changes, in their order, to every subscriber. It never panics. The caller holds
// whatever orders its commits, so that changes are published in commit order.
func (f *Fanout) Publish(changes []Change) {
	f.publishing.Lock()
	defer f.publishing.Unlock()
	f.mu.Lock()
	subs := f.subs
	f.mu.Unlock()
	for i := range changes {
		for _, s := range subs {
			f.deliver(s, changes[i])
		}
	}
}

func (f *Fanout) deliver(s *subscriber, change Change) {
	s.running.Lock()
	defer s.running.Unlock()
	if s.ended {
		return
	}
	defer func() {
		if value := recover(); value != nil {
			f.panics.Add(1)
			if f.OnPanic != nil {
				f.OnPanic(value, debug.Stack())
			}
		}
	}()
	s.fn(change)
}

// Panics returns how many panics of subscribers were contained.
func (f *Fanout) Panics() int64 { return f.panics.Load() }
