package activity

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/mirror"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world keeps nodes in memory and tells a mirror of each change.
type world struct {
	turn    sync.Mutex // one patch at a time, as on a node's hub
	mu      sync.Mutex
	rows    map[node.Path]node.Node
	mirrors *mirror.Hub
	writes  int

	selected func() // called after a query was answered
}

func newWorld() *world {
	w := &world{rows: map[node.Path]node.Node{}}
	w.mirrors = mirror.New(w)
	return w
}

func (w *world) put(n node.Node) {
	w.mu.Lock()
	n.Version = w.rows[n.Path].Version + 1
	w.rows[n.Path] = n
	w.writes++
	w.mu.Unlock()
	w.mirrors.Changed(store.Change{Kind: store.Updated, Path: n.Path, Node: n, Version: n.Version})
}

func (w *world) Create(_ context.Context, n node.Node) (node.Node, error) {
	n.MainNode = n.Path.Main()
	w.put(n)
	return n, nil
}

func (w *world) Patch(ctx context.Context, path node.Path, patch []byte, cond nodehub.Condition) (node.Node, error) {
	if err := ctx.Err(); err != nil {
		return node.Node{}, err
	}
	w.turn.Lock()
	defer w.turn.Unlock()
	w.mu.Lock()
	before := w.rows[path]
	w.mu.Unlock()
	if cond.Version != 0 && cond.Version != before.Version {
		return node.Node{}, &store.ConflictError{Path: path, Expected: cond.Version, Actual: before.Version}
	}
	after, err := node.ApplyPatch(before, patch, node.DefaultLimits)
	if err == nil {
		err = Validate(ctx, &before, after)
	}
	if err != nil {
		return node.Node{}, err
	}
	w.put(after)
	return after, nil
}

func (w *world) Get(_ context.Context, path node.Path) (node.Node, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, ok := w.rows[path]
	if !ok {
		return n, &store.NotFoundError{Path: path}
	}
	return n, nil
}

func (w *world) Select(_ context.Context, q query.Query) (out []node.Node, err error) {
	w.mu.Lock()
	for _, n := range w.rows {
		if q.Match(n) {
			out = append(out, n)
		}
	}
	w.mu.Unlock()
	if w.selected != nil {
		w.selected()
	}
	return out, nil
}

func (w *world) At(context.Context, node.Path, int64) (node.Node, error) {
	return node.Node{}, errors.New("no history")
}
func (w *world) Children(context.Context, node.Path, store.Page) ([]store.Entry, string, error) {
	return nil, "", nil
}
func (w *world) MayRead(context.Context, node.Path) access.Verdict { return access.Granted }

func (w *world) content(t *testing.T, path node.Path) Content {
	t.Helper()
	n, err := w.Get(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	var c Content
	if err := n.Content.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

// in runs a test with a runner, in virtual time.
func in(t *testing.T, f func(t *testing.T, w *world, r *Runner, ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m, err := hub.New(hub.Options{ID: "1"})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld()
		r := NewRunner(m, w, w.mirrors, slog.New(slog.DiscardHandler))
		f(t, w, r, message.WithIdentity(context.Background(), &message.Identity{Subject: "alice"}))
		r.Stop(context.Background())
		w.mirrors.Close()
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// edge invariant 46
func TestProgressIsWrittenWhileTheWorkRunsAtABoundedPace(t *testing.T) {
	in(t, func(t *testing.T, w *world, r *Runner, ctx context.Context) {
		half, release := make(chan struct{}), make(chan struct{})
		path, err := r.Start(ctx, "acme", "count", func(ctx context.Context, p *Progress) error {
			if who := message.IdentityFrom(ctx); who.Subject != "alice" {
				t.Errorf("the work acts as %v", who)
			}
			for i := range 5000 {
				p.Step(i+1, 10_000)
			}
			p.Count("seen", 5000)
			close(half)
			<-release
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		<-half
		<-time.After(time.Second)
		synctest.Wait()
		if c := w.content(t, path); c.Status != Running || c.Done != 5000 || c.Counts["seen"] != 5000 {
			t.Fatalf("%+v", c)
		}
		if w.writes > 6 {
			t.Fatalf("%d writes in a second", w.writes)
		}
		close(release)
		r.Wait(ctx, path)
		if c := w.content(t, path); c.Status != Succeeded || c.Ended == nil {
			t.Fatalf("%+v", c)
		}
	})
}

// edge invariant 45
func TestATerminalStatusStaysWhateverIsSaidLater(t *testing.T) {
	in(t, func(t *testing.T, w *world, r *Runner, ctx context.Context) {
		var late *Progress
		path, err := r.Start(ctx, "acme", "x", func(_ context.Context, p *Progress) error {
			late = p
			p.Warn("f", "odd")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		r.Wait(ctx, path)
		late.Fail("f", "too late")
		late.Step(1, 2)
		late.finish(errors.New("again"), false)
		if err := late.flush(r.ctx); err != nil {
			t.Fatal(err)
		}
		if c := w.content(t, path); c.Status != Warning || len(c.Messages) != 1 || c.Done != 0 {
			t.Fatalf("%+v", c)
		}
	})
}

// edge §4
func TestEveryWayOutFinishesAnActivityAndTheWorstCounts(t *testing.T) {
	for name, c := range map[string]struct {
		work func(ctx context.Context, p *Progress) error
		want Status
	}{
		"done":    {func(context.Context, *Progress) error { return nil }, Succeeded},
		"warned":  {func(_ context.Context, p *Progress) error { p.Warn("", "w"); return nil }, Warning},
		"failed":  {func(_ context.Context, p *Progress) error { p.Fail("", "f"); p.Warn("", "w"); return nil }, Failed},
		"error":   {func(context.Context, *Progress) error { return errors.New("no") }, Failed},
		"panic":   {func(context.Context, *Progress) error { panic("no") }, Failed},
		"stopped": {func(ctx context.Context, _ *Progress) error { <-ctx.Done(); return ctx.Err() }, Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world, r *Runner, ctx context.Context) {
				path, err := r.Start(ctx, "acme", name, c.work)
				if err != nil {
					t.Fatal(err)
				}
				if name == "stopped" {
					synctest.Wait()
					r.Stop(ctx)
				}
				r.Wait(ctx, path)
				if got := w.content(t, path).Status; got != c.want {
					t.Fatalf("%s, want %s", got, c.want)
				}
			})
		})
	}
}

// edge §4
func TestAPatchOfRequestedStatusCancelsTheWorkAndIsIdempotent(t *testing.T) {
	in(t, func(t *testing.T, w *world, r *Runner, ctx context.Context) {
		path, err := r.Start(ctx, "acme", "x", func(ctx context.Context, _ *Progress) error { <-ctx.Done(); return ctx.Err() })
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for range 2 {
			if _, err := w.Patch(ctx, path, []byte(`{"content":{"requestedStatus":"Cancelled"}}`), nodehub.Condition{}); err != nil {
				t.Fatal(err)
			}
		}
		r.Wait(ctx, path)
		if c := w.content(t, path); c.Status != Cancelled || c.RequestedStatus != Cancelled {
			t.Fatalf("%+v", c)
		}
		if _, err := w.Patch(ctx, path, []byte(`{"content":{"status":"Running"}}`), nodehub.Condition{}); !errors.As(err, new(*OwnerError)) {
			t.Fatal(err)
		}
	})
}

// edge §4
func TestAnActivityLeftRunningByAnEarlierProcessIsDrivenToFailed(t *testing.T) {
	in(t, func(t *testing.T, w *world, r *Runner, ctx context.Context) {
		for path, status := range map[node.Path]Status{"acme/_Activity/1": Running, "acme/_Activity/2": Succeeded} {
			text, err := json.Marshal(Content{Type: node.TypeActivity, Status: status})
			if err != nil {
				t.Fatal(err)
			}
			w.put(node.Node{Path: path, MainNode: "acme", NodeType: node.TypeActivity, State: node.StateActive, Content: node.RawContent(string(text))})
		}
		if err := r.Recover(message.WithIdentity(ctx, message.SystemIdentity()), 0); err != nil {
			t.Fatal(err)
		}
		if c := w.content(t, "acme/_Activity/1"); c.Status != Failed || c.Ended == nil || c.Message == "" {
			t.Fatalf("%+v", c)
		}
		if c := w.content(t, "acme/_Activity/2"); c.Status != Succeeded {
			t.Fatalf("%+v", c)
		}
	})
}

// edge §4
// However much is said, the activity stays within a node, and says at its end that it did not keep all; why it ended
// is always kept.
func TestTheMessagesOfAnActivityStayWithinItsNode(t *testing.T) {
	in(t, func(t *testing.T, w *world, r *Runner, ctx context.Context) {
		path, err := r.Start(ctx, "acme", "x", func(_ context.Context, p *Progress) error {
			for range 900 {
				p.Warn(strings.Repeat("<", 1000), "w")
			}
			for range 900 {
				p.Fail(strings.Repeat("<", 1000), strings.Repeat("x", 399)+"é and more")
			}
			return errors.New("the end")
		})
		if err != nil {
			t.Fatal(err)
		}
		r.Wait(ctx, path)
		c := w.content(t, path)
		text, err := json.Marshal(c)
		if err != nil || len(text) > 600<<10 {
			t.Errorf("%d bytes, %v", len(text), err)
		}
		kept := map[string]int{}
		for _, l := range c.Messages {
			kept[l.Level]++
			if !utf8.ValidString(l.Text) || strings.Contains(l.Text, "\ufffd") {
				t.Errorf("%q", l.Text)
			}
		}
		n := len(c.Messages)
		if kept["error"] < 30 || kept["warning"] < 30 || c.Dropped != 1800-(n-2) || !strings.Contains(c.Messages[n-2].Text, "more messages are not listed") || c.Messages[n-1].Text != "the end" {
			t.Errorf("%v %d, the last %+v", kept, c.Dropped, c.Messages[n-2:])
		}
	})
}

// edge §4: with other processes on the store, only what has not moved for a time counts as left behind
func TestAnActivityOfAnotherProcessIsLeftAloneWhileItMoves(t *testing.T) {
	in(t, func(t *testing.T, w *world, r *Runner, ctx context.Context) {
		system := message.WithIdentity(ctx, message.SystemIdentity())
		put := func(path node.Path, age time.Duration) {
			n := node.Node{Path: path, MainNode: "acme", NodeType: node.TypeActivity, State: node.StateActive, ModifiedAt: time.Now().Add(-age),
				Content: node.RawContent(`{"$type":"Activity","status":"Running"}`)}
			w.put(n)
		}
		is := func(path node.Path, want Status) {
			t.Helper()
			if c := w.content(t, path); c.Status != want {
				t.Errorf("%s is %s, want %s", path, c.Status, want)
			}
		}
		put("acme/_Activity/moves", 59*time.Second)
		put("acme/_Activity/left", time.Minute)
		if err := r.Recover(system, time.Minute); err != nil {
			t.Fatal(err)
		}
		is("acme/_Activity/moves", Running)
		is("acme/_Activity/left", Failed)
		if err := r.Recover(system, 0); err != nil { // the control: as in a process that is alone
			t.Fatal(err)
		}
		is("acme/_Activity/moves", Failed)
		// One that moves between the look and the write is not ended.
		put("acme/_Activity/late", time.Hour)
		w.selected = func() { w.selected = nil; put("acme/_Activity/late", 0) }
		if err := r.Recover(system, time.Minute); err != nil {
			t.Fatal(err)
		}
		is("acme/_Activity/late", Running)
	})
}
