package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/store"
)

// Times of a consumer.
const (
	lease       = 30 * time.Second // of a process that dies, until another goes on
	renewal     = lease / 3
	lastRenewal = lease - 5*time.Second // after the last success: then the handler is stopped
	handleRetry = 100 * time.Millisecond
	handleMost  = 30 * time.Second
	restAfter   = time.Minute // between two stored positions of a consumer that finds nothing
)

// Batch is what a consumer's handler is given.
type Batch struct {
	// Reset says that everything may have changed: the consumer is new, fell behind what is kept, or the
	// server lost rows. The handler compares all that it stands for with the store. Rows is then empty.
	Reset bool
	// Rows are committed changes of every process, each of them, with a path's in the order of its commits.
	// Where more than 100,000 were waiting they come in portions, and then an earlier change of a path may
	// stand in a later portion: compare versions.
	Rows []store.ChangeRow
}

// Handler does what must happen. After an error, a panic or a crash it is given the same batch again, and
// then some rows again that it has seen, so what it does must be idempotent by path and version. Its context
// ends when the consumer ends, or when its lease may have gone to another process.
type Handler func(ctx context.Context, batch Batch) error

// Consumer is work that must happen once for every commit, in whichever process holds its lease (decision 7).
// It is at least once: it moves its stored position after the handler has succeeded, never before.
type Consumer struct {
	name      string
	holder    string
	feed      *Feed
	positions Positions
	handle    Handler
	log       *slog.Logger
	look      chan struct{} // capacity 1
	ctx       context.Context
	cancel    context.CancelFunc
	done      chan struct{}

	mu    sync.Mutex
	stats ConsumerStats
}

// ConsumerStats counts since the start; Holding and Position are of the moment.
type ConsumerStats struct {
	Holding  bool // this process has the lease
	Position store.Position
	Batches  int64 // handled
	Rows     int64 // handled
	Resets   int64 // handled
	Failures int64 // of the handler
	Takes    int64 // leases that it got
}

// Consumer starts a consumer. Every process starts it under the same name, and one of them works. It ends
// with Close, or with the feed.
func (f *Feed) Consumer(name string, positions Positions, handle Handler) *Consumer {
	c := &Consumer{name: name, holder: f.source.Origin, feed: f, positions: positions, handle: handle, log: f.log.With("consumer", name), look: make(chan struct{}, 1), done: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(f.ctx)
	f.mu.Lock()
	f.consumers = append(f.consumers, c)
	f.mu.Unlock()
	go c.run()
	return c
}

func (f *Feed) wakeConsumers() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.consumers {
		wake(c.look)
	}
}

// Close ends the consumer, gives its lease back and waits for its handler.
func (c *Consumer) Close() {
	c.cancel()
	<-c.done
	c.feed.mu.Lock()
	defer c.feed.mu.Unlock()
	c.feed.consumers = slices.DeleteFunc(c.feed.consumers, func(other *Consumer) bool { return other == c })
}

// Stats returns the counts.
func (c *Consumer) Stats() ConsumerStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

func (c *Consumer) note(change func(*ConsumerStats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.stats)
}

// run competes for the lease, and works while it has it. [Consumer.Close] waits for it.
func (c *Consumer) run() {
	defer close(c.done)
	failures := 0
	for c.ctx.Err() == nil {
		asked := time.Now()
		from, ok, err := c.take(c.ctx, lease)
		if err != nil {
			if failures++; failures == 2 {
				c.log.Warn("a consumer can not ask for its lease; trying again", "error", err)
			}
			pause(c.ctx, reconnectPause(failures))
			continue
		}
		failures = 0
		if !ok {
			pause(c.ctx, renewal)
			continue
		}
		c.note(func(s *ConsumerStats) { s.Takes++; s.Holding, s.Position = true, from })
		c.hold(from, asked)
		c.note(func(s *ConsumerStats) { s.Holding = false })
	}
}

func (c *Consumer) take(ctx context.Context, d time.Duration) (store.Position, bool, error) {
	ctx, cancel := bounded(ctx, "take a consumer's lease")
	defer cancel()
	return c.positions.Take(ctx, c.name, c.holder, d)
}

var errLeaseEnds = errors.New("feed: the lease could not be renewed in time")

// hold works until the lease, which was asked for at asked, is lost or the consumer ends.
func (c *Consumer) hold(from store.Position, asked time.Time) {
	ctx, lose := context.WithCancelCause(c.ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { c.renew(ctx, lose, asked) })
	err := c.consume(ctx, from)
	lose(err)
	renewing.Wait()
	switch {
	case c.ctx.Err() != nil:
		_, _, err := c.take(context.WithoutCancel(c.ctx), 0) // the next one need not wait for its end
		if err != nil {
			c.log.Warn("a consumer's lease was not given back; another process goes on when it ends", "error", err)
		}
	default:
		c.log.Warn("a consumer has lost its lease", "error", context.Cause(ctx))
	}
}

// renew keeps the lease, which was last asked for at last, while the work goes on.
func (c *Consumer) renew(ctx context.Context, lose context.CancelCauseFunc, last time.Time) {
	wait := renewal
	for pause(ctx, wait) {
		asked := time.Now()
		bound, cancel := until(ctx, "renew a consumer's lease", last.Add(lastRenewal))
		_, ok, err := c.positions.Take(bound, c.name, c.holder, lease)
		cancel()
		switch {
		case err == nil && ok:
			last, wait = asked, renewal
		case err == nil:
			lose(store.ErrLeaseLost)
			return
		case time.Since(last) >= lastRenewal:
			lose(fmt.Errorf("%w: %w", errLeaseEnds, err))
			return
		default:
			wait = min(time.Second, time.Until(last.Add(lastRenewal)))
		}
	}
}

// consume reads and handles. Its reader is that of the feed, but it hands on every row, and a portion is
// handled and its position stored before the next is read.
func (c *Consumer) consume(ctx context.Context, from store.Position) error {
	machine := newReader("")
	machine.whole, machine.reverify = true, reverifyAfter
	machine.resume(from)
	r := &reading{source: c.feed.source, machine: machine, log: c.log}
	defer r.close()
	poll := time.NewTicker(c.feed.source.Poll)
	defer poll.Stop()
	stored, moved := from, time.Now()
	move := func(to store.Position) error {
		if err := c.move(ctx, to); err != nil {
			return err
		}
		stored, moved = to, time.Now()
		return nil
	}
	effects := []readerEffect{connect{}}
	for {
		var event readerEvent
		for _, effect := range effects {
			var err error
			switch e := effect.(type) {
			case deliver:
				if len(e.rows) > 0 {
					err = c.work(ctx, Batch{Rows: e.rows}, e.to, move)
				} else if machine.rest.XID > stored.XID && time.Since(moved) >= restAfter {
					err = move(machine.rest)
				}
			case reset:
				err = c.work(ctx, Batch{Reset: true}, e.to, move)
			case standby:
				r.trouble(errStandby)
			default:
				if event = r.call(ctx, effect); event == nil {
					return context.Cause(ctx)
				}
			}
			if err != nil {
				return err
			}
		}
		if event == nil {
			select {
			case <-c.look:
			case <-poll.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			event = woken{}
		}
		effects = machine.step(event)
	}
}

// work has a batch handled, again until it succeeds, and stores the position behind it.
func (c *Consumer) work(ctx context.Context, b Batch, to store.Position, move func(store.Position) error) error {
	for wait := handleRetry; ; wait = min(2*wait, handleMost) {
		err := c.try(ctx, b)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c.note(func(s *ConsumerStats) { s.Failures++ })
		c.log.Error("a consumer's handler failed; it is given the same again", "error", err, "after", wait)
		if !pause(ctx, wait) {
			return context.Cause(ctx)
		}
	}
	c.note(func(s *ConsumerStats) {
		s.Batches++
		s.Rows += int64(len(b.Rows))
		if b.Reset {
			s.Resets++
		}
	})
	return move(to)
}

// move stores the position, again until it succeeds or the lease is lost.
func (c *Consumer) move(ctx context.Context, to store.Position) error {
	for attempt := 1; ; attempt++ {
		bound, cancel := bounded(ctx, "store a consumer's position")
		err := c.positions.Move(bound, c.name, c.holder, to)
		cancel()
		switch {
		case err == nil:
			c.note(func(s *ConsumerStats) { s.Position = to })
			return nil
		case errors.Is(err, store.ErrLeaseLost):
			return err
		case !pause(ctx, reconnectPause(attempt)):
			return context.Cause(ctx)
		}
		if attempt == 2 {
			c.log.Warn("a consumer's position can not be stored; trying again", "error", err)
		}
	}
}

func (c *Consumer) try(ctx context.Context, b Batch) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		}
	}()
	return c.handle(ctx, b)
}
