package hub

import (
	"context"
	"fmt"
	"sync"

	"github.com/hubmesh/hubmesh/internal/lifecycle"
	"github.com/hubmesh/hubmesh/internal/message"
)

// initialise runs the initialisers in order, off the turn, and reports to the hub. One that does not
// return in time is left behind: the report is made by whichever comes first.
func (h *Hub) initialise(ctx context.Context, cancel context.CancelFunc) {
	defer cancel()
	var once sync.Once
	report := func(err error) {
		once.Do(func() {
			h.accept(&Delivery{msg: &initialised{err: err}, info: &initialisedType.typeInfo, to: &h.addr, posted: h.mesh.clock.Now()})
		})
	}
	stop := context.AfterFunc(ctx, func() { report(h.startCut(ctx)) })
	defer stop()
	report(h.runInitialisers(message.WithIdentity(ctx, message.SystemIdentity())))
}

// startCut is why a start was cut short: disposal is a cancellation, not a fault (invariant 21).
func (h *Hub) startCut(ctx context.Context) error {
	if h.Level() >= lifecycle.Quiescing || h.mesh.closing.Load() {
		return &message.Disposing{Address: h.addr.Path()}
	}
	h.mu.Lock()
	step := h.more().initStep
	h.mu.Unlock()
	return fmt.Errorf("initialiser '%s' did not finish: %w", step, context.Cause(ctx))
}

func (h *Hub) runInitialisers(ctx context.Context) (err error) {
	for _, in := range h.kind.inits {
		h.mu.Lock()
		h.more().initStep = in.name
		h.mu.Unlock()
		if err := h.runInitialiser(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

func (h *Hub) runInitialiser(ctx context.Context, in initialiser) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("initialiser '%s' panicked: %v", in.name, r)
		}
	}()
	if err = in.run(ctx, h); err != nil && ctx.Err() != nil {
		return h.startCut(ctx)
	}
	return err
}

// finishStart takes the result of the initialisers, on the hub's turn. After a failure every gate
// opens and what was deferred is refused with the cause.
func (h *Hub) finishStart(err error) {
	h.mu.Lock()
	e := h.more()
	e.initStep, e.initCancel = "", nil
	if err == nil {
		h.mu.Unlock()
		h.openGates(1)
		return
	}
	e.initErr = err
	h.setFlags(flagFailed, 0)
	deferred := e.takeDeferred()
	h.mu.Unlock()
	if h.Level() < lifecycle.Quiescing && !isDisposing(err) {
		h.mesh.log.Error("a hub could not start", "address", h.addr.Path(), "kind", h.kind.name, "error", err)
	}
	h.openGates(1<<(maxGates+1) - 1)
	for d := deferred; d != nil; {
		next := d.next
		d.next = nil
		h.refuseFailedStart(d)
		d = next
	}
	if h.kind.EndOnFailedStart {
		h.Dispose()
	}
}

func isDisposing(err error) bool { return message.Classify(err).Type == message.ShuttingDown }

// Started returns a channel that closes when the hub has started or will not start.
func (h *Hub) Started() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.more()
	if h.gates() == 0 {
		done := make(chan struct{})
		close(done)
		return done
	}
	if e.startedDone == nil {
		e.startedDone = make(chan struct{})
	}
	return e.startedDone
}
