package store

import (
	"errors"
	"time"
)

const (
	// lockedMost bounds the rows that are tried again beside the lanes; more are answered at once.
	lockedMost = 256
	// lockedPause is the pause between two tries of them.
	lockedPause = 20 * time.Millisecond
)

// settle answers a batch. Rows that something else holds are tried again beside the lanes, each for as long as the
// options say, so that they hold up nothing but the writes of their own paths.
func (c *Committer) settle(batch []*entry, results []Result) {
	now := time.Now()
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
