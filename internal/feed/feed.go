package feed

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
)

// Feed follows the change rows of a store that several processes share, and tells a relay. Its goroutines are
// the reader's, the listener's, the notifier's and those of the consumers. Safe for concurrent use.
type Feed struct {
	source Source
	relay  *Relay
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	look     chan struct{} // capacity 1: read
	overran  chan struct{} // capacity 1: start anew
	written  chan struct{} // capacity 1: this process has committed
	live     chan struct{}
	liveOnce sync.Once
	fresh    freshness

	mu        sync.Mutex // guards what follows
	token     uint64
	waiting   map[uint64]func() // told when a read that began after their registration has ended
	unseen    []uint64          // of these, those that the reader does not know of yet
	consumers []*Consumer
	stats     Stats
}

// Stats counts since the start.
type Stats struct {
	Relay RelayStats

	Reads          int64 // pages that were read
	Rows           int64 // change rows in them
	Reconnects     int64 // connections on which changes are read, but for the first
	Resets         int64 // of the reader, but for the first start
	Listens        int64 // connections that LISTENed and went live
	Gaps           int64 // of these, those that were lost: what came then was found by the read that followed
	Wakes          int64 // notifications that were heard
	Pings          int64
	BadPayloads    int64
	Notifies       int64 // wake-ups that were sent
	NotifyFailures int64
	Live           bool          // the feed listens, or needs none, and is not behind for too long
	Behind         time.Duration // see [Feed.Behind]
}

const (
	defaultPoll = time.Second
	// callBound is of one call to the database by the feed: a page, a verification, a wake-up, a connection.
	callBound = 5 * time.Second
)

// Open starts to follow a source. What is published to the relay from now on is matched with its row, so it is
// called before the first write. Once the reader has found where the rows end, and whenever it has to start
// anew, every subscriber is told that everything may have changed.
func Open(source Source, relay *Relay, log *slog.Logger) *Feed {
	if source.Poll <= 0 {
		source.Poll = defaultPoll
	}
	f := &Feed{source: source, relay: relay, log: log, look: make(chan struct{}, 1), overran: make(chan struct{}, 1), written: make(chan struct{}, 1), live: make(chan struct{}), waiting: map[uint64]func(){}}
	f.fresh.from = time.Now()
	f.ctx, f.cancel = context.WithCancel(context.Background())
	relay.follow(func() { wake(f.overran) })
	f.work.Go(f.follow)
	if source.Listen != nil {
		f.work.Go(f.listen)
	} else {
		f.onRead(f.isLive)
	}
	if source.Notify != nil {
		f.work.Go(f.notify)
	}
	return f
}

// Committed says that this process has written: the others are woken, at once or within 5 ms. It never waits.
func (f *Feed) Committed() { wake(f.written) }

// Wake has the change rows read now.
func (f *Feed) Wake() { wake(f.look) }

// Live is closed once the feed listens and has read what was there before, or, without a listener, has read
// once. A process is not ready before (decision 6).
func (f *Feed) Live() <-chan struct{} { return f.live }

// Sync returns once everything that was committed before the call has been told to the queues of the relay's
// subscribers, or with the context's cause.
func (f *Feed) Sync(ctx context.Context) error {
	done := make(chan struct{})
	f.onRead(func() { close(done) })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-f.ctx.Done():
		return context.Cause(f.ctx)
	}
}

// Stats returns the counts.
func (f *Feed) Stats() Stats {
	f.mu.Lock()
	stats := f.stats
	f.mu.Unlock()
	stats.Relay, stats.Behind = f.relay.Stats(), f.Behind()
	select {
	case <-f.live:
		stats.Live = stats.Behind <= MostBehind
	default:
	}
	return stats
}

// Close ends the feed and its consumers, and waits for them. The relay goes on with what is published.
func (f *Feed) Close() {
	f.cancel()
	f.mu.Lock()
	consumers := slices.Clone(f.consumers)
	f.mu.Unlock()
	for _, c := range consumers {
		c.Close()
	}
	f.work.Wait()
	f.relay.unfollow()
}

func (f *Feed) count(n *int64, by int) {
	f.mu.Lock()
	*n += int64(by)
	f.mu.Unlock()
}

func (f *Feed) isLive() { f.liveOnce.Do(func() { close(f.live) }) }

// onRead has the rows read, and done called when a read that began after now has ended.
func (f *Feed) onRead(done func()) {
	f.mu.Lock()
	f.token++
	f.waiting[f.token] = done
	f.unseen = append(f.unseen, f.token)
	f.mu.Unlock()
	wake(f.look)
}

// asked takes who has asked for a read.
func (f *Feed) asked() []uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	tokens := f.unseen
	f.unseen = nil
	return tokens
}

func (f *Feed) synced(tokens []uint64) {
	var done []func()
	f.mu.Lock()
	for _, token := range tokens {
		done = append(done, f.waiting[token])
		delete(f.waiting, token)
	}
	f.mu.Unlock()
	for _, tell := range done {
		tell()
	}
}

// bounded limits one call to the database.
func bounded(ctx context.Context, operation string) (context.Context, context.CancelFunc) {
	return budget.Until(ctx, callBound, &budget.Lapse{Bound: budget.StoreRead, By: budget.StoreRead, Size: callBound, Elapsed: callBound, Operation: operation, ReportedBy: budget.ByCaller})
}

// until limits a wait of the listener.
func until(ctx context.Context, operation string, due time.Time) (context.Context, context.CancelFunc) {
	left := time.Until(due)
	return budget.Until(ctx, left, &budget.Lapse{By: budget.None, Size: left, Elapsed: left, Operation: operation, ReportedBy: budget.ByCaller})
}

// pause waits; false says that ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
