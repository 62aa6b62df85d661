//go:build race

package render

// slow is that the race detector is on, which makes all of this ten times slower.
const slow = true
