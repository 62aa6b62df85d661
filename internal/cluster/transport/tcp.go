package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
)

// Config is what a transport is made from.
type Config struct {
	// Self is this silo. Epoch 0 is "no member yet". Addr is what others dial; empty is Listen.
	Self    Peer
	Cluster string // only silos of the same cluster talk
	Handler Handler
	Listen  string    // address to bind, host:port; TCP only
	Secure  *Security // nil is plain TCP
	Limits  Limits
	// Messages is the version of what the frames carry. A peer that carries another one is refused like
	// one whose frames are of another [Version].
	Messages uint8
	Bounds   *budget.Table // nil is the defaults
	Logger   *slog.Logger  // nil discards

	version uint16 // 0 is Version, and Messages in its upper byte
}

func (c Config) check() (Config, error) {
	for _, s := range []string{c.Cluster, c.Self.Name, c.Self.Addr} {
		if len(s) > 255 {
			return c, fmt.Errorf("transport: %.32q… has %d bytes; names and addresses have at most 255", s, len(s))
		}
	}
	if c.Self.Name == "" || c.Handler == nil {
		return c, errors.New("transport: a silo needs a name and a handler")
	}
	if c.Bounds == nil {
		table := budget.Defaults()
		c.Bounds = &table
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.version = cmp.Or(c.version, Version|uint16(c.Messages)<<8)
	var err error
	c.Limits, err = c.Limits.orDefaults()
	return c, err
}

// TCP is a silo's end of the network over framed TCP. Make it with [Listen].
//
// Lock order: TCP.mu, then a link's or an accepted connection's, then the clerk's.
type TCP struct {
	cfg      Config
	listener net.Listener
	ctx      context.Context // ends at Close: dials and handshakes
	cancel   context.CancelFunc
	base     time.Time
	clerk    clerk
	sweeper  sweeper
	work     sync.WaitGroup // every goroutine but the clerk's
	opening  chan struct{}  // a place for each handshake under way of those who dialled us
	notices  notices

	epoch      atomic.Uint64
	generation atomic.Uint64
	links      atomic.Pointer[map[uint64]*link] // copied on write, under mu

	mu       sync.Mutex
	closed   bool
	suspects map[uint64]bool          // marks of epochs that have no link yet
	accepted map[uint64]*acceptedPeer // by epoch
	sockets  map[net.Conn]struct{}    // accepted, handshake not finished
}

var _ Transport = (*TCP)(nil)

// maxOpening bounds the handshakes that may be under way at once with peers that dialled us. One above
// it is closed at once; a peer that is one dials again.
const maxOpening = 256

// acceptPause is the wait after a failed accept, such as one for want of file descriptors.
const acceptPause = 10 * time.Millisecond

// Listen binds cfg.Listen and serves until Close. ctx bounds the binding alone.
func Listen(ctx context.Context, cfg Config) (*TCP, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, err
	}
	// The pings of the layer above find a dead peer sooner on connections that we dialled; these find
	// one on connections that a peer dialled and then vanished.
	listen := net.ListenConfig{KeepAliveConfig: keepAlive}
	l, err := listen.Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for silos on %s: %w", cfg.Listen, err)
	}
	cfg.Self.Addr = cmp.Or(cfg.Self.Addr, l.Addr().String())
	t := &TCP{
		cfg: cfg, listener: l, base: time.Now(),
		opening:  make(chan struct{}, maxOpening),
		suspects: map[uint64]bool{}, accepted: map[uint64]*acceptedPeer{}, sockets: map[net.Conn]struct{}{},
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.links.Store(&map[uint64]*link{})
	t.epoch.Store(cfg.Self.Epoch)
	t.notices.log = cfg.Logger
	t.sweeper.init(t)
	t.work.Go(t.accept)
	return t, nil
}

var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}

// Addr is the address that is bound.
func (t *TCP) Addr() net.Addr { return t.listener.Addr() }

// Self is this incarnation, with the address that others dial.
func (t *TCP) Self() Peer {
	self := t.cfg.Self
	self.Epoch = t.epoch.Load()
	return self
}

func (t *TCP) now() int64 { return int64(time.Since(t.base)) }

// SetEpoch: see Transport.
func (t *TCP) SetEpoch(epoch uint64) {
	t.mu.Lock()
	t.epoch.Store(epoch)
	accepted := slices.Collect(maps.Values(t.accepted))
	links := *t.links.Load()
	t.mu.Unlock()
	var shut error
	if epoch == 0 {
		shut = errNoEpoch
	}
	for _, l := range links {
		l.drop(errRejoined, func(old error) error {
			if old == nil || old == errNoEpoch {
				return shut
			}
			return old
		})
	}
	for _, a := range accepted {
		a.cut()
	}
}

// Peers: see Transport.
func (t *TCP) Peers() []PeerStats {
	known := map[uint64]*PeerStats{}
	for epoch, l := range *t.links.Load() {
		s := l.stats()
		known[epoch] = &s
	}
	t.mu.Lock()
	accepted := maps.Clone(t.accepted)
	t.mu.Unlock()
	for epoch, a := range accepted {
		if known[epoch] == nil {
			known[epoch] = &PeerStats{Peer: a.from}
		}
		a.fill(known[epoch])
	}
	all := make([]PeerStats, 0, len(known))
	for _, s := range known {
		all = append(all, *s)
	}
	sortStats(all)
	return all
}

// Close: see Transport.
func (t *TCP) Close(ctx context.Context) error {
	t.mu.Lock()
	first := !t.closed
	t.closed = true
	links := *t.links.Load()
	accepted := slices.Collect(maps.Values(t.accepted))
	for s := range t.sockets {
		s.Close()
	}
	t.mu.Unlock()
	for _, l := range links {
		l.drop(errClosed, func(error) error { return errClosed })
	}
	if first {
		t.cancel()
		t.listener.Close()
		t.sweeper.stop()
	}
	for _, a := range accepted {
		a.finish()
	}
	ended := make(chan struct{})
	go func() { // ends with the goroutines that it waits for, each of which ends once it is cut
		defer close(ended)
		t.work.Wait()
		<-t.clerk.idle()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		for _, a := range accepted {
			a.cut()
		}
		return fmt.Errorf("close the transport of silo %s: %w", t.cfg.Self.Name, context.Cause(ctx))
	}
}

// accept takes connections until the listener is closed.
func (t *TCP) accept() {
	for {
		socket, err := t.listener.Accept()
		if err != nil {
			if t.ctx.Err() != nil {
				return
			}
			t.notices.warn(t.now(), "accept", "cannot accept connections of silos", "error", err)
			pause := time.NewTimer(acceptPause)
			select {
			case <-pause.C:
			case <-t.ctx.Done():
				pause.Stop()
			}
			continue
		}
		select {
		case t.opening <- struct{}{}:
		default:
			t.notices.warn(t.now(), "opening", "refused a connection: too many handshakes are under way", "remote", socket.RemoteAddr(), "limit", maxOpening)
			socket.Close()
			continue
		}
		t.work.Go(func() { t.serve(socket) })
	}
}

// opens notes a socket whose handshake is under way; false when the transport has been closed.
func (t *TCP) opens(socket net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.sockets[socket] = struct{}{}
	return true
}

func (t *TCP) opened(socket net.Conn) {
	t.mu.Lock()
	delete(t.sockets, socket)
	t.mu.Unlock()
	<-t.opening
}

// secured wraps a socket; client tells which side of TLS we are.
func (t *TCP) secured(socket net.Conn, client bool) net.Conn {
	switch {
	case t.cfg.Secure == nil:
		return socket
	case client:
		return tls.Client(socket, t.cfg.Secure.client)
	default:
		return tls.Server(socket, t.cfg.Secure.server)
	}
}
