package mirror

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// ErrClosed ends a watch whose process goes down: subscribe again.
var ErrClosed = errors.New("mirror: the process is shutting down")

var errOvertaken = errors.New("mirror: what was read may have been lost meanwhile")

// FrameKind says what a frame is.
type FrameKind uint8

// The kinds of frames.
const (
	Full FrameKind = iota + 1
	Patch
	Deleted
	Current // first frame only: the reader holds the newest version
)

// Frame is one step of a watch. A reader that holds BasedOn and applies Patch holds Version.
type Frame struct {
	Kind    FrameKind
	Version int64
	Stamp   string       // tells the row of Version from another one that takes its place after a loss; see [Hub.Resume]
	BasedOn int64        // of a Patch
	Node    node.Node    // of a Full
	Patch   node.Content // of a Patch: an RFC 7396 merge patch over the node's public JSON
	Reset   bool         // of a Full or Deleted: what the reader holds was lost, so that Version may be lower
}

// Watch follows one node. Next is called by one goroutine; Close by any.
type Watch struct {
	hub  *Hub
	path node.Path
	ctx  context.Context // identity of the reader

	wake chan struct{} // capacity 1

	mu     sync.Mutex
	newest store.Change // the newest change that has arrived; Version 0 when none has
	unsure bool         // permissions changed: ask again
	missed bool         // changes may have been missed: read the node again
	anew   bool         // so may commits have been lost: what is read counts whatever its version
	over   error        // why it has ended; nil while it has not

	held      node.Node // what the reader has
	heldGone  bool      // the reader knows that the node is deleted
	heldSince int64     // version of held, or of the deletion
	opened    bool
	resume    int64
	stamp     string // of the row that the reader holds at resume; "" where it does not know
	turned    turned
}

// Watch opens a watch of the node at path for the identity in ctx. A reader that holds version since
// (0: nothing) gets what has changed after it. It fails as a read of the node does. Close it.
func (h *Hub) Watch(ctx context.Context, path node.Path, since int64) (*Watch, error) {
	return h.Resume(ctx, path, since, "")
}

// Resume is Watch for a reader that also knows the stamp of the row that it holds at version since, as a frame told it
// ("": it does not know). Where another row stands at that version now, because the reader's was lost, nothing that it
// holds counts: the first frame is a whole one with Reset.
func (h *Hub) Resume(ctx context.Context, path node.Path, since int64, stamp string) (*Watch, error) {
	w := &Watch{hub: h, path: path, ctx: ctx, wake: make(chan struct{}, 1), resume: since, stamp: stamp}
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, ErrClosed
	}
	if h.byNode[path] == nil {
		h.byNode[path] = map[*Watch]struct{}{}
	}
	h.byNode[path][w] = struct{}{}
	h.mu.Unlock()
	// Subscribed first, asked second: a change between the two is in newest.
	n, err := h.nodes.Get(ctx, path)
	if err != nil {
		w.Close()
		return nil, err
	}
	w.mu.Lock()
	if w.newest.Version < n.Version {
		w.newest = store.Change{Kind: store.Updated, Path: path, Node: n, Version: n.Version}
	}
	w.mu.Unlock()
	w.signal()
	return w, nil
}

// Close ends the watch.
func (w *Watch) Close() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	delete(w.hub.byNode[w.path], w)
	if len(w.hub.byNode[w.path]) == 0 {
		delete(w.hub.byNode, w.path)
	}
}

func (w *Watch) signal() {
	select {
	case w.wake <- struct{}{}:
	default: // a wake-up is already there: Next looks at the newest state anyway
	}
}

// offer takes a change; older ones than what is known are dropped.
func (w *Watch) offer(c store.Change) {
	w.mu.Lock()
	if c.Version > w.newest.Version {
		w.newest = c
	}
	w.mu.Unlock()
	w.signal()
}

func (w *Watch) recheck() {
	w.mu.Lock()
	w.unsure = true
	w.mu.Unlock()
	w.signal()
}

func (w *Watch) reset() {
	w.mu.Lock()
	w.missed = true
	w.mu.Unlock()
	w.signal()
}

// restart has the node read again, and forgets what has arrived before.
func (w *Watch) restart() {
	w.mu.Lock()
	w.missed, w.anew, w.newest = true, true, store.Change{}
	w.mu.Unlock()
	w.signal()
}

func (w *Watch) end(why error) {
	w.mu.Lock()
	w.over = cmp.Or(w.over, why)
	w.mu.Unlock()
	w.signal()
}

// Next returns the next frame, waiting for one. It ends with the cause of ctx, with ErrClosed, with an
// Unauthorized *message.Failure once the right to read is gone, or with *[access.UndeterminedError] once it has
// not been known for long.
func (w *Watch) Next(ctx context.Context) (Frame, error) {
	for {
		w.turned.end()
		select {
		case <-w.wake: // what is there already is told even to a reader that is leaving
		default:
			select {
			case <-w.wake:
			case <-ctx.Done():
				return Frame{}, context.Cause(ctx)
			}
		}
		if err := w.turned.begin(ctx); err != nil {
			return Frame{}, err
		}
		err := w.allowed() // of what has come by now, even if it is gone, and its denial too, at the second look
		w.mu.Lock()
		newest, unsure, over, missed, anew := w.newest, w.unsure, w.over, w.missed, w.anew
		w.unsure, w.missed, w.anew = false, false, false
		w.mu.Unlock()
		if over != nil {
			return Frame{}, over
		}
		// Nothing is delivered after the right to read is gone, whatever woke us (edge.md AC-R1).
		if unsure || w.opened {
			if err == nil {
				err = w.allowed()
			}
			if err != nil && w.opened && errors.As(err, new(*access.UndeterminedError)) {
				// Nothing is told and nothing is ended while it is not known who may read.
				w.turned.end()
				rest(ctx, w.wake, rideMin)
				w.recheck()
				continue
			}
			if err != nil {
				return Frame{}, err
			}
		}
		if missed {
			c, err := w.read(newest)
			if err != nil {
				w.turned.end()
				rest(ctx, w.wake, rideMin)
				w.again(anew)
				continue
			}
			newest = c
		}
		if anew && w.opened {
			if w.behind(newest) {
				w.turned.end()
				rest(ctx, w.wake, rideMin)
				w.again(true)
				continue
			}
			if f, ok := w.other(newest); ok {
				return f, nil
			}
			continue
		}
		if f, ok := w.step(newest); ok {
			return f, nil
		}
	}
}

// read asks for the node as it is, where changes may have been missed. Only a verdict counts: of an answer
// that says nothing it returns the error.
func (w *Watch) read(newest store.Change) (store.Change, error) {
	n, err := w.hub.nodes.Get(w.ctx, w.path)
	var missing *store.NotFoundError
	switch {
	case errors.As(err, &missing):
		if missing.LastVersion > newest.Version || newest.Kind == 0 {
			newest = store.Change{Kind: store.Deleted, Path: w.path, Version: missing.LastVersion}
		}
	case err != nil:
		return newest, err
	case n.Version > newest.Version || newest.Kind == 0:
		newest = store.Change{Kind: store.Updated, Path: w.path, Node: n, Version: n.Version}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.anew {
		return newest, errOvertaken
	}
	if newest.Version > w.newest.Version || w.newest.Kind == 0 {
		w.newest = newest
	}
	return w.newest, nil
}

// behind tells whether an older version was read than the reader holds, although that is not lost: the owner has not
// been told of it yet, which another program may have written.
func (w *Watch) behind(newest store.Change) bool {
	if newest.Kind == store.Deleted || w.heldGone || newest.Version >= w.heldSince {
		return false
	}
	kept, err := w.hub.nodes.At(w.ctx, w.path, w.heldSince)
	return err == nil && sameRecord(kept, w.held)
}

func sameRecord(a, b node.Node) bool {
	return a.Version == b.Version && a.ModifiedAt.Equal(b.ModifiedAt) && a.SameAs(b)
}

// noRow is the stamp of a deletion: no row stands at its version.
const noRow = "0"

// stampOf names the row that stands at a version: its modification in microseconds, to base 36.
func stampOf(n node.Node) string { return strconv.FormatInt(n.ModifiedAt.UnixMicro(), 36) }

// whole is the frame that says all of what is newest.
func whole(newest store.Change) Frame {
	if newest.Kind == store.Deleted {
		return Frame{Kind: Deleted, Version: newest.Version, Stamp: noRow}
	}
	return Frame{Kind: Full, Version: newest.Version, Stamp: stampOf(newest.Node), Node: newest.Node}
}

// hold keeps what the reader has after the next frame.
func (w *Watch) hold(newest store.Change) {
	w.held, w.heldSince, w.heldGone = newest.Node, newest.Version, newest.Kind == store.Deleted
	if w.heldGone {
		w.held = node.Node{}
	}
}

// again has the node read again, after a read that has failed.
func (w *Watch) again(anew bool) {
	w.mu.Lock()
	w.missed, w.anew = true, w.anew || anew
	w.mu.Unlock()
	w.signal()
}

// other is the next frame where what the reader holds may have been lost: what is there, if that is anything else.
func (w *Watch) other(newest store.Change) (Frame, bool) {
	gone, lost := newest.Kind == store.Deleted, newest.Version <= w.heldSince
	switch {
	case gone && w.heldGone && newest.Version == w.heldSince:
		return Frame{}, false
	case !gone && !lost:
		return w.step(newest)
	case !gone && !w.heldGone && sameRecord(newest.Node, w.held):
		return Frame{}, false
	}
	f := whole(newest)
	f.Reset = lost
	w.hold(newest)
	return f, true
}

func (w *Watch) allowed() error {
	switch w.hub.nodes.MayRead(w.ctx, w.path) {
	case access.Granted:
		return nil
	case access.Undetermined:
		return &access.UndeterminedError{Path: w.path}
	}
	return &message.Failure{Type: message.Unauthorized, Target: string(w.path), Message: "the right to read '" + string(w.path) + "' was withdrawn"}
}

// step turns what the reader holds and what is newest into the next frame.
func (w *Watch) step(newest store.Change) (Frame, bool) {
	if !w.opened {
		w.opened = true
		return w.first(newest)
	}
	if newest.Version <= w.heldSince {
		return Frame{}, false
	}
	f := whole(newest)
	if f.Kind == Full && !w.heldGone {
		if p, ok := node.NodeDiff(w.held, newest.Node); ok && p.Len() < newest.Node.Content.Len()+512 {
			f = Frame{Kind: Patch, Version: newest.Version, Stamp: f.Stamp, BasedOn: w.heldSince, Patch: p}
		}
	}
	w.hold(newest)
	return f, true
}

// first is the frame that opens the watch: Current for a reader that is, the difference for one
// whose version is still kept, else the whole node; with Reset where the reader's row was lost.
func (w *Watch) first(newest store.Change) (Frame, bool) {
	f := whole(newest)
	w.hold(newest)
	if w.resume <= 0 {
		return f, true
	}
	if w.resume == newest.Version {
		f.Reset = w.lost(f.Stamp)
		if f.Kind == Full && !f.Reset {
			f = Frame{Kind: Current, Version: f.Version, Stamp: f.Stamp}
		}
		return f, true
	}
	old, err := w.hub.nodes.At(w.ctx, w.path, w.resume)
	switch {
	case err == nil && w.lost(stampOf(old)):
		f.Reset = true
	case w.resume > newest.Version: // it was read elsewhere before it has come here, or it was lost since
		f.Reset = errors.As(err, new(*store.NotFoundError))
	case err != nil || f.Kind == Deleted: // no longer kept: the whole says the same
	default:
		if p, ok := node.NodeDiff(old, newest.Node); ok {
			return Frame{Kind: Patch, Version: newest.Version, Stamp: f.Stamp, BasedOn: w.resume, Patch: p}, true
		}
	}
	return f, true
}

// lost tells whether what stands at the version that the reader holds is another row than the reader's.
func (w *Watch) lost(stands string) bool { return w.stamp != "" && w.stamp != stands }
