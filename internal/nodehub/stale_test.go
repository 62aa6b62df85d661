package nodehub

import (
	"testing"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// data §1.3.4: after a write whose outcome is unknown the row decides, and no change that was told late
func TestAChangeThatWasToldLateDoesNotTakeAHubThatDoubtsItsRowBack(t *testing.T) {
	m, err := hub.New(hub.Options{ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	s := &Service{mesh: m, cache: newContentCache(1 << 20)}
	at := func(version int64) node.Node {
		return node.Node{Path: "acme/x", Version: version, Content: node.RawContent(`{}`)}
	}
	for _, doubts := range []bool{true, false} {
		st := &state{service: s}
		st.set(s.cache, at(17))
		st.stale = doubts
		h, err := m.StartReady(address.Of(map[bool]string{true: "acme/x", false: "acme/y"}[doubts]), hub.NewKind("node", hub.Limits{}), st, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, version := range []int64{16, 18} {
			if _, err := s.takeChange(t.Context(), h, &changed{store.Change{Kind: store.Updated, Path: "acme/x", Version: version, Node: at(version)}, 0}); err != nil {
				t.Fatal(err)
			}
		}
		want := map[bool]int64{true: 17, false: 18}[doubts] // the control takes the newer one
		if st.node.Version != want || st.stale != doubts {
			t.Errorf("doubts %v: version %d, stale %v", doubts, st.node.Version, st.stale)
		}
	}
}
