package feedtest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/feed/feedtest/txlog"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Operations of a source, as [Server.OnCall] is told of them.
const (
	Connect  = "connect"
	Start    = "start"
	Read     = "read"
	Answer   = "answer" // of a read: its snapshot has been taken
	Verify   = "verify"
	Listen   = "listen"
	Ping     = "ping"
	Notify   = "notify"
	ReadNode = "read node"
	Take     = "take"
	Move     = "move"
)

// ErrGone answers a call on a connection that was cut, or to a server that is down.
var ErrGone = errors.New("feedtest: the connection is gone")

// Server is the shared store. Safe for concurrent use.
type Server struct {
	Log *txlog.Log

	mu        sync.Mutex
	down      bool
	standby   bool
	swallow   bool
	conns     map[*connection]struct{}
	listeners map[*listener]struct{}
	hook      func(ctx context.Context, origin, operation string) error
	notified  func()
	calls     map[string]int
	leases    map[string]*held
	timeline  int64
}

type held struct {
	holder   string
	until    time.Time
	position store.Position
}

// NewServer returns an empty store.
func NewServer() *Server {
	return &Server{Log: txlog.New(), conns: map[*connection]struct{}{}, listeners: map[*listener]struct{}{}, calls: map[string]int{}, leases: map[string]*held{}}
}

// Source is the store as a process sees it.
func (s *Server) Source(origin string) feed.Source {
	return feed.Source{
		Origin: origin,
		Poll:   time.Second,
		Connect: func(ctx context.Context) (feed.Connection, error) {
			return s.connect(ctx, origin)
		},
		Listen: func(ctx context.Context) (feed.Listener, error) { return s.listen(ctx, origin) },
		Notify: func(ctx context.Context) error {
			if err := s.call(ctx, origin, Notify); err != nil {
				return err
			}
			s.Announce("")
			s.mu.Lock()
			notified := s.notified
			s.mu.Unlock()
			if notified != nil {
				notified()
			}
			return nil
		},
		Read: func(ctx context.Context, paths []node.Path) ([]node.Node, error) {
			if err := s.call(ctx, origin, ReadNode); err != nil {
				return nil, err
			}
			return s.Log.Nodes(paths), nil
		},
	}
}

// Commit makes one transaction. It wakes nobody: that is the notifier's part.
func (s *Server) Commit(origin string, changes ...txlog.Change) {
	tx := s.Log.Begin()
	for _, c := range changes {
		if !tx.Write(origin, c) {
			panic("feedtest: a row is locked")
		}
	}
	tx.Commit()
}

// Announce sends a notification to every listener.
func (s *Server) Announce(payload string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.listeners {
		s.send(l, store.Notification{Payload: payload})
	}
}

func (s *Server) send(l *listener, n store.Notification) {
	if s.swallow {
		return
	}
	select {
	case l.heard <- n:
	default: // it has plenty to wake up for
	}
}

// OnCall has fn called inside every call of a process, before it is served: it may park, or fail it.
func (s *Server) OnCall(fn func(ctx context.Context, origin, operation string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = fn
}

// OnNotified has fn called by a process's wake-up after it was sent and before the process knows.
func (s *Server) OnNotified(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notified = fn
}

// Calls is how often an operation was called.
func (s *Server) Calls(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[operation]
}

// Terminate cuts every connection.
func (s *Server) Terminate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.cut()
	}
	for l := range s.listeners {
		l.cut()
	}
}

// TerminateListeners cuts the listeners' connections.
func (s *Server) TerminateListeners() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.listeners {
		l.cut()
	}
}

// Stop takes the server down, and Start brings it up again: a crash, unless nothing is open.
func (s *Server) Stop() {
	s.mu.Lock()
	s.down = true
	s.mu.Unlock()
	s.Terminate()
	s.Log.Crash()
}

// Start brings the server up.
func (s *Server) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = false
}

// Standby says whether what answers is a standby.
func (s *Server) Standby(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.standby = is
}

// Swallow has notifications and pings vanish, and no connection break: a proxy that lost its way.
func (s *Server) Swallow(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.swallow = is
}

// call counts a call and asks the hook.
func (s *Server) call(ctx context.Context, origin, operation string) error {
	s.mu.Lock()
	s.calls[operation]++
	hook, down := s.hook, s.down
	s.mu.Unlock()
	if down {
		return ErrGone
	}
	if hook != nil {
		if err := hook(ctx, origin, operation); err != nil {
			return err
		}
	}
	return ctx.Err()
}
