package hub

import "time"

const (
	stormWindow   = time.Second
	stormCooldown = 2 * time.Second
	stormKeys     = 4096 // keys that one busy hub tells apart; more are not limited one by one
)

type stormKey struct {
	from string
	to   uint32
}

type stormVerdict uint8

const (
	stormPass stormVerdict = iota
	stormTrip              // the first drop of an episode: report it
	stormDrop
)

// storm is the breaker of one hub for posts that nobody awaits (messaging.md §1.8 as amended): more
// than limit posts of one key in a second drop that key for two seconds, then it heals by itself. It
// is a pure state machine; times are readings of the mesh clock.
type storm struct {
	limit   int
	window  int64 // start of the current second of the whole map
	keys    map[stormKey]*stormCount
	lastKey stormKey // the key counted last: bursts come from one sender
	last    *stormCount
}

type stormCount struct {
	window  int64 // start of this key's second
	n       int   // posts in it
	blocked int64 // drop until then
}

// post counts one post and decides about it.
func (s *storm) post(key stormKey, now int64) stormVerdict {
	if now-s.window >= int64(stormWindow) {
		s.forget(now)
		s.window = now
	}
	c := s.last
	if c == nil || s.lastKey != key {
		if c = s.count(key, now); c == nil {
			return stormPass
		}
		s.lastKey, s.last = key, c
	}
	if now < c.blocked {
		return stormDrop
	}
	if now-c.window >= int64(stormWindow) {
		c.window, c.n = now, 0
	}
	c.n++
	if c.n <= s.limit {
		return stormPass
	}
	c.blocked, c.n = now+int64(stormCooldown), 0
	return stormTrip
}

func (s *storm) count(key stormKey, now int64) *stormCount {
	if c := s.keys[key]; c != nil {
		return c
	}
	if len(s.keys) >= stormKeys {
		return nil
	}
	if s.keys == nil {
		s.keys = map[stormKey]*stormCount{}
	}
	c := &stormCount{window: now}
	s.keys[key] = c
	return c
}

// forget drops the keys that are quiet, so that a hub that was busy once keeps nothing.
func (s *storm) forget(now int64) {
	s.last = nil
	for key, c := range s.keys {
		if now >= c.blocked && now-c.window >= int64(stormWindow) {
			delete(s.keys, key)
		}
	}
	if len(s.keys) == 0 {
		s.keys = nil
	}
}
