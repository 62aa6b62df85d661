package hubmesh_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh"
	"github.com/hubmesh/hubmesh/internal/access"
)

// edge §2.3
// Of the last two Admins two processes take only one away, also where both are asked at the same moment: the second
// one is not admitted before the first one's change is made and counts.
func TestTwoProcessesTakeOnlyOneOfTheLastTwoAdminsAway(t *testing.T) {
	_, url := database(t)
	a, _ := share(t, url)
	b, _ := share(t, url)
	if _, err := a.AdminToken(t.Context(), filepath.Join(t.TempDir(), "token")); err != nil {
		t.Fatal(err)
	}
	if err := a.IssueToken(t.Context(), "carl"); err != nil {
		t.Fatal(err)
	}
	if err := a.Grant(hubmesh.AsSystem(t.Context()), "", "carl", "Admin"); err != nil {
		t.Fatal(err)
	}
	if err := b.Synced(); err != nil {
		t.Fatal(err)
	}
	// a's deletion is admitted and waits for its row, which another program holds.
	l, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	tx, err := l.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "select 1 from mesh_nodes where path = '_Access/admin_Access' for update"); err != nil {
		t.Fatal(err)
	}
	first, second := make(chan error, 1), make(chan error, 1)
	carl, admin := hubmesh.As(t.Context(), "carl"), hubmesh.As(t.Context(), "admin")
	go func() { first <- a.Delete(carl, "_Access/admin_Access", false) }()
	probe, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close(context.Background())
	waits := func(n int) func() error {
		return func() error {
			var held, waiting int
			if err := probe.QueryRow(t.Context(), "select count(*) filter (where granted), count(*) filter (where not granted) from pg_locks where locktype = 'advisory' and objid = $1", hubmesh.AloneLock).Scan(&held, &waiting); err != nil {
				return err
			}
			if held != 1 || waiting != n {
				return errors.New("not yet")
			}
			return nil
		}
	}
	eventually(t, "the first process to decide", waits(0))
	go func() { second <- b.Delete(admin, "_Access/carl_Access", false) }()
	eventually(t, "the second process to wait", waits(1))
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-first; err != nil {
		t.Errorf("the first: %v", err)
	}
	var last *access.LastAdminError
	var denied *access.DeniedError
	if err := <-second; !errors.As(err, &last) && !errors.As(err, &denied) {
		t.Errorf("the second: %v", err)
	}
	if _, err := b.Get(carl, "_Access/carl_Access"); err != nil {
		t.Errorf("nobody is Admin: %v", err)
	}
}
