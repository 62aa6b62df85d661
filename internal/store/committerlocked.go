package store

import (
	"context"
	"errors"
	"time"
)

const (
	// lockedMost bounds the rows that are tried again beside the lanes; more are answered at once.
	lockedMost = 256
	// lockedPause is the pause between two tries of them.
	lockedPause = 20 * time.Millisecond
)

type tryUntil struct{}

// TryUntil asks a store not to go on trying after t to reach what it writes to; what has been sent by then is
// waited for within the store's own bound.
func TryUntil(ctx context.Context, t time.Time) context.Context {
	return context.WithValue(ctx, tryUntil{}, t)
}

// TriedUntil is what [TryUntil] has asked for; the zero time where nothing was asked.
func TriedUntil(ctx context.Context) time.Time {
	t, _ := ctx.Value(tryUntil{}).(time.Time)
	return t
}

// unreached tells whether a write was given up because the store could not be reached for as long as another one of
// its batch was to be tried, and is itself to be tried for longer.
func (e *entry) unreached(err error, now, due time.Time) bool {
	var away *UnavailableError
	return errors.As(err, &away) && away.Transient && !errors.As(err, new(*OutcomeUnknownError)) && !now.Before(due) && now.Before(e.due)
}

// settle answers a batch. Rows that something else holds are tried again beside the lanes, each for as long as the
// options say, so that they hold up nothing but the writes of their own paths.
func (c *Committer) settle(batch []*entry, results []Result) {
	now, due := time.Now(), dueOf(batch)
	var over []*entry
	var answers []Result
	c.mu.Lock()
	for i, e := range batch {
		if locked := (*LockedError)(nil); errors.As(results[i].Err, &locked) && !c.closed {
			if e.until.IsZero() {
				e.until = now.Add(c.batcher.options.Locked)
			}
			if now.Before(e.until) && len(c.locked) < lockedMost {
				c.locked = append(c.locked, e)
				continue
			}
		}
		if !c.closed && e.unreached(results[i].Err, now, due) {
			c.batcher.again(e)
			continue
		}
		over, answers = append(over, e), append(answers, results[i])
	}
	if len(c.locked) > 0 && !c.trying {
		c.trying = true
		c.lanes.Go(c.tryLocked)
	}
	c.batcher.done(over)
	c.work.Broadcast() // other lanes may have waited for these paths, or for the end
	c.mu.Unlock()
	for i, e := range over {
		e.settle(answers[i])
	}
}

// tryLocked commits the rows that something else held, until none is left.
func (c *Committer) tryLocked() {
	for {
		c.mu.Lock()
		batch := c.locked[:min(len(c.locked), c.batcher.options.BatchRows)]
		c.locked = c.locked[len(batch):]
		if c.trying = len(batch) > 0; !c.trying {
			c.locked = nil
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		results := c.commit(batch)
		c.settle(batch, results)
		time.Sleep(lockedPause)
	}
}
