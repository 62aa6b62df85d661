package pgtest

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
)

// Proxy stands between a client and a server, and does to their connections what networks do. It is safe for
// concurrent use.
type Proxy struct {
	to       string // where the URLs lead without it
	target   string // where new connections go; guarded by mu
	listener net.Listener
	work     sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	refusing bool
	links    map[*link]struct{}
	held     chan struct{} // closed while replies pass
	swallow  bool
	keep     bool
	match    func([]byte) bool
}

type link struct{ client, server net.Conn }

func (l *link) close() {
	l.client.Close()
	l.server.Close()
}

// Proxy starts a proxy before the server.
func (s *Server) Proxy() (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	open := make(chan struct{})
	close(open)
	p := &Proxy{to: fmt.Sprint("127.0.0.1:", s.port), target: fmt.Sprint("127.0.0.1:", s.port), listener: l, links: map[*link]struct{}{}, held: open}
	p.work.Go(p.accept)
	return p, nil
}

// Through is a URL of the server by way of the proxy.
func (p *Proxy) Through(url string) string {
	return strings.Replace(url, p.to, p.listener.Addr().String(), 1)
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		to := p.target
		p.mu.Unlock()
		server, err := net.Dial("tcp", to)
		p.mu.Lock()
		if err != nil || p.closed || p.refusing {
			p.mu.Unlock()
			client.Close()
			if err == nil {
				server.Close()
			}
			continue
		}
		l := &link{client, server}
		p.links[l] = struct{}{}
		p.work.Go(func() { p.copy(l, client, server, true) })
		p.work.Go(func() { p.copy(l, server, client, false) })
		p.mu.Unlock()
	}
}

func (p *Proxy) copy(l *link, from, to net.Conn, request bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			break
		}
		p.mu.Lock()
		if !request && p.match != nil && p.match(buf[:n]) {
			p.held, p.match = make(chan struct{}), nil
		}
		held, swallow := p.held, p.swallow
		p.mu.Unlock()
		if swallow {
			continue
		}
		if !request {
			<-held
		}
		if _, err := to.Write(buf[:n]); err != nil {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keep && request {
		l.client.Close()
		return // Cut ends it
	}
	l.close()
	delete(p.links, l)
}

// Hold keeps what the server answers, from the first piece that match is true of until Pass or Cut. match is
// called on the goroutine that reads the piece, and must not call the proxy.
func (p *Proxy) Hold(match func([]byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.match = match
}

// Pass lets what is held go on.
func (p *Proxy) Pass() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release()
}

func (p *Proxy) release() {
	select {
	case <-p.held:
	default:
		close(p.held)
	}
	p.match = nil
}

// Cut closes every connection; what is held is lost. New ones are made.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keep = false
	for l := range p.links {
		l.close()
	}
	p.release()
}

// Lead has new connections go to another server, and closes those there are.
func (p *Proxy) Lead(to *Server) {
	p.mu.Lock()
	p.target = fmt.Sprint("127.0.0.1:", to.port)
	p.mu.Unlock()
	p.Cut()
}

// Refuse closes new connections at once, or takes them again.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = on
}

// Swallow drops what passes, both ways, without closing anything, or stops that.
func (p *Proxy) Swallow(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = on
}

// Keep hides from the server that a client has gone, as a client does that is frozen, until Cut.
func (p *Proxy) Keep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keep = true
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.listener.Close()
	p.Cut()
	p.work.Wait()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}
