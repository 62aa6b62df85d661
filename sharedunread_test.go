package hubmesh_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh"
	"github.com/hubmesh/hubmesh/internal/store"
)

// hears tells when a line with a text is logged.
type hears struct {
	slog.Handler
	text string
	said chan struct{} // capacity 1
}

func (s *hears) Enabled(context.Context, slog.Level) bool { return true }

func (s *hears) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, s.text) {
		select {
		case s.said <- struct{}{}:
		default:
		}
	}
	return nil
}

// AC-R1, issue 4: a change of an assignment counts also where its row can not be read at first
func TestARowOfAnAssignmentThatCanNotBeReadAtFirstIsReadAgainAndNotHonouredAsItWas(t *testing.T) {
	_, at := database(t)
	a, ctx := share(t, at)
	l, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	if _, err := l.Exec(t.Context(), `create role other login superuser; grant all on all tables in schema public to other`); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("other")
	log := &hears{Handler: slog.DiscardHandler, text: "can not be read; it is tried again", said: make(chan struct{}, 1)}
	b, err := hubmesh.New(hubmesh.Options{Postgres: u.String(), Logger: slog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := a.Grant(hubmesh.AsSystem(t.Context()), "", "admin", "Admin"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Create(ctx, "acme", "Space", nil); err != nil {
		t.Fatal(err)
	}
	alice := hubmesh.As(t.Context(), "alice")
	for name, withdraw := range map[string]func() error{
		"changed": func() error {
			_, err := a.Patch(ctx, "acme/_Access/alice_Access", map[string]any{"content": map[string]any{"roles": []any{}}}, hubmesh.Condition{})
			return err
		},
		"deleted meanwhile": func() error { // the row is gone when it can be read again
			_, err := a.Patch(ctx, "acme/_Access/alice_Access", map[string]any{"name": "n"}, hubmesh.Condition{})
			if err != nil {
				return err
			}
			<-log.said
			log.said <- struct{}{}
			return a.Delete(ctx, "acme/_Access/alice_Access", false)
		},
	} {
		if err := a.Grant(ctx, "acme", "alice", "Viewer"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the grant to count", func() error { _, err := b.Get(alice, "acme"); return err })
		if _, err := l.Exec(t.Context(), "alter role other nosuperuser; revoke select on mesh_nodes from other"); err != nil {
			t.Fatal(err)
		}
		if err := withdraw(); err != nil {
			t.Fatal(name, err)
		}
		<-log.said // it has been tried
		if _, err := l.Exec(t.Context(), "grant select on mesh_nodes to other"); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+": the end of the grant to count", func() error {
			if _, err := b.Get(alice, "acme"); !errors.As(err, new(*store.NotFoundError)) {
				return fmt.Errorf("alice is answered %v", err)
			}
			return nil
		})
	}
}
