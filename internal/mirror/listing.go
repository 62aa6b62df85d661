package mirror

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

const (
	// quiet is the least time between two replacements of one listing or result.
	quiet = 50 * time.Millisecond
	// rideMin and rideMax bound the pause before an owner that gave no answer is asked again.
	rideMin = 100 * time.Millisecond
	rideMax = 5 * time.Second
)

// live is what listings and results share: a mark that something may have changed, a wake-up, and a
// pace.
type live struct {
	wake chan struct{} // capacity 1
	mu   sync.Mutex
	over error     // why it has ended; nil while it has not
	last time.Time // of the last replacement
	// opened is set by the first replacement. Until then a read fails as it would for anybody; after it
	// the watch rides out an owner that is not there for the moment: it was never the owner's to end.
	opened bool
	lapses int // in a row
	turned turned
	told   digest // what the reader was told last
}

// digest is what tells one replacement from another.
type digest [sha256.Size]byte

// news tells whether a replacement differs from the one before. What changed where the reader may not look
// marks a watch, too: he is told nothing of it, not even that something has changed.
func (l *live) news(now digest) bool {
	if l.told == now {
		return false
	}
	l.told = now
	return true
}

// digestOf sums up rows: each by its path, its version, when that was written, since a version may be lost and made
// again, and what else a replacement says of it.
func digestOf[T any](rows []T, of func(T) (path node.Path, version int64, at time.Time, more bool)) (sum digest) {
	h := sha256.New()
	text := []byte("rows")
	for _, row := range rows {
		path, version, at, more := of(row)
		text = strconv.AppendInt(append(append(text, path...), 0), version, 10)
		text = strconv.AppendInt(append(text, ' '), at.UnixNano(), 10)
		text = strconv.AppendBool(append(text, ' '), more)
		h.Write(text)
		text = append(text[:0], 0)
	}
	h.Write(text)
	h.Sum(sum[:0])
	return sum
}

func newLive() live { return live{wake: make(chan struct{}, 1)} }

func (l *live) mark() {
	select {
	case l.wake <- struct{}{}:
	default: // already marked
	}
}

func (l *live) end(why error) {
	l.mu.Lock()
	l.over = cmp.Or(l.over, why)
	l.mu.Unlock()
	l.mark()
}

// wait returns when something may have changed, at most once per quiet, and it is this watch's turn.
func (l *live) wait(ctx context.Context) error {
	l.turned.end()
	if err := l.changed(ctx); err != nil {
		return err
	}
	return l.turned.begin(ctx)
}

func (l *live) changed(ctx context.Context) error {
	select {
	case <-l.wake:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if pause := quiet - time.Since(l.last); !l.last.IsZero() && pause > 0 {
		t := time.NewTimer(pause)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		// What was marked during the pause is seen by the read that follows.
		select {
		case <-l.wake:
		default:
		}
	}
	l.mu.Lock()
	over := l.over
	l.mu.Unlock()
	if over != nil {
		return over
	}
	l.last = time.Now()
	return nil
}

// ride takes the outcome of a read and tells whether to read again: after a pause, or sooner when
// something changes.
func (l *live) ride(ctx context.Context, err error) bool {
	switch {
	case err == nil:
		l.opened, l.lapses = true, 0
		return false
	case !l.opened || ctx.Err() != nil || !noVerdict(err):
		return false
	}
	l.turned.end()
	rest(ctx, l.wake, min(rideMin<<min(l.lapses, 10), rideMax))
	l.lapses++
	l.mark()
	return true
}

// rest waits for a pause to pass, or less: until a wake-up, which it takes, or the end of ctx.
func rest(ctx context.Context, wake <-chan struct{}, pause time.Duration) {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-wake:
	case <-ctx.Done():
	}
}

// noVerdict tells whether a failed read says nothing about what was asked for: ask again (C28).
func noVerdict(err error) bool {
	return message.IsTransient(err) || errors.As(err, new(*budget.Lapse)) || errors.As(err, new(*access.UndeterminedError))
}

// Listing follows the children of one path, as whole replacements.
type Listing struct {
	live
	hub  *Hub
	path node.Path
	ctx  context.Context
	page store.Page
}

// Listing opens a listing for the identity in ctx. Close it.
func (h *Hub) Listing(ctx context.Context, path node.Path, page store.Page) (*Listing, error) {
	l := &Listing{live: newLive(), hub: h, path: path, ctx: ctx, page: page}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	if h.byParent[path] == nil {
		h.byParent[path] = map[*Listing]struct{}{}
	}
	h.byParent[path][l] = struct{}{}
	l.mark()
	return l, nil
}

// Next returns the children as they are now: at once the first time, then whenever the reader's listing has
// changed.
func (l *Listing) Next(ctx context.Context) ([]store.Entry, error) {
	for {
		if err := l.wait(ctx); err != nil {
			return nil, err
		}
		entries, _, err := l.hub.nodes.Children(l.ctx, l.path, l.page)
		if l.ride(ctx, err) || err == nil && !l.news(digestOf(entries, entryOf)) {
			continue
		}
		return entries, err
	}
}

func entryOf(e store.Entry) (path node.Path, version int64, at time.Time, more bool) {
	if e.Node != nil {
		version, at = e.Node.Version, e.Node.ModifiedAt
	}
	return e.Path, version, at, e.HasChildren
}

// Close ends the listing.
func (l *Listing) Close() {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	delete(l.hub.byParent[l.path], l)
	if len(l.hub.byParent[l.path]) == 0 {
		delete(l.hub.byParent, l.path)
	}
}

// Result follows a query, as whole replacements.
type Result struct {
	live
	hub   *Hub
	query query.Query
	ctx   context.Context

	heldMu  sync.Mutex
	held    map[node.Path]struct{}
	reading bool // a read is under way: what changes now may be missing in it
}

// Result opens a live query for the identity in ctx. Close it.
func (h *Hub) Result(ctx context.Context, q query.Query) (*Result, error) {
	r := &Result{live: newLive(), hub: h, query: q, ctx: ctx}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	h.results[r] = struct{}{}
	r.mark()
	return r, nil
}

// offer marks the result when a change may concern it: a node that matches, or one that was shown.
func (r *Result) offer(c store.Change) {
	if c.Kind != store.Deleted && r.query.Match(c.Node) {
		r.mark()
		return
	}
	r.heldMu.Lock()
	_, shown := r.held[c.Path]
	shown = shown || r.reading
	r.heldMu.Unlock()
	if shown {
		r.mark()
	}
}

// Next returns the rows as they are now: at once the first time, then whenever the reader's result has changed.
func (r *Result) Next(ctx context.Context) ([]node.Node, error) {
	for {
		if err := r.wait(ctx); err != nil {
			return nil, err
		}
		nodes, err := r.read()
		if r.ride(ctx, err) || err == nil && !r.news(digestOf(nodes, rowOf)) {
			continue
		}
		return nodes, err
	}
}

func rowOf(n node.Node) (path node.Path, version int64, at time.Time, more bool) {
	return n.Path, n.Version, n.ModifiedAt, false
}

func (r *Result) read() ([]node.Node, error) {
	r.heldMu.Lock()
	r.reading = true
	r.heldMu.Unlock()
	nodes, err := r.hub.nodes.Select(r.ctx, r.query)
	if err != nil {
		return nil, err
	}
	held := make(map[node.Path]struct{}, len(nodes))
	for _, n := range nodes {
		held[n.Path] = struct{}{}
	}
	r.heldMu.Lock()
	r.held, r.reading = held, false
	r.heldMu.Unlock()
	return nodes, nil
}

// Close ends the live query.
func (r *Result) Close() {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	delete(r.hub.results, r)
}
