package route

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
	"github.com/hubmesh/hubmesh/internal/hub"
)

const laneShards = 64

// maxIdleLanes bounds the lanes of one shard that hold nothing; beyond it those are forgotten.
const maxIdleLanes = 1024

// lanes are the lanes of a process, by target.
type lanes struct {
	seed   maphash.Seed
	shards [laneShards]laneShard
}

type laneShard struct {
	mu sync.Mutex
	at map[string]*channel
}

// channel is one lane with its lock, and what is to be done when the lock is free.
//
// Lock order: channel, then the router's waiting lists, then a hub, then the transport. The turn of the
// cluster is entered with no channel locked; a channel may be locked on the turn.
type channel struct {
	mu     sync.Mutex
	lane   *Lane[*parcel]
	c      *Cluster
	key    string
	node   bool        // key is a node path
	away   atomic.Bool // what was sent last went to another silo
	closed bool        // forgotten: whoever holds it looks again
	after  []func()    // to be done without the lock
}

func newLanes() *lanes {
	l := &lanes{seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].at = map[string]*channel{}
	}
	return l
}

func (l *lanes) shard(key string) *laneShard {
	return &l.shards[maphash.String(l.seed, key)%laneShards]
}

// get returns the channel to a target, made when needed.
func (l *lanes) get(c *Cluster, key string, node bool) *channel {
	s := l.shard(key)
	s.mu.Lock()
	ch := s.at[key]
	if ch == nil {
		if len(s.at) >= maxIdleLanes {
			s.forget()
		}
		ch = &channel{c: c, key: key, node: node}
		ch.lane = NewLane[*parcel](ch, key, node)
		s.at[key] = ch
	}
	s.mu.Unlock()
	return ch
}

// forget drops the lanes that hold nothing. The caller holds the shard's lock, which is never waited for
// under a channel's.
func (s *laneShard) forget() {
	for k, ch := range s.at {
		ch.mu.Lock()
		if ch.lane.Idle() && len(ch.after) == 0 {
			ch.closed = true
			delete(s.at, k)
		}
		ch.mu.Unlock()
	}
}

// find returns the channel to a target, or nil.
func (l *lanes) find(key string) *channel {
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[key]
}

// submit sends a delivery on the channel; false where the channel has been forgotten.
func (ch *channel) submit(d *hub.Delivery) bool {
	p := &parcel{d: d, ch: ch}
	p.item.m = p
	if ch.away.Load() {
		p.body, _ = ch.c.pack(d) // what can not travel is told when it is to leave
	}
	ch.mu.Lock()
	if ch.closed {
		ch.mu.Unlock()
		return false
	}
	ch.lane.submit(&p.item)
	ch.unlock()
	return true
}

// with runs f with the channel locked.
func (ch *channel) with(f func()) {
	ch.mu.Lock()
	f()
	ch.unlock()
}

// unlock does what has been put off, in order, without the lock.
func (ch *channel) unlock() {
	after := ch.after
	ch.after = nil
	ch.mu.Unlock()
	for _, f := range after {
		f()
	}
}

// onTurn is with for whoever is on the turn: what has been put off may enter it, and waits for its end.
func (ch *channel) onTurn(f func()) {
	ch.mu.Lock()
	f()
	after := ch.after
	ch.after = nil
	ch.mu.Unlock()
	for _, f := range after {
		ch.c.turn.Later(f)
	}
}

func (ch *channel) later(f func()) { ch.after = append(ch.after, f) }

var _ Carrier[*parcel] = (*channel)(nil)

// Now implements [Carrier] on the mesh's clock.
func (ch *channel) Now() time.Duration { return time.Duration(ch.c.mesh.Clock().Now()) }

// After implements [Carrier].
func (ch *channel) After(d time.Duration, f func()) {
	ch.c.after(d, func() { ch.with(f) })
}

// Resolve implements [Carrier].
func (ch *channel) Resolve(q cluster.Question, done func(cluster.Resolution)) {
	left := q.Until - ch.Now()
	ch.later(func() {
		ch.c.turn.Do(func() {
			q.Until = ch.c.turn.Now() + left
			ch.c.silo.Resolve(q, func(r cluster.Resolution) { ch.onTurn(func() { done(r) }) })
		})
	})
}

// Send implements [Carrier].
func (ch *channel) Send(to wire.Entry, lane uint64, i *Item[*parcel]) {
	here := uint64(to.Epoch) == ch.c.self.Load()
	if ch.away.Load() == here {
		ch.away.Store(!here)
	}
	if here {
		ch.end(i, ch.c.deliverHere(ch, i.m.d))
		return
	}
	i.m.leave(to, lane)
}

// end tells the lane the end of a message once it is not locked.
func (ch *channel) end(i *Item[*parcel], x Disposition) {
	ch.later(func() { ch.with(func() { i.Returned(x) }) })
}

// Lose implements [Carrier].
func (ch *channel) Lose(p *parcel) {
	ch.later(func() { ch.c.mesh.Refuse(p.d, lost(ch.c.name, p.d, errPost)) })
}

// Refuse implements [Carrier].
func (ch *channel) Refuse(p *parcel, r cluster.Refusal) {
	ch.later(func() { ch.c.refuse(p.d, r) })
}

// Over implements [Carrier].
func (ch *channel) Over(p *parcel) bool { return p.d.IsRequest() && !p.d.Awaited() }

// Until implements [Carrier].
func (ch *channel) Until(p *parcel) time.Duration {
	if at := p.d.Budget().Deadline; at != 0 {
		return time.Duration(at)
	}
	return ch.Now() + ch.c.unawaited
}

// Reachable implements [Carrier].
func (ch *channel) Reachable(e wire.Entry) bool { return ch.c.view.Load().Has(e.Epoch) }

// Lane implements [Carrier].
func (ch *channel) Lane() uint64 { return ch.c.lane.Add(1) }
