package hubmesh_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/store"
)

// data §1.4, issue 4: two processes on one database that know nothing of each other
func TestASpaceThatOneProcessDeletesWhileAnotherCreatesBelowItLeavesNothing(t *testing.T) {
	_, url, a, b, ctx := pair(t)
	eventually(t, "the grant to count", func() error {
		_, err := b.Create(ctx, "other", "Space", nil)
		return err
	})
	for _, where := range []string{"acme", "acme/x"} { // what is deleted
		t.Run(where, func(t *testing.T) {
			for _, made := range [][2]string{{"acme", "Space"}, {"acme/x", ""}} {
				if _, err := a.Create(ctx, made[0], made[1], map[string]any{}); err != nil && !errors.As(err, new(*store.ExistsError)) {
					t.Fatal(err)
				}
			}
			eventually(t, "the space to be seen elsewhere", func() error { _, err := b.Get(ctx, "acme/x"); return err })
			// The create stands in its statement, whose view of the database is that of its beginning.
			l, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close(context.Background())
			if _, err := l.Exec(t.Context(), `begin; set local hubmesh.origin = 'test';
insert into mesh_nodes (path, folded, main_node, version) values ('other/lock', E'acme\x01x\x01new', 'other/lock', 1)`); err != nil {
				t.Fatal(err)
			}
			created, deleted := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := b.Create(ctx, "acme/x/new", "", map[string]any{})
				created <- err
			}()
			waiting := func(n int) error {
				var at int
				err := l.QueryRow(t.Context(), "select count(*) from pg_stat_activity, pg_stat_clear_snapshot() where wait_event_type = 'Lock' and application_name = 'hubmesh write'").Scan(&at)
				if err == nil && at < n {
					err = errors.New("it does not wait yet")
				}
				return err
			}
			eventually(t, "the create to be in its statement", func() error { return waiting(1) })
			go func() { deleted <- a.Delete(ctx, where, true) }()
			eventually(t, "the deletion to meet it", func() error {
				if len(deleted) > 0 {
					return nil // it has met nothing
				}
				return waiting(2)
			})
			if _, err := l.Exec(t.Context(), "rollback"); err != nil {
				t.Fatal(err)
			}
			if err := <-deleted; err != nil {
				t.Errorf("the deletion: %v", err)
			}
			var f *message.Failure
			if err := <-created; err != nil && (!errors.As(err, &f) || f.Type != message.ShuttingDown) {
				t.Errorf("the create: %v", err)
			}
			var left string
			if err := l.QueryRow(t.Context(), "select coalesce(string_agg(path, ' '), '') from mesh_nodes where path = $1 or path like $1 || '/%'", where).Scan(&left); err != nil || left != "" {
				t.Errorf("left without a root: %s %v", left, err)
			}
		})
	}
}
