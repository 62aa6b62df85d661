package feed

import (
	"cmp"
	"slices"
	"time"

	"github.com/hubmesh/hubmesh/internal/store"
)

// Bounds of the reader (storage.md §6).
const (
	pageRows      = 10_000
	mostPaths     = 100_000
	verifiedRows  = 100
	longestAway   = 10 * time.Minute
	reverifyAfter = 2 * time.Second // a pooler may change the server behind an open connection, a restore the rows
)

// Causes of a reset.
const (
	causeStarted  = "the feed has started"
	causePruned   = "rows were removed before they were read"
	causeBehind   = "too many paths changed to be told one by one"
	causeServer   = "the server is another one, or was restored"
	causeTimeline = "the server was promoted"
	causeLost     = "rows that had been read are no longer there"
	causeAway     = "the server was away for too long"
	causeOverrun  = "too many own changes were not read back"
)

// losing tells whether commits may have been lost at a reset.
func losing(cause string) bool {
	switch cause {
	case causeServer, causeTimeline, causeLost, causeAway:
		return true
	}
	return false
}

// reader keeps the position (storage.md §2, §6). It has no goroutine, clock or connection: step takes an
// event and returns what to do, in order; of connect, start, verify and read at most one, the last.
type reader struct {
	origin   string        // of the rows of this process
	limit    int           // rows a page
	most     int           // paths (of whole: rows) that wait for the end of a cut read
	whole    bool          // every row is handed on, in portions where there are many: a consumer's way
	reverify time.Duration // 0: only after a reconnect
	advance  func(store.Position, store.ChangePage) store.Position

	state    readerState
	pos      store.Position
	safe     store.Position // where the buffer began
	floor    uint64         // every row of the transactions below it has been read
	rest     store.Position // pos, or what is as good and further on; of the last uncut read
	cause    string         // of the reset that has to be made; "" for none
	server   store.Verification
	known    bool // server is one that has been read
	last     []store.ChangeRow
	lastRead time.Time
	verified time.Time
	asked    []store.ChangeRow // of the running verification

	buffer  buffer
	again   bool
	waiting []uint64 // who waits for a read that begins after now
	serving []uint64 // who waits for the one that runs
}

type readerState uint8

const (
	readerAway readerState = iota // no connection
	readerIdle
	readerBusy
)

// Events of a reader.
type (
	readerEvent interface{}
	opened      struct{ at time.Time }    // there is a connection
	woken       struct{ tokens []uint64 } // look; who waits for it
	arrived     struct {                  // a page that was read
		page store.ChangePage
		at   time.Time
	}
	started struct {
		page store.ChangePage
		at   time.Time
	}
	verified struct {
		server store.Verification
		at     time.Time
	}
	failed  struct{ at time.Time } // the connection is not usable
	overrun struct{}               // the relay has lost count: everything may have changed
)

// Effects of a reader.
type (
	readerEffect interface{}
	connect      struct{}
	start        struct{}
	read         struct {
		from  store.Position
		limit int
	}
	verify  struct{ last []store.ChangeRow }
	deliver struct {
		rows []store.ChangeRow // in the order of the commits of each path; none: there was nothing
		to   store.Position    // from where to go on
	}
	reset struct {
		cause string
		to    store.Position
	}
	synced  struct{ tokens []uint64 } // what they had asked for has been delivered
	standby struct{}                  // the server can not be read; connect to another
)

func newReader(origin string) *reader {
	return &reader{origin: origin, limit: pageRows, most: mostPaths, advance: advance, cause: causeStarted}
}

// resume has the reader go on from a stored position.
func (r *reader) resume(pos store.Position) {
	if pos.XID == 0 {
		return
	}
	r.pos, r.safe, r.rest, r.floor, r.cause = pos, pos, pos, floorOf(pos), ""
}

func (r *reader) step(event readerEvent) []readerEffect {
	switch e := event.(type) {
	case opened:
		return r.verify(r.last)
	case woken:
		r.waiting = append(r.waiting, e.tokens...)
		if r.state == readerIdle {
			return r.begin(time.Time{})
		}
		r.again = true
	case overrun:
		r.cause = cmp.Or(r.cause, causeOverrun)
		if r.state == readerIdle {
			return r.begin(time.Time{})
		}
		r.again = true
	case verified:
		return r.judge(e.server, e.at)
	case started:
		return r.restart(e.page, e.at)
	case arrived:
		return r.take(e.page, e.at)
	case failed:
		return r.fail()
	}
	return nil
}

func (r *reader) verify(last []store.ChangeRow) []readerEffect {
	r.state, r.asked = readerBusy, last
	return []readerEffect{verify{last}}
}

// judge compares the server with the one that was read before.
func (r *reader) judge(s store.Verification, at time.Time) []readerEffect {
	if s.Standby {
		return append([]readerEffect{standby{}}, r.fail()...)
	}
	before := r.server
	r.server = s
	switch {
	case !r.known:
	case s.SystemID != before.SystemID || s.Tables != before.Tables:
		r.cause = cmp.Or(r.cause, causeServer)
	case s.Timeline != before.Timeline:
		r.cause = cmp.Or(r.cause, causeTimeline)
	case at.Sub(r.lastRead) >= longestAway:
		r.cause = cmp.Or(r.cause, causeAway)
	case s.Found < len(r.asked):
		// Rows that may have been pruned prove nothing: ask for the others alone.
		kept := slices.DeleteFunc(slices.Clone(r.asked), func(row store.ChangeRow) bool { return row.XID < s.PrunedBefore })
		if len(kept) < len(r.asked) {
			r.server = before
			return r.verify(kept)
		}
		r.cause = cmp.Or(r.cause, causeLost)
	}
	r.known, r.verified = true, at
	return r.begin(at)
}

// begin reads from where the last read ended. at is zero where no time is known.
func (r *reader) begin(at time.Time) []readerEffect {
	r.state, r.again, r.safe = readerBusy, false, r.pos
	r.serving = append(r.serving, r.waiting...)
	r.waiting = nil
	switch {
	case r.cause != "":
		return []readerEffect{start{}}
	case r.reverify > 0 && at.IsZero() && r.lastRead.Sub(r.verified) >= r.reverify:
		return r.verify(r.last)
	}
	return []readerEffect{read{r.pos, r.limit}}
}

// restart takes the position of what is newest; what was before has to be taken for changed.
func (r *reader) restart(p store.ChangePage, at time.Time) []readerEffect {
	r.buffer = buffer{}
	r.pos = r.advance(store.Position{}, p)
	r.safe, r.floor, r.last, r.lastRead = r.pos, p.Snapshot.Min, p.Rows, at
	r.rest = resting(r.pos, p.Snapshot)
	effects := []readerEffect{reset{r.cause, r.rest}}
	r.cause = ""
	return r.finish(effects)
}

func (r *reader) take(p store.ChangePage, at time.Time) []readerEffect {
	r.lastRead = at
	switch {
	case p.SystemID != r.server.SystemID || p.Tables != r.server.Tables:
		r.cause, r.buffer = causeServer, buffer{}
		return r.verify(nil) // to learn the timeline
	case p.PrunedBefore > r.floor:
		return r.reset(causePruned)
	}
	r.pos = r.advance(r.pos, p)
	r.buffer.add(p.Rows)
	if p.Cut {
		var effects []readerEffect
		if r.buffer.size() > r.most {
			if !r.whole {
				return r.reset(causeBehind)
			}
			effects = append(effects, deliver{r.empty(), r.pos})
			r.safe = r.pos
		}
		if !r.whole {
			r.buffer.cut(r.origin)
		}
		return append(effects, read{r.pos, r.limit})
	}
	r.floor, r.rest = p.Snapshot.Min, resting(r.pos, p.Snapshot)
	effects := []readerEffect{deliver{r.empty(), r.pos}}
	r.safe = r.pos
	return r.finish(effects)
}

func (r *reader) reset(cause string) []readerEffect {
	r.cause, r.buffer = cause, buffer{}
	return []readerEffect{start{}}
}

// empty returns what is buffered in the order of positions, and remembers the last rows of it.
func (r *reader) empty() []store.ChangeRow {
	rows := r.buffer.rows()
	r.buffer = buffer{}
	r.last = append(r.last, rows[max(0, len(rows)-verifiedRows):]...)
	slices.SortFunc(r.last, byPos)
	r.last = slices.Clone(r.last[max(0, len(r.last)-verifiedRows):])
	return rows
}

func (r *reader) finish(effects []readerEffect) []readerEffect {
	r.state = readerIdle
	if len(r.serving) > 0 {
		effects = append(effects, synced{r.serving})
		r.serving = nil
	}
	if r.again || len(r.waiting) > 0 || r.cause != "" {
		effects = append(effects, r.begin(time.Time{})...)
	}
	return effects
}

func (r *reader) fail() []readerEffect {
	r.state, r.buffer, r.pos = readerAway, buffer{}, r.safe
	return []readerEffect{connect{}} // who was served by the read waits for the next one
}
