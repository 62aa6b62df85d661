package route

import (
	"log/slog"
	"testing"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/hub"
)

// decision 2: exactly one outcome for every request
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
