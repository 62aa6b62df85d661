package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
)

// levels are what a database may have for its default, beside read committed.
var levels = []string{"repeatable read", "serializable"}

// strict has a database give its connections another isolation than read committed.
func strict(t *testing.T, url, level string) string {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Exec(t.Context(), fmt.Sprintf("alter database %s set default_transaction_isolation = '%s'", config.Database, level)); err != nil {
		t.Fatal(err)
	}
	return url
}

// ways are how the server is reached.
func ways(t *testing.T, f func(t *testing.T, through func(string) string)) {
	t.Run("directly", func(t *testing.T) { t.Parallel(); f(t, func(url string) string { return url }) })
	t.Run("behind a transaction pooler", func(t *testing.T) {
		t.Parallel()
		p, err := server.Pooler("transaction")
		if errors.Is(err, pgtest.ErrNoPooler) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		f(t, p.Through)
	})
}

// data §1.3, issue 4: whatever the defaults of the database are
func TestACreateThatADeletionOvertakesIsRefusedWhateverTheDefaultIsolationIs(t *testing.T) {
	t.Parallel()
	for _, level := range levels {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			ways(t, func(t *testing.T, through func(string) string) {
				url := database(t)
				s := open(t, postgres.Options{URL: through(strict(t, url, level))})
				space(t, s, "acme")
				overtaken(t, url, s)
			})
		})
	}
	t.Run("by one that a URL asks for", func(t *testing.T) {
		t.Parallel()
		url := database(t)
		s := open(t, postgres.Options{URL: url + "&default_transaction_isolation=repeatable%20read"})
		space(t, s, "acme")
		overtaken(t, url, s)
	})
	t.Run("the control: with an older snapshot it stands below the deletion", func(t *testing.T) {
		t.Parallel()
		url := strict(t, database(t), "repeatable read")
		s := open(t, postgres.Options{URL: url})
		space(t, s, "acme")
		must(t, s, create("acme/x", 1))
		l := lock(t, url)
		l.run(postgres.DeleteText, postgres.RemoveArgs(remove("acme/x", 2))...)
		conn, watch := stranger(t, url), stranger(t, url)
		exec(t, conn, "set hubmesh.origin = 'x'")
		exec(t, conn, "begin")
		created := make(chan error, 1)
		go func() {
			_, err := conn.Exec(context.Background(), postgres.CreateText, postgres.CreateArgs(create("acme/x", 1))...)
			if err == nil {
				_, err = conn.Exec(context.Background(), postgres.OvertakenText, []string{"acme/x"}, []int64{1})
			}
			created <- err
		}()
		for waits := false; !waits; {
			if err := watch.QueryRow(t.Context(), "select wait_event_type is not distinct from 'Lock' from pg_stat_activity where pid = $1", conn.PgConn().PID()).Scan(&waits); err != nil {
				t.Fatal(err)
			}
			if len(created) > 0 {
				t.Fatal("it waited for nothing", <-created)
			}
		}
		l.exec("commit")
		if err := <-created; err == nil || !strings.Contains(err.Error(), "40001") {
			exec(t, conn, "commit")
			if n, err := s.Read(t.Context(), "acme/x"); err != nil || n.Version != 1 {
				t.Fatal("this control no longer shows the fault", n, err)
			}
			return
		}
		t.Fatal("this control no longer shows the fault")
	})
}

// overtaken makes a create wait for a deletion that it has not seen.
func overtaken(t *testing.T, url string, s *postgres.Store) {
	t.Helper()
	var got error
	version := int64(1)
	for end := time.Now().Add(20 * time.Second); ; version += 2 {
		must(t, s, create("acme/x", version))
		l := lock(t, url)
		l.run(postgres.DeleteText, postgres.RemoveArgs(remove("acme/x", version+1))...)
		created := answer(s, create("acme/x", version))
		l.parked(1)
		l.exec("commit")
		if got = <-created; !errors.As(got, new(*store.LockedError)) || time.Now().After(end) { // it waits 0.2 s only
			break
		}
	}
	var low *store.ConflictError
	if !errors.As(got, &low) || low.Actual != version+1 {
		t.Errorf("the create: %v", got)
	}
	must(t, s, create("acme/x", version+2))
	must(t, s, update("acme/x", version+3))
	must(t, s, remove("acme/x", version+4))
}

// run makes a statement with arguments.
func (l *locker) run(text string, args ...any) {
	l.t.Helper()
	if _, err := l.conn.Exec(l.t.Context(), text, args...); err != nil {
		l.t.Fatal(err)
	}
}

// issue 4: several processes start at once
func TestProcessesMigrateAtOnceWhateverTheDefaultIsolationIs(t *testing.T) {
	t.Parallel()
	for _, level := range levels {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			ways(t, func(t *testing.T, through func(string) string) {
				url, err := server.Database(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				l := lock(t, strict(t, url, level), fmt.Sprintf("select pg_advisory_xact_lock(%d)", postgres.MigrationLock))
				const processes = 3
				ended := make(chan error, processes)
				for range processes {
					go func() {
						s, err := postgres.Open(context.Background(), postgres.Options{URL: through(url), Log: quiet()})
						if err == nil {
							err = s.Close()
						}
						ended <- err
					}()
				}
				watch := stranger(t, url)
				for waiting := 0; waiting < processes; {
					if err := watch.QueryRow(t.Context(), "select count(*) from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())").Scan(&waiting); err != nil {
						t.Fatal(err)
					}
					if len(ended) > 0 {
						t.Fatal("a start waited for nothing: ", <-ended)
					}
				}
				l.exec("rollback")
				for range processes {
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
	t.Run("the control: with the default a row is not seen that the lock was waited for", func(t *testing.T) {
		t.Parallel()
		url, err := server.Database(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l := lock(t, strict(t, url, "repeatable read"), "select pg_advisory_xact_lock(1)", "create table made (n int)", "insert into made values (1)")
		seen := waiting(t, url, "begin; select pg_advisory_xact_lock(1); insert into made select 2 where not exists (select from made)")
		l.exec("commit")
		if err := <-seen; err != nil {
			t.Fatal(err)
		}
		var rows int
		if err := stranger(t, url).QueryRow(t.Context(), "select count(*) from made").Scan(&rows); err != nil || rows != 2 {
			t.Fatal("this control no longer shows the fault", rows, err)
		}
	})
}

// issue 4: two processes on one database, whatever its default isolation is
func TestWhatSeveralProcessesWriteAtOnceEndsWithoutAFaultWhateverTheDefaultIsolationIs(t *testing.T) {
	t.Parallel()
	for _, level := range levels {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			ways(t, func(t *testing.T, through func(string) string) {
				url := through(strict(t, database(t), level))
				var stores []*postgres.Store
				for range 2 {
					stores = append(stores, open(t, postgres.Options{URL: url}))
				}
				space(t, stores[0], "acme")
				const rounds = 40
				ended := make(chan error, 4)
				for i := range 4 {
					go func() { ended <- contend(stores[i%2], rounds) }()
				}
				for range 4 {
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// contend creates, updates and deletes one node, as others do at once. An error is one that no other writer explains.
func contend(s *postgres.Store, rounds int) error {
	ctx := context.Background()
	for range rounds {
		n, err := s.Read(ctx, "acme/x")
		w := update("acme/x", n.Version+1)
		var missing *store.NotFoundError
		switch {
		case errors.As(err, &missing):
			w = create("acme/x", missing.LastVersion+1)
		case err != nil:
			return err
		case n.Version%3 == 0:
			w = remove("acme/x", n.Version+1)
		}
		results, err := s.Commit(ctx, []store.Write{w})
		if err != nil {
			return err
		}
		err = results[0].Err
		if err != nil && !errors.As(err, new(*store.ConflictError)) && !errors.As(err, new(*store.ExistsError)) && !errors.As(err, &missing) {
			return err
		}
	}
	return nil
}
