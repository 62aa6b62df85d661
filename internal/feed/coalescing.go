package feed

import (
	"container/heap"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
)

// Times and bounds of the coalescer. There are no others (CF-13).
const (
	Window    = 50 * time.Millisecond // of quiet on a path before it is read (CF-12)
	ReadBound = 5 * time.Second       // of one compatibility read (CF-17)
	lifetime  = Window + ReadBound    // of a group after its last notification (CF-22)

	readsAtOnce = 4   // so that paths are independent of one that is slow (CF-14)
	readPaths   = 256 // in one read
)

// coalescing holds the groups of notifications, one a path (CF-12 to CF-23). It has no goroutine, clock or
// I/O: its methods are its events, and return what to do.
type coalescing struct {
	groups  map[node.Path]*group
	timers  groupHeap
	due     []*group // quiet, and waiting for a read
	reading int
}

// group is a path of which something was heard in the last 5.05 s.
type group struct {
	last  Invalidation
	owes  bool      // the last notification has to be read for
	heard time.Time // when it came
	phase groupPhase
	read  *batch    // under way; its result is for the group only while that is groupReading (CF-20)
	at    time.Time // when something is to be done
	index int       // in the heap; -1: not in it
}

type groupPhase uint8

const (
	groupQuiet   groupPhase = iota // until the window ends
	groupDue                       // a read is owed
	groupReading                   // and under way
	groupSettled                   // nothing is owed; until its life ends
)

// batch is one read of several paths.
type batch struct {
	groups  []*group
	current int    // of its paths that nothing has overtaken
	cancel  func() // the shell's
}

func (b *batch) paths() []node.Path {
	paths := make([]node.Path, len(b.groups))
	for i, g := range b.groups {
		paths[i] = g.last.Path
	}
	return paths
}

// coalesced is what a step wants done.
type coalesced struct {
	emit   []Invalidation
	read   []*batch
	cancel []*batch // nobody waits for them any more
}

// notify takes a notification into its path's group. One that owes no read only silences the read that may be
// under way, so it opens no group.
func (c *coalescing) notify(i Invalidation, owes bool, now time.Time) (out coalesced) {
	g := c.groups[i.Path]
	if g == nil {
		if !owes {
			return out
		}
		if c.groups == nil {
			c.groups = map[node.Path]*group{}
		}
		g = &group{index: -1}
		c.groups[i.Path] = g
	}
	c.overtake(g, &out)
	g.last, g.owes, g.heard, g.phase = i, owes, now, groupQuiet
	c.schedule(g, now.Add(Window))
	return out
}

// overtake silences whatever is under way for a group.
func (c *coalescing) overtake(g *group, out *coalesced) {
	if g.phase == groupReading {
		if g.read.current--; g.read.current == 0 {
			out.cancel = append(out.cancel, g.read)
		}
	}
}

// forget silences everything: all of it may have changed, and will be told so.
func (c *coalescing) forget() (out coalesced) {
	for path, g := range c.groups {
		c.overtake(g, &out)
		g.phase, g.owes, g.heard = groupSettled, false, time.Time{}
		c.unschedule(g)
		if g.read == nil {
			delete(c.groups, path)
		}
	}
	c.due = nil
	return out
}

// next is when tick has to be called.
func (c *coalescing) next() (time.Time, bool) {
	if len(c.timers) == 0 {
		return time.Time{}, false
	}
	return c.timers[0].at, true
}

// tick does what is due.
func (c *coalescing) tick(now time.Time) (out coalesced) {
	for len(c.timers) > 0 && !c.timers[0].at.After(now) {
		g := c.timers[0]
		switch {
		case g.phase == groupQuiet && g.owes:
			g.phase = groupDue
			c.due = append(c.due, g)
			c.schedule(g, g.heard.Add(lifetime))
		case g.phase == groupQuiet:
			g.phase = groupSettled
			c.schedule(g, g.heard.Add(lifetime))
		case g.phase == groupDue || g.phase == groupReading: // not read in time
			out.emit = append(out.emit, fallback(g.last))
			c.overtake(g, &out)
			g.phase = groupSettled
		default:
			c.unschedule(g)
			c.close(g, now)
		}
	}
	c.assign(&out)
	return out
}

// close forgets a group whose life has ended, unless a read for it has still not returned.
func (c *coalescing) close(g *group, now time.Time) {
	if g.phase == groupSettled && g.read == nil && !now.Before(g.heard.Add(lifetime)) {
		c.unschedule(g)
		delete(c.groups, g.last.Path)
	}
}

// assign begins reads of what is due.
func (c *coalescing) assign(out *coalesced) {
	for c.reading < readsAtOnce {
		b := &batch{}
		var busy []*group
		for len(c.due) > 0 && len(b.groups) < readPaths {
			g := c.due[0]
			c.due = c.due[1:]
			switch {
			case g.phase != groupDue: // overtaken
			case g.read != nil:
				busy = append(busy, g)
			default: // one read of a path at a time (CF-14)
				g.phase, g.read = groupReading, b
				b.groups = append(b.groups, g)
			}
		}
		c.due = append(busy, c.due...)
		if b.current = len(b.groups); b.current == 0 {
			return
		}
		c.reading++
		out.read = append(out.read, b)
	}
}

// done takes the rows that a read found, or that it failed.
func (c *coalescing) done(b *batch, rows []node.Node, failed bool, now time.Time) (out coalesced) {
	c.reading--
	found := make(map[node.Path]*node.Node, len(rows))
	for i := range rows {
		found[rows[i].Path] = &rows[i]
	}
	for _, g := range b.groups {
		g.read = nil
		if g.phase == groupReading { // nothing has overtaken it, and no other read has begun meanwhile

			if failed {
				out.emit = append(out.emit, fallback(g.last))
			} else if n := found[g.last.Path]; n != nil {
				out.emit = append(out.emit, Invalidation{Path: n.Path, Kind: g.last.Kind, Version: n.Version, NodeType: n.NodeType, Node: n, At: g.last.At})
			}
			g.phase = groupSettled
		}
		c.close(g, now)
	}
	c.assign(&out)
	return out
}

// fallback says that a path has changed, and nothing else (CF-17).
func fallback(last Invalidation) Invalidation {
	return Invalidation{Path: last.Path, Kind: last.Kind, At: last.At}
}

func (c *coalescing) schedule(g *group, at time.Time) {
	g.at = at
	if g.index < 0 {
		heap.Push(&c.timers, g)
	} else {
		heap.Fix(&c.timers, g.index)
	}
}

func (c *coalescing) unschedule(g *group) {
	if g.index >= 0 {
		heap.Remove(&c.timers, g.index)
	}
}

// groupHeap orders groups by what is to be done next.
type groupHeap []*group

func (h groupHeap) Len() int           { return len(h) }
func (h groupHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h groupHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *groupHeap) Push(x any) {
	g := x.(*group)
	g.index = len(*h)
	*h = append(*h, g)
}

func (h *groupHeap) Pop() any {
	old := *h
	g := old[len(old)-1]
	old[len(old)-1], g.index = nil, -1
	*h = old[:len(old)-1]
	return g
}
