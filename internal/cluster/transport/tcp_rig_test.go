package transport_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/cluster/transport/transporttest"
)

func TestTCPHoldsTheContractOfATransport(t *testing.T) {
	transporttest.Run(t, tcpRig{})
}

func TestTCPWithTLSHoldsTheContractOfATransport(t *testing.T) {
	secure, err := transport.FromSecret([]byte("a secret of sixteen bytes or more"), "test")
	if err != nil {
		t.Fatal(err)
	}
	transporttest.Run(t, tcpRig{secure})
}

type tcpRig struct{ secure *transport.Security }

func (tcpRig) Bubble(t *testing.T, test func(*testing.T)) { test(t) }

func (r tcpRig) World(*testing.T) transporttest.World {
	return &tcpWorld{secure: r.secure, proxies: map[string]*proxy{}}
}

type tcpWorld struct {
	secure  *transport.Security
	proxies map[string]*proxy
}

func (w *tcpWorld) Open(t *testing.T, cfg transport.Config, version uint16) transporttest.Silo {
	p := w.proxies[cfg.Self.Name]
	if p == nil {
		p = newProxy(t)
		w.proxies[cfg.Self.Name] = p
	}
	cfg.Self.Addr, cfg.Listen, cfg.Secure = p.addr(), "127.0.0.1:0", w.secure
	s, err := transport.Listen(t.Context(), transport.Speaking(cfg, version))
	if err != nil {
		t.Fatal(err)
	}
	p.leadTo(s)
	return s
}

func (w *tcpWorld) Crash(t *testing.T, name string) {
	p := w.proxies[name]
	silo := p.leadTo(nil)
	p.cut()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	silo.Close(ctx)
}

func (w *tcpWorld) Break(_ *testing.T, name string) { w.proxies[name].cut() }

func (w *tcpWorld) Mute(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		var open []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			open = append(open, c)
			all.Go(func() { io.Copy(io.Discard, c) })
		}
		for _, c := range open {
			c.Close()
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return l.Addr().String()
}

func (w *tcpWorld) Lag(_ *testing.T, _, to string) (carries, release func()) {
	return w.proxies[to].lag()
}

// proxy is what others dial to reach a silo. It can break connections, hold back what they carry, and
// lead to another incarnation.
type proxy struct {
	l    net.Listener
	work sync.WaitGroup
	mu   sync.Mutex
	silo *transport.TCP
	hops map[*hop]struct{}
}

type hop struct {
	client, server *net.TCPConn
	up             chan struct{} // closed when nothing goes up any more
	mu             sync.Mutex
	held           chan struct{} // nil, or closed when what is held back may go on
	keeps          func()        // called when something is held back
}

func newProxy(t *testing.T) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, hops: map[*hop]struct{}{}}
	p.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.work.Go(func() { p.carry(c.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() { l.Close(); p.cut(); p.work.Wait() })
	return p
}

func (p *proxy) addr() string { return p.l.Addr().String() }

func (p *proxy) leadTo(s *transport.TCP) (old *transport.TCP) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old, p.silo = p.silo, s
	return old
}

func (p *proxy) carry(client *net.TCPConn) {
	defer client.Close()
	p.mu.Lock()
	silo := p.silo
	p.mu.Unlock()
	if silo == nil {
		return
	}
	c, err := net.Dial("tcp", silo.Addr().String())
	if err != nil {
		return
	}
	h := &hop{client: client, server: c.(*net.TCPConn), up: make(chan struct{})}
	defer h.server.Close()
	p.mu.Lock()
	if p.silo != silo {
		p.mu.Unlock()
		return
	}
	p.hops[h] = struct{}{}
	p.mu.Unlock()
	p.work.Go(func() {
		io.Copy(h.client, h.server)
		h.client.Close()
	})
	h.pump()
	h.server.CloseWrite()
	close(h.up)
	p.mu.Lock()
	delete(p.hops, h)
	p.mu.Unlock()
	// What the silo still answers goes to a client that may read it; its end ends the other half.
	io.Copy(io.Discard, h.server)
}

// pump carries what the client sends, or holds it back.
func (h *hop) pump() {
	var kept []byte
	buf := make([]byte, 32<<10)
	for {
		n, err := h.client.Read(buf)
		h.mu.Lock()
		held, keeps := h.held, h.keeps
		h.mu.Unlock()
		if held != nil {
			if kept = append(kept, buf[:n]...); n > 0 {
				keeps()
			}
		} else if n > 0 {
			if _, failed := h.server.Write(buf[:n]); failed != nil {
				return
			}
		}
		if errors.Is(err, io.EOF) || err != nil {
			if held != nil {
				<-held
				h.server.Write(kept)
			}
			return
		}
	}
}

// cut breaks every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for h := range p.hops {
		h.client.SetLinger(0)
		h.client.Close()
		h.server.Close()
	}
}

// lag holds back what comes on the present connections. They must be closed before release.
func (p *proxy) lag() (carries, release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held, some := make(chan struct{}), make(chan struct{})
	keeps := sync.OnceFunc(func() { close(some) })
	var all []*hop
	for h := range p.hops {
		h.mu.Lock()
		h.held, h.keeps = held, keeps
		h.mu.Unlock()
		all = append(all, h)
	}
	return func() { <-some }, func() {
		close(held)
		for _, h := range all {
			<-h.up
		}
	}
}
