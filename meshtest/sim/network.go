package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/transport"
)

// network is connections between processes: in order each way, with delay, stalled while cut, and able
// to break and leave frames that arrive late.
type network struct {
	w     *world
	cuts  map[[2]string]int // one way, by name; "table" is the table's server
	slow  int               // every frame takes 300 ms more
	lossy int               // every fifth frame is sent again after 200 ms
	conns []*conn
	// directory messages that were sent, by kind
	sent [32]int
}

func newNetwork(w *world) *network { return &network{w: w, cuts: map[[2]string]int{}} }

func (n *network) cut(a, b string) bool { return n.cuts[[2]string{a, b}] > 0 }

func (n *network) setCut(a, b string, on bool) {
	k := [2]string{a, b}
	if on {
		n.cuts[k]++
		return
	}
	if n.cuts[k]--; n.cuts[k] <= 0 {
		delete(n.cuts, k)
		n.flush()
	}
}

func (n *network) delay() time.Duration {
	r := n.w.netRand
	d := between(r, 40*time.Microsecond, 400*time.Microsecond)
	if r.IntN(50) == 0 {
		d += between(r, time.Millisecond, 30*time.Millisecond)
	}
	if n.slow > 0 {
		d += 300 * time.Millisecond
	}
	if n.lossy > 0 {
		for again := 200 * time.Millisecond; r.IntN(5) == 0 && again < 2*time.Second; again *= 2 {
			d += again
		}
	}
	return d
}

// conn is one connection, dialled by a to b. Direction 0 is a to b.
type conn struct {
	a, b         *process
	target       uint64 // the epoch of b that was dialled
	from         transport.Peer
	generation   int
	openA, openB bool
	pending      map[uint64]*pending
	next         uint64
	last         [2]time.Duration
	stalled      [2][]frame
	suspect      bool
}

type frame struct {
	to *process
	f  func()
}

type pending struct {
	read bool
	done func(transport.Answer)
}

func (n *network) send(c *conn, dir int, f func()) {
	src, dst := c.a, c.b
	if dir == 1 {
		src, dst = dst, src
	}
	if n.cut(src.name, dst.name) || len(c.stalled[dir]) > 0 {
		c.stalled[dir] = append(c.stalled[dir], frame{dst, f})
		return
	}
	n.deliver(c, dir, frame{dst, f})
}

func (n *network) deliver(c *conn, dir int, f frame) {
	t := max(n.w.now+n.delay(), c.last[dir]+1)
	c.last[dir] = t
	n.w.at(t, f.to, f.f)
}

// flush sends on what was stalled on ways that are open again. What the kernels hold of a closed
// connection survives half of the time.
func (n *network) flush() {
	for _, c := range n.conns {
		for dir := range 2 {
			src, dst := c.a, c.b
			if dir == 1 {
				src, dst = dst, src
			}
			if len(c.stalled[dir]) == 0 || n.cut(src.name, dst.name) {
				continue
			}
			frames := c.stalled[dir]
			c.stalled[dir] = nil
			if src.dead || (!c.openA || !c.openB) && n.w.netRand.IntN(2) == 0 {
				continue
			}
			for _, f := range frames {
				n.deliver(c, dir, f)
			}
		}
	}
}

// crash is what the kernel does for a process that is gone: its sockets close, and peers that can hear it
// notice within milliseconds.
func (n *network) crash(p *process) {
	for _, c := range n.conns {
		switch {
		case c.a == p:
			c.openA, c.openB = false, false
		case c.b == p && c.openA && !c.a.dead && !n.cut(p.name, c.a.name):
			n.w.after(between(n.w.netRand, 300*time.Microsecond, 8*time.Millisecond), c.a, func() {
				if c.openA {
					c.a.port.closed(c, errReset)
				}
			})
		}
	}
	n.conns = slices.DeleteFunc(n.conns, func(c *conn) bool { return c.a.dead && c.b.dead })
}

var (
	errReset   = errors.New("connection reset")
	errRefused = errors.New("connection refused")
	errEpoch   = errors.New("another incarnation listens there")
	errDial    = errors.New("no answer to the dial")
)

// port is one process's transport: the connections that it has dialled.
type port struct {
	p           *process
	n           *network
	epoch       uint64
	conns       map[uint64]*conn // by the epoch that was dialled
	dials       map[uint64]*dial
	generation  int
	generations map[uint64]int // newest accepted connection, by the peer's epoch
}

type dial struct{ waiting []func(*conn, error) }

func newPort(p *process) *port {
	return &port{p: p, n: p.w.net, conns: map[uint64]*conn{}, dials: map[uint64]*dial{}, generations: map[uint64]int{}}
}

// SetEpoch implements cluster.Network: connections are dialled anew under another epoch.
func (o *port) SetEpoch(epoch uint64) {
	o.epoch = epoch
	for _, c := range o.sorted() {
		o.close(c, errors.New("this silo joins under another epoch"))
	}
}

func (o *port) sorted() []*conn {
	out := make([]*conn, 0, len(o.conns))
	for _, c := range o.conns {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *conn) int { return a.generation - b.generation })
	return out
}

// Connect implements cluster.Network.
func (o *port) Connect(to transport.Peer, done func(error)) {
	o.dial(to, func(_ *conn, err error) { done(err) })
}

func (o *port) dial(to transport.Peer, done func(*conn, error)) {
	w := o.p.w
	if c := o.conns[to.Epoch]; c != nil {
		w.after(0, o.p, func() { done(c, nil) })
		return
	}
	if d := o.dials[to.Epoch]; d != nil {
		d.waiting = append(d.waiting, done)
		return
	}
	d := &dial{waiting: []func(*conn, error){done}}
	o.dials[to.Epoch] = d
	epoch := o.epoch
	end := func(c *conn, err error) {
		if o.dials[to.Epoch] != d {
			return
		}
		delete(o.dials, to.Epoch)
		if err == nil && o.epoch != epoch {
			err = errEpoch
			c.openA, c.openB = false, false
		}
		if err != nil {
			o.p.silo.Failed(to, err)
		} else {
			o.open(c, to)
		}
		for _, f := range d.waiting {
			f(c, err)
		}
	}
	w.after(2*time.Second, o.p, func() { end(nil, errDial) })
	q := w.byAddr(to.Addr)
	if q == nil {
		w.after(o.n.delay(), o.p, func() { end(nil, errRefused) })
		return
	}
	if o.n.cut(o.p.name, q.name) || o.n.cut(q.name, o.p.name) {
		return
	}
	o.generation++
	c := &conn{a: o.p, b: q, target: to.Epoch, generation: o.generation, pending: map[uint64]*pending{},
		from: transport.Peer{Name: o.p.name, Epoch: epoch, Addr: o.p.addr}}
	// The kernel accepts, the process answers the handshake when it runs.
	w.after(o.n.delay(), q, func() {
		if q.port.epoch != to.Epoch {
			w.after(o.n.delay(), o.p, func() { end(nil, errEpoch) })
			return
		}
		c.openB = true
		w.after(o.n.delay(), o.p, func() { end(c, nil) })
	})
	if q.dead {
		w.after(o.n.delay(), o.p, func() { end(nil, errRefused) })
	}
}

func (o *port) open(c *conn, to transport.Peer) {
	c.openA = true
	o.conns[to.Epoch] = c
	o.n.conns = append(o.n.conns, c)
	q := c.b
	o.n.send(c, 0, func() {
		q.port.generations[c.from.Epoch] = max(q.port.generations[c.from.Epoch], c.generation)
		q.silo.Accepted(c.from)
	})
	o.p.silo.Connected(to)
}

// Drop implements cluster.Network.
func (o *port) Drop(epoch uint64, cause error) {
	if c := o.conns[epoch]; c != nil {
		o.close(c, cause)
	}
}

func (o *port) close(c *conn, cause error) {
	o.fail(c, cause, false)
	o.n.send(c, 0, func() { c.openB = false })
}

// closed is a connection that has broken.
func (o *port) closed(c *conn, cause error) {
	o.fail(c, cause, false)
	o.p.silo.Broken(transport.Peer{Name: c.b.name, Epoch: c.target, Addr: c.b.addr}, cause)
}

// fail answers what is pending on a connection; with reads only the reads, and the connection stays.
func (o *port) fail(c *conn, cause error, reads bool) {
	if !reads {
		c.openA = false
		if o.conns[c.target] == c {
			delete(o.conns, c.target)
		}
	}
	ids := make([]uint64, 0, len(c.pending))
	for id, x := range c.pending {
		if !reads || x.read {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		x := c.pending[id]
		delete(c.pending, id)
		x.done(transport.Answer{Err: &transport.LostError{Reason: cause.Error()}})
	}
}

// Suspect implements cluster.Network.
func (o *port) Suspect(epoch uint64, on bool) {
	if c := o.conns[epoch]; c != nil {
		c.suspect = on
		if on {
			o.fail(c, errors.New("the silo is suspect"), true)
		}
	}
}

// Call implements cluster.Network.
func (o *port) Call(to transport.Peer, r transport.Request, done0 func(transport.Answer)) {
	w := o.p.w
	over := false
	done := func(a transport.Answer) {
		if !over {
			over = true
			done0(a)
		}
	}
	if r.Within > 0 {
		w.after(r.Within, o.p, func() { done(transport.Answer{Err: &transport.LateError{}}) })
	}
	c := o.conns[to.Epoch]
	if c != nil && c.suspect && r.Class != transport.Ping {
		w.after(0, o.p, func() { done(transport.Answer{Err: &transport.NotSentError{Reason: "suspect"}}) })
		return
	}
	if c != nil {
		o.put(c, r, &over, done)
		return
	}
	o.dial(to, func(c *conn, err error) {
		switch {
		case over:
		case err != nil:
			done(transport.Answer{Err: &transport.NotSentError{Reason: err.Error()}})
		case !c.openA:
			done(transport.Answer{Err: &transport.NotSentError{Reason: "closed"}})
		default:
			o.put(c, r, &over, done)
		}
	})
}

func (o *port) put(c *conn, r transport.Request, over *bool, done func(transport.Answer)) {
	c.next++
	id := c.next
	c.pending[id] = &pending{read: r.Class == transport.Read || r.Class == transport.Control, done: done}
	r.Body = slices.Clone(r.Body)
	q := c.b
	if r.Class == transport.Control {
		o.n.sent[r.Kind]++
	}
	w := o.p.w
	w.trace.message(o.p, transport.Peer{Name: q.name, Epoch: c.target}, r, nil)
	o.n.send(c, 0, func() {
		if q.port.generations[c.from.Epoch] > c.generation {
			return // a frame of an older connection of the same peer
		}
		q.silo.Handle(c.from, r, func(body []byte) {
			if !c.openB {
				return
			}
			body = slices.Clone(body)
			o.n.send(c, 1, func() {
				w.trace.message(q, c.from, r, body)
				if x := c.pending[id]; x != nil {
					delete(c.pending, id)
					x.done(transport.Answer{Body: body})
				}
			})
		})
	})
}

// byAddr is the process that listens at an address now, alive or dead.
func (w *world) byAddr(addr string) *process {
	for _, n := range w.names {
		if p := w.current[n]; p != nil && p.addr == addr {
			return p
		}
	}
	return nil
}
