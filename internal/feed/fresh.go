package feed

import (
	"sync/atomic"
	"time"
)

// MostBehind is for how long what a process holds of a shared store counts without a read of the changes that
// reached every subscriber. It reads at least once a second.
const MostBehind = 5 * time.Second

// freshness is up to when everybody here has been told what was committed. Time is that of the monotonic clock, so
// that a process which stood still does not take itself for fresh.
type freshness struct {
	from    time.Time    // what told counts from
	told    atomic.Int64 // when the read began of which everybody has been told
	marking atomic.Bool  // a mark is on its way through the queues
}

// behind is how long ago the read began of which everybody has been told last.
func (f *freshness) behind() time.Duration { return time.Since(f.from) - time.Duration(f.told.Load()) }

// Behind is how much may have been committed elsewhere without having had its effect here: the time since the
// beginning of the last read whose changes every subscriber of the relay has taken. What a process has read itself
// when the feed was opened counts as such a read.
func (f *Feed) Behind() time.Duration { return f.fresh.behind() }

// Current tells whether what is held here may be answered from: it is not behind by more than [MostBehind]. It costs
// a look at the clock.
func (f *Feed) Current() bool { return f.fresh.behind() <= MostBehind }

// delivered says that what was committed before a read began stands in the queues of the subscribers. There is one mark
// at a time: a subscriber that is busy for long does not collect them.
func (f *Feed) delivered(began time.Time) {
	if !f.fresh.marking.CompareAndSwap(false, true) {
		return
	}
	f.relay.mark(func() {
		f.fresh.told.Store(int64(began.Sub(f.fresh.from)))
		f.fresh.marking.Store(false)
	})
}
