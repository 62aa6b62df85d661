package hubmesh_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
)

// database starts a server of the test's own and makes a database in it.
func database(t *testing.T) (*pgtest.Server, string) {
	t.Helper()
	s, err := pgtest.Start("fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	url, err := s.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s, url
}

// share starts a mesh on a database that others use, too.
func share(t *testing.T, url string) (*hubmesh.Mesh, context.Context) {
	t.Helper()
	m, err := hubmesh.New(hubmesh.Options{Postgres: url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m, hubmesh.As(t.Context(), "admin")
}

// await reads frames until one has a version, minding that they go on from one to the next.
func await(t *testing.T, w *hubmesh.Watch, version int64) hubmesh.Frame {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, errors.New("no frame came"))
	defer cancel()
	for {
		f, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("waiting for version %d: %v", version, err)
		}
		if f.Version >= version {
			return f
		}
	}
}

// CF-7, data §3's incident, issue 4
func TestTwoProcessesOnOneDatabaseShowEachOthersEditsWithoutARequestBetweenThem(t *testing.T) {
	_, url := database(t)
	a, ctx := share(t, url)
	b, _ := share(t, url)
	if err := a.Grant(hubmesh.AsSystem(t.Context()), "", "admin", "Admin"); err != nil {
		t.Fatal(err)
	}
	create := func(m *hubmesh.Mesh, path, kind string) hubmesh.Node {
		t.Helper()
		var n hubmesh.Node
		eventually(t, "a create", func() (err error) {
			n, err = m.Create(ctx, path, kind, map[string]any{"v": 1})
			return err
		})
		return n
	}
	create(a, "acme", "Space")
	n := create(a, "acme/x", "")
	eventually(t, "the node to be seen elsewhere", func() error { _, err := b.Get(ctx, "acme/x"); return err }) // b's hub holds version 1 from here on
	w, err := b.Watch(ctx, "acme/x", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	await(t, w, n.Version)
	for v := 2; v <= 7; v++ {
		if n, err = a.Patch(ctx, "acme/x", map[string]any{"content": map[string]any{"v": v}}, hubmesh.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	await(t, w, n.Version)
	got, err := b.Get(ctx, "acme/x")
	if err != nil || got.Version != n.Version || got.Content.Text() != n.Content.Text() {
		t.Errorf("the exact read is at version %d (%s), stored is %d: %v", got.Version, got.Content, n.Version, err)
	}
	if found, err := b.Query(ctx, "path:acme scope:descendants"); err != nil || len(found) != 1 || found[0].Version != n.Version {
		t.Errorf("a query finds %+v: %v", found, err)
	}
	// The other way round, over what b's hub was told.
	m, err := b.Patch(ctx, "acme/x", map[string]any{"name": "from b"}, hubmesh.Condition{Version: n.Version})
	if err != nil || m.Version != n.Version+1 {
		t.Fatalf("version %d: %v", m.Version, err)
	}
	eventually(t, "a to see b's edit", func() error {
		got, err := a.Get(ctx, "acme/x")
		if err == nil && got.Name != "from b" {
			err = fmt.Errorf("version %d is told", got.Version)
		}
		return err
	})
	if err := a.Delete(ctx, "acme/x", false); err != nil {
		t.Fatal(err)
	}
	if f := await(t, w, m.Version+1); f.Kind != hubmesh.Deleted {
		t.Errorf("%+v", f)
	}
	eventually(t, "b to know of the deletion", func() error {
		if _, err := b.Get(ctx, "acme/x"); !errors.As(err, new(*store.NotFoundError)) {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
	if n := create(b, "acme/x", ""); n.Version <= m.Version+1 {
		t.Errorf("the next life begins at version %d", n.Version)
	}
}

// data §3: the control of the incident
func TestWithoutTheRelayAProcessAnswersAnOldVersionForEver(t *testing.T) {
	_, url := database(t)
	a, ctx := share(t, url)
	b, _ := share(t, url)
	if err := a.Grant(hubmesh.AsSystem(t.Context()), "", "admin", "Admin"); err != nil {
		t.Fatal(err)
	}
	n, err := a.Create(ctx, "acme", "Space", map[string]any{"v": 1})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node to be seen elsewhere", func() error { _, err := b.Get(ctx, "acme"); return err })
	b.Deafen()
	if _, err := a.Patch(ctx, "acme", map[string]any{"content": map[string]any{"v": 7}}, hubmesh.Condition{}); err != nil {
		t.Fatal(err)
	}
	if err := b.Synced(); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Get(ctx, "acme"); err != nil || got.Version != n.Version {
		t.Errorf("it is at version %d: %v; this control no longer shows the incident", got.Version, err)
	}
}

// eventually tries again until something holds, for as long as a change takes at the very most.
func eventually(t *testing.T, what string, holds func() error) {
	t.Helper()
	end := time.Now().Add(20 * time.Second)
	for {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited for %s: %v", what, err)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// AC-R1, CF-7
func TestAGrantAndItsRevocationByAnotherProcessCountHere(t *testing.T) {
	_, url := database(t)
	a, ctx := share(t, url)
	b, _ := share(t, url)
	if err := a.Grant(hubmesh.AsSystem(t.Context()), "", "admin", "Admin"); err != nil {
		t.Fatal(err)
	}
	for path, kind := range map[string]string{"acme": "Space"} {
		if _, err := a.Create(ctx, path, kind, nil); err != nil {
			t.Fatal(err)
		}
	}
	bob := hubmesh.As(t.Context(), "bob")
	if _, err := b.Get(bob, "acme"); err == nil {
		t.Fatal("bob reads without a grant")
	}
	if err := a.Grant(ctx, "acme", "bob", "Viewer"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the grant to count", func() error { _, err := b.Get(bob, "acme"); return err })
	w, err := b.Watch(bob, "acme", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	await(t, w, 1)
	assignments, err := a.Query(ctx, "path:acme/_Access scope:subtree nodeType:AccessAssignment")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range assignments {
		if string(n.Path) == "acme/_Access/bob_Access" {
			if err := a.Delete(ctx, string(n.Path), false); err != nil {
				t.Fatal(err)
			}
		}
	}
	next, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, errors.New("the watch goes on"))
	defer cancel()
	var f *message.Failure
	if _, err := w.Next(next); !errors.As(err, &f) || f.Type != message.Unauthorized {
		t.Errorf("after the revocation: %v", err)
	}
}

// issue 4: a commit whose expected version lost is merged anew, with a condition it is refused
func TestWritesOfTwoProcessesToOneNodeAreMergedAndNoneIsLost(t *testing.T) {
	_, url := database(t)
	a, ctx := share(t, url)
	b, _ := share(t, url)
	if err := a.Grant(hubmesh.AsSystem(t.Context()), "", "admin", "Admin"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Create(ctx, "acme", "Space", map[string]any{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the grant to count", func() error { _, err := b.Get(ctx, "acme"); return err })
	const each = 20
	var wg sync.WaitGroup
	for i, m := range []*hubmesh.Mesh{a, b} {
		wg.Go(func() {
			for k := range each {
				for {
					_, err := m.Patch(ctx, "acme", map[string]any{"content": map[string]any{fmt.Sprintf("p%d-%d", i, k): true}}, hubmesh.Condition{})
					if errors.As(err, new(*store.ConflictError)) {
						continue // lost three times in a row: the caller's to try again
					}
					if err != nil {
						t.Error(err)
					}
					break
				}
			}
		})
	}
	wg.Wait()
	n, err := a.Get(ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "both to hold everything", func() error {
		var members map[string]any
		for _, m := range []*hubmesh.Mesh{a, b} {
			if n, err = m.Get(ctx, "acme"); err != nil {
				return err
			}
			if err := n.Content.Decode(&members); err != nil {
				return err
			}
			if len(members) != 2*each {
				return fmt.Errorf("version %d has %d members", n.Version, len(members))
			}
		}
		return nil
	})
	var conflict *store.ConflictError
	if _, err := b.Patch(ctx, "acme", map[string]any{"name": "late"}, hubmesh.Condition{Version: n.Version - 1}); !errors.As(err, &conflict) {
		t.Errorf("an old condition: %v", err)
	}
}

// storage.md §6: what was missed while the database was away is found
func TestAfterTheDatabaseWasAwayEveryProcessShowsWhatIsStored(t *testing.T) {
	s, url := database(t)
	a, ctx := share(t, url)
	b, _ := share(t, url)
	if err := a.Grant(hubmesh.AsSystem(t.Context()), "", "admin", "Admin"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Create(ctx, "acme", "Space", nil); err != nil {
		t.Fatal(err)
	}
	var w *hubmesh.Watch
	eventually(t, "a watch", func() (err error) { w, err = b.Watch(ctx, "acme", 0); return err })
	defer w.Close()
	await(t, w, 1)
	for round := range 2 {
		s.Kill()
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
		var n hubmesh.Node
		eventually(t, "a write", func() (err error) {
			n, err = a.Patch(ctx, "acme", map[string]any{"name": fmt.Sprint("after ", round)}, hubmesh.Condition{})
			return err
		})
		await(t, w, n.Version)
	}
}
