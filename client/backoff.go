package client

import (
	"math/rand/v2"
	"time"
)

// Reconnects spread over a window that starts wide: the clients of a server that restarts must not all
// come back in the same second. The window doubles with each attempt that fails.
const (
	firstWindow = 8 * time.Second
	lastWindow  = time.Minute
)

// delay is how long to wait before the attempt with the given number, from 0. What the server asked for is
// waited in full, and the jitter comes on top.
func (c *Client) delay(attempt int, asked time.Duration) time.Duration {
	window := lastWindow
	if attempt < 3 {
		window = firstWindow << attempt
	}
	random := rand.Float64
	if c.random != nil {
		random = c.random
	}
	return asked + time.Duration(random()*float64(window))
}
