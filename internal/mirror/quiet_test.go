package mirror

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// edge §2.5
// What changes is not in the rows of this reader: it is a change of something that he may not read, or of a
// permission that does not concern him.
func TestAReaderIsNotToldThatSomethingChangedWhichHeMayNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.write("acme/a", 1, `{}`)
		q, err := query.Parse("namespace:acme")
		if err != nil {
			t.Fatal(err)
		}
		l, err := w.hub.Listing(t.Context(), "acme", store.Page{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		r, err := w.hub.Result(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		told := map[string]chan int{"listing": make(chan int), "result": make(chan int)}
		follow := func(what string, next func() (int, error)) {
			defer close(told[what])
			for {
				n, err := next()
				if err != nil {
					return
				}
				told[what] <- n
			}
		}
		go follow("listing", func() (int, error) { rows, err := l.Next(t.Context()); return len(rows), err })
		go follow("result", func() (int, error) { rows, err := r.Next(t.Context()); return len(rows), err })
		want := func(after string, n int) {
			t.Helper()
			for what, c := range told {
				select {
				case got := <-c:
					if got != n {
						t.Errorf("%s, after %s: %d rows, want %d", what, after, got, n)
					}
				case <-time.After(time.Second):
					if n >= 0 {
						t.Errorf("%s, after %s: nothing is told", what, after)
					}
				}
			}
		}
		want("the start", 1)
		for i := range int64(5) {
			hidden := node.Node{Path: "acme/hidden", MainNode: "acme/hidden", State: node.StateActive, Version: i + 1, Content: node.RawContent(`{}`)}
			w.hub.Changed(store.Change{Kind: store.Updated, Path: hidden.Path, Node: hidden, Version: hidden.Version})
			want("a hidden change", -1)
		}
		w.hub.Permissions("acme/hidden")
		want("a permission elsewhere", -1)
		w.hub.Reset()
		want("a reset", -1)
		w.write("acme/a", 2, `{}`)
		want("a change", 1)
		w.write("acme/b", 1, `{}`)
		want("a creation", 2)
		w.remove("acme/a", 3)
		want("a deletion", 1)
		w.remove("acme/b", 2)
		want("the last deletion", 0)
		w.hub.Close()
		for _, c := range told {
			for range c { // until it ends
			}
		}
	})
}

//
func TestADigestTellsRowsApart(t *testing.T) {
	n := func(path node.Path, version int64) *node.Node { return &node.Node{Path: path, Version: version} }
	lists := map[string][]store.Entry{
		"none":           nil,
		"one":            {{Path: "a", Node: n("a", 1)}},
		"another":        {{Path: "b", Node: n("b", 1)}},
		"a version":      {{Path: "a", Node: n("a", 2)}},
		"without a node": {{Path: "a"}},
		"with children":  {{Path: "a", Node: n("a", 1), HasChildren: true}},
		"two":            {{Path: "a", Node: n("a", 1)}, {Path: "b", Node: n("b", 1)}},
		"the order":      {{Path: "b", Node: n("b", 1)}, {Path: "a", Node: n("a", 1)}},
	}
	seen := map[digest]string{{}: "nothing was told yet"}
	for what, list := range lists {
		sum := digestOf(list, entryOf)
		if other, ok := seen[sum]; ok {
			t.Errorf("%s is as %s", what, other)
		}
		seen[sum] = what
	}
}

// AC-R1
// A version came under a denial; before the verdict is asked, the node is deleted and its denial with it.
func TestAVersionThatWasDeniedIsNotToldOnceItsNodeAndItsDenialAreGone(t *testing.T) {
	w := newWorld()
	w.write("acme/a", 1, `{}`)
	watch, err := w.hub.Watch(t.Context(), "acme/a", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	next(t, watch)
	w.write("acme/a", 2, `{"s":"SECRET"}`)
	w.inMay = func() {
		w.inMay = nil
		w.remove("acme/a", 3)
	}
	if f := next(t, watch); f.Kind != Deleted {
		t.Fatalf("told %+v", f)
	}
}
