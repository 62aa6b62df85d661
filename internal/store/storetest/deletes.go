package storetest

import (
	"errors"
	"slices"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// data §2.1, architecture.md decisions 3 and 8
func runDeletes(t *testing.T, open Factory) {
	t.Run("a delete answers the removed node and leaves a tombstone", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.commit(store.Write{Op: store.OpCreate, Node: full("acme/x")})
		got, err := b.one(remove("acme/x", 41, 42))
		if err != nil {
			t.Fatal(err)
		}
		same(t, full("acme/x"), got)
		b.absent("acme/x", 42)
		if nodes, err := b.ReadMany(t.Context(), []node.Path{"acme/x"}); err != nil || len(nodes) != 0 {
			t.Errorf("%v, %v", nodes, err)
		}
	})
	t.Run("a delete of another version is a conflict, a negative one takes any", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.commit(create("acme/x", 3), create("acme/y", 3))
		_, err := b.one(remove("acme/x", 2, 4))
		conflict(t, err, 3)
		_, err = b.one(remove("acme/x", 0, 4))
		conflict(t, err, 3)
		if _, err = b.one(remove("acme/x", -1, 4)); err != nil {
			t.Error(err)
		}
	})
	t.Run("a delete that does not raise the version is a conflict", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.commit(create("acme/x", 3))
		for _, expected := range []int64{3, -1} {
			_, err := b.one(remove("acme/x", expected, 3))
			conflict(t, err, 3)
		}
		same(t, simple("acme/x", 3), b.read("acme/x"))
	})
	t.Run("a delete of nothing says so, with the last version", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x")
		b.commit(remove("acme/x", 1, 2))
		for path, last := range map[string]int64{"acme/x": 2, "acme/never": 0} {
			_, err := b.one(remove(path, -1, 9))
			var missing *store.NotFoundError
			if !errors.As(err, &missing) || missing.LastVersion != last || missing.Path != node.Path(path) {
				t.Errorf("%s: %v", path, err)
			}
			b.absent(path, last)
		}
	})
	t.Run("a re-creation continues above the tombstone", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.commit(create("acme/x", 1))
		b.commit(remove("acme/x", 1, 2))
		for _, version := range []int64{1, 2} {
			_, err := b.one(create("acme/x", version))
			conflict(t, err, 2)
		}
		b.commit(create("acme/x", 3))
		same(t, simple("acme/x", 3), b.read("acme/x"))
		b.commit(remove("acme/x", 3, 4))
		b.absent("acme/x", 4)
		_, err := b.one(create("acme/x", 4))
		conflict(t, err, 4)
	})
	// data invariant 57
	t.Run("a delete spares what is below and beside it", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme", "acme/x", "acme/x/y", "acme/x/_Thread/1", "acme/xy", "acme/x y")
		b.commit(remove("acme/x", 1, 2))
		want := []node.Path{"acme/x/_Thread/1", "acme/x/y", "acme/x y", "acme/xy"}
		if got := descendants(t, b, "acme"); !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("delete and create of different paths commit in one batch", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x")
		b.commit(create("acme/y", 1), remove("acme/x", 1, 2))
		b.absent("acme/x", 2)
		same(t, simple("acme/y", 1), b.read("acme/y"))
	})
}
