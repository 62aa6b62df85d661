package route

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rows are nodes by path, whose look-ups a test can stop.
type rows struct {
	mu    sync.Mutex
	have  map[node.Path]bool
	calls int
	park  func()
	read  func() // before a row is read; nil is nothing
}

func (r *rows) Read(_ context.Context, path node.Path) (node.Node, error) {
	if r.read != nil {
		r.read()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.have[path] {
		return node.Node{}, &store.NotFoundError{Path: path}
	}
	return node.Node{Path: path, MainNode: path}, nil
}

func (r *rows) Prefix(ctx context.Context, path node.Path) (node.Node, error) {
	r.mu.Lock()
	r.calls++
	park := r.park
	r.mu.Unlock()
	if park != nil {
		park()
	}
	if n, err := r.Read(ctx, path); err == nil {
		return n, nil
	}
	for above := range path.Ancestors() {
		if n, err := r.Read(ctx, above); err == nil {
			return n, nil
		}
	}
	return node.Node{}, &store.NotFoundError{Path: path}
}

func newResolver(t *testing.T, paths ...node.Path) (*Resolver, *rows, *hub.Mesh) {
	t.Helper()
	m, err := hub.New(hub.Options{ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	r := &rows{have: map[node.Path]bool{}}
	for _, p := range paths {
		r.have[p] = true
	}
	return NewResolver(m, r), r, m
}

func resolve(t *testing.T, r *Resolver, path node.Path) (Resolution, error) {
	t.Helper()
	return r.Resolve(t.Context(), path)
}

// invariant 66
func TestAPathResolvesToItsLongestExistingPrefixAndARemainder(t *testing.T) {
	r, _, m := newResolver(t, "acme", "acme/Docs", "acme/Docs/a b")
	defer m.Close(context.Background())
	for text, want := range map[string]Resolution{
		"acme":                  {"acme", ""},
		"/acme/Docs/":           {"acme/Docs", ""},
		"acme/Docs/a b/x/y.txt": {"acme/Docs/a b", "x/y.txt"},
		"acme/Docsx/y":          {"acme", "Docsx/y"},
	} {
		path, err := node.ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := resolve(t, r, path); err != nil || got != want {
			t.Errorf("%s: %+v %v, want %+v", text, got, err, want)
		}
	}
	if _, err := node.ParsePath("//"); err == nil {
		t.Error("an empty path resolves")
	}
	if _, err := resolve(t, r, "nowhere/x"); !errors.As(err, new(*store.NotFoundError)) {
		t.Error(err)
	}
}

// invariant 67
func TestAWarmAnswerIsImmediateAMissIsNotKeptAndChangesEvict(t *testing.T) {
	r, rows, m := newResolver(t, "acme", "acme/a")
	defer m.Close(context.Background())
	must := func(path node.Path, want node.Path) {
		t.Helper()
		if got, err := resolve(t, r, path); err != nil || got.Node != want {
			t.Fatalf("%s: %+v %v", path, got, err)
		}
	}
	must("acme/a/x/y", "acme/a")
	calls := rows.calls
	if res, ok := r.Warm("acme/a/x/y"); !ok || res.Node != "acme/a" {
		t.Fatal("not warm")
	}
	must("acme/a/x/y", "acme/a")
	if rows.calls != calls {
		t.Fatal("a warm answer asked the store")
	}
	if _, err := resolve(t, r, "none/x"); err == nil {
		t.Fatal("found")
	}
	rows.have["none"] = true
	must("none/x", "none") // a miss is never kept
	rows.have["acme/a/x"] = true
	r.Evict("acme/a/x") // created below what was the answer
	must("acme/a/x/y", "acme/a/x")
	delete(rows.have, "acme/a/x")
	r.Evict("acme/a/x")
	must("acme/a/x/y", "acme/a")
	must("acme/ab", "acme")
	r.Evict("acme/a")
	if _, ok := r.Warm("acme/ab"); !ok {
		t.Fatal("an eviction passes the end of a segment")
	}
}

// invariant 68
func TestAFirstLookUpThatHangsPoisonsNothingAndIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rows, m := newResolver(t, "acme")
		defer m.Close(context.Background())
		release := make(chan struct{})
		rows.park = func() { <-release }
		ctx, cancel := m.Bounds().Context(t.Context(), budget.Read, "wait")
		defer cancel()
		begin := time.Now()
		_, err := r.Resolve(ctx, "acme/x")
		var lapse *budget.Lapse
		if !errors.As(err, &lapse) || time.Since(begin) != 10*time.Second {
			t.Fatalf("after %v: %v", time.Since(begin), err)
		}
		// Whoever asks now joins the look-up that hangs, and is answered with it.
		joined := make(chan error)
		go func() {
			_, err := r.Resolve(t.Context(), "acme/x")
			joined <- err
		}()
		synctest.Wait()
		rows.mu.Lock()
		rows.park = nil
		rows.mu.Unlock()
		if res, err := r.Resolve(t.Context(), "acme/y"); err != nil || res.Node != "acme" {
			t.Fatal("another path suffers:", err)
		}
		close(release)
		if err := <-joined; err != nil {
			t.Fatal(err)
		}
		if res, err := r.Resolve(t.Context(), "acme/x"); err != nil || res.Node != "acme" {
			t.Fatal(err)
		}
	})
}

// invariant 67
func TestALookUpThatBeganBeforeAChangeIsNotKept(t *testing.T) {
	r, rows, m := newResolver(t, "acme")
	defer m.Close(context.Background())
	reached, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	rows.park = func() { once.Do(func() { close(reached); <-release }) }
	done := make(chan struct{})
	go func() { defer close(done); r.Resolve(t.Context(), "acme/a/x") }()
	<-reached
	r.Evict("acme/a")
	close(release)
	<-done
	if _, ok := r.Warm("acme/a/x"); ok {
		t.Fatal("an answer from before the change is kept")
	}
}

// invariant 69
func TestASatellitesOwnerIsEverythingBeforeItsFirstSatelliteSegment(t *testing.T) {
	for path, want := range map[node.Path]node.Path{
		"acme/a/_Comment/1": "acme/a", "acme/_Thread/t/_Comment/1": "acme", "acme/a": "acme/a", "acme/_activity/x": "acme", "acme/_CommentX/1": "acme/_CommentX/1",
	} {
		if got := path.Main(); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// messaging §1.12
// CF-26
func TestAProcessAddressThatNobodyServesIsRefusedAsTransientAndUnserved(t *testing.T) {
	_, _, m := newResolver(t)
	defer m.Close(context.Background())
	m.SetRouter(New(m, &rows{}, nil))
	_, err := hub.Ping.Ask(t.Context(), m, "portal/gone", &hub.PingRequest{})
	var f *message.Failure
	if !errors.As(err, &f) || f.Type != message.ShuttingDown || !f.TargetUnserved || f.AnsweredBy != "mesh/1" {
		t.Fatalf("%+v", err)
	}
}
