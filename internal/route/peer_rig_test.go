package route

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/directory"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
)

// pair is one silo, a, with its router, on the in-memory network with a peer, b, which says what the test has it
// say. Both stand in one view.
type pair struct {
	t       *testing.T
	net     *transport.Network
	mesh    *hub.Mesh
	a       *Cluster
	peer    *peer
	view    *membership.View
	rows    *rows
	process string // a process address whose slot b owns
	node    string // a node path whose slot b owns
	ran     *record
}

// record is what hubs have handled, in order.
type record struct {
	mu  sync.Mutex
	all []string
}

func (r *record) add(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, s)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprint(r.all)
}

var me, other = clustertest.Silo("a", 1), clustertest.Silo("b", 2)

// paired runs a test in a bubble of virtual time.
func paired(t *testing.T, f func(t *testing.T, p *pair)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m, err := hub.New(hub.Options{ID: "1", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		p := &pair{t: t, mesh: m, view: clustertest.View(1, me, other), net: transport.NewNetwork(transport.Timers(), 1), ran: &record{}}
		config := cluster.Defaults()
		table := directory.NewTable(p.view, config.Directory.Slots)
		p.process, p.node = clustertest.Owned(table, other, "portal", 0), clustertest.Owned(table, other, "acme", 0)
		p.rows = &rows{have: map[node.Path]bool{node.Path(p.node): true}}
		nodes := New(m, p.rows, p)
		p.a = NewCluster(ClusterOptions{Mesh: m, Nodes: nodes, Codec: codec(t), Me: me, Config: config, Pace: membership.DefaultPace(), Timing: membership.DefaultTiming()})
		p.peer = &peer{p: p}
		own := p.net.Join(transport.Peer{Name: me.Name, Addr: me.Addr}, p.a.Handler())
		p.peer.net = p.net.Join(transport.Peer{Name: other.Name, Addr: other.Addr, Epoch: uint64(other.Epoch)}, p.peer)
		p.a.StartFixed(own, me.Epoch, p.view)
		synctest.Wait()
		f(t, p)
		p.net.Crash(other.Name)
		p.net.Crash(me.Name)
		p.a.Stop()
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// kind is a hub that records what it handles.
func (p *pair) kind(l hub.Limits) *hub.Kind {
	k := hub.NewKind("recorder", l)
	hub.Handle(k, travels, func(_ context.Context, _ *hub.Hub, r *travelRequest) (*travelRequest, error) {
		p.ran.add(string(r.B))
		return r, nil
	})
	return k
}

func (p *pair) serve(path string, k *hub.Kind) *hub.Hub {
	p.t.Helper()
	h, err := p.mesh.Start(address.Of(path), k, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return h
}

// StartNode implements [Starter].
func (p *pair) StartNode(n node.Node, first []*hub.Delivery) (*hub.Hub, error) {
	return p.mesh.StartReady(address.Of(string(n.Path)), p.kind(hub.Limits{}), nil, true, first...)
}

// Refresh implements [Starter].
func (p *pair) Refresh(node.Path) {}

func system(t testing.TB) context.Context {
	return message.WithIdentity(t.Context(), message.SystemIdentity())
}

// peer is the other silo.
type peer struct {
	p   *pair
	net *transport.Memory

	mu      sync.Mutex
	serves  bool           // a look-up finds the address here
	hold    bool           // claims of node hubs are not answered
	held    []func(byte)   // those, by the verdict that is to be answered
	arrived []string       // deliveries, in order
	waiting []func([]byte) // their answers
}

// set changes what it does from now on.
func (b *peer) set(f func(*peer)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b)
}

// Handle implements transport.Handler.
func (b *peer) Handle(_ transport.Peer, r transport.Request, reply func([]byte)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wire.Kind(r.Kind) == wire.KindDeliver {
		e, err := decodeEnvelope(append([]byte(nil), r.Body...))
		if err != nil {
			b.p.t.Error(err)
		}
		v := &travelRequest{}
		if err := b.p.a.codec.decode(e.Payload, v); err != nil {
			b.p.t.Error(err)
		}
		b.arrived, b.waiting = append(b.arrived, string(v.B)), append(b.waiting, reply)
		return
	}
	m, err := wire.Decode(wire.Kind(r.Kind), r.Body)
	if err != nil {
		b.p.t.Error(err)
		return
	}
	key := b.p.view.Key()
	switch m := m.(type) {
	case wire.Ping:
		reply(wire.EncodeAnswer(wire.Pong{Key: key}))
	case wire.Claim:
		answer := func(v byte) {
			a := wire.Claimed{Key: key, Results: make([]wire.ClaimResult, len(m.Items)), Complete: m.CompleteFor}
			for i := range a.Results {
				if a.Results[i].Verdict = wire.Verdict(v); a.Results[i].Verdict == wire.Held {
					a.Results[i].Holder = wire.Entry{Epoch: other.Epoch, Reg: 1, Node: true}
				}
			}
			reply(wire.EncodeAnswer(a))
		}
		if b.hold && len(m.Items) > 0 && m.Items[0].Phase == wire.Wanted {
			b.held = append(b.held, answer)
			return
		}
		answer(byte(wire.Landed))
	case wire.Detach:
		reply(wire.EncodeAnswer(wire.Detached{Key: key, Verdicts: make([]wire.Verdict, len(m.Items))}))
	case wire.Lookup:
		if b.serves {
			reply(wire.EncodeAnswer(wire.Hit{Entry: wire.Entry{Epoch: other.Epoch, Reg: 1}}))
			return
		}
		reply(wire.EncodeAnswer(wire.NotHere{Asked: 2}))
	default:
		reply(wire.EncodeAnswer(wire.Unknown{Why: "not in this test"}))
	}
}

// Accepted implements transport.Handler.
func (b *peer) Accepted(transport.Peer) {}

// Broken implements transport.Handler.
func (b *peer) Broken(transport.Peer, error) {}

// reply is the answer of a to a delivery of b.
type reply struct {
	mu   sync.Mutex
	body []byte
}

func (r *reply) code() byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.body) == 0 {
		return 0
	}
	return r.body[0]
}

// send delivers a message from b to an address at a on a numbered lane.
func (b *peer) send(to, text string, lane uint64, request bool) *reply {
	b.p.t.Helper()
	payload, err := b.p.a.codec.enc.Marshal(&travelRequest{B: []byte(text)})
	if err != nil {
		b.p.t.Fatal(err)
	}
	e := envelope{Epoch: uint64(me.Epoch), Sender: 9, Lane: lane, To: at(to), Type: "test/travels", Request: request, Identity: message.SystemIdentity(), Payload: payload}
	r := &reply{}
	b.net.Call(transport.Peer{Name: me.Name, Epoch: uint64(me.Epoch), Addr: me.Addr}, transport.Request{Kind: uint8(wire.KindDeliver), Class: transport.Write, Body: e.append(nil)},
		func(a transport.Answer) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.body = append([]byte(nil), a.Body...)
		})
	return r
}

// failure reads the failure that a has answered.
func (r *reply) failure(p *pair) *message.Failure {
	p.t.Helper()
	if r.code() != replyFailure {
		p.t.Fatalf("answered with %d", r.code())
	}
	f, err := p.a.codec.decodeFailure(r.body[1:])
	if err != nil {
		p.t.Fatal(err)
	}
	return f
}

// codes are the answers to several deliveries.
func codes(all []*reply) (c []byte) {
	for _, r := range all {
		c = append(c, r.code())
	}
	return c
}
