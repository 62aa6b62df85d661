package mirror

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
)

// lose takes a row back to a version, as a failover does that lost the last commits, and tells so.
func (w *world) lose(path node.Path, to int64) {
	w.mu.Lock()
	for version := range w.past[path] {
		if version > to {
			delete(w.past[path], version)
		}
	}
	if n, ok := w.past[path][to]; ok {
		w.rows[path] = n
	} else {
		delete(w.rows, path)
	}
	w.mu.Unlock()
	w.hub.Reset()
}

// data §2, issue 4: what was lost is not shown on, whatever its version was
func TestAWatchGoesBackWithANodeWhoseLastVersionsWereLost(t *testing.T) {
	open := func(t *testing.T, w *world, since int64) *Watch {
		t.Helper()
		watch, err := w.hub.Watch(t.Context(), "a", since)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(watch.Close)
		return watch
	}
	begin := func(t *testing.T) (*world, *Watch) {
		t.Helper()
		w := newWorld()
		w.write("a", 3, `{"v":3}`)
		watch := open(t, w, 0)
		next(t, watch)
		for v := int64(4); v <= 5; v++ {
			w.write("a", v, `{"lost":true}`)
			next(t, watch)
		}
		return w, watch
	}
	t.Run("to a lower version, and on from there", func(t *testing.T) {
		w, watch := begin(t)
		w.lose("a", 3)
		if f := next(t, watch); f.Kind != Full || f.Version != 3 || !f.Reset || f.Node.Content.Text() != `{"v":3}` {
			t.Fatalf("%+v", f)
		}
		for v := int64(4); v <= 6; v++ {
			w.write("a", v, `{"v":4}`)
			if f := next(t, watch); f.Version != v || f.Kind != Patch || f.BasedOn != v-1 || f.Reset {
				t.Fatalf("%+v", f)
			}
		}
	})
	t.Run("to the same version of another content", func(t *testing.T) {
		w, watch := begin(t)
		w.mu.Lock() // what is written is not told
		n := w.rows["a"]
		n.Content, n.ModifiedAt = node.RawContent(`{"v":5}`), time.Unix(5, 0)
		w.rows["a"] = n
		w.mu.Unlock()
		w.hub.Reset()
		if f := next(t, watch); f.Kind != Full || f.Version != 5 || !f.Reset || f.Node.Content.Text() != `{"v":5}` {
			t.Fatalf("%+v", f)
		}
	})
	t.Run("to before it was made", func(t *testing.T) {
		w, watch := begin(t)
		w.lose("a", 0)
		if f := next(t, watch); f.Kind != Deleted || !f.Reset {
			t.Fatalf("%+v", f)
		}
		w.write("a", 1, `{"v":1}`)
		if f := next(t, watch); f.Kind != Full || f.Version != 1 {
			t.Fatalf("%+v", f)
		}
	})
	t.Run("and to a later version that was written meanwhile", func(t *testing.T) {
		w, watch := begin(t)
		w.lose("a", 3)
		w.write("a", 4, `{"v":4}`)
		if f := next(t, watch); f.Kind != Full || f.Version != 4 || !f.Reset || f.Node.Content.Text() != `{"v":4}` {
			t.Fatalf("%+v", f)
		}
	})
	t.Run("a reader that comes back with a lost version is told so", func(t *testing.T) {
		w, _ := begin(t)
		w.lose("a", 3)
		if f := next(t, open(t, w, 5)); f.Kind != Full || f.Version != 3 || !f.Reset {
			t.Fatalf("%+v", f)
		}
	})
	t.Run("the control: nothing was lost, and nothing is told", func(t *testing.T) {
		w, watch := begin(t)
		w.hub.Reset()
		w.write("a", 6, `{"v":6}`)
		if f := next(t, watch); f.Version != 6 || f.Reset {
			t.Fatalf("%+v", f)
		}
	})
	t.Run("an owner that is behind takes nothing back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, watch := begin(t)
			w.mu.Lock()
			w.rows["a"] = w.past["a"][4]
			reads := 0
			w.inGet = func() { // it hears of the rest later
				w.mu.Lock()
				defer w.mu.Unlock()
				if reads++; reads == 3 {
					w.rows["a"] = w.past["a"][5]
				}
			}
			w.mu.Unlock()
			w.hub.Reset()
			got := make(chan Frame, 1)
			go func() { got <- next(t, watch) }()
			<-time.After(time.Minute)
			w.mu.Lock()
			n := reads
			w.mu.Unlock()
			if len(got) > 0 || n < 3 {
				t.Fatalf("%d reads, %d frames", n, len(got))
			}
			w.write("a", 6, `{"v":6}`)
			if f := <-got; f.Version != 6 || f.Reset {
				t.Fatalf("%+v", f)
			}
		})
	})
}
