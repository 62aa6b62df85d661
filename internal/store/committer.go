package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// Committing is what the committer needs of a store.
type Committing interface {
	Commit(ctx context.Context, batch []Write) ([]Result, error)
}

// Committer groups the queued writes of many hubs into batches: one a process (architecture.md
// decision 9). A write is answered after its batch is durable. When a batch fails as a whole for the
// sake of a row ([RowError]), its rows are committed one by one, so that one failing write fails
// alone. Safe for concurrent use.
type Committer struct {
	store Committing
	lanes sync.WaitGroup

	mu      sync.Mutex // guards what follows
	work    sync.Cond
	batcher *batcher
	locked  []*entry // rows that something else holds; see committerlocked.go
	trying  bool     // somebody tries them
	closed  bool
	stats   CommitterStats
}

// CommitterStats counts since the start; Waiting is of the moment.
type CommitterStats struct {
	Batches int64 // commits that were attempted
	Rows    int64 // rows in them
	Refused int64 // rows that were refused with ErrOverloaded
	Failed  int64 // batches that failed as a whole
	Waiting int   // rows that are queued
	Locked  int   // rows that wait for something else to release them
}

// NewCommitter starts a committer over s. Close it before the store.
func NewCommitter(s Committing, options CommitterOptions) *Committer {
	c := &Committer{store: s, batcher: newBatcher(options)}
	c.work.L = &c.mu
	for range c.batcher.options.Lanes {
		c.lanes.Go(c.lane)
	}
	return c
}

// Submit queues one write and waits for its commit. The error is nil exactly when the write is
// durable; otherwise it is the row's own error (which is also in the Result), a fault of the store as
// a whole, [ErrOverloaded], [ErrClosed] or ctx.Err() of a context that had ended before (nothing was
// queued), or *[OutcomeUnknownError] when ctx ended while it waited: the commit goes on, and the
// caller has to read the node to know how it ended.
func (c *Committer) Submit(ctx context.Context, w Write) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	answer := make(chan Result, 1)
	if err := c.enqueue(&entry{write: w, bytes: sizeOf(w), settle: func(r Result) { answer <- r }}); err != nil {
		return Result{}, err
	}
	select {
	case r := <-answer:
		return r, r.Err
	case <-ctx.Done():
	}
	select {
	case r := <-answer: // both were ready
		return r, r.Err
	default:
		return Result{}, &OutcomeUnknownError{Path: w.Node.Path, Err: context.Cause(ctx)}
	}
}

// SubmitBulk queues many writes in the bulk class, chunk after chunk, and waits for their commits.
// Each row has its outcome in its Result, as from [Committer.Submit]. The error is the first fault that
// was not a row's own; after it, the rows of later chunks are not queued and carry it.
func (c *Committer) SubmitBulk(ctx context.Context, writes []Write) ([]Result, error) {
	results := make([]Result, 0, len(writes))
	for chunk := range slices.Chunk(writes, c.batcher.options.BulkRows) {
		part, err := c.submitChunk(ctx, chunk)
		results = append(results, part...)
		if err != nil {
			for len(results) < len(writes) {
				results = append(results, Result{Err: err})
			}
			return results, err
		}
	}
	return results, nil
}

// chunk collects the outcomes of one chunk of bulk writes.
type chunk struct {
	mu      sync.Mutex
	results []Result
	settled []bool
	left    int
	done    chan struct{}
}

func (g *chunk) settle(i int, r Result) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.results[i], g.settled[i] = r, true
	if g.left--; g.left == 0 {
		close(g.done)
	}
}

func (c *Committer) submitChunk(ctx context.Context, writes []Write) ([]Result, error) {
	g := &chunk{results: make([]Result, len(writes)), settled: make([]bool, len(writes)), left: len(writes), done: make(chan struct{})}
	entries := make([]*entry, len(writes))
	for i, w := range writes {
		entries[i] = &entry{write: w, bulk: true, bytes: sizeOf(w), settle: func(r Result) { g.settle(i, r) }}
	}
	err := ctx.Err()
	if err == nil {
		err = c.enqueue(entries...)
	}
	if err != nil {
		for i := range g.results {
			g.results[i].Err = err
		}
		return g.results, err
	}
	select {
	case <-g.done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.left == 0 {
		err = nil
	}
	results := slices.Clone(g.results) // rows that are still open are settled later, on the originals
	for i := range results {
		if !g.settled[i] {
			results[i].Err = &OutcomeUnknownError{Path: writes[i].Node.Path, Err: err}
		} else if err == nil && !isRowOwn(results[i].Err) {
			err = results[i].Err
		}
	}
	return results, err
}

func (c *Committer) enqueue(entries ...*entry) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	due := time.Now().Add(c.batcher.options.Tried)
	for _, e := range entries {
		e.due = due
	}
	if !c.batcher.add(entries...) {
		c.stats.Refused += int64(len(entries))
		return ErrOverloaded
	}
	c.work.Signal()
	return nil
}

// Close commits what is queued, answers it, and ends the committer; it does not close the store.
// Later writes are refused with [ErrClosed].
func (c *Committer) Close() {
	c.mu.Lock()
	c.closed = true
	c.work.Broadcast()
	c.mu.Unlock()
	c.lanes.Wait()
}

// Stats returns the counts.
func (c *Committer) Stats() CommitterStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	stats := c.stats
	stats.Waiting, stats.Locked = c.batcher.waiting.rows, len(c.locked)
	return stats
}

// lane commits batch after batch until the committer is closed and idle.
func (c *Committer) lane() {
	for {
		batch := c.next()
		if batch == nil {
			return
		}
		c.settle(batch, c.commit(batch))
	}
}

// next waits for a batch; nil is the end.
func (c *Committer) next() []*entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if batch := c.batcher.take(); batch != nil {
			c.stats.Batches++
			c.stats.Rows += int64(len(batch))
			return batch
		}
		if c.closed && c.batcher.idle() {
			return nil
		}
		c.work.Wait()
	}
}

// commit commits the batch; where it fails as a whole for the sake of a row, row by row.
func (c *Committer) commit(batch []*entry) []Result {
	writes := make([]Write, len(batch))
	for i, e := range batch {
		writes[i] = e.write
	}
	due := dueOf(batch)
	results, err := c.attempt(due, writes)
	if err == nil {
		return results
	}
	c.mu.Lock()
	c.stats.Failed++
	c.mu.Unlock()
	results = make([]Result, len(batch))
	row := (*RowError)(nil)
	oneByOne := len(batch) > 1 && errors.As(err, &row)
	for i := range results {
		if !oneByOne {
			results[i].Err = err
			continue
		}
		one, err := c.attempt(due, writes[i:i+1])
		if err != nil {
			results[i].Err = err
		} else {
			results[i] = one[0]
		}
	}
	return results
}

// dueOf is when the first write of a batch has been tried for long enough.
func dueOf(batch []*entry) time.Time {
	return slices.MinFunc(batch, func(a, b *entry) int { return a.due.Compare(b.due) }).due
}

// attempt commits once. The context never ends: a waiter that leaves does not cancel what others wait
// for, and a store bounds its own commit.
func (c *Committer) attempt(due time.Time, writes []Write) (results []Result, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &UnavailableError{Op: "commit", Hint: "this is a fault of the program; please report it", Err: fmt.Errorf("panic: %v\n%s", value, debug.Stack())}
		}
	}()
	results, err = c.store.Commit(TryUntil(context.Background(), due), writes)
	if err == nil && len(results) != len(writes) {
		err = &UnavailableError{Op: "commit", Hint: "this is a fault of the program; please report it", Err: fmt.Errorf("%d results for %d rows", len(results), len(writes))}
	}
	return results, err
}

// isRowOwn tells whether err concerns its row alone (or is nil).
func isRowOwn(err error) bool {
	if err == nil || errors.Is(err, ErrBatchDuplicate) {
		return true
	}
	var (
		exists    *ExistsError
		conflict  *ConflictError
		missing   *NotFoundError
		partition *PartitionError
		ground    *GroundError
		below     *NotEmptyError
		row       *RowError
		locked    *LockedError
	)
	return errors.As(err, &locked) || errors.As(err, &ground) || errors.As(err, &below) || errors.As(err, &exists) || errors.As(err, &conflict) || errors.As(err, &missing) || errors.As(err, &partition) || errors.As(err, &row)
}

// sizeOf estimates the bytes that a write holds in the queue.
func sizeOf(w Write) int {
	const fixed = 512
	n := &w.Node
	return fixed + len(n.Path) + len(n.Name) + len(n.Description) + len(n.PreRenderedHTML) + n.Content.Len()
}
