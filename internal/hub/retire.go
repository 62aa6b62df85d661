package hub

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// retirer is the one scanner that retires idle hubs. It exists only once a kind with an idle bound has
// hubs, compares coarse stamps, and holds no timer for a hub.
type retirer struct {
	mesh    *Mesh
	mu      sync.Mutex
	every   time.Duration
	timer   *time.Timer
	stopped bool
	running sync.WaitGroup
}

// watch makes the scanner run for a kind that retires its hubs.
func (r *retirer) watch(k *Kind) {
	if k.Idle <= 0 {
		return
	}
	every := max(k.Idle/4, time.Second)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped || (r.timer != nil && r.every <= every) {
		return
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	r.every = every
	r.timer = time.AfterFunc(every, r.scan)
}

func (r *retirer) scan() {
	r.mu.Lock()
	if r.stopped {
		r.mu.Unlock()
		return
	}
	r.running.Add(1)
	defer r.running.Done()
	r.mu.Unlock()
	left := r.mesh.RetireIdle(0)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
	if !left {
		// Nothing retires any more: the next hub of such a kind starts the scanner again.
		r.timer = nil
		return
	}
	r.timer.Reset(r.every)
}

func (r *retirer) stop() {
	r.mu.Lock()
	r.stopped = true
	if r.timer != nil {
		r.timer.Stop()
	}
	r.mu.Unlock()
	r.running.Wait()
}

// RetireIdle retires the hubs that have been unused for their kind's idle bound, or for at least d
// where d is not 0. It tells whether hubs that may retire later are left.
func (m *Mesh) RetireIdle(d time.Duration) (left bool) {
	now := uint32(m.clock.Now() / int64(time.Second))
	m.registry.each(func(h *Hub) {
		idle := h.kind.Idle
		if idle <= 0 {
			return
		}
		if d > 0 {
			idle = d
		}
		if time.Duration(now-h.used.Load())*time.Second < idle || !h.retire() {
			left = true
		}
	})
	return left
}

// RetireUnused retires up to n hubs that have been unused for at least d, the longest unused first, of those
// that may retire and that eligible admits. It returns how many it has.
func (m *Mesh) RetireUnused(n int, d time.Duration, eligible func(*Hub) bool) (retired int) {
	now := uint32(m.clock.Now() / int64(time.Second))
	type unused struct {
		h    *Hub
		used uint32
	}
	var found []unused
	m.registry.each(func(h *Hub) {
		if used := h.used.Load(); h.kind.Idle > 0 && time.Duration(now-used)*time.Second >= d && eligible(h) {
			found = append(found, unused{h, used})
		}
	})
	slices.SortFunc(found, func(a, b unused) int { return cmp.Compare(a.used, b.used) })
	for _, u := range found {
		if retired >= n {
			break
		}
		if u.h.retire() {
			retired++
		}
	}
	return retired
}
