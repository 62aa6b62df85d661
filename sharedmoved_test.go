package hubmesh_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh"
	"github.com/hubmesh/hubmesh/internal/store"
)

// CF-7, issue 4
func TestADeletionIsNotLostWhereTheSequenceOfThePositionsWasMoved(t *testing.T) {
	_, url, a, b, ctx := pair(t)
	if _, err := a.Create(ctx, "acme", "Space", nil); err != nil {
		t.Fatal(err)
	}
	conn := func() *pgx.Conn {
		t.Helper()
		l, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close(context.Background()) })
		return l
	}
	locks, does := conn(), conn()
	exec := func(l *pgx.Conn, text string) {
		t.Helper()
		if _, err := l.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	const alices = "acme/_Access/alice_Access"
	alice := hubmesh.As(t.Context(), "alice")
	for name, remove := range map[string]func(path string){
		"by a process": func(path string) {
			if err := a.Delete(ctx, path, false); err != nil {
				t.Fatal(err)
			}
		},
		"by another program": func(path string) { exec(does, "delete from mesh_nodes where path = '"+path+"'") },
	} {
		if _, err := a.Create(ctx, "acme/x", "", map[string]any{}); err != nil {
			t.Fatal(err)
		}
		if err := a.Grant(ctx, "acme", "alice", "Viewer"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the grant to count", func() error { _, err := b.Get(alice, "acme/x"); return err })
		w, err := b.Watch(ctx, "acme/x", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		await(t, w, 1)
		exec(does, "select setval('mesh_changes_pos_seq', 1000000)")
		// Both rows come with one read.
		exec(locks, "begin; lock table mesh_store")
		for _, path := range []string{"acme/x", alices} {
			if _, err := a.Patch(ctx, path, map[string]any{"name": "n"}, hubmesh.Condition{}); err != nil {
				t.Fatal(err)
			}
		}
		exec(does, "select setval('mesh_changes_pos_seq', 1)")
		remove(alices)
		remove("acme/x")
		exec(locks, "rollback")
		if err := b.Synced(); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+": the deletion to be seen", func() error {
			if _, err := b.Get(ctx, "acme/x"); !errors.As(err, new(*store.NotFoundError)) {
				return fmt.Errorf("got %v", err)
			}
			return nil
		})
		if _, err := b.Get(alice, "acme"); !errors.As(err, new(*store.NotFoundError)) {
			t.Errorf("%s: alice, whose grant was deleted, is answered %v", name, err)
		}
		for {
			next, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, errors.New("no frame came"))
			f, err := w.Next(next)
			cancel()
			if err != nil {
				t.Errorf("%s: the stream: %v", name, err)
			}
			if err != nil || f.Kind == hubmesh.Deleted {
				break
			}
		}
	}
}
