package transport

import (
	"bytes"
	"maps"
	"slices"

	"github.com/hubmesh/hubmesh/internal/budget"
)

// dial opens a connection. The caller holds the lock, and l.s is nil.
func (m *Memory) dial(l *memoryLink, to Peer) {
	n := m.net
	m.generation++
	f := &flow{net: n, client: m, link: l, s: l.dialling(to), dialling: true}
	f.open[toServer] = true
	f.hello = hello{
		version: m.cfg.version, epoch: m.epoch, generation: m.generation, target: to.Epoch,
		maxBody: uint32(m.cfg.Limits.Body), cluster: m.cfg.Cluster, name: m.cfg.Self.Name, addr: m.cfg.Self.Addr,
	}
	l.flow = f
	n.flows = append(n.flows, f)
	f.timeout = m.after(m.cfg.Bounds.Own(budget.SiloDial), func() { m.undialled(f, errDialTimeout) })
	server := n.addrs[to.Addr]
	if server == nil {
		n.refuse(f)
		return
	}
	if n.isCut(m, server) || n.isCut(server, m) {
		return // lost; nobody answers
	}
	n.kernel(n.travel(m, server), func() {
		// What listens at the address may have changed meanwhile.
		server := n.addrs[to.Addr]
		if !server.alive() {
			n.refuse(f)
			return
		}
		if !f.dialling {
			return
		}
		f.server, f.open[toClient] = server, true
		f.send(toServer, packet{run: func() { server.accept(f) }})
	})
}

// refuse is the answer of a host where nobody listens.
func (n *Network) refuse(f *flow) {
	f.client.after(n.delay(n.rng, f.client.cfg.Self.Name, f.link.peer.Name)+1, func() { f.client.undialled(f, errNobody) })
}

// undial ends the attempt's timer.
func (f *flow) undial() {
	f.dialling = false
	if f.timeout != nil {
		f.timeout()
		f.timeout = nil
	}
}

// accept is the event of a hello at the endpoint that was dialled.
func (m *Memory) accept(f *flow) {
	m.net.mu.Lock()
	w := welcome{version: m.cfg.version, epoch: m.epoch, maxBody: uint32(m.cfg.Limits.Body), cluster: m.cfg.Cluster, name: m.cfg.Self.Name}
	p := m.accepted[f.hello.epoch]
	var newest uint64
	if p != nil {
		newest = p.generation
	}
	w, refusal := w.judge(f.hello, newest)
	if m.closed || !f.open[toClient] {
		m.net.mu.Unlock()
		return // the close is on its way
	}
	if refusal != nil {
		f.send(toClient, packet{run: func() { f.client.welcome(f, w) }})
		f.open[toClient] = false
		now := m.net.sched.Now()
		m.net.mu.Unlock()
		m.notices.turnedAway(int64(now), f.hello.name, f.hello.addr, refusal)
		return
	}
	if p == nil {
		p = &memoryPeer{from: Peer{Name: f.hello.name, Epoch: f.hello.epoch, Addr: f.hello.addr}}
		m.prune()
		m.accepted[f.hello.epoch] = p
	}
	p.generation = f.hello.generation
	if p.flow != nil {
		p.flow.hangUp(toClient)
	}
	p.flow, f.welcomed = f, true
	f.maxBody = min(int(f.hello.maxBody), m.cfg.Limits.Body)
	f.send(toClient, packet{run: func() { f.client.welcome(f, w) }})
	m.net.mu.Unlock()
	m.cfg.Handler.Accepted(p.from)
}

// prune makes room for another incarnation.
func (m *Memory) prune() {
	if len(m.accepted) < maxAccepted {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m.accepted)) {
		if m.accepted[key].flow == nil {
			delete(m.accepted, key)
			return
		}
	}
}

// welcome is the event of the server's answer at the endpoint that dialled.
func (m *Memory) welcome(f *flow, w welcome) {
	if err := f.hello.judge(w); err != nil {
		m.undialled(f, err)
		return
	}
	m.net.mu.Lock()
	if !f.dialling {
		m.net.mu.Unlock()
		return
	}
	f.undial()
	l := f.link
	l.isOpen = true
	waiters := l.opened()
	told := f.s.agree(int(w.maxBody))
	m.flush(l)
	m.net.mu.Unlock()
	for _, wait := range waiters {
		wait(nil)
	}
	for _, o := range told {
		o.done(o.a)
	}
}

// undialled is the event of a dial that failed.
func (m *Memory) undialled(f *flow, cause error) {
	m.net.mu.Lock()
	if !f.dialling {
		m.net.mu.Unlock()
		return
	}
	f.undial()
	f.hangUp(toServer)
	l := f.link
	m.disarm(l)
	err := &DialError{Peer: l.peer, Cause: cause}
	now := int64(m.net.sched.Now())
	told, waiters := l.undialled(now, err)
	l.flow = nil
	m.net.prune()
	m.net.mu.Unlock()
	m.notices.refused(now, err)
	for _, o := range told {
		o.done(o.a)
	}
	for _, w := range waiters {
		w(err)
	}
	m.cfg.Handler.Broken(l.peer, err)
}

// broke is the event of the end of a connection that this endpoint dialled.
func (m *Memory) broke(f *flow, cause error) {
	m.net.mu.Lock()
	dialling := f.dialling
	l := f.link
	if dialling || l.flow != f {
		m.net.mu.Unlock()
		if dialling {
			m.undialled(f, cause)
		}
		return
	}
	f.open[toServer] = false
	l.flow, l.isOpen = nil, false
	m.disarm(l)
	told, _ := l.end(Broken, cause)
	peer := l.peer
	m.net.prune()
	m.net.mu.Unlock()
	for _, o := range told {
		o.done(o.a)
	}
	m.cfg.Handler.Broken(peer, cause)
}

// hungUp is the event of the end of a connection that another endpoint dialled.
func (m *Memory) hungUp(f *flow) {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	f.open[toClient] = false
	m.lost(f)
	m.net.prune()
}

func (m *Memory) lost(f *flow) {
	if p := m.accepted[f.hello.epoch]; p != nil && p.flow == f {
		p.flow = nil
	}
}

// receive is the event of a request.
func (m *Memory) receive(f *flow, r frame) {
	m.net.mu.Lock()
	p := m.accepted[f.hello.epoch]
	if p != nil && p.generation > f.hello.generation {
		p.fenced++
	}
	if p == nil || p.flow != f || !f.open[toClient] {
		m.net.mu.Unlock()
		return // fenced, or closed at this end
	}
	p.traffic.received(len(r.body))
	m.net.mu.Unlock()
	m.cfg.Handler.Handle(p.from, Request{Kind: r.kind, Class: r.class, Body: r.body}, func(body []byte) { m.reply(f, p, r.id, body) })
	clear(r.body) // a handler that has kept it is found out
}

func (m *Memory) reply(f *flow, p *memoryPeer, id uint64, body []byte) {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	if m.dead || m.closed || !f.open[toClient] {
		return
	}
	a := frame{id: id, typ: frameAnswer, body: bytes.Clone(body)}
	if len(body) > f.maxBody {
		a = tooLargeFrame(id, len(body), f.maxBody)
	}
	p.traffic.sent(len(a.body))
	f.send(toClient, packet{run: func() { f.client.match(f, a) }})
}

// match is the event of an answer.
func (m *Memory) match(f *flow, a frame) {
	m.net.mu.Lock()
	if f.link.flow != f || !f.link.isOpen {
		m.net.mu.Unlock()
		return
	}
	f.link.count.traffic.received(len(a.body))
	var end outcome
	if a.typ == frameFailed {
		end, _ = f.s.undeliverable(a.id, a.tooLarge())
	} else {
		end = outcome{f.s.answer(a.id), Answer{Body: a.body}}
	}
	m.net.mu.Unlock()
	if end.done != nil {
		end.done(end.a)
		clear(a.body) // as with receive
	}
}
