package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Service is one long-lived part of a process. Start returns once it runs, or why it cannot; Stop
// ends it and waits until everything it started is gone. Stop is called once, after a Start that
// succeeded.
type Service interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
}

// Group starts named services in the order of Add and stops them in reverse. Safe for concurrent use.
type Group struct {
	mu      sync.Mutex
	parts   []part
	started int
	stopped bool
}

type part struct {
	name string
	s    Service
}

// Add appends a service. It has no effect on a group that runs.
func (g *Group) Add(name string, s Service) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.parts = append(g.parts, part{name, s})
}

// Start starts every service in order. When one fails, those already started are stopped in reverse
// and the error names the one that failed.
func (g *Group) Start(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.parts[g.started:] {
		if err := p.s.Start(ctx); err != nil {
			return errors.Join(fmt.Errorf("start %s: %w", p.name, err), g.stop(ctx))
		}
		g.started++
	}
	return nil
}

// Stop stops every started service in reverse and joins their errors. Later calls do nothing.
func (g *Group) Stop(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stop(ctx)
}

func (g *Group) stop(ctx context.Context) error {
	if g.stopped {
		return nil
	}
	g.stopped = true
	var errs []error
	for ; g.started > 0; g.started-- {
		p := g.parts[g.started-1]
		if err := p.s.Stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", p.name, err))
		}
	}
	return errors.Join(errs...)
}
