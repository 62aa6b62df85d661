package hubmesh_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh"
)

// AC-R1: a grant goes with its node, whichever process makes the next one
func TestAGrantThatOneProcessDeletedWithItsNodeDoesNotOpenTheNextOneThatAnotherMakesThere(t *testing.T) {
	_, url, a, b, ctx := pair(t)
	if _, err := a.Create(ctx, "acme", "Space", nil); err != nil {
		t.Fatal(err)
	}
	l, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	alice := hubmesh.As(t.Context(), "alice")
	for _, path := range []string{"acme/x", "acme/x/y"} { // what is made anew; below what is gone there was none before
		if _, err := a.Create(ctx, "acme/x", "", map[string]any{}); err != nil {
			t.Fatal(err)
		}
		if err := a.Grant(ctx, "acme/x", "alice", "Viewer"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the grant to count", func() error { _, err := b.Get(alice, "acme/x"); return err })
		// b has to connect again before it can be told.
		if _, err := l.Exec(t.Context(), "select pg_terminate_backend(pid) from pg_stat_activity where application_name in ('hubmesh listen', 'hubmesh feed')"); err != nil {
			t.Fatal(err)
		}
		if err := a.Delete(ctx, "acme/x", true); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Create(ctx, path, "", map[string]any{}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Get(alice, path); err == nil {
			t.Errorf("alice reads the new '%s'", path)
		}
		if err := b.Delete(ctx, path, true); err != nil {
			t.Fatal(err)
		}
	}
}

// AC-R1, issue 4: where changes may have been missed, permissions are looked up before anything else
func TestAProcessThatLooksEverythingUpAnewShowsNothingNewByGrantsOfBefore(t *testing.T) {
	_, _, a, b, ctx := pair(t)
	if _, err := a.Create(ctx, "acme", "Space", map[string]any{"s": "old"}); err != nil {
		t.Fatal(err)
	}
	if err := a.Grant(ctx, "acme", "alice", "Viewer"); err != nil {
		t.Fatal(err)
	}
	alice := hubmesh.As(t.Context(), "alice")
	eventually(t, "the grant to count", func() error { _, err := b.Get(alice, "acme"); return err })
	if err := b.Synced(); err != nil {
		t.Fatal(err)
	}
	b.Deafen() // it misses what comes now
	if err := a.Delete(ctx, "acme/_Access/alice_Access", false); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Patch(ctx, "acme", map[string]any{"content": map[string]any{"s": "SECRET"}}, hubmesh.Condition{}); err != nil {
		t.Fatal(err)
	}
	looked := false
	b.Reset(func() {
		looked = true
		if n, err := b.Get(alice, "acme"); err != nil || n.Content.Text() != `{"s":"old"}` {
			t.Errorf("while the assignments are read alice is shown %s: %v", n.Content.Text(), err)
		}
	})
	if !looked {
		t.Error("the assignments were not read")
	}
	if _, err := b.Get(alice, "acme"); err == nil {
		t.Error("alice reads on")
	}
	if n, err := b.Get(ctx, "acme"); err != nil || n.Content.Text() != `{"s":"SECRET"}` { // the control: rows are looked up, too
		t.Errorf("%s: %v", n.Content.Text(), err)
	}
}
