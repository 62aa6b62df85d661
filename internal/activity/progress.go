package activity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
)

// Progress is what work says about itself. It is safe for concurrent use and never blocks on the
// store: what is said is written at most every 250 ms, the newest state only.
type Progress struct {
	runner *Runner
	path   node.Path
	dirty  chan struct{} // capacity 1

	mu      sync.Mutex
	content Content
	worst   Status
	kept    int // bytes of the messages
	errors  int // messages that were not kept and are errors
}

// Path is the activity's node.
func (p *Progress) Path() node.Path { return p.path }

func (p *Progress) change(f func(c *Content)) {
	p.mu.Lock()
	if !p.content.Status.Terminal() {
		f(&p.content)
	}
	p.mu.Unlock()
	select {
	case p.dirty <- struct{}{}:
	default:
	}
}

// Say tells what is being done now.
func (p *Progress) Say(text string) { p.change(func(c *Content) { c.Message = text }) }

// Step tells how far the work is.
func (p *Progress) Step(done, total int) {
	p.change(func(c *Content) { c.Done, c.Total = done, total })
}

// Count adds to a named counter.
func (p *Progress) Count(name string, n int) {
	if n == 0 {
		return
	}
	p.change(func(c *Content) {
		if c.Counts == nil {
			c.Counts = map[string]int{}
		}
		c.Counts[name] += n
	})
}

// Affects names a path that the work has written.
func (p *Progress) Affects(path string) {
	p.change(func(c *Content) {
		if !slices.Contains(c.Affected, path) && len(c.Affected) < 100 {
			c.Affected = append(c.Affected, path)
		}
	})
}

// Warn adds a warning about something; the activity ends no better than Warning.
func (p *Progress) Warn(about, text string) { p.line("warning", Warning, about, text) }

// Fail adds an error about something, and the work goes on; the activity ends no better than Failed.
func (p *Progress) Fail(about, text string) { p.line("error", Failed, about, text) }

func (p *Progress) line(level string, s Status, about, text string) {
	l := newLine(level, about, text)
	size := 0
	if b, err := json.Marshal(l); err == nil { // of texts and a time: it always can be
		size = len(b)
	}
	p.change(func(c *Content) {
		p.worst = worse(p.worst, s)
		most, bytes := maxMessages, keptBytes
		if s != Failed {
			most, bytes = maxWarnings, keptBytes/2
		}
		if len(c.Messages) >= most || p.kept+size > bytes {
			c.Dropped++
			if s == Failed {
				p.errors++
			}
			return
		}
		p.kept += size
		c.Messages = append(c.Messages, l)
	})
}

func newLine(level, about, text string) Line {
	if len(text) > messageBytes {
		text = strings.ToValidUTF8(text[:messageBytes], "") + "…"
	}
	return Line{Level: level, Text: text, About: about, At: node.Stamp(time.Now())}
}

// finish sets the terminal status: the worst of what was said and of how the work returned.
func (p *Progress) finish(err error, cancelled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &p.content
	if c.Status.Terminal() {
		return
	}
	if c.Dropped > 0 {
		level := "warning"
		if p.errors > 0 {
			level = "error"
		}
		c.Messages = append(c.Messages, newLine(level, "", fmt.Sprintf("%d more messages are not listed, %d of them errors", c.Dropped, p.errors)))
	}
	if err != nil && !cancelled { // said whatever was said before: it is why nothing comes after
		p.worst = worse(p.worst, Failed)
		c.Messages = append(c.Messages, newLine("error", "", err.Error()))
	}
	c.Status = worse(Succeeded, p.worst)
	if cancelled && err != nil {
		c.Status = Cancelled
	}
	now := node.Stamp(time.Now())
	c.Ended = &now
	c.Message = ""
}

// Snapshot is the content as it is now.
func (p *Progress) Snapshot() Content {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.content
	c.Messages = slices.Clone(c.Messages)
	c.Affected = slices.Clone(c.Affected)
	c.Counts = maps.Clone(c.Counts)
	return c
}

// write writes what was said, at most once per pace, until ctx ends.
func (p *Progress) write(ctx context.Context) {
	for {
		select {
		case <-p.dirty:
		case <-ctx.Done():
			return
		}
		if err := p.flush(ctx); err != nil && !errors.Is(err, context.Canceled) {
			p.runner.log.Warn("an activity's progress was not written", "address", string(p.path), "error", err)
		}
		t := time.NewTimer(pace)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// flush writes the state; requestedStatus is the caller's and is left alone.
func (p *Progress) flush(ctx context.Context) error {
	c := p.Snapshot()
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	delete(fields, "requestedStatus")
	patch, err := json.Marshal(map[string]any{"content": fields})
	if err != nil {
		return err
	}
	_, err = p.runner.nodes.Patch(ctx, p.path, patch, nodehub.Condition{})
	return err
}
