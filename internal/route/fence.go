package route

// Fences is the receiving end of lanes: what was refused on a lane refuses everything of that lane and
// of older ones, so that no message overtakes the refused one before its sender has heard of it. It is
// bounded; a fence is forgotten when a newer lane of the same sender comes through. The zero value is
// ready. It is not safe for concurrent use.
type Fences struct {
	at    map[laneKey]uint64
	queue []laneKey
}

type laneKey struct {
	from uint64 // epoch of the sender
	addr string
}

// maxFences bounds the fences of a process. Beyond it the oldest goes: its sender has long heard.
const maxFences = 65_536

// Raise refuses everything up to a lane from now on.
func (f *Fences) Raise(from uint64, addr string, lane uint64) {
	if f.at == nil {
		f.at = map[laneKey]uint64{}
	}
	k := laneKey{from, addr}
	old, known := f.at[k]
	f.at[k] = max(old, lane)
	if known {
		return
	}
	f.queue = append(f.queue, k)
	for len(f.queue) > maxFences {
		delete(f.at, f.queue[0])
		f.queue = f.queue[1:]
	}
}

// Blocks tells whether a message of a lane is to be refused. A newer lane takes the fence away.
func (f *Fences) Blocks(from uint64, addr string, lane uint64) bool {
	k := laneKey{from, addr}
	n, ok := f.at[k]
	if !ok {
		return false
	}
	if lane <= n {
		return true
	}
	delete(f.at, k)
	return false
}
