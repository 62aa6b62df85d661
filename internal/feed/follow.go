package feed

import (
	"context"
	"errors"
	"fmt"
	"github.com/hubmesh/hubmesh/internal/store"
	"log/slog"
	"time"
)

// reading is a reader with its connection: one call to the database at a time.
type reading struct {
	source   Source
	machine  *reader
	log      *slog.Logger
	conn     Connection
	attempts int // to connect, since a page was read
}

var errStandby = errors.New("the server is a standby: changes are read from the primary")

// call makes the effect that talks to the database and returns its event; failed when it has failed.
func (r *reading) call(ctx context.Context, effect readerEffect) readerEvent {
	switch e := effect.(type) {
	case connect:
		return r.connect(ctx)
	case verify:
		s, err := timed(ctx, "verify the changes", func(ctx context.Context) (store.Verification, error) { return r.conn.Verify(ctx, e.last) })
		return r.outcome(verified{s, time.Now()}, err)
	case start:
		p, err := timed(ctx, "start to read changes", r.conn.Start)
		return r.outcome(started{p, time.Now()}, err)
	case read:
		p, err := timed(ctx, "read changes", func(ctx context.Context) (store.ChangePage, error) { return r.conn.Read(ctx, e.from, e.limit) })
		return r.outcome(arrived{p, time.Now()}, err)
	}
	panic(fmt.Sprintf("feed: %T is no call", effect))
}

func timed[T any](ctx context.Context, operation string, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := bounded(ctx, operation)
	defer cancel()
	return call(ctx)
}

func (r *reading) outcome(event readerEvent, err error) readerEvent {
	if err != nil {
		r.close()
		r.trouble(err)
		return failed{time.Now()}
	}
	if _, page := event.(verified); !page {
		if r.attempts > 2 {
			r.log.Info("the changes are read again")
		}
		r.attempts = 0
	}
	return event
}

// connect tries until there is a connection; nil is the end.
func (r *reading) connect(ctx context.Context) readerEvent {
	r.close()
	for {
		if !pause(ctx, reconnectPause(r.attempts)) {
			return nil
		}
		r.attempts++
		conn, err := timed(ctx, "connect to read changes", r.source.Connect)
		if err == nil {
			r.conn = conn
			return opened{time.Now()}
		}
		r.trouble(err)
	}
}

// trouble logs the first fault in a row that is more than one lost connection.
func (r *reading) trouble(err error) {
	if r.attempts == 2 {
		r.log.Warn("the changes can not be read; trying again", "error", err)
	}
}

func (r *reading) close() {
	if r.conn != nil {
		r.conn.Close()
		r.conn = nil
	}
}

// follow is the reader's goroutine.
func (f *Feed) follow() {
	machine := newReader(f.source.Origin)
	machine.reverify = reverifyAfter
	r := &reading{source: f.source, machine: machine, log: f.log}
	defer r.close()
	poll := time.NewTicker(f.source.Poll)
	defer poll.Stop()
	clock := uint64(0) // the relay's, when the running call began
	var began time.Time
	connections := 0
	effects := []readerEffect{connect{}}
	for {
		var event readerEvent
		for _, effect := range effects {
			switch e := effect.(type) {
			case deliver:
				f.relay.rows(e.rows, clock, f.source.Origin, f.source.Unsure)
				f.delivered(began)
				f.wakeConsumers()
			case reset:
				f.hasReset(e.cause)
				f.relay.restarted(e.cause, clock)
				f.delivered(began)
				f.wakeConsumers()
			case synced:
				f.synced(e.tokens)
			case standby:
				r.trouble(errStandby)
			default:
				clock, began = f.relay.clock(), time.Now()
				event = r.call(f.ctx, effect)
				if event == nil {
					return
				}
			}
		}
		switch e := event.(type) {
		case nil:
			event = f.idle(poll)
			if event == nil {
				return
			}
		case opened:
			if connections++; connections > 1 {
				f.count(&f.stats.Reconnects, 1)
			}
		case arrived:
			f.count(&f.stats.Reads, 1)
			f.count(&f.stats.Rows, len(e.page.Rows))
		}
		// Who asked while the call was under way is known to the machine before its answer.
		if f.ctx.Err() != nil {
			return
		}
		f.tell(machine)
		effects = machine.step(event)
	}
}

// tell hands the machine what has been asked for while it was busy.
func (f *Feed) tell(machine *reader) {
	if machine.state != readerBusy {
		return
	}
	select {
	case <-f.look:
		machine.step(woken{f.asked()})
	default:
	}
	select {
	case <-f.overran:
		machine.step(overrun{})
	default:
	}
}

// idle waits until something is to be read; nil is the end.
func (f *Feed) idle(poll *time.Ticker) readerEvent {
	select {
	case <-f.look:
	case <-poll.C:
	case <-f.overran:
		return overrun{}
	case <-f.ctx.Done():
		return nil
	}
	return woken{f.asked()}
}

func (f *Feed) hasReset(cause string) {
	if cause == causeStarted {
		return
	}
	f.count(&f.stats.Resets, 1)
	f.log.Warn("the feed starts anew; everything may have changed", "cause", cause)
}
