package httpapi

import (
	"fmt"
	"sync"
)

// streamCounts bounds the open streams of each subject, so that one that opens many and reads none of them
// costs the process a bounded part. The zero value is ready.
type streamCounts struct {
	mu   sync.Mutex
	open map[string]int
}

// enter counts a stream of a subject, or refuses it.
func (c *streamCounts) enter(subject string, most int) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[string]int{}
	}
	if c.open[subject] >= most {
		return nil, problem("overloaded", fmt.Sprintf("'%s' has %d open streams, and no more are taken of one subject; close some, or follow many things on one connection with /api/live", subject, most))
	}
	c.open[subject]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.open[subject]--; c.open[subject] == 0 {
			delete(c.open, subject)
		}
	}, nil
}
