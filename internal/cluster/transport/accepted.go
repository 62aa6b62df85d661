package transport

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
)

// acceptedPeer is one incarnation that has dialled us: its newest connection, and what outlives it.
type acceptedPeer struct {
	from       Peer
	generation uint64 // of the newest connection; under TCP.mu
	mu         sync.Mutex
	c          *accepted // nil when it has ended
	fenced     uint64
	traffic    traffic
}

// accepted is a connection that a peer dialled. Its fields are under the lock of its peer.
type accepted struct {
	p       *acceptedPeer
	t       *TCP
	socket  net.Conn
	maxBody int // that the peer takes
	queue   []frame
	space   space // of the bodies in queue
	bytes   int
	wake    sync.Cond // the writer waits for answers; a reader for space
	writing int       // bytes that the writer holds
	direct  *direct   // nil: only the writer writes
	busy    bool      // the writer writes
	open    int       // requests without an answer
	crowd   crowd     // of those that are open
	more    bool      // the reader has another request already
	fence   bool      // a newer connection has been accepted: nothing that arrives counts
	last    bool      // no more answers come: the writer ends after those queued
	ended   bool
	gone    chan struct{} // closed when the reader has ended
}

// serve shakes hands with a peer that has dialled us, and reads its requests until the end.
func (t *TCP) serve(socket net.Conn) {
	defer socket.Close()
	if !t.opens(socket) {
		<-t.opening
		return
	}
	conn, c, older, err := t.welcome(socket)
	t.opened(socket)
	if err != nil {
		if other := (*EpochError)(nil); errors.As(err, &other) && other.Want == 0 {
			return // it asked who is here
		}
		if dialReason(err) == Refused || t.ctx.Err() == nil && !errors.Is(err, io.EOF) {
			t.notices.turnedAway(t.now(), host(socket), socket.RemoteAddr().String(), err)
		}
		return
	}
	if older != nil {
		// Its reader ends before the first request of the newer connection is handled: order holds
		// across connections.
		<-older.gone
	}
	t.cfg.Handler.Accepted(c.p.from)
	c.direct = newDirect(conn)
	var writer sync.WaitGroup
	writer.Go(func() { c.write(newFrameWriter(conn, t.cfg.Bounds.Own(budget.SiloWrite))) })
	err = c.read(newFrameReader(conn, t.cfg.Limits.Body))
	close(c.gone)
	c.end()
	writer.Wait()
	t.malformed(c.p.from, err)
}

func host(socket net.Conn) string {
	h, _, err := net.SplitHostPort(socket.RemoteAddr().String())
	if err != nil {
		return "?"
	}
	return h
}

// malformed logs that a peer sent what no peer sends.
func (t *TCP) malformed(from Peer, err error) {
	var frame *FrameError
	if errors.As(err, &frame) {
		t.notices.warn(t.now(), "frame "+from.Name, "closed the connection to a silo", "silo", from.Name, "addr", from.Addr, "error", err)
	}
}

// welcome is the accepter's half of the handshake. It registers the connection, and returns the older
// one that it fences.
func (t *TCP) welcome(socket net.Conn) (conn net.Conn, c, older *accepted, err error) {
	if err := socket.SetDeadline(time.Now().Add(t.cfg.Bounds.Own(budget.Handshake))); err != nil {
		return nil, nil, nil, err
	}
	conn = t.secured(socket, false)
	h, err := readHello(conn, t.cfg.version)
	if err != nil {
		return nil, nil, nil, err
	}
	w, c, older, refusal := t.register(socket, h)
	if refusal == errClosed {
		return nil, nil, nil, refusal
	}
	if _, err = conn.Write(w.append(nil)); err == nil {
		err = refusal
	}
	if err == nil {
		err = socket.SetDeadline(time.Time{})
	}
	if err != nil && c != nil {
		if older != nil {
			<-older.gone
		}
		close(c.gone)
		c.end()
	}
	return conn, c, older, err
}

// register decides on a hello. What it accepts is the newest connection of its peer from now on.
func (t *TCP) register(socket net.Conn, h hello) (w welcome, c, older *accepted, refusal error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w = welcome{version: t.cfg.version, epoch: t.epoch.Load(), maxBody: uint32(t.cfg.Limits.Body), cluster: t.cfg.Cluster, name: t.cfg.Self.Name}
	p := t.accepted[h.epoch]
	var newest uint64
	if p != nil {
		newest = p.generation
	}
	if w, refusal = w.judge(h, newest); refusal != nil {
		return w, nil, nil, refusal
	}
	if t.closed {
		return w, nil, nil, errClosed
	}
	if p == nil {
		p = &acceptedPeer{from: Peer{Name: h.name, Epoch: h.epoch, Addr: h.addr}}
		t.prune()
		t.accepted[h.epoch] = p
	}
	p.generation = h.generation
	c = &accepted{p: p, t: t, socket: socket, maxBody: min(int(h.maxBody), t.cfg.Limits.Body), gone: make(chan struct{})}
	c.wake.L = &p.mu
	p.mu.Lock()
	defer p.mu.Unlock()
	older, p.c = p.c, c
	if older != nil {
		older.fence = true
		older.close()
	}
	return w, c, older, nil
}

// maxAccepted bounds the incarnations that are remembered after they are gone.
const maxAccepted = 4096

// prune makes room for another incarnation. The caller holds t.mu.
func (t *TCP) prune() {
	for epoch, p := range t.accepted {
		if len(t.accepted) < maxAccepted {
			return
		}
		if p.idle() {
			delete(t.accepted, epoch)
		}
	}
}

func (p *acceptedPeer) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.c == nil
}

// cut closes the present connection at once.
func (p *acceptedPeer) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.c != nil {
		p.c.close()
	}
}

// finish lets the present connection end after the answers that are queued.
func (p *acceptedPeer) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.c != nil {
		p.c.last = true
		p.c.wake.Broadcast()
	}
}

func (p *acceptedPeer) fill(s *PeerStats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Accepted = p.c != nil
	s.Fenced += p.fenced
	s.addTraffic(p.traffic)
}

// close ends the connection. The caller holds p.mu.
func (c *accepted) close() {
	c.ended = true
	c.socket.Close()
	c.wake.Broadcast()
}

// end takes the connection off its peer.
func (c *accepted) end() {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.close()
	c.queue, c.bytes = nil, 0
	if c.p.c == c {
		c.p.c = nil
	}
}

// read hands requests to the handler, in order. It stops reading while too many answers wait for a
// peer that does not read them.
func (c *accepted) read(r *frameReader) error {
	limit := c.t.cfg.Limits.QueueBytes
	for {
		f, err := r.next()
		if err != nil {
			return err
		}
		if f.typ != frameRequest {
			return &FrameError{"an answer on a connection that the peer dialled"}
		}
		c.p.mu.Lock()
		for c.bytes+c.writing > limit && !c.ended {
			c.wake.Wait()
		}
		if c.fence {
			c.p.fenced++
			c.p.mu.Unlock()
			continue
		}
		if c.ended {
			c.p.mu.Unlock()
			return errPeerEnded
		}
		c.p.traffic.received(len(f.body))
		c.open++
		c.crowd.now(c.open)
		c.more = r.more()
		c.p.mu.Unlock()
		id := f.id
		c.t.cfg.Handler.Handle(c.p.from, Request{Kind: f.kind, Class: f.class, Body: f.body}, func(body []byte) { c.answer(id, body) })
	}
}

// answer queues an answer, or what says that it cannot be carried.
func (c *accepted) answer(id uint64, body []byte) {
	f := frame{id: id, typ: frameAnswer, body: body}
	if len(body) > c.maxBody {
		f = tooLargeFrame(id, len(body), c.maxBody)
	}
	if c.queued(f) {
		c.wake.Broadcast() // after the lock, which the writer takes first of all
	}
}

// queued tells whether the writer has to be woken.
func (c *accepted) queued(f frame) bool {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.open--
	c.crowd.now(c.open)
	if c.ended || c.last {
		return false
	}
	if c.hurry(&f) {
		return false
	}
	if c.bytes+len(f.body) > answerFactor*c.t.cfg.Limits.QueueBytes {
		c.close()
		c.t.notices.warn(c.t.now(), "unread "+c.p.from.Name, "closed the connection of a silo", "silo", c.p.from.Name, "addr", c.p.from.Addr, "error", errSlowPeer, "bytes", c.bytes)
		return false
	}
	f.body = c.space.keep(f.body)
	c.queue = append(c.queue, f)
	c.bytes += headerSize + len(f.body)
	return len(c.queue) == 1
}

// hurry writes an answer that is alone on the connection; otherwise it is to be queued. The caller holds
// p.mu.
func (c *accepted) hurry(f *frame) (done bool) {
	if c.busy || c.more || c.open > 0 || len(c.queue) > 0 || !c.direct.idle() || !c.crowd.alone() || len(f.body) >= largeBody {
		return false
	}
	c.p.traffic.sent(len(f.body))
	c.direct.write(f)
	if c.direct.left() {
		c.wake.Broadcast()
	}
	return true
}

func (c *accepted) write(w *frameWriter) {
	var batch []frame
	var bodies space
	for {
		c.p.mu.Lock()
		if c.writing > 0 {
			c.writing = 0
			c.wake.Broadcast()
		}
		c.busy = false
		for len(c.queue) == 0 && !c.direct.left() && !c.ended && !c.last {
			c.wake.Wait()
		}
		if c.ended || len(c.queue) == 0 && !c.direct.left() {
			c.close()
			c.p.mu.Unlock()
			return
		}
		c.busy = true
		if len(c.queue) == 1 {
			company(&c.p.mu)
		}
		batch, c.queue = c.queue, batch[:0]
		bodies, c.space = c.space, bodies.emptied()
		c.writing, c.bytes = c.bytes, 0
		for i := range batch {
			c.p.traffic.sent(len(batch[i].body))
		}
		rest := c.direct.take()
		c.p.mu.Unlock()
		if err := w.writeAfter(rest, batch); err != nil {
			c.p.mu.Lock()
			c.close()
			c.p.mu.Unlock()
			return
		}
	}
}
