package mirror

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is what the watches look at: rows that change through the hub like those of a store.
type world struct {
	hub     *Hub
	mu      sync.Mutex
	rows    map[node.Path]node.Node
	past    map[node.Path]map[int64]node.Node
	verdict access.Verdict
	inGet   func()
	inMay   func()       // before a verdict
	fails   func() error // what reads of listings and results fail with, nil for not at all
}

func newWorld() *world {
	w := &world{verdict: access.Granted, rows: map[node.Path]node.Node{}, past: map[node.Path]map[int64]node.Node{}}
	w.hub = New(w)
	return w
}

func (w *world) Get(_ context.Context, path node.Path) (node.Node, error) {
	w.mu.Lock()
	n, ok := w.rows[path]
	hook := w.inGet
	w.mu.Unlock()
	if hook != nil {
		hook()
	}
	if !ok {
		return node.Node{}, &store.NotFoundError{Path: path}
	}
	return n, nil
}

func (w *world) At(_ context.Context, path node.Path, version int64) (node.Node, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, ok := w.past[path][version]
	if !ok {
		return node.Node{}, &store.NotFoundError{Path: path, Version: version}
	}
	return n, nil
}

func (w *world) Children(_ context.Context, path node.Path, _ store.Page) ([]store.Entry, string, error) {
	if w.fails != nil {
		if err := w.fails(); err != nil {
			return nil, "", err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []store.Entry
	for p, n := range w.rows {
		if p.Parent() == path {
			out = append(out, store.Entry{Path: p, Node: &n})
		}
	}
	return out, "", nil
}

func (w *world) Select(_ context.Context, q query.Query) ([]node.Node, error) {
	if w.fails != nil {
		if err := w.fails(); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []node.Node
	for _, n := range w.rows {
		if q.Match(n) {
			out = append(out, n)
		}
	}
	return out, nil
}

func (w *world) MayRead(context.Context, node.Path) access.Verdict {
	if w.inMay != nil {
		w.inMay()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.verdict
}

// write commits a row at a version, like a store: first the row, then the change.
func (w *world) write(path node.Path, version int64, content string) {
	n := node.Node{Path: path, MainNode: path, State: node.StateActive, Version: version, Content: node.RawContent(content)}
	w.mu.Lock()
	w.rows[path] = n
	if w.past[path] == nil {
		w.past[path] = map[int64]node.Node{}
	}
	w.past[path][version] = n
	w.mu.Unlock()
	w.hub.Changed(store.Change{Kind: store.Updated, Path: path, Node: n, Version: version})
}

func (w *world) remove(path node.Path, version int64) {
	w.mu.Lock()
	n := w.rows[path]
	delete(w.rows, path)
	w.mu.Unlock()
	w.hub.Changed(store.Change{Kind: store.Deleted, Path: path, Node: n, Version: version})
}

func next(t *testing.T, w *Watch) Frame {
	t.Helper()
	f, err := w.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// SY-3
func TestAWatchIsAFullFrameThenPatchesThatNameTheirBase(t *testing.T) {
	w := newWorld()
	w.write("a", 1, `{"x":1,"y":2}`)
	watch, err := w.hub.Watch(t.Context(), "a", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	if f := next(t, watch); f.Kind != Full || f.Version != 1 {
		t.Fatalf("%+v", f)
	}
	w.write("a", 2, `{"x":1,"y":3}`)
	if f := next(t, watch); f.Kind != Patch || f.Version != 2 || f.BasedOn != 1 {
		t.Fatalf("%+v", f)
	}
	w.write("a", 3, `{"x":{"new":null}}`) // a merge patch can not say a null that stays
	if f := next(t, watch); f.Kind != Full || f.Version != 3 {
		t.Fatalf("%+v", f)
	}
	w.remove("a", 4)
	if f := next(t, watch); f.Kind != Deleted || f.Version != 4 {
		t.Fatalf("%+v", f)
	}
	w.write("a", 5, `{"again":true}`)
	if f := next(t, watch); f.Kind != Full || f.Version != 5 {
		t.Fatalf("a new life is told as a change of the old one: %+v", f)
	}
}

// fault 35
// fault 36
func TestAWriteBetweenSubscribingAndAskingIsNeitherLostNorToldTwice(t *testing.T) {
	for _, when := range []string{"before the row is read", "after the row is read"} {
		t.Run(when, func(t *testing.T) {
			w := newWorld()
			w.write("a", 1, `{"x":1}`)
			once := sync.OnceFunc(func() { w.write("a", 2, `{"x":2}`) })
			w.inGet = once // Get has read version 1 by now
			if when == "before the row is read" {
				w.inGet = nil
				w.hub.mu.Lock()
				go once() // waits for the hub until the watch has subscribed
				w.hub.mu.Unlock()
			}
			watch, err := w.hub.Watch(t.Context(), "a", 0)
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Close()
			seen := int64(0)
			for seen < 2 {
				f := next(t, watch)
				if f.Version <= seen || (f.Kind == Patch && f.BasedOn != seen) {
					t.Fatalf("after version %d: %+v", seen, f)
				}
				seen = f.Version
			}
		})
	}
}

// data §4.2
func TestAReaderThatComesBackGetsTheDifferenceOrTheWhole(t *testing.T) {
	w := newWorld()
	for v := int64(1); v <= 5; v++ {
		w.write("a", v, fmt.Sprintf(`{"x":%d}`, v))
	}
	delete(w.past["a"], 2)
	for since, want := range map[int64]Frame{
		0: {Kind: Full, Version: 5}, 3: {Kind: Patch, Version: 5, BasedOn: 3}, 2: {Kind: Full, Version: 5}, 5: {Kind: Current, Version: 5}, 9: {Kind: Full, Version: 5},
	} {
		watch, err := w.hub.Watch(t.Context(), "a", since)
		if err != nil {
			t.Fatal(err)
		}
		if f := next(t, watch); f.Kind != want.Kind || f.Version != want.Version || f.BasedOn != want.BasedOn {
			t.Errorf("since %d: %+v, want %+v", since, f, want)
		}
		watch.Close()
	}
	if c := w.hub.Counts(); c.Nodes != 0 {
		t.Fatalf("%d watches are left", c.Nodes)
	}
}

// AC-R1
func TestLosingTheRightToReadEndsAWatchBeforeAnyLaterVersion(t *testing.T) {
	w := newWorld()
	w.write("acme/a", 1, `{}`)
	watch, err := w.hub.Watch(t.Context(), "acme/a", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	next(t, watch)
	w.mu.Lock()
	w.verdict = access.Denied
	w.mu.Unlock()
	w.write("acme/a", 2, `{"secret":1}`)
	_, err = watch.Next(t.Context())
	var f *message.Failure
	if !errors.As(err, &f) || f.Type != message.Unauthorized {
		t.Fatalf("got %v", err)
	}
	again, err := w.hub.Watch(t.Context(), "acme/a", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	again.opened = true
	<-again.wake
	w.hub.Permissions("acme") // no write: the change of permissions alone ends it
	if _, err := again.Next(t.Context()); !errors.As(err, &f) {
		t.Fatalf("got %v", err)
	}
}

// Any sequence of writes, deletions and reads leaves a reader that applies the frames with exactly the
// newest row.
// SY-4
func TestAMirrorNeverDrifts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld()
		w.write("a", 1, `{"v":1}`)
		watch, err := w.hub.Watch(context.Background(), "a", 0)
		if err != nil {
			rt.Fatal(err)
		}
		defer watch.Close()
		version := int64(1)
		var held node.Node
		gone := false
		read := func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel() // take what is there, do not wait
			f, err := watch.Next(ctx)
			if err != nil {
				return
			}
			switch f.Kind {
			case Full:
				held, gone = f.Node, false
			case Patch:
				if f.BasedOn != held.Version || gone {
					rt.Fatalf("a patch on %d, held is %d", f.BasedOn, held.Version)
				}
				c, err := node.MergePatch(mustContent(rt, held), f.Patch)
				if err != nil {
					rt.Fatal(err)
				}
				if err := held.UnmarshalJSON([]byte(c.Text())); err != nil {
					rt.Fatal(err)
				}
			case Deleted:
				gone, held = true, node.Node{Version: f.Version}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(rt *rapid.T) {
				version++
				w.write("a", version, rapid.SampledFrom([]string{`{"v":1}`, `{"v":2,"s":"x"}`, `{"v":{"a":1}}`, `{"v":{"a":2,"b":[1]}}`, `[1,2]`, `{"n":{"z":null}}`}).Draw(rt, "content"))
			},
			"delete": func(*rapid.T) { version++; w.remove("a", version) },
			"echo":   func(*rapid.T) { w.hub.Changed(store.Change{Kind: store.Updated, Path: "a", Version: version - 1}) },
			"read":   func(*rapid.T) { read() },
			"": func(rt *rapid.T) {
				if len(watch.wake) > 0 {
					return
				}
				n, ok := w.rows["a"]
				if ok == gone || (ok && !n.SameAs(held)) {
					rt.Fatalf("held %v gone=%v, stored %v", held.Content, gone, n.Content)
				}
			},
		})
	})
}

func mustContent(t *rapid.T, n node.Node) node.Content {
	b, err := n.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return node.RawContent(string(b))
}

//
//
func TestListingsAndResultsReplaceAtMostOncePerQuietTimeAndEndWithTheNewestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		q, err := query.Parse("namespace:acme")
		if err != nil {
			t.Fatal(err)
		}
		l, err := w.hub.Listing(t.Context(), "acme", store.Page{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.hub.Result(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if list, err := l.Next(t.Context()); err != nil || len(list) != 0 {
			t.Fatal(list, err)
		}
		if rows, err := r.Next(t.Context()); err != nil || len(rows) != 0 {
			t.Fatal("no empty first result", rows, err)
		}
		begin := time.Now()
		for i := range 200 {
			w.write(node.Path(fmt.Sprintf("acme/n%d", i)), 1, `{}`)
		}
		if list, err := l.Next(t.Context()); err != nil || len(list) != 200 {
			t.Fatal(len(list), err)
		}
		if rows, err := r.Next(t.Context()); err != nil || len(rows) != 200 {
			t.Fatal(len(rows), err)
		}
		if took := time.Since(begin); took != quiet {
			t.Fatalf("after %v", took)
		}
		w.remove("acme/n0", 2)
		if rows, err := r.Next(t.Context()); err != nil || len(rows) != 199 {
			t.Fatal(len(rows), err)
		}
		w.hub.Close()
		if _, err := l.Next(t.Context()); err != nil && !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
		l.Close()
		r.Close()
	})
}
