package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Kind is what happened to a watched node.
type Kind string

// The kinds of events.
const (
	Full    Kind = "full"    // the node as a whole
	Patch   Kind = "patch"   // a change; Event.Node is the node after it
	Deleted Kind = "deleted" // the node is gone; it may come back as a full
)

// Event is one step of a watched node.
type Event struct {
	Kind    Kind
	Version int64
	BasedOn int64           // the version that Patch turns into Version
	Patch   json.RawMessage // RFC 7396, for Patch
	Node    Node            // after the event; for Deleted the zero node
	Text    json.RawMessage // JSON of Node, with everything that the server sent
}

// silence is how long a stream may say nothing: the server writes every 15 s.
const silence = 40 * time.Second

// errSilent is the cause of a stream that fell silent.
var errSilent = errors.New("the live connection fell silent")

// WatchOptions change what Watch does. The zero value is good.
type WatchOptions struct {
	// Lost is called when the connection is lost, with the reason and the wait until the next attempt.
	Lost func(err error, wait time.Duration)
	// Opened is called when a connection is accepted.
	Opened func()
	// GiveUp ends the watch with the last error when connections have failed for so long in a row; 0 never.
	GiveUp time.Duration
}

// Watch calls fn with the node and then with each change, in the order of versions and each once (only where the server
// has lost its last versions, as by a failover or a restored backup, does it go back to what is stored), until
// ctx ends, fn returns an error, or the server ends the watch for good: the error then says why, such as
// a right to read that was withdrawn. A connection that had been good and is lost is made again, after a
// wait with jitter, and goes on from the version held, as long as that was not lost. The first connection is not retried.
func (c *Client) Watch(ctx context.Context, path string, o WatchOptions, fn func(Event) error) error {
	w := &watch{c: c, path: path, o: o, fn: fn}
	lost := time.Now()
	for attempt := 0; ; attempt++ {
		err := w.connect(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var e *Error
		if !w.opened || w.failed || errors.As(err, &e) && e.Retry != After {
			return err
		}
		if w.good {
			attempt, w.good, lost = 0, false, time.Now()
		}
		var asked time.Duration
		if e != nil {
			asked = e.RetryAfter
		}
		wait := c.delay(attempt, asked)
		if o.GiveUp > 0 {
			left := o.GiveUp - time.Since(lost)
			if left <= 0 {
				return err
			}
			wait = min(wait, left)
		}
		if o.Lost != nil {
			o.Lost(err, wait)
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return context.Cause(ctx)
		}
	}
}

// watch is the state of one Watch.
type watch struct {
	c    *Client
	path string
	o    WatchOptions
	fn   func(Event) error

	version int64           // held; 0 is none
	id      string          // of the event that told it: what the server knows it by
	text    json.RawMessage // the node at version; nil when it is deleted
	opened  bool            // some connection was accepted
	good    bool            // this one was
	failed  bool            // fn said stop
}

// connect reads one connection to its end.
func (w *watch) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer quiet.Stop()
	header := http.Header{"Accept": {"text/event-stream"}}
	if w.version != 0 {
		header.Set("Last-Event-ID", cmp.Or(w.id, strconv.FormatInt(w.version, 10)))
	}
	resp, err := w.c.begin(ctx, call{method: http.MethodGet, path: "/api/watch/" + escape(w.path), header: header})
	if err != nil {
		return silent(ctx, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	w.opened, w.good = true, true
	if w.o.Opened != nil {
		w.o.Opened()
	}
	err = readEvents(resp.Body, func() { quiet.Reset(silence) }, w.take)
	if err == nil {
		err = &Error{Code: CodeNetwork, Title: "The connection ended", Retry: After}
	}
	return silent(ctx, err)
}

// silent tells a stream that fell silent as what it is.
func silent(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return &Error{Code: CodeNetwork, Title: errSilent.Error(), Retry: After, Err: err}
	}
	return err
}

// take handles one event of the stream.
func (w *watch) take(name, id string, data []byte) error {
	switch name {
	case "full", "patch", "deleted":
	case "end":
		e := &Error{Retry: Never, Members: map[string]any{}}
		if err := json.Unmarshal(data, &e.Members); err != nil {
			return fmt.Errorf("the end of the stream is no problem: %w", err)
		}
		e.fill(w.c.base)
		return e
	default:
		return nil // of a later server
	}
	var f struct {
		Version int64           `json:"version"`
		BasedOn int64           `json:"basedOn"`
		Node    json.RawMessage `json:"node"`
		Patch   json.RawMessage `json:"patch"`
		Reset   bool            `json:"reset"` // what is held was lost
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return fmt.Errorf("a frame is no JSON: %w", err)
	}
	if f.Version <= w.version && w.version != 0 && !f.Reset {
		return nil // seen
	}
	ev := Event{Kind: Kind(name), Version: f.Version, BasedOn: f.BasedOn, Patch: f.Patch}
	switch ev.Kind {
	case Full:
		ev.Text = f.Node
	case Patch:
		if f.BasedOn != w.version || w.text == nil {
			w.version, w.id, w.text = 0, "", nil // a gap: begin again with the whole node
			return &Error{Code: CodeUnexpected, Title: "A change does not follow on the version held", Retry: After}
		}
		merged, err := merge(w.text, f.Patch)
		if err != nil {
			return fmt.Errorf("a patch can not be applied: %w", err)
		}
		ev.Text = merged
	}
	if ev.Text != nil {
		if err := json.Unmarshal(ev.Text, &ev.Node); err != nil {
			return fmt.Errorf("a frame holds no node: %w", err)
		}
	}
	w.version, w.id, w.text = f.Version, id, ev.Text
	if err := w.fn(ev); err != nil {
		w.failed = true
		return err
	}
	return nil
}
