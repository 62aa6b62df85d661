package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// data §1.4: no node stays below a tree that is deleted
func runGround(t *testing.T, open Factory) {
	on := func(path string, ground node.Node) store.Write {
		w := create(path, 1)
		w.Ground = store.GroundOf(ground)
		return w
	}
	t.Run("a create on ground that stands is made", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme", "acme/x")
		x := b.read("acme/x")
		b.commit(update("acme/x", 1, 2)) // another version is the same ground
		b.commit(on("acme/x/y", x), on("acme/x/deep/z", x), on("other/y", x), create("acme/v", 1))
	})
	t.Run("a create whose ground is gone, or has another life, is refused alone", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme", "acme/x")
		x, never := b.read("acme/x"), b.read("acme/x")
		never.Path = "acme/never"
		refused := func(beside string) {
			t.Helper()
			results, err := b.Commit(t.Context(), []store.Write{on("acme/x/y", x), create(beside, 1), on("acme/never/y", never)})
			if err != nil || results[1].Err != nil {
				t.Fatalf("%+v, %v", results, err)
			}
			for i, want := range map[int]store.GroundError{0: {Path: "acme/x/y", Ground: "acme/x"}, 2: {Path: "acme/never/y", Ground: "acme/never"}} {
				var gone *store.GroundError
				if !errors.As(results[i].Err, &gone) || *gone != want {
					t.Errorf("got %v", results[i].Err)
				}
			}
			b.absent("acme/x/y", 0)
		}
		b.commit(remove("acme/x", 1, 2))
		refused("acme/beside")
		again := create("acme/x", 3)
		again.Node.CreatedAt = x.CreatedAt.Add(time.Hour)
		b.commit(again)
		refused("acme/beside too")
	})
	t.Run("in a partition whose space does not stand no node is created, until it does", func(t *testing.T) {
		b := setup(t, open, Options{})
		w := create("acme/x/y", 1)
		w.Ground = store.NoSpace("acme")
		_, err := b.one(w)
		partition(t, err, store.ReasonMissing)
		b.absent("acme/x/y", 0)
		if err := b.EnsurePartition(t.Context(), "acme", ""); err != nil { // the row that is left over is used again
			t.Fatal(err)
		}
		b.create("acme")
		w.Ground = store.GroundOf(b.read("acme"))
		b.commit(w)
	})
	t.Run("a create of what is there says that, whatever its ground", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x", "acme/x/y")
		x := b.read("acme/x")
		b.commit(remove("acme/x", 1, 2))
		var exists *store.ExistsError
		if _, err := b.one(on("acme/x/y", x)); !errors.As(err, &exists) {
			t.Error(err)
		}
	})
	t.Run("a delete that is to be empty spares what it names and nothing else", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x", "acme/x/a", "acme/x/b/c", "acme/x y", "acme/xy", "acme/y")
		w := remove("acme/x", 1, 2)
		w.Empty = true
		for _, c := range []struct {
			spare []node.Path
			below node.Path
		}{{nil, "acme/x/a"}, {[]node.Path{"acme/x/a", "acme/y"}, "acme/x/b/c"}, {[]node.Path{"acme/x/b/c"}, "acme/x/a"}} {
			w.Spare = c.spare
			_, err := b.one(w)
			var left *store.NotEmptyError
			if !errors.As(err, &left) || left.Path != "acme/x" || left.Below != c.below {
				t.Errorf("%v: %v", c.spare, err)
			}
		}
		w.Spare = []node.Path{"acme/x/a", "acme/x/b/c"}
		late := w
		late.Expected, late.Node.Version = 4, 5
		_, err := b.one(late)
		conflict(t, err, 1)
		b.commit(w)
		b.absent("acme/x", 2)
		var missing *store.NotFoundError
		if _, err := b.one(w); !errors.As(err, &missing) {
			t.Errorf("once more: %v", err)
		}
	})
}
