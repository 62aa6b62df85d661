package claim

import "time"

// closedList remembers process addresses that this silo has released, so that it can say so when it is
// asked. It is bounded: beyond the bound the oldest are forgotten.
type closedList struct {
	limit int
	at    map[string]closing
	queue []string
}

type closing struct{ at, until time.Duration }

func newClosedList(limit int) closedList {
	return closedList{limit: limit, at: map[string]closing{}}
}

func (l *closedList) put(addr string, now, kept time.Duration) {
	l.expire(now)
	if _, known := l.at[addr]; !known {
		l.queue = append(l.queue, addr)
	}
	l.at[addr] = closing{now, now + kept}
	for len(l.queue) > l.limit {
		delete(l.at, l.queue[0])
		l.queue = l.queue[1:]
	}
}

// expire drops from the front what is over. An address that was released again later stands where it
// was first and holds up those behind it for as long as it is kept, which the bound allows for.
func (l *closedList) expire(now time.Duration) {
	for len(l.queue) > 0 && l.at[l.queue[0]].until <= now {
		delete(l.at, l.queue[0])
		l.queue = l.queue[1:]
	}
}

// Sweep forgets the addresses that were released long enough ago: new ones push them out, but perhaps none
// come. Nothing depends on when it is called.
func (c *Claimant) Sweep() { c.closed.expire(c.clock.Now()) }

// Released is the number of process addresses that this silo remembers as released.
func (c *Claimant) Released() int { return len(c.closed.at) }

func (l *closedList) age(addr string, now time.Duration) (time.Duration, bool) {
	c, ok := l.at[addr]
	if !ok || c.until <= now {
		return 0, false
	}
	return now - c.at, true
}
