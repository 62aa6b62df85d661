package lifecycle

import (
	"math/rand/v2"
	"time"
)

// Backoff yields growing retry delays: First, doubled at each attempt, at most Cap. With Jitter each
// delay is drawn evenly from [delay/2, delay], so that many who fail together do not retry together.
// The zero value is 100 ms to 2 s. Not safe for concurrent use; copy one per retry loop.
type Backoff struct {
	First, Cap time.Duration
	Jitter     bool
	attempt    int
}

// Next is the delay before the next attempt.
func (b *Backoff) Next() time.Duration {
	first, limit := b.First, b.Cap
	if first <= 0 {
		first = 100 * time.Millisecond
	}
	if limit <= 0 {
		limit = 2 * time.Second
	}
	d := limit
	if b.attempt < 62 {
		if shifted := first << b.attempt; shifted > 0 && shifted < limit {
			d = shifted
		}
		b.attempt++
	}
	if b.Jitter {
		d = d/2 + rand.N(d/2+1)
	}
	return d
}

// Reset starts over, after a success.
func (b *Backoff) Reset() { b.attempt = 0 }
