package route

import "time"

// Fences is the receiving end of lanes: what was refused on a lane refuses everything of that lane and
// of older ones, so that no message overtakes the refused one before its sender has heard of it. It is
// bounded in number and in age; a fence is forgotten when a newer lane of the same sender comes through. The
// zero value is ready. It is not safe for concurrent use.
type Fences struct {
	at     map[laneKey]fence
	queue  []raised // in order; those whose fence has been taken away are still in it
	number uint64
}

type fence struct {
	lane   uint64
	number uint64        // of the entry in the queue that is this fence's
	until  time.Duration // after which it is forgotten
}

type raised struct {
	laneKey
	number uint64
	until  time.Duration // of the fence when it came here
}

type laneKey struct {
	from uint64 // who sends
	addr string
}

const (
	// maxFences bounds the fences of a process. Beyond it the oldest goes: its sender has long heard.
	maxFences = 65_536
	// fenceFor is how long a fence stands after the last refusal that raised it: as long as a tombstone. What
	// it is for comes on the same connection behind the refused message, and a connection whose pings are not
	// answered is closed after 1.5 s; only a sender that was frozen for longer still holds such a message.
	fenceFor = 10 * time.Minute
)

// Any tells whether there is a fence.
func (f *Fences) Any() bool { return len(f.at) > 0 }

// Raise refuses everything up to a lane from now on.
func (f *Fences) Raise(from uint64, addr string, lane uint64, now time.Duration) {
	f.expire(now)
	if f.at == nil {
		f.at = map[laneKey]fence{}
	}
	k := laneKey{from, addr}
	if old, known := f.at[k]; known {
		f.at[k] = fence{max(old.lane, lane), old.number, now + fenceFor}
		return
	}
	f.number++
	f.at[k] = fence{lane, f.number, now + fenceFor}
	f.queue = append(f.queue, raised{k, f.number, now + fenceFor})
	for len(f.queue) > maxFences {
		f.drop()
	}
}

// Blocks tells whether a message of a lane is to be refused. A newer lane takes the fence away.
func (f *Fences) Blocks(from uint64, addr string, lane uint64, now time.Duration) bool {
	f.expire(now)
	k := laneKey{from, addr}
	x, ok := f.at[k]
	if !ok {
		return false
	}
	if x.until > now && lane <= x.lane {
		return true
	}
	delete(f.at, k)
	return false
}

// expire forgets the fences whose time is over. One that was raised again goes to the end of the queue.
func (f *Fences) expire(now time.Duration) {
	for len(f.queue) > 0 && f.queue[0].until <= now {
		r := f.queue[0]
		x := f.at[r.laneKey]
		if x.number != r.number || x.until <= now {
			f.drop()
			continue
		}
		f.queue = append(f.queue[1:], raised{r.laneKey, r.number, x.until})
	}
	if len(f.queue) == 0 {
		f.queue = nil
	}
}

// drop takes the first of the queue away, with its fence.
func (f *Fences) drop() {
	r := f.queue[0]
	if f.at[r.laneKey].number == r.number {
		delete(f.at, r.laneKey)
	}
	f.queue = f.queue[1:]
}
