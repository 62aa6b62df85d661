package httpapi

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// The bounds of an end.
const (
	// doorPause is for how long a connection that is being opened when the door is shut may take for its last step.
	doorPause = 25 * time.Millisecond
	// doorLook is how often the queue of connections that are not taken yet is looked at, and doorMost for how long.
	doorLook = time.Millisecond
	doorMost = time.Second
)

// Listen listens on HOST:PORT so that [Shut] can end it. Multipath TCP, which Go listens with by default, has no means
// for that.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	var c net.ListenConfig
	c.SetMultipathTCP(false)
	return c.Listen(ctx, "tcp", address)
}

// Shut lets nobody in any more, and returns once everybody who is in has been taken by whoever accepts. A listener that
// is closed right away resets the connections that its system has opened and nobody has accepted yet, under the
// requests on them: while a server drains every request comes on a new one. It goes on accepting; close it then. Where
// the listener is not of [Listen], or its system has no means for it, it returns at once.
func Shut(l net.Listener) {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return
	}
	waiting, ok := shut(tcp)
	if !ok {
		return
	}
	time.Sleep(doorPause)
	for end := time.Now().Add(doorMost); waiting() && time.Now().Before(end); {
		time.Sleep(doorLook)
	}
}

// Guests are the connections of a server. Its State is the server's ConnState. The zero value is ready.
//
// A server that is shut down by net/http cuts off what it has read of requests by then, and whatever comes on connections
// that it closes. Whoever ends one lets nobody in, waits for its guests, and only then shuts it down.
type Guests struct {
	mu    sync.Mutex
	conns map[net.Conn]http.ConnState
	less  chan struct{} // closed at the next change, where somebody waits for that
}

// State takes note of what a connection does.
func (g *Guests) State(c net.Conn, s http.ConnState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch s {
	case http.StateNew, http.StateActive, http.StateIdle:
		if g.conns == nil {
			g.conns = map[net.Conn]http.ConnState{}
		}
		g.conns[c] = s
	default:
		delete(g.conns, c)
	}
	if g.less != nil {
		close(g.less)
		g.less = nil
	}
}

// stay tells whether there is a connection whose request has come or may come first, and whether there is one that
// waits for its next request; and what is closed when that may have changed.
func (g *Guests) stay() (coming, idle bool, less <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.conns {
		coming, idle = coming || s != http.StateIdle, idle || s == http.StateIdle
	}
	if g.less == nil {
		g.less = make(chan struct{})
	}
	return coming, idle, g.less
}

// Gone waits until no connection is left, no longer than most, and for those that wait for their next request no longer
// than idle.
func (g *Guests) Gone(most, idle time.Duration) {
	all, waiting := time.NewTimer(most), time.NewTimer(idle)
	defer all.Stop()
	defer waiting.Stop()
	patient := idle > 0
	for {
		coming, stays, less := g.stay()
		if !coming && (!stays || !patient) {
			return
		}
		select {
		case <-less:
		case <-waiting.C:
			patient = false
		case <-all.C:
			return
		}
	}
}
