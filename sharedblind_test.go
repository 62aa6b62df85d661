package hubmesh_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh"
	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/store"
)

// AC-R1, CF-7, issue 4: withdrawn rights are not honoured for longer than the bound
func TestAProcessThatCanNotReadWhatOthersCommitDeterminesNothing(t *testing.T) {
	_, url := database(t)
	a, ctx := share(t, url)
	b, _ := share(t, url)
	trusting, _ := share(t, url) // the control: it takes what it holds for true
	trusting.Trust()
	if err := a.Grant(hubmesh.AsSystem(t.Context()), "", "admin", "Admin"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Create(ctx, "sec", "Space", map[string]any{"s": "old"}); err != nil {
		t.Fatal(err)
	}
	if err := a.Grant(ctx, "sec", "alice", "Viewer"); err != nil {
		t.Fatal(err)
	}
	alice := hubmesh.As(t.Context(), "alice")
	for _, m := range []*hubmesh.Mesh{b, trusting} {
		eventually(t, "the grant to count", func() error { _, err := m.Get(alice, "sec"); return err })
		eventually(t, "the process to be ready", func() error {
			if waiting := m.Waiting(t.Context()); len(waiting) > 0 {
				return fmt.Errorf("%v", waiting)
			}
			return nil
		})
	}
	w, err := b.Watch(alice, "sec", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	await(t, w, 1)

	// Only what the feed reads is locked.
	l, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	if _, err := l.Exec(t.Context(), "begin; lock table mesh_store"); err != nil {
		t.Fatal(err)
	}
	if err := a.Delete(ctx, "sec/_Access/alice_Access", false); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Patch(ctx, "sec", map[string]any{"content": map[string]any{"s": "SECRET"}}, hubmesh.Condition{}); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(feed.MostBehind + 2*time.Second)
	var undetermined *access.UndeterminedError
	eventually(t, "permissions to be undetermined", func() error {
		_, err := b.Query(alice, "path:sec")
		if !errors.As(err, &undetermined) {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
	if late := time.Since(deadline); late > 0 {
		t.Errorf("that took %v too long", late)
	}
	for name, read := range map[string]func(m *hubmesh.Mesh) (any, error){
		"a query":   func(m *hubmesh.Mesh) (any, error) { return m.Query(alice, "path:sec") },
		"a read":    func(m *hubmesh.Mesh) (any, error) { return m.Get(alice, "sec") },
		"a version": func(m *hubmesh.Mesh) (any, error) { return m.At(alice, "sec", 2) },
		"a listing": func(m *hubmesh.Mesh) (any, error) { return m.Children(alice, "") },
		"a write": func(m *hubmesh.Mesh) (any, error) {
			return m.Patch(ctx, "sec", map[string]any{"name": "n"}, hubmesh.Condition{})
		},
		"a watch": func(m *hubmesh.Mesh) (any, error) {
			w, err := m.Watch(alice, "sec", 0)
			if err == nil {
				w.Close()
			}
			return nil, err
		},
	} {
		if got, err := read(b); !errors.As(err, &undetermined) {
			t.Errorf("%s is answered %v, %v", name, got, err)
		}
	}
	if found, err := trusting.Query(alice, "path:sec"); err != nil || len(found) != 1 || !strings.Contains(found[0].Content.Text(), "SECRET") {
		t.Errorf("this control no longer shows the fault: %v %v", found, err)
	}
	end, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errors.New("the stream goes on"))
	defer cancel()
	if f, err := w.Next(end); !errors.As(err, &undetermined) {
		t.Errorf("the stream says %+v, %v", f, err)
	}
	if waiting := b.Waiting(t.Context()); !strings.Contains(fmt.Sprint(waiting), "could not be read for") {
		t.Errorf("it is ready: %v", waiting)
	}
	if n, err := b.Get(hubmesh.AsSystem(t.Context()), "sec"); err != nil || n.Version != 2 { // whoever needs no permission reads the row
		t.Errorf("the program reads version %d: %v", n.Version, err)
	}

	if _, err := l.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process to be ready again", func() error {
		if waiting := b.Waiting(t.Context()); len(waiting) > 0 {
			return fmt.Errorf("%v", waiting)
		}
		return nil
	})
	if _, err := b.Get(alice, "sec"); !errors.As(err, new(*store.NotFoundError)) {
		t.Errorf("alice gets %v", err)
	}
	if n, err := b.Get(ctx, "sec"); err != nil || n.Version != 2 {
		t.Errorf("version %d: %v", n.Version, err)
	}
}
