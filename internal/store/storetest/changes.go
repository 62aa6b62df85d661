package storetest

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// recorder keeps the changes it is told of.
type recorder struct {
	mu      sync.Mutex
	changes []store.Change
}

func (r *recorder) record(c store.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, c)
}

func (r *recorder) take() []store.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	changes := r.changes
	r.changes = nil
	return changes
}

// data §2.2, CF-4, CF-5; architecture.md decision 9: commit, then publish, then answer
func runChanges(t *testing.T, open Factory) {
	t.Run("every committed row is told before its writer is answered, and no other", func(t *testing.T) {
		b := setup(t, open, Options{})
		var r recorder
		defer b.Subscribe(r.record)()
		before := time.Now().Add(-time.Second)
		w := create("acme/x", 1)
		w.Origin = "hub-7"
		b.commit(w, create("acme/y", 1))
		if _, err := b.one(create("acme/x", 2)); err == nil {
			t.Fatal("it was accepted")
		}
		b.commit(update("acme/x", 1, 2), remove("acme/y", 1, 5))
		got := r.take()
		for i, c := range got {
			if c.At.Before(before) || c.At.After(time.Now().Add(time.Second)) || c.At.Location() != time.UTC {
				t.Errorf("change %d is of %v", i, c.At)
			}
			got[i].At = time.Time{}
		}
		want := []store.Change{
			{Kind: store.Created, Path: "acme/x", Node: simple("acme/x", 1), Version: 1, Origin: "hub-7"},
			{Kind: store.Created, Path: "acme/y", Node: simple("acme/y", 1), Version: 1},
			{Kind: store.Updated, Path: "acme/x", Node: simple("acme/x", 2), Version: 2},
			{Kind: store.Deleted, Path: "acme/y", Node: simple("acme/y", 1), Version: 5},
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(node.Equal)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("the change of an update carries the creation stamps that are stored", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x")
		var r recorder
		defer b.Subscribe(r.record)()
		w := update("acme/x", 1, 2)
		w.Node.CreatedAt, w.Node.CreatedBy = time.Time{}, "mallory"
		b.commit(w)
		same(t, simple("acme/x", 2), r.take()[0].Node)
	})
	t.Run("a subscriber can read what it is told of", func(t *testing.T) {
		b := setup(t, open, Options{})
		var wrong atomic.Int64
		defer b.Subscribe(func(c store.Change) {
			if n, err := b.Read(t.Context(), c.Path); err != nil || n.Version != c.Version {
				wrong.Add(1)
			}
		})()
		b.create("acme/x")
		b.commit(update("acme/x", 1, 2))
		if wrong.Load() != 0 {
			t.Error("the store is behind its own change")
		}
	})
	t.Run("subscribers see the changes of a path in commit order, and agree on the order of all", func(t *testing.T) {
		b := setup(t, open, Options{})
		var first, second recorder
		defer b.Subscribe(first.record)()
		defer b.Subscribe(second.record)()
		race(8, func(i int) {
			path := fmt.Sprint("acme/n", i)
			for version := int64(1); version <= 25; version++ {
				w := update(path, version-1, version)
				if version == 1 {
					w = create(path, 1)
				}
				if _, err := b.Commit(t.Context(), []store.Write{w}); err != nil {
					t.Error(err)
				}
			}
		})
		key := func(changes []store.Change) (keys []string) {
			for _, c := range changes {
				keys = append(keys, fmt.Sprint(c.Path, c.Version))
			}
			return keys
		}
		one, two := first.take(), second.take()
		if len(one) != 200 || !slices.Equal(key(one), key(two)) {
			t.Errorf("%d and %d changes in different orders", len(one), len(two))
		}
		last := map[node.Path]int64{}
		for _, c := range one {
			if c.Version != last[c.Path]+1 {
				t.Errorf("%s: %d after %d", c.Path, c.Version, last[c.Path])
			}
			last[c.Path] = c.Version
		}
	})
	// data invariant 42
	t.Run("a subscriber that panics starves nobody and fails no write", func(t *testing.T) {
		b := setup(t, open, Options{})
		var r recorder
		defer b.Subscribe(func(store.Change) { panic("broken") })()
		defer b.Subscribe(r.record)()
		b.create("acme/x")
		b.commit(update("acme/x", 1, 2))
		if got := r.take(); len(got) != 2 {
			t.Errorf("%d changes", len(got))
		}
		same(t, simple("acme/x", 2), b.read("acme/x"))
	})
	t.Run("a cancelled subscription ends after the running call", func(t *testing.T) {
		b := setup(t, open, Options{})
		entered, leave := make(chan struct{}), make(chan struct{})
		var calls atomic.Int64
		cancel := b.Subscribe(func(store.Change) {
			calls.Add(1)
			close(entered)
			<-leave
		})
		var work sync.WaitGroup
		work.Go(func() { b.create("acme/x") })
		<-entered
		canceled := make(chan struct{})
		work.Go(func() {
			cancel()
			close(canceled)
		})
		select {
		case <-canceled:
			t.Error("cancel returned while the call was running")
		default:
		}
		close(leave)
		work.Wait()
		cancel()
		b.create("acme/y")
		if calls.Load() != 1 {
			t.Errorf("%d calls", calls.Load())
		}
	})
}
