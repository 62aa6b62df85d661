package route

// Fences is the receiving end of lanes: what was refused on a lane refuses everything of that lane and
// of older ones, so that no message overtakes the refused one before its sender has heard of it. It is
// bounded; a fence is forgotten when a newer lane of the same sender comes through. The zero value is
// ready. It is not safe for concurrent use.
type Fences struct {
	at     map[laneKey]fence
	queue  []raised // in order; those whose fence has been taken away are still in it
	number uint64
}

type fence struct {
	lane   uint64
	number uint64 // of the entry in the queue that is this fence's
}

type raised struct {
	laneKey
	number uint64
}

type laneKey struct {
	from uint64 // epoch of the sender
	addr string
}

// maxFences bounds the fences of a process. Beyond it the oldest goes: its sender has long heard.
const maxFences = 65_536

// Any tells whether there is a fence.
func (f *Fences) Any() bool { return len(f.at) > 0 }

// Raise refuses everything up to a lane from now on.
func (f *Fences) Raise(from uint64, addr string, lane uint64) {
	if f.at == nil {
		f.at = map[laneKey]fence{}
	}
	k := laneKey{from, addr}
	if old, known := f.at[k]; known {
		f.at[k] = fence{max(old.lane, lane), old.number}
		return
	}
	f.number++
	f.at[k] = fence{lane, f.number}
	f.queue = append(f.queue, raised{k, f.number})
	for len(f.queue) > maxFences {
		oldest := f.queue[0]
		if f.at[oldest.laneKey].number == oldest.number {
			delete(f.at, oldest.laneKey)
		}
		f.queue = f.queue[1:]
	}
}

// Blocks tells whether a message of a lane is to be refused. A newer lane takes the fence away.
func (f *Fences) Blocks(from uint64, addr string, lane uint64) bool {
	k := laneKey{from, addr}
	x, ok := f.at[k]
	if !ok {
		return false
	}
	n := x.lane
	if lane <= n {
		return true
	}
	delete(f.at, k)
	return false
}
