package feed

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/node"
)

// Coalescer waits for quiet on a path and then reads it once, for whoever is told of changes without being
// told what changed: the relay, and a hub that reconciles its own node (CF-13). Safe for concurrent use.
type Coalescer struct {
	lock   sync.Locker // guards machine and stats; held while emit runs
	read   func(context.Context, []node.Path) ([]node.Node, error)
	emit   func(Invalidation)
	ctx    context.Context
	cancel context.CancelFunc
	kick   chan struct{} // capacity 1: the next time may have changed
	work   sync.WaitGroup

	machine coalescing
	armed   time.Time
	closed  bool
	stats   CoalescerStats
}

// CoalescerStats counts since the start; Groups is of the moment.
type CoalescerStats struct {
	Reads     int64 // compatibility reads, of one path or of many
	Paths     int64 // paths in them
	Fallbacks int64 // paths that were told of without what they hold now, since reading them failed (CF-17)
	Groups    int   // paths of which something was heard in the last 5.05 s
}

var errNoReader = errors.New("feed: there is no store to read from")

// NewCoalescer starts a coalescer. emit is told what was read, one call at a time, and must neither block nor
// call the coalescer. Close it before what it reads from.
func NewCoalescer(read func(context.Context, []node.Path) ([]node.Node, error), emit func(Invalidation)) *Coalescer {
	return newCoalescer(&sync.Mutex{}, read, emit)
}

func newCoalescer(lock sync.Locker, read func(context.Context, []node.Path) ([]node.Node, error), emit func(Invalidation)) *Coalescer {
	if read == nil {
		read = func(context.Context, []node.Path) ([]node.Node, error) { return nil, errNoReader }
	}
	c := &Coalescer{lock: lock, read: read, emit: emit, kick: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.work.Go(c.run)
	return c
}

// Notify takes a notification. One that carries a node or hints, or is a deletion, only silences the read
// that may be owed or under way for its path (CF-15, CF-20); any other is read for after [Window] of quiet.
func (c *Coalescer) Notify(i Invalidation) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.notify(i)
}

// notify is Notify with the lock held.
func (c *Coalescer) notify(i Invalidation) {
	if !c.closed {
		c.apply(c.machine.notify(i, !i.selfContained(), time.Now()))
	}
}

// forget silences every read, with the lock held.
func (c *Coalescer) forget() { c.apply(c.machine.forget()) }

// Stats returns the counts.
func (c *Coalescer) Stats() CoalescerStats {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.counts()
}

func (c *Coalescer) counts() CoalescerStats {
	stats := c.stats
	stats.Groups = len(c.machine.groups)
	return stats
}

// Close ends the reads and waits for them; nothing is told after it.
func (c *Coalescer) Close() {
	c.lock.Lock()
	c.closed = true
	c.lock.Unlock()
	c.cancel()
	c.work.Wait()
}

func (c *Coalescer) apply(out coalesced) {
	if c.closed {
		return
	}
	for _, i := range out.emit {
		if !i.selfContained() {
			c.stats.Fallbacks++
		}
		c.emit(i)
	}
	for _, b := range out.cancel {
		b.cancel()
	}
	for _, b := range out.read {
		c.stats.Reads++
		c.stats.Paths += int64(len(b.groups))
		ctx, cancel := budget.Until(c.ctx, ReadBound, &budget.Lapse{Bound: budget.StoreRead, By: budget.StoreRead, Size: ReadBound, Elapsed: ReadBound, Operation: "compatibility read", ReportedBy: budget.ByCaller})
		b.cancel = cancel
		paths := b.paths()
		c.work.Go(func() {
			defer cancel()
			rows, err := c.read(ctx, paths)
			c.lock.Lock()
			defer c.lock.Unlock()
			c.apply(c.machine.done(b, rows, err != nil, time.Now()))
		})
	}
	if at, ok := c.machine.next(); ok && (c.armed.IsZero() || at.Before(c.armed)) {
		wake(c.kick)
	}
}

// run does what is due in time.
func (c *Coalescer) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-c.kick:
		case <-timer.C:
		}
		c.lock.Lock()
		c.apply(c.machine.tick(time.Now()))
		at, ok := c.machine.next()
		c.armed = at // zero: not armed
		c.lock.Unlock()
		if ok {
			timer.Reset(time.Until(at))
		} else {
			timer.Stop()
		}
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // already told
	}
}
