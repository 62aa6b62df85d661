package transport

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/hubmesh/hubmesh/internal/budget"
)

// dialled is one attempt to connect, and the connection that comes of it. Its fields are under the
// lock of the link.
type dialled struct {
	l      *link
	to     Peer
	s      *session
	hello  hello
	cancel context.CancelFunc // ends the dial; closes the socket
	wake   sync.Cond          // the writer waits for requests or for the end
	direct *direct            // nil: only the writer writes
	batch  []frame            // what is written directly
	bodies space              // of batch
	busy   bool               // the writer writes
	open   bool
	ended  bool
	cause  error // why it ended: the first reason
}

// dial starts a connection attempt. The caller holds l.mu, and l.s is nil.
func (l *link) dial(to Peer) {
	t := l.t
	ctx, cancel := context.WithCancel(t.ctx)
	o := &dialled{l: l, to: to, s: l.dialling(to), cancel: cancel}
	o.wake.L = &l.mu
	o.hello = t.hello(to)
	l.out = o
	t.work.Go(func() { o.run(ctx) })
}

// hello opens a new connection to that incarnation; epoch 0 asks which one is there.
func (t *TCP) hello(to Peer) hello {
	return hello{
		version: t.cfg.version, epoch: t.epoch.Load(), generation: t.generation.Add(1), target: to.Epoch,
		maxBody: uint32(t.cfg.Limits.Body), cluster: t.cfg.Cluster, name: t.cfg.Self.Name, addr: t.cfg.Self.Addr,
	}
}

// stop ends the connection. The caller holds l.mu.
func (o *dialled) stop(cause error) {
	if o.ended {
		return
	}
	o.ended, o.open, o.cause = true, false, cause
	o.cancel()
	o.wake.Broadcast()
}

// run dials, then reads until the end. It owns the writer's goroutine.
func (o *dialled) run(ctx context.Context) {
	defer o.cancel()
	t := o.l.t
	conn, socket, w, err := t.open(ctx, o.to, o.hello)
	if err != nil {
		o.failed(&DialError{Peer: o.to, Cause: err})
		return
	}
	defer context.AfterFunc(ctx, closing(socket))()
	defer socket.Close()
	if !o.opened(w, newDirect(conn)) {
		return
	}
	var writer sync.WaitGroup
	writer.Go(func() { o.write(newFrameWriter(conn, t.cfg.Bounds.Own(budget.SiloWrite))) })
	err = o.read(newFrameReader(conn, t.cfg.Limits.Body))
	o.broke(err)
	writer.Wait()
}

// open makes a connection: TCP, TLS, and the handshake. It returns what to talk through, and the
// socket below it, whose Close never waits.
func (t *TCP) open(ctx context.Context, to Peer, h hello) (conn, socket net.Conn, w welcome, err error) {
	ctx, cancel := t.cfg.Bounds.Context(ctx, budget.SiloDial, "dial silo "+to.Name)
	defer cancel()
	dialer := net.Dialer{KeepAliveConfig: keepAlive}
	socket, err = dialer.DialContext(ctx, "tcp", to.Addr)
	if err != nil {
		return nil, nil, w, lapsed(ctx, err)
	}
	defer func(s net.Conn) {
		if err != nil {
			s.Close()
		}
	}(socket)
	// The socket is cut when ctx ends, so that no read of the handshake outlives it.
	stop := context.AfterFunc(ctx, closing(socket))
	conn = t.secured(socket, true)
	if _, err = conn.Write(h.append(nil)); err == nil {
		w, err = readWelcome(conn, h.version)
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, nil, w, lapsed(ctx, err)
	}
	return conn, socket, w, h.judge(w)
}

// Identify asks who listens at an address, for a list of members that names addresses alone. The answer
// is an incarnation: it may be another one by the time of the next call.
func (t *TCP) Identify(ctx context.Context, addr string) (Peer, error) {
	to := Peer{Name: addr, Addr: addr}
	h := t.hello(to)
	_, _, w, err := t.open(ctx, to, h)
	if other := (*EpochError)(nil); errors.As(err, &other) && other.Have != 0 {
		return Peer{Name: w.name, Epoch: other.Have, Addr: addr}, nil
	}
	return Peer{}, &DialError{Peer: to, Cause: err}
}

func closing(socket net.Conn) func() { return func() { socket.Close() } }

// lapsed prefers the bound that ended ctx to the error that its end caused.
func lapsed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// opened lets the writer begin; false when the connection is not wanted any more.
func (o *dialled) opened(w welcome, d *direct) bool {
	l := o.l
	l.mu.Lock()
	if o.ended {
		l.mu.Unlock()
		return false
	}
	o.open, o.direct = true, d
	waiters := l.opened()
	told := o.s.agree(int(w.maxBody))
	l.mu.Unlock()
	l.t.clerk.connected(waiters, nil)
	l.t.clerk.tell(told...)
	return true
}

// failed tells those who waited for the dial.
func (o *dialled) failed(err *DialError) {
	l := o.l
	l.mu.Lock()
	if o.ended {
		l.mu.Unlock()
		return
	}
	o.stop(err)
	told, waiters := l.undialled(l.t.now(), err)
	l.out = nil
	l.mu.Unlock()
	l.t.notices.refused(l.t.now(), err)
	l.t.clerk.tell(told...)
	l.t.clerk.connected(waiters, err)
	l.t.clerk.do(func() { l.t.cfg.Handler.Broken(o.to, err) })
}

// broke ends the connection after a failed read or write. The first reason counts.
func (o *dialled) broke(err error) {
	l := o.l
	l.mu.Lock()
	if o.ended {
		l.mu.Unlock()
		return
	}
	o.stop(err)
	told, _ := l.end(Broken, err)
	l.out = nil
	l.mu.Unlock()
	l.t.malformed(o.to, err)
	l.t.clerk.tell(told...)
	l.t.clerk.do(func() { l.t.cfg.Handler.Broken(o.to, err) })
}

func (o *dialled) write(w *frameWriter) {
	var batch []frame
	var bodies space
	for {
		o.l.mu.Lock()
		o.busy = false
		for len(o.s.queue) == 0 && !o.direct.left() && !o.ended {
			o.wake.Wait()
		}
		if o.ended {
			o.l.mu.Unlock()
			return
		}
		o.busy = true
		if len(o.s.queue) == 1 {
			company(&o.l.mu)
		}
		batch, bodies = o.s.take(batch[:0], bodies)
		rest := o.direct.take()
		o.l.mu.Unlock()
		if err := w.writeAfter(rest, batch); err != nil {
			o.broke(err)
			return
		}
	}
}

// hurry writes the one request that waits, if it is alone on the connection; otherwise it tells that the
// writer has to. The caller holds l.mu.
func (o *dialled) hurry() (done bool) {
	if !o.open || o.busy || !o.direct.idle() || len(o.s.queue) != 1 || !o.s.crowd.alone() || len(o.s.queue[0].body) >= largeBody {
		return false
	}
	o.batch, o.bodies = o.s.take(o.batch[:0], o.bodies)
	o.direct.write(&o.batch[0])
	o.batch[0] = frame{}
	return !o.direct.left()
}

// answerBatch is how many answers that have already arrived are matched under one lock.
const answerBatch = 64

// read matches answers with those who wait, until the connection ends.
func (o *dialled) read(r *frameReader) error {
	var arrived []frame
	var told []outcome
	for {
		f, err := r.next()
		if err == nil && f.typ == frameRequest {
			err = &FrameError{"a request on a connection that we dialled"}
		}
		if err == nil {
			arrived = append(arrived, f)
			if len(arrived) < answerBatch && r.more() {
				continue
			}
		}
		told = o.match(arrived, told[:0])
		arrived = arrived[:0]
		for i, end := range told {
			told[i] = outcome{}
			end.done(end.a)
		}
		if err != nil {
			return err
		}
	}
}

func (o *dialled) match(arrived []frame, told []outcome) []outcome {
	o.l.mu.Lock()
	defer o.l.mu.Unlock()
	if o.ended {
		return told
	}
	for i := range arrived {
		f := &arrived[i]
		o.l.count.traffic.received(len(f.body))
		if f.typ == frameFailed {
			if end, ok := o.s.undeliverable(f.id, f.tooLarge()); ok {
				told = append(told, end)
			}
		} else if done := o.s.answer(f.id); done != nil {
			told = append(told, outcome{done, Answer{Body: f.body}})
		}
		*f = frame{}
	}
	return told
}
