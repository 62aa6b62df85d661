package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
)

// insertX is a create by a program that is not ours, which gives the least version there is.
const insertX = `insert into mesh_nodes (path, main_node, folded, version, name) values ('acme/x', 'acme/x', '', 1, 'new')`

// lived makes a store with acme/x, at version 3.
func lived(t *testing.T, setup ...string) (string, *postgres.Store) {
	t.Helper()
	url := database(t)
	for _, text := range setup {
		if err := rawly(t, url, text); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, postgres.Options{URL: url})
	space(t, s, "acme")
	must(t, s, create("acme/x", 1))
	must(t, s, update("acme/x", 2))
	must(t, s, update("acme/x", 3))
	return url, s
}

// waiting runs a statement of another program, and returns once it waits for a lock.
func waiting(t *testing.T, url, text string, before ...string) chan error {
	t.Helper()
	conn, watch := stranger(t, url), stranger(t, url)
	for _, b := range before {
		exec(t, conn, b)
	}
	pid := conn.PgConn().PID()
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), text)
		if conn.PgConn().TxStatus() == 'T' {
			_, end := conn.Exec(context.Background(), "commit")
			err = errors.Join(err, end)
		}
		ended <- err
	}()
	for {
		var waits bool
		if err := watch.QueryRow(t.Context(), "select coalesce((select wait_event_type = 'Lock' from pg_stat_activity where pid = $1), false)", pid).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		if waits {
			return ended
		}
		select {
		case err := <-ended:
			t.Fatalf("%s waited for nothing: %v", text, err)
		default:
			runtime.Gosched()
		}
	}
}

// history is what a path has had, oldest first.
func history(t *testing.T, s *postgres.Store, path node.Path) (lines []string) {
	t.Helper()
	infos, err := s.Versions(t.Context(), path, store.VersionPage{})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(infos)
	for _, i := range infos {
		lines = append(lines, fmt.Sprint(i.Version, " ", i.Kind, " ", i.Name))
	}
	return lines
}

// firstLife is the history of a first life of acme/x that a program deleted.
var firstLife = []string{"1 created acme/x v1", "2 updated acme/x v2", "3 updated acme/x v3", "4 deleted acme/x v3"}

// same compares the history of acme/x, and checks that the store's own writes go on above it, without losing any of it.
func same(t *testing.T, s *postgres.Store, want ...string) {
	t.Helper()
	want = append(slices.Clone(firstLife), want...)
	if got := history(t, s, "acme/x"); !slices.Equal(got, want) {
		t.Errorf("history\n got %q\nwant %q", got, want)
	}
	n, err := s.Read(t.Context(), "acme/x")
	if err != nil {
		t.Fatal(err)
	}
	must(t, s, update("acme/x", n.Version+1))
	must(t, s, remove("acme/x", n.Version+2))
	want = append(want, fmt.Sprint(n.Version+1, " updated acme/x v", n.Version+1), fmt.Sprint(n.Version+2, " deleted acme/x v", n.Version+1))
	if got := history(t, s, "acme/x"); !slices.Equal(got, want) {
		t.Errorf("history after more writes\n got %q\nwant %q", got, want)
	}
	must(t, s, create("acme/x", n.Version+3))
}

// data §2.3, data §1.3: versions rise over all lives of a path
func TestAnInsertOfAnotherProgramThatWaitedForADeletionStandsAboveIt(t *testing.T) {
	t.Parallel()
	t.Run("in read committed", func(t *testing.T) {
		t.Parallel()
		url, s := lived(t)
		c, p := changes(t, s)
		gone := stranger(t, url)
		exec(t, gone, "begin; delete from mesh_nodes where path = 'acme/x'")
		inserted := waiting(t, url, insertX)
		exec(t, gone, "commit")
		if err := <-inserted; err != nil {
			t.Fatal(err)
		}
		if got, want := follow(t, c, p), []string{`deleted acme/x 4 Task ""`, `created acme/x 5  ""`}; !slices.Equal(got, want) {
			t.Errorf("change rows %q", got)
		}
		same(t, s, "5 created new")
	})
	t.Run("by one of ours", func(t *testing.T) {
		t.Parallel()
		url, s := lived(t)
		l := lock(t, url)
		if _, err := l.conn.Exec(t.Context(), postgres.DeleteText, postgres.RemoveArgs(remove("acme/x", 4))...); err != nil {
			t.Fatal(err)
		}
		inserted := waiting(t, url, insertX)
		l.exec("commit")
		if err := <-inserted; err != nil {
			t.Fatal(err)
		}
		same(t, s, "5 created new")
	})
	t.Run("where its snapshot is older it is ended, to be made again", func(t *testing.T) {
		t.Parallel()
		for _, level := range []string{"repeatable read", "serializable"} {
			url, s := lived(t)
			gone := stranger(t, url)
			exec(t, gone, "begin; delete from mesh_nodes where path = 'acme/x'")
			inserted := waiting(t, url, insertX, "begin isolation level "+level, "select from mesh_nodes limit 1")
			exec(t, gone, "commit")
			var fault *pgconn.PgError
			if err := <-inserted; !errors.As(err, &fault) || fault.Code != "40001" {
				t.Errorf("%s: %v", level, err)
			}
			if err := rawly(t, url, "begin isolation level "+level+";"+insertX+";commit"); err != nil {
				t.Error(err)
			}
			same(t, s, "5 created new")
		}
	})
	t.Run("the control: minted before the wait, it is below", func(t *testing.T) {
		t.Parallel()
		url, s := lived(t, "alter table mesh_nodes disable trigger mesh_foreign_inserted")
		gone := stranger(t, url)
		exec(t, gone, "begin; delete from mesh_nodes where path = 'acme/x'")
		inserted := waiting(t, url, insertX)
		exec(t, gone, "commit")
		if n, err := s.Read(t.Context(), "acme/x"); <-inserted != nil || err != nil && !errors.As(err, new(*store.NotFoundError)) || n.Version > 4 {
			t.Fatal("this control no longer shows the fault", n, err)
		}
	})
}

// data §2.3, data §1.3
func TestATruncationIsADeletionOfEverything(t *testing.T) {
	t.Parallel()
	t.Run("what comes after it stands above it", func(t *testing.T) {
		t.Parallel()
		url, s := lived(t)
		must(t, s, create("acme/y", 7))
		if err := rawly(t, url, "truncate mesh_nodes"); err != nil {
			t.Fatal(err)
		}
		var gone *store.NotFoundError
		if _, err := s.Read(t.Context(), "acme/y"); !errors.As(err, &gone) || gone.LastVersion != 8 {
			t.Error(err)
		}
		var low *store.ConflictError
		if err := <-answer(s, create("acme/x", 1)); !errors.As(err, &low) || low.Actual != 4 {
			t.Errorf("a create at 1: %v", err)
		}
		if err := rawly(t, url, insertX); err != nil {
			t.Fatal(err)
		}
		same(t, s, "5 created new")
	})
	t.Run("an old snapshot, which does not see all that goes, is refused", func(t *testing.T) {
		t.Parallel()
		url, _ := lived(t)
		if err := rawly(t, url, "begin isolation level repeatable read; truncate mesh_nodes; commit"); err == nil {
			t.Error("it is accepted")
		}
	})
	t.Run("the control: without the trigger the count begins anew", func(t *testing.T) {
		t.Parallel()
		url, s := lived(t, "alter table mesh_nodes disable trigger mesh_truncating")
		if err := rawly(t, url, "truncate mesh_nodes"); err != nil {
			t.Fatal(err)
		}
		must(t, s, create("acme/x", 1))
		if got := history(t, s, "acme/x"); len(got) != 3 || got[1] != got[0] && got[0] != "1 created acme/x v1" {
			t.Fatal("this control no longer shows the fault", got)
		}
	})
}

// past leaves acme/x at version 1 and with the history of an earlier life, as a program that no trigger sees does.
func past(t *testing.T) (string, *postgres.Store) {
	t.Helper()
	url, s := lived(t)
	must(t, s, remove("acme/x", 4))
	conn := stranger(t, url)
	exec(t, conn, "set session_replication_role = replica")
	exec(t, conn, "delete from mesh_tombstones")
	exec(t, conn, `insert into mesh_nodes (path, main_node, folded, version, name, node_type) values ('acme/x', 'acme/x', E'acme\x01x', 1, 'new', 'Task')`)
	return url, s
}

// data §1.3: a node can be changed and deleted whatever its history holds
func TestANodeBelowAnEarlierLifeIsLiftedAboveItAndLosesNoHistory(t *testing.T) {
	t.Parallel()
	for what, w := range map[string]store.Write{"an update": update("acme/x", 2), "a deletion": remove("acme/x", 2)} {
		t.Run(what+" of ours", func(t *testing.T) {
			t.Parallel()
			_, s := past(t)
			must(t, s, create("acme/other", 1))
			c, p := changes(t, s)
			results, err := s.Commit(t.Context(), []store.Write{update("acme/other", 2), w})
			var stale *store.ConflictError
			if err != nil || results[0].Err != nil || !errors.As(results[1].Err, &stale) || stale.Actual != 5 {
				t.Fatal(results, err)
			}
			if got, want := follow(t, c, p), []string{`updated acme/x 5 Task ""`, fmt.Sprintf(`updated acme/other 2 Task %q`, s.Origin())}; !slices.Equal(got, want) {
				t.Errorf("change rows %q", got)
			}
			same(t, s, "5 created new")
		})
	}
	t.Run("an update of another program", func(t *testing.T) {
		t.Parallel()
		url, s := past(t)
		if err := rawly(t, url, "update mesh_nodes set name = 'newer' where path = 'acme/x'"); err != nil {
			t.Fatal(err)
		}
		same(t, s, "5 created new", "6 updated newer")
	})
	t.Run("a deletion of another program", func(t *testing.T) {
		t.Parallel()
		url, s := past(t)
		if err := rawly(t, url, "delete from mesh_nodes where path = 'acme/x'"); err != nil {
			t.Fatal(err)
		}
		if err := rawly(t, url, insertX); err != nil {
			t.Fatal(err)
		}
		same(t, s, "5 created new", "6 deleted new", "7 created new")
	})
	t.Run("the control: kept as it is, its version is taken", func(t *testing.T) {
		t.Parallel()
		url, _ := past(t)
		var fault *pgconn.PgError
		err := rawly(t, url, "insert into mesh_node_history (path, main_node, version, kind) select path, main_node, version, kind from mesh_nodes where path = 'acme/x'")
		if !errors.As(err, &fault) || fault.ConstraintName != "mesh_node_history_pkey" {
			t.Fatal("this control no longer shows the fault", err)
		}
	})
}
