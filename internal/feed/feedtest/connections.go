package feedtest

import (
	"context"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/store"
)

// connection reads changes.
type connection struct {
	server *Server
	origin string
	gone   chan struct{}
	once   sync.Once
}

func (s *Server) connect(ctx context.Context, origin string) (feed.Connection, error) {
	if err := s.call(ctx, origin, Connect); err != nil {
		return nil, err
	}
	c := &connection{server: s, origin: origin, gone: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
	return c, nil
}

func (c *connection) cut() { c.once.Do(func() { close(c.gone) }) }

func (c *connection) call(ctx context.Context, operation string) error {
	if err := c.server.call(ctx, c.origin, operation); err != nil {
		return err
	}
	select {
	case <-c.gone:
		return ErrGone
	default:
		return nil
	}
}

func (c *connection) Start(ctx context.Context) (store.ChangePage, error) {
	if err := c.call(ctx, Start); err != nil {
		return store.ChangePage{}, err
	}
	return c.server.Log.Start(), nil
}

func (c *connection) Read(ctx context.Context, from store.Position, limit int) (store.ChangePage, error) {
	if err := c.call(ctx, Read); err != nil {
		return store.ChangePage{}, err
	}
	page := c.server.Log.Read(from, limit)
	return page, c.call(ctx, Answer)
}

func (c *connection) Verify(ctx context.Context, last []store.ChangeRow) (store.Verification, error) {
	if err := c.call(ctx, Verify); err != nil {
		return store.Verification{}, err
	}
	c.server.mu.Lock()
	standby := c.server.standby
	c.server.mu.Unlock()
	system, timeline, pruned := c.server.Log.Identity()
	return store.Verification{SystemID: system, Timeline: timeline, Found: c.server.Log.Found(last), PrunedBefore: pruned, Standby: standby}, nil
}

func (c *connection) Close() {
	c.cut()
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	delete(c.server.conns, c)
}

// listener hears notifications.
type listener struct {
	server *Server
	origin string
	heard  chan store.Notification
	gone   chan struct{}
	once   sync.Once
}

func (s *Server) listen(ctx context.Context, origin string) (feed.Listener, error) {
	if err := s.call(ctx, origin, Listen); err != nil {
		return nil, err
	}
	l := &listener{server: s, origin: origin, heard: make(chan store.Notification, 4096), gone: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners[l] = struct{}{}
	return l, nil
}

func (l *listener) cut() { l.once.Do(func() { close(l.gone) }) }

func (l *listener) Wait(ctx context.Context) (store.Notification, error) {
	select {
	case n := <-l.heard:
		return n, nil
	case <-l.gone:
		return store.Notification{}, ErrGone
	case <-ctx.Done():
		return store.Notification{}, ctx.Err()
	}
}

func (l *listener) Ping(ctx context.Context) error {
	if err := l.server.call(ctx, l.origin, Ping); err != nil {
		return err
	}
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	l.server.send(l, store.Notification{Own: true})
	return nil
}

func (l *listener) Close() {
	l.cut()
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	delete(l.server.listeners, l)
}

// Positions is where consumers are, as a process of an origin asks for it.
func (s *Server) Positions() feed.Positions { return positions{s} }

type positions struct{ server *Server }

func (p positions) Take(ctx context.Context, name, holder string, lease time.Duration) (store.Position, bool, error) {
	s := p.server
	if err := s.call(ctx, holder, Take); err != nil {
		return store.Position{}, false, err
	}
	_, timeline, _ := s.Log.Identity()
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.leases[name]
	if h == nil {
		h = &held{}
		s.leases[name] = h
	}
	if h.holder != holder && time.Now().Before(h.until) {
		return store.Position{}, false, nil
	}
	h.holder, h.until = holder, time.Now().Add(lease)
	if s.timeline != timeline { // of the Move that the position is of
		for _, other := range s.leases {
			other.position = store.Position{}
		}
		s.timeline = timeline
	}
	return h.position, true, nil
}

// Give hands a consumer's lease to somebody else, as if its holder had been frozen until it ended.
func (s *Server) Give(name, holder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases[name].holder, s.leases[name].until = holder, time.Now().Add(time.Hour)
}

func (p positions) Move(ctx context.Context, name, holder string, to store.Position) error {
	s := p.server
	if err := s.call(ctx, holder, Move); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.leases[name]
	if h == nil || h.holder != holder || !time.Now().Before(h.until) {
		return store.ErrLeaseLost
	}
	h.position = to
	return nil
}
