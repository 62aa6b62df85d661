package demo

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxEvents is how many events are kept; one above it drops the oldest.
const maxEvents = 60

// Event is something that was done to a silo, or a line of its log.
type Event struct {
	Seq   int       `json:"seq"`
	At    time.Time `json:"at"`
	Silo  string    `json:"silo"`
	Kind  string    `json:"kind"`  // action or log
	Level string    `json:"level"` // info, warn or error
	Text  string    `json:"text"`
}

// events are the newest ones.
type events struct {
	mu   sync.Mutex
	made int
	list []Event
}

func (e *events) add(one Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.made++
	one.Seq, one.At = e.made, time.Now().UTC()
	if len(e.list) == maxEvents {
		e.list = e.list[1:]
	}
	e.list = append(e.list, one)
}

func (e *events) newest() []Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.list)
}

// logger takes a silo's log lines to the events, and on to the program's log.
type logger struct {
	silo   string
	dead   chan struct{} // closed when it was killed: it says nothing any more
	events *events
	next   slog.Handler
	attrs  []slog.Attr
}

// Enabled implements slog.Handler.
func (l logger) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (l logger) Handle(ctx context.Context, r slog.Record) error {
	if isClosed(l.dead) {
		return nil
	}
	level := "info"
	switch {
	case r.Level >= slog.LevelError:
		level = "error"
	case r.Level >= slog.LevelWarn:
		level = "warn"
	}
	text := &strings.Builder{}
	text.WriteString(r.Message)
	tell := func(a slog.Attr) bool {
		fmt.Fprintf(text, " %s=%v", a.Key, a.Value)
		return true
	}
	for _, a := range l.attrs {
		tell(a)
	}
	r.Attrs(tell)
	l.events.add(Event{Silo: l.silo, Kind: "log", Level: level, Text: text.String()})
	if !l.next.Enabled(ctx, r.Level) {
		return nil
	}
	r.AddAttrs(slog.String("silo", l.silo))
	return l.next.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l logger) WithAttrs(a []slog.Attr) slog.Handler {
	l.attrs, l.next = append(slices.Clip(l.attrs), a...), l.next.WithAttrs(a)
	return l
}

// WithGroup implements slog.Handler. The names of groups are not told.
func (l logger) WithGroup(string) slog.Handler { return l }
