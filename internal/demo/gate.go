package demo

import (
	"context"
	"errors"
	"sync"
)

// errKilled answers whoever is still inside of a silo that was killed.
var errKilled = errors.New("this silo was killed")

// maxBacklog is how much may wait for the thaw of a silo; one above it can not be thawed any more.
const maxBacklog = 100_000

// gate is what everything that enters or leaves a silo passes. It is made by newGate, open.
type gate struct {
	dead chan struct{} // closed when the silo was killed

	mu      sync.Mutex
	thawed  chan struct{} // closed unless the silo is frozen
	settled chan struct{} // closed once what waited for the thaw has run
	waiting []func()      // runs at the thaw, in this order
	killed  bool
	lost    bool // more waited than may
}

func newGate() *gate {
	g := &gate{dead: make(chan struct{}), thawed: make(chan struct{}), settled: make(chan struct{})}
	close(g.thawed)
	close(g.settled)
	return g
}

func (g *gate) freeze() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if isClosed(g.thawed) {
		g.thawed = make(chan struct{})
	}
	if isClosed(g.settled) {
		g.settled = make(chan struct{})
	}
}

// thaw opens the gate and runs what has waited; false when that was more than could be kept.
func (g *gate) thaw() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lost {
		return false
	}
	thawed := g.thawed
	if isClosed(thawed) {
		return true
	}
	close(thawed)
	for len(g.waiting) > 0 && g.thawed == thawed {
		f := g.waiting[0]
		g.waiting = g.waiting[1:]
		g.mu.Unlock()
		f()
		g.mu.Lock()
	}
	if g.thawed == thawed {
		g.waiting = nil
		close(g.settled)
	}
	return true
}

func (g *gate) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.killed {
		g.killed, g.waiting = true, nil
		close(g.dead)
	}
}

// run runs f now, or in its turn at the thaw; never once the silo was killed.
func (g *gate) run(f func()) {
	g.mu.Lock()
	switch {
	case g.killed || g.lost:
	case !isClosed(g.settled) && len(g.waiting) >= maxBacklog:
		g.lost, g.waiting = true, nil
	case !isClosed(g.settled):
		g.waiting = append(g.waiting, f)
	default:
		g.mu.Unlock()
		f()
		return
	}
	g.mu.Unlock()
}

// pass waits while the silo is frozen. It ends with errKilled or with ctx.
func (g *gate) pass(ctx context.Context) error {
	return g.wait(ctx, func() chan struct{} { return g.thawed })
}

// settle waits until what waited for a thaw has run, too.
func (g *gate) settle(ctx context.Context) error {
	return g.wait(ctx, func() chan struct{} { return g.settled })
}

func (g *gate) wait(ctx context.Context, what func() chan struct{}) error {
	for {
		g.mu.Lock()
		opens, killed := what(), g.killed
		g.mu.Unlock()
		if killed {
			return errKilled
		}
		if isClosed(opens) {
			return nil
		}
		select {
		case <-opens:
		case <-g.dead:
			return errKilled
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
