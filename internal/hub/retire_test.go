package hub

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// follower notes what a mesh tells its watcher.
type follower struct {
	mu    sync.Mutex
	there []string
}

func (f *follower) Registered(h *Hub) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.there = append(f.there, h.Path())
}

func (f *follower) Removed(h *Hub) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.there = slices.DeleteFunc(f.there, func(p string) bool { return p == h.Path() })
}

func (f *follower) has(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.there, path)
}

// decision 3: "Node hubs … stop when idle"
func TestTheWatcherIsToldOfAHubThatRetires(t *testing.T) {
	in(t, func(r *rig) {
		f := &follower{}
		r.SetWatcher(f)
		k := echoes(nil)
		k.Idle = 5 * time.Minute
		r.start("acme/a", k)
		if !f.has("acme/a") {
			t.Fatal("it is not told of one that starts")
		}
		<-time.After(10 * time.Minute)
		if r.Find("acme/a") != nil || f.has("acme/a") {
			t.Fatal("it is not told")
		}
	})
}

// decision 3: handed over when much more loaded
func TestTheLongestUnusedHubsRetireFirstAndThoseInUseNotAtAll(t *testing.T) {
	in(t, func(r *rig) {
		k := echoes(nil)
		k.Idle = time.Hour
		for _, p := range []string{"acme/c", "acme/a", "acme/other", "acme/b", "acme/now"} {
			r.start(p, k)
			<-time.After(20 * time.Second)
		}
		r.start("acme/stays", echoes(nil)) // its kind never retires
		<-time.After(20 * time.Second)
		r.mustEcho("acme/now", "used")
		eligible := func(h *Hub) bool { return h.Path() != "acme/other" }
		left := func(want ...string) {
			t.Helper()
			for _, p := range []string{"acme/a", "acme/b", "acme/c", "acme/now", "acme/other", "acme/stays"} {
				if got := r.Find(p) != nil; got != slices.Contains(want, p) {
					t.Errorf("%s is there: %v", p, got)
				}
			}
		}
		if n := r.RetireUnused(2, 10*time.Second, eligible); n != 2 {
			t.Fatalf("%d", n)
		}
		left("acme/b", "acme/now", "acme/other", "acme/stays")
		if n := r.RetireUnused(10, 10*time.Second, eligible); n != 1 {
			t.Fatalf("%d", n)
		}
		left("acme/now", "acme/other", "acme/stays")
	})
}
