package feed

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// mostQueued bounds the paths that wait for one subscriber; beyond it the subscriber is told that everything
// may have changed. A page of rows fits.
const mostQueued = 16_384

// Relay is the two channels of a process (CF-1, CF-6). Safe for concurrent use.
//
// The logical channel, Changes, has what this process committed: its subscribers may have effects outside,
// and a commit reaches one process alone. The invalidation channel, Invalidations, has in addition what
// others committed: its subscribers drop what they hold, and being told twice does no harm.
//
// A direct publication is told to everybody before Publish returns. What comes from others waits for each
// subscriber in a queue of its own. Each is told of a path in the order of its commits, one call at a time;
// what is older than what was told is dropped. Of direct publications all subscribers see one order.
type Relay struct {
	log       *slog.Logger
	coalescer *Coalescer
	logical   store.Fanout
	panics    atomic.Int64

	publishing sync.Mutex // orders publishers (CF-4); taken before mu, and never by the feed

	mu     sync.Mutex // guards what follows; held for no call of a subscriber
	subs   []*subscriber
	echoes echoes
	lost   func() // has the reader start anew; of a relay that is followed
	closed bool
	stats  RelayStats
	lag    time.Duration
}

// RelayStats counts since the start; Queues, Pending and Lag are of the moment.
type RelayStats struct {
	Published int64 // changes of this process
	Foreign   int64 // changes of others that were told
	Echoes    int64 // rows of this process
	Unsure    int64 // of these, rows of writes whose outcome was unknown until then
	Old       int64 // changes that were not told, since something newer of their path had been
	Resets    int64 // "everything may have changed", to everybody
	Slow      int64 // the same, to one subscriber whose queue was full
	Stalled   int64 // publications that did not wait for a subscriber any longer
	Panics    int64 // of subscribers, contained
	Pending   int   // published changes whose row has not been read
	Queues    map[string]int
	Lag       time.Duration // from the commit of the row told last to its being told
	Coalescer CoalescerStats
}

// NewRelay returns a relay. read is where a bare notification is read for; without one, only its path is
// told. Close it after the last publication.
func NewRelay(read func(context.Context, []node.Path) ([]node.Node, error), log *slog.Logger) *Relay {
	r := &Relay{log: log}
	r.coalescer = newCoalescer(&r.mu, read, r.enqueue)
	r.logical.OnPanic = func(value any, stack []byte) { r.panicked("changes", value, stack) }
	return r
}

// Changes subscribes to the logical channel; see [store.Fanout.Subscribe]. fn is called on the committing
// goroutine, after the subscribers of the invalidation channel.
func (r *Relay) Changes(fn func(store.Change)) (cancel func()) { return r.logical.Subscribe(fn) }

// Publish tells everybody of a change that this process has committed, and returns when they have been told.
// The caller calls in the order of the commits of a path. It fits [store.Store.Subscribe].
func (r *Relay) Publish(c store.Change) {
	r.publishing.Lock()
	defer r.publishing.Unlock()
	i := ofChange(c)
	r.mu.Lock()
	tell, overrun := r.echoes.published(c.Path, c.Version)
	r.stats.Published++
	subs := r.subs
	if tell {
		r.coalescer.notify(i)
		r.push(i, true)
	} else {
		r.stats.Old++
	}
	if overrun {
		r.lost()
	}
	r.mu.Unlock()
	if tell {
		for _, s := range subs {
			r.flush(s, c.Path)
		}
	}
	r.logical.Publish([]store.Change{c})
}

// Notify takes what another process or program says of a change. It reaches the invalidation channel only
// (CF-2), at once if it is self-contained, after a read otherwise.
func (r *Relay) Notify(i Invalidation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i.Reset {
		r.resetAll(i)
		return
	}
	r.coalescer.notify(i)
	if i.selfContained() {
		r.stats.Foreign++
		r.enqueue(i)
	}
}

// enqueue has every subscriber told of a change of somebody else; mu is held.
func (r *Relay) enqueue(i Invalidation) {
	r.push(i, false)
	r.wakeAll()
}

func (r *Relay) push(i Invalidation, direct bool) {
	if r.closed {
		return
	}
	for _, s := range r.subs {
		if s.queue.push(i, direct) {
			r.stats.Slow++
			wake(s.wake) // for the reset
			r.log.Warn("a subscriber of the feed was too slow, and is told that everything may have changed", "subscriber", s.name)
		}
	}
}

func (r *Relay) resetAll(i Invalidation) {
	r.stats.Resets++
	r.coalescer.forget()
	for _, s := range r.subs {
		s.queue.clear(i)
		wake(s.wake)
	}
}

// follow says that change rows will come, which bring the echo of what is published from now on. lost is
// called with the relay's lock held: it must not block.
func (r *Relay) follow(lost func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.echoes.following, r.lost = true, lost
}

// Told returns once every subscriber of the invalidation channel has taken what was queued for it before the call, or
// with the context's cause.
func (r *Relay) Told(ctx context.Context) error {
	done := make(chan struct{})
	r.mark(func() { close(done) })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// mark has told called once every subscriber of the invalidation channel has taken what is queued for it now, or has
// ended. It is called by the last of them, and must be short.
func (r *Relay) mark(told func()) {
	r.mu.Lock()
	subs := r.subs
	var left atomic.Int64
	left.Store(int64(len(subs)))
	for _, s := range subs {
		s.queue.mark(func() {
			if left.Add(-1) == 0 {
				told()
			}
		})
		wake(s.wake)
	}
	r.mu.Unlock()
	if len(subs) == 0 {
		told()
	}
}

// unfollow says that no more change rows come.
func (r *Relay) unfollow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.echoes = echoes{}
}

// clock is what a read that begins now has to be answered with.
func (r *Relay) clock() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.echoes.clock
}

// restarted tells that everything may have changed. The start began at clock.
func (r *Relay) restarted(cause string, clock uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.echoes.restarted(clock, losing(cause), now)
	r.resetAll(Invalidation{Reset: true, Cause: cause, At: now})
}

// rows takes change rows, in the order of the commits of each path, of a read that began at clock.
func (r *Relay) rows(rows []store.ChangeRow, clock uint64, origin string, unsure func(node.Path, int64) bool) {
	mine := make([]bool, len(rows)) // published, or about to be
	brought := map[node.Path][]int64{}
	published := int64(0)
	for i, row := range rows {
		if row.Origin == "" || row.Origin != origin {
			continue
		}
		if unsure != nil && unsure(row.Path, row.Version) {
			published++
			continue
		}
		mine[i] = true
		brought[row.Path] = append(brought[row.Path], row.Version)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.stats.Unsure += published
	r.echoes.seen(clock, brought)
	r.echoes.expire(now)
	for i, row := range rows {
		if i%rowsAtATime == rowsAtATime-1 {
			r.wakeAll()
			r.mu.Unlock()
			runtime.Gosched()
			r.mu.Lock()
		}
		r.row(row, mine[i], now)
	}
	r.wakeAll()
}

// row takes one change row, of this process or of another.
func (r *Relay) row(row store.ChangeRow, mine bool, now time.Time) {
	switch {
	case mine:
		r.stats.Echoes++
		r.echoes.echo(row.Path, row.Version, now)
		return
	case row.Kind == 0:
		r.resetAll(Invalidation{Reset: true, Cause: causeTruncated, At: row.At})
	case !r.echoes.other(row):
		r.stats.Old++
		return
	default:
		r.stats.Foreign++
		invalidation := ofRow(row)
		r.coalescer.notify(invalidation)
		r.push(invalidation, false)
	}
	r.lag = max(0, now.Sub(row.At))
}

func (r *Relay) wakeAll() {
	for _, s := range r.subs {
		wake(s.wake)
	}
}

const (
	causeTruncated = "the table was emptied"
	// rowsAtATime is after how many rows a publication may come in between.
	rowsAtATime = 1000
)

// Stats returns the counts.
func (r *Relay) Stats() RelayStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	stats := r.stats
	stats.Panics = r.panics.Load()
	stats.Pending, stats.Lag, stats.Coalescer = r.echoes.count, r.lag, r.coalescer.counts()
	stats.Queues = make(map[string]int, len(r.subs))
	for _, s := range r.subs {
		stats.Queues[s.name] += s.queue.len()
	}
	return stats
}

// Close ends the subscriptions of the invalidation channel and waits for running calls.
func (r *Relay) Close() {
	r.coalescer.Close()
	r.mu.Lock()
	r.closed = true
	subs := slices.Clone(r.subs)
	r.mu.Unlock()
	for _, s := range subs {
		r.end(s)
	}
}

func (r *Relay) panicked(name string, value any, stack []byte) {
	r.panics.Add(1)
	r.log.Error("a subscriber of the feed panicked; it has lost one change", "subscriber", name, "panic", value, "stack", string(stack))
}
