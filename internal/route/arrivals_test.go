package route

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
)

// decision 2: exactly one outcome for every request
// invariant 46
func TestARequestForAPathThatCanBeNoNodesIsAnsweredOnceAndLeavesNothingPending(t *testing.T) {
	m, err := hub.New(hub.Options{ID: "1", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	c := NewCluster(ClusterOptions{Mesh: m, Nodes: New(m, nil, nil), Codec: codec(t), Me: membership.Member{Name: "a"}})
	c.self.Store(1)
	payload, err := c.codec.enc.Marshal(&travelRequest{})
	if err != nil {
		t.Fatal(err)
	}
	e := envelope{Epoch: 1, To: at("acme/.."), Type: "test/travels", Request: true, Payload: payload}
	answers := 0
	c.Deliver(transport.Peer{}, e.append(nil), func([]byte) { answers++ })
	pending := m.Stats().Pending
	if err := m.Close(t.Context()); err != nil { // whatever is pending is answered now
		t.Fatal(err)
	}
	if answers != 1 || pending != 0 {
		t.Errorf("%d answers, %d pending", answers, pending)
	}
}

// protocol.md §6; decision 6: what met a silo on its way down was not executed, and is sent again elsewhere
// invariant 44
func TestARequestThatMetAProcessOnItsWayDownLooksAgainUnlessItHadBegun(t *testing.T) {
	m, err := hub.New(hub.Options{ID: "1", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	c := NewCluster(ClusterOptions{Mesh: m, Nodes: New(m, nil, nil), Codec: codec(t), Me: membership.Member{Name: "a"}})
	for name, test := range map[string]struct {
		by      string
		started bool
		again   bool
	}{
		"the process, before its turn": {by: "mesh/1", again: true},
		"its hub, before its turn":     {by: "acme/x", again: true},
		"in its turn":                  {by: "mesh/1", started: true},
		"another hub":                  {by: "acme/y"},
	} {
		t.Run(name, func(t *testing.T) {
			var said []byte
			a := &arrival{c: c, key: "acme/x", node: true, reply: func(b []byte) { said = b }}
			a.d = m.Receive(&a.visitor, hub.Foreign{Type: hub.Ping.Wire(), Message: &hub.PingRequest{}, To: at("acme/x")})
			a.Answer(nil, &message.Failure{Type: message.ShuttingDown, Reason: message.ReasonStopping, AnsweredBy: test.by}, test.started)
			if again := len(said) == 1 && said[0] == refusedGoing; again != test.again {
				t.Errorf("it said %v", said)
			}
		})
	}
}

// answered is told the outcome of a request.
type answered chan error

func (a answered) Answer(_ any, err error, _ bool) { a <- err }

// decision 4; invariant 33: independent destinations
// What a lane of this silo hands to a hub of its own runs on the hub's turn: a quick handler that took its time would
// hold the lane, and with it the turn of the cluster and the connection that brings the next answer on that lane.
func TestAQuickHandlerHoldsNoLaneAndNotTheTurn(t *testing.T) {
	m, err := hub.New(hub.Options{ID: "1", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	began, leave := make(chan struct{}), make(chan struct{})
	k := hub.NewKind("quick", hub.Limits{})
	hub.HandleQuick(k, travels, func(context.Context, *hub.Hub, *travelRequest) (*travelRequest, error) {
		began <- struct{}{}
		<-leave
		return &travelRequest{}, nil
	})
	paths := []string{"portal/x", "acme/n"}
	for _, p := range paths {
		if _, err := m.Start(address.Of(p), k, nil); err != nil {
			t.Fatal(err)
		}
	}
	c := NewCluster(ClusterOptions{Mesh: m, Nodes: New(m, nil, nil), Codec: codec(t), Me: membership.Member{Name: "a"}})
	ends := make(answered, len(paths))
	for _, p := range paths {
		ch := c.lanes.get(c, p, !IsProcessAddress(at(p).Type()))
		d := m.Receive(&hub.Visitor{}, hub.Foreign{Type: travels.Wire(), Message: &travelRequest{}, To: at(p), Answer: ends})
		free := make(chan struct{})
		go func() { // as when a resolution ends
			c.turn.Do(func() {
				ch.onTurn(func() {
					if x := c.deliverHere(ch, d); x != Answered {
						t.Errorf("%s: %d", p, x)
					}
				})
			})
			close(free)
		}()
		select {
		case <-began:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: the handler does not run", p)
		}
		select {
		case <-free:
		case <-time.After(5 * time.Second):
			t.Errorf("%s: the turn and the lane wait for the handler", p)
		}
		leave <- struct{}{}
		if err := <-ends; err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
