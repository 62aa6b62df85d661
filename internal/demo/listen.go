package demo

import (
	"context"
	"net"
	"sync"
)

// listener takes the HTTP connections of one silo, through its gate.
type listener struct {
	net.Listener
	g *gate

	mu    sync.Mutex
	conns map[*conn]struct{}
}

func behind(l net.Listener, g *gate) *listener {
	return &listener{Listener: l, g: g, conns: map[*conn]struct{}{}}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	one := &conn{Conn: c, l: l}
	l.mu.Lock()
	l.conns[one] = struct{}{}
	l.mu.Unlock()
	if err := l.g.pass(context.Background()); err != nil {
		one.Close()
		return nil, net.ErrClosed
	}
	return one, nil
}

// cut closes the listener and every connection, as a kernel does for a process that is gone.
func (l *listener) cut() {
	l.Listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.Conn.Close()
	}
}

type conn struct {
	net.Conn
	l *listener
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if gone := c.l.g.pass(context.Background()); gone != nil {
		return 0, gone
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if err := c.l.g.pass(context.Background()); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.l.mu.Lock()
	delete(c.l.conns, c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}
