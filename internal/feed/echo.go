package feed

import (
	"slices"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

const (
	mostPending  = 100_000
	longestEarly = time.Minute // between a row and its publication, which the commit's bound limits
)

// echoes puts what this process published and what it reads of the change rows into one order for each path.
// A change of its own is told when it is published, and its row is the echo. What others wrote before it may
// be read after it was published: it is old news and not told. What others wrote after it may be read before
// it is published: then the publication is old news to caches.
//
// It needs to hold a change for no longer than from its publication to its echo, or the other way round.
type echoes struct {
	following bool // there are change rows that bring echoes
	clock     uint64
	count     int
	pending   map[node.Path][]own // published; the echo is still to come
	early     map[node.Path][]own // read; still to be published
	// Since the feed began anew behind rows that may still be published, what others wrote and was told is kept
	// for a while: recent, until until.
	recent map[node.Path]int64
	until  time.Time
}

type own struct {
	version int64
	clock   uint64    // of a pending one: when it was published
	at      time.Time // of an early one: when it was read
	old     bool      // of an early one: something newer was told
}

// published notes a change that is being told; tell is false where something newer was told before. overrun
// means that it has lost count, and that everything has to be taken for changed.
func (e *echoes) published(path node.Path, version int64) (tell, overrun bool) {
	if !e.following {
		return true, false
	}
	tell = version >= e.recent[path] // else its row may be one that the feed began behind
	if early := e.early[path]; len(early) > 0 {
		// Its row has been read, or one of a later change of this process that stood for it in a read that was
		// cut: changes are published in the order of their rows.
		i := slices.IndexFunc(early, func(o own) bool { return o.version >= version })
		switch {
		case i < 0: // these were never published
			delete(e.early, path)
		case early[i].version == version:
			put(e.early, path, early[i+1:])
			return tell && !early[i].old, false
		default:
			put(e.early, path, early[i:])
			return tell && !early[i].old, false
		}
	}
	if !tell {
		return false, false
	}
	if e.count >= mostPending {
		clear(e.pending)
		e.count, overrun = 0, true
	}
	e.clock++
	if e.pending == nil {
		e.pending = map[node.Path][]own{}
	}
	e.pending[path] = append(e.pending[path], own{version: version, clock: e.clock})
	e.count++
	return true, overrun
}

// echo notes the row of a change of this process.
func (e *echoes) echo(path node.Path, version int64, now time.Time) {
	pending := e.pending[path]
	if i := slices.IndexFunc(pending, func(o own) bool { return o.version == version }); i >= 0 {
		e.settle(path, i+1)
		return
	}
	n := 0 // it stands for the rows of these in a read that was cut
	for n < len(pending) && pending[n].version < version {
		n++
	}
	if n > 0 {
		e.settle(path, n)
	}
	if e.early == nil {
		e.early = map[node.Path][]own{}
	}
	if _, known := e.early[path]; known || len(e.early) < mostPending {
		e.early[path] = append(e.early[path], own{version: version, at: now})
	}
}

// other notes the row of a change of somebody else; tell is false where something newer was told before.
func (e *echoes) other(r store.ChangeRow) (tell bool) {
	path := r.Path
	if pending := e.pending[path]; len(pending) > 0 {
		// Soon after the feed began anew a pending change may be one that it began behind, so its echo may
		// never come. Our own processes count a path's versions upwards, other programs need not.
		sure := e.recent == nil
		if sure || r.Origin != "" && r.Version < pending[len(pending)-1].version {
			return false
		}
	}
	for i := range e.early[path] {
		e.early[path][i].old = true
	}
	if _, known := e.recent[path]; e.recent != nil && (known || len(e.recent) < mostPending) {
		e.recent[path] = r.Version
	}
	return true
}

// seen says that a read that began at a reading of the clock has ended, and which changes of this process it
// brought. Of what was published before it began the echo is among these, or never comes: a feed that starts
// anew begins behind some.
func (e *echoes) seen(clock uint64, brought map[node.Path][]int64) {
	for path, pending := range e.pending {
		stays := 0 // those that it brought go with their echo, and take with them what is before
		for i, o := range pending {
			if o.clock <= clock && !slices.ContainsFunc(pending[i:], func(later own) bool { return slices.Contains(brought[path], later.version) }) {
				stays = i + 1
			}
		}
		if stays > 0 {
			e.settle(path, stays)
		}
	}
}

// restarted says that the feed began anew, at clock, and whether commits that were told may have been lost.
func (e *echoes) restarted(clock uint64, lost bool, now time.Time) {
	e.seen(clock, nil)
	e.until = now.Add(longestEarly)
	if e.recent == nil || lost { // the version of what was told and lost says nothing any more
		e.recent = map[node.Path]int64{}
	}
}

// expire forgets what was read long ago and never published.
func (e *echoes) expire(now time.Time) {
	if now.After(e.until) {
		e.recent = nil
	}
	for path, early := range e.early {
		if now.Sub(early[0].at) > longestEarly {
			put(e.early, path, slices.DeleteFunc(early, func(o own) bool { return now.Sub(o.at) > longestEarly }))
		}
	}
}

func (e *echoes) settle(path node.Path, n int) {
	e.count -= n
	put(e.pending, path, e.pending[path][n:])
}

func put(m map[node.Path][]own, path node.Path, rest []own) {
	if len(rest) == 0 {
		delete(m, path)
	} else {
		m[path] = rest
	}
}
