package hub

import (
	"hash/maphash"
	"sync"
)

const shardCount = 64

// registry maps the path of an address to its hub. It is blind to hosts: a hosted hub stands in its
// host's own table.
type registry struct {
	seed   maphash.Seed
	shards [shardCount]shard
}

type shard struct {
	mu   sync.RWMutex
	hubs map[string]*Hub
	_    [32]byte
}

func newRegistry() *registry {
	r := &registry{seed: maphash.MakeSeed()}
	for i := range r.shards {
		r.shards[i].hubs = map[string]*Hub{}
	}
	return r
}

func (r *registry) shard(path string) *shard {
	return &r.shards[maphash.String(r.seed, path)%shardCount]
}

func (r *registry) find(path string) *Hub {
	s := r.shard(path)
	s.mu.RLock()
	h := s.hubs[path]
	s.mu.RUnlock()
	return h
}

// add inserts h unless a hub stands there, and returns the one that does.
func (r *registry) add(h *Hub) (*Hub, bool) {
	s := r.shard(h.addr.Path())
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.hubs[h.addr.Path()]; old != nil {
		return old, false
	}
	s.hubs[h.addr.Path()] = h
	return h, true
}

// remove takes h out if it is the one that stands there.
func (r *registry) remove(h *Hub) {
	s := r.shard(h.addr.Path())
	s.mu.Lock()
	if s.hubs[h.addr.Path()] == h {
		delete(s.hubs, h.addr.Path())
	}
	s.mu.Unlock()
}

// each calls f for a snapshot of the hubs of each shard, with no lock held.
func (r *registry) each(f func(h *Hub)) {
	var batch []*Hub
	for i := range r.shards {
		s := &r.shards[i]
		batch = batch[:0]
		s.mu.RLock()
		for _, h := range s.hubs {
			batch = append(batch, h)
		}
		s.mu.RUnlock()
		for _, h := range batch {
			f(h)
		}
	}
}

// len is the number of hubs.
func (r *registry) len() int {
	n := 0
	for i := range r.shards {
		r.shards[i].mu.RLock()
		n += len(r.shards[i].hubs)
		r.shards[i].mu.RUnlock()
	}
	return n
}
