package feed

import (
	"errors"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/store"
)

// listening is the listener's shell: its goroutine waits on the connection, and the reader's tells it when the
// read that follows LISTEN has ended.
type listening struct {
	feed    *Feed
	mu      sync.Mutex // guards machine
	machine listener
	conn    Listener
}

// listen is the listener's goroutine.
func (f *Feed) listen() {
	l := &listening{feed: f}
	defer l.close()
	effects := l.step(l.machine.begin)
	for f.ctx.Err() == nil {
		for len(effects) > 0 {
			effects = l.do(effects)
		}
		effects = l.wait()
	}
}

// step takes an event at this moment.
func (l *listening) step(event func(time.Time) []listenerEffect) []listenerEffect {
	l.mu.Lock()
	defer l.mu.Unlock()
	gaps := l.machine.gaps
	effects := event(time.Now())
	l.feed.count(&l.feed.stats.Gaps, int(l.machine.gaps-gaps))
	return effects
}

// do makes the effects, and returns those of what came of it.
func (l *listening) do(effects []listenerEffect) []listenerEffect {
	var next []listenerEffect
	for _, effect := range effects {
		switch effect {
		case listenerDial:
			conn, err := timed(l.feed.ctx, "listen", l.feed.source.Listen)
			if err != nil {
				next = append(next, l.lost(err)...)
			} else {
				l.conn = conn
				next = append(next, l.step(l.machine.dialed)...)
			}
		case listenerSync:
			connection := l.machine.connection
			l.feed.onRead(func() { l.read(connection) })
		case listenerWake:
			l.feed.Wake()
		case listenerPing:
			l.feed.count(&l.feed.stats.Pings, 1)
			ctx, cancel := until(l.feed.ctx, "ping", l.machine.due)
			err := l.conn.Ping(ctx)
			cancel()
			if err != nil {
				next = append(next, l.lost(err)...)
			}
		case listenerClose:
			l.close()
		}
	}
	return next
}

// wait returns the effects of what happens next.
func (l *listening) wait() []listenerEffect {
	l.mu.Lock()
	due := l.machine.due
	l.mu.Unlock()
	if l.conn == nil {
		pause(l.feed.ctx, time.Until(due))
		return l.step(l.machine.tick)
	}
	ctx, cancel := until(l.feed.ctx, "wait for a notification", due)
	defer cancel()
	n, err := l.conn.Wait(ctx)
	switch {
	case err == nil:
		l.feed.heard(n)
		return l.step(func(now time.Time) []listenerEffect { return l.machine.heard(n.Own, now) })
	case l.feed.ctx.Err() != nil:
		return nil
	case ctx.Err() != nil:
		return l.step(l.machine.tick)
	}
	return l.lost(err)
}

func (l *listening) lost(err error) []listenerEffect {
	effects := l.step(func(now time.Time) []listenerEffect {
		if l.machine.attempts == 2 {
			l.feed.log.Warn("the feed can not listen; it polls, and tries again", "error", err)
		}
		return l.machine.lost(now)
	})
	return effects
}

// read is told by the reader's goroutine.
func (l *listening) read(connection uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, effect := range l.machine.read(connection) {
		if effect == listenerIsLive {
			l.feed.log.Info("PostgreSQL LISTEN started on mesh_node_changes")
			l.feed.count(&l.feed.stats.Listens, 1)
			l.feed.isLive()
		}
	}
}

func (l *listening) close() {
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

// heard takes a payload to the relay, where it is the news itself.
func (f *Feed) heard(n store.Notification) {
	if n.Own {
		return
	}
	f.count(&f.stats.Wakes, 1)
	if !f.source.Bare || n.Payload == "" {
		return
	}
	i, err := ParsePayload(n.Payload)
	if bad := (*PayloadError)(nil); errors.As(err, &bad) {
		f.count(&f.stats.BadPayloads, 1)
		f.log.Warn("a notification is skipped", "error", err)
		return
	}
	i.At = time.Now()
	f.relay.Notify(i)
}
