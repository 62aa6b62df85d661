package hubmesh_test

import (
	"errors"
	"testing"

	"github.com/hubmesh/hubmesh"
	"github.com/hubmesh/hubmesh/internal/store"
)

// data §1.3.1, issue 4: an acknowledged write is stored, whatever its process had been told before
func TestAProcessThatHasNotHeardOfAnAcknowledgedWriteLosesNoneAndRefusesNone(t *testing.T) {
	_, _, a, b, ctx := pair(t)
	if _, err := a.Create(ctx, "acme", "Space", nil); err != nil {
		t.Fatal(err)
	}
	put := func(m *hubmesh.Mesh, cond hubmesh.Condition) (hubmesh.Node, error) {
		c, err := hubmesh.JSON(map[string]any{"on": true})
		if err != nil {
			t.Fatal(err)
		}
		return m.Put(ctx, hubmesh.Node{Path: "acme/x", Content: c}, cond)
	}
	n, err := put(a, hubmesh.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node to be seen elsewhere", func() error { _, err := b.Get(ctx, "acme/x"); return err })
	if err := b.Synced(); err != nil {
		t.Fatal(err)
	}
	b.Deafen()
	patch := func(m *hubmesh.Mesh, on bool, cond hubmesh.Condition) (hubmesh.Node, error) {
		return m.Patch(ctx, "acme/x", map[string]any{"content": map[string]any{"on": on}}, cond)
	}
	for range 5 {
		before := n.Version
		if n, err = patch(a, false, hubmesh.Condition{}); err != nil {
			t.Fatal(err)
		}
		if _, err := patch(b, true, hubmesh.Condition{Version: before}); !errors.As(err, new(*store.ConflictError)) {
			t.Errorf("an old version as the condition: %v", err)
		}
		if n, err = patch(a, false, hubmesh.Condition{Version: n.Version}); err != nil {
			t.Fatal(err)
		}
		if n, err = patch(b, true, hubmesh.Condition{Version: n.Version}); err != nil {
			t.Fatalf("the acknowledged version as the condition: %v", err)
		}
		if got, err := a.At(ctx, "acme/x", n.Version); err != nil || got.Content.Text() != `{"on":true}` {
			t.Errorf("version %d is stored as %s: %v", n.Version, got.Content.Text(), err)
		}
		eventually(t, "a to hear of it", func() error {
			got, err := a.Get(ctx, "acme/x")
			if err == nil && got.Version < n.Version {
				err = errors.New("an old version")
			}
			return err
		})
	}
	for _, cond := range []hubmesh.Condition{{}, {Absent: true}} {
		if err := a.Delete(ctx, "acme/x", false); err != nil {
			t.Fatal(err)
		}
		next, err := put(b, cond)
		if err != nil || next.Version <= n.Version+1 {
			t.Errorf("after a deletion, %+v: version %d after %d: %v", cond, next.Version, n.Version, err)
		}
		n = next
		eventually(t, "a to hear of it", func() error { _, err := a.Get(ctx, "acme/x"); return err })
	}
}
