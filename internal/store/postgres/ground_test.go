package postgres_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
)

// locker is a session beside the store, in one transaction.
type locker struct {
	t    *testing.T
	conn *pgx.Conn
}

func lock(t *testing.T, url string, statements ...string) *locker {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	l := &locker{t, conn}
	l.exec("begin")
	l.exec("set local hubmesh.origin = 'locker'")
	for _, text := range statements {
		l.exec(text)
	}
	return l
}

func (l *locker) exec(text string) {
	l.t.Helper()
	if _, err := l.conn.Exec(l.t.Context(), text); err != nil {
		l.t.Fatalf("%s: %v", text, err)
	}
}

// parked waits until n statements of the store wait for a lock.
func (l *locker) parked(n int) {
	l.t.Helper()
	for {
		var waiting int
		err := l.conn.QueryRow(l.t.Context(), "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and application_name = 'hubmesh write'").Scan(&waiting)
		if err != nil {
			l.t.Fatal(err)
		}
		if waiting == n {
			return
		}
		l.exec("select pg_stat_clear_snapshot()")
		runtime.Gosched()
	}
}

// taken keeps a create of acme/x/new in its insert: its snapshot and its locks are taken. The row is of another
// partition, so that nothing else waits.
const taken = `insert into mesh_nodes (path, folded, main_node, version) values ('other/lock', E'acme\x01x\x01new', 'other/lock', 1)`

func answer(s *postgres.Store, w store.Write) chan error {
	ended := make(chan error, 1)
	go func() {
		results, err := s.Commit(context.Background(), []store.Write{w})
		if err == nil {
			err = results[0].Err
		}
		ended <- err
	}()
	return ended
}

func grounds(t *testing.T) (url string, a, b *postgres.Store, on store.Write) {
	t.Helper()
	url = database(t)
	o := postgres.Patient(postgres.Options{URL: url}) // a busy machine needs more than a moment between the steps
	a, b = open(t, o), open(t, o)
	space(t, a, "acme", "other")
	must(t, a, create("acme", 1), create("acme/x", 1))
	x, err := a.Read(t.Context(), "acme/x")
	if err != nil {
		t.Fatal(err)
	}
	on = create("acme/x/new", 1)
	on.Ground = store.GroundOf(x)
	return url, a, b, on
}

func there(t *testing.T, s *postgres.Store, path string) bool {
	t.Helper()
	_, err := s.Read(t.Context(), create(path, 1).Node.Path)
	if err != nil && !errors.As(err, new(*store.NotFoundError)) {
		t.Fatal(err)
	}
	return err == nil
}

// data §1.4, architecture.md decision 8
func TestWhoeverHasMarkedAPartitionSeesEveryCreateInIt(t *testing.T) {
	t.Parallel()
	t.Run("a create under way is waited for", func(t *testing.T) {
		t.Parallel()
		url, a, b, on := grounds(t)
		l := lock(t, url, taken)
		created := answer(b, on)
		l.parked(1)
		marked := make(chan error, 1)
		go func() { marked <- a.MarkPartition(context.Background(), "acme", true) }()
		l.parked(2)
		l.exec("rollback")
		if err := <-marked; err != nil {
			t.Fatal(err)
		}
		if !there(t, a, "acme/x/new") {
			t.Error("the create is not seen after the mark")
		}
		if err := <-created; err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a mark that waits for nobody is overtaken: the control", func(t *testing.T) {
		t.Parallel()
		url, a, b, on := grounds(t)
		l := lock(t, url, taken)
		created := answer(b, on)
		l.parked(1)
		if err := rawly(t, url, "update mesh_partitions set deleting = true where name = 'acme'"); err != nil {
			t.Fatal(err)
		}
		if there(t, a, "acme/x/new") {
			t.Fatal("it is there already")
		}
		l.exec("rollback")
		if err := <-created; err != nil || !there(t, a, "acme/x/new") {
			t.Fatal("this control no longer shows the fault", err)
		}
	})
	t.Run("a create that has not come to its partition looks again", func(t *testing.T) {
		t.Parallel()
		url, a, b, on := grounds(t)
		l := lock(t, url, "select from mesh_partitions where name = 'acme' for update")
		created := answer(b, on)
		l.parked(1)
		l.exec("update mesh_partitions set deleting = true where name = 'acme'")
		l.exec("commit")
		var refused *store.PartitionError
		if err := <-created; !errors.As(err, &refused) || refused.Reason != store.ReasonDeleting || there(t, a, "acme/x/new") {
			t.Error(err)
		}
	})
}

// data §1.4
func TestOfACreateAndTheDeletionOfItsGroundOneSeesTheOther(t *testing.T) {
	t.Parallel()
	gone := remove("acme/x", 2)
	gone.Empty = true
	t.Run("the create first", func(t *testing.T) {
		t.Parallel()
		url, a, b, on := grounds(t)
		l := lock(t, url, taken)
		created := answer(b, on)
		l.parked(1)
		deleted := answer(a, gone)
		l.parked(2)
		l.exec("rollback")
		var left *store.NotEmptyError
		if err := <-deleted; !errors.As(err, &left) || left.Below != "acme/x/new" {
			t.Error(err)
		}
		if err := <-created; err != nil || !there(t, a, "acme/x") {
			t.Error(err)
		}
	})
	t.Run("the deletion first", func(t *testing.T) {
		t.Parallel()
		url, a, b, on := grounds(t)
		l := lock(t, url, "select from mesh_nodes where path = 'acme/x' for update") // as the deletion does before it has looked
		created := answer(b, on)
		l.parked(1)
		l.exec("delete from mesh_nodes where path = 'acme/x'")
		l.exec("commit")
		var refused *store.GroundError
		if err := <-created; !errors.As(err, &refused) || refused.Ground != "acme/x" || there(t, a, "acme/x/new") {
			t.Error(err)
		}
	})
	t.Run("the control: without either a node is left without its ground", func(t *testing.T) {
		t.Parallel()
		url, a, b, on := grounds(t)
		on.Ground = store.Ground{}
		l := lock(t, url, taken)
		created := answer(b, on)
		l.parked(1)
		if err := <-answer(a, remove("acme/x", 2)); err != nil {
			t.Fatal(err)
		}
		l.exec("rollback")
		if err := <-created; err != nil || there(t, a, "acme/x") || !there(t, a, "acme/x/new") {
			t.Fatal("this control no longer shows the fault", err)
		}
	})
	t.Run("an update of the ground waits for no create", func(t *testing.T) {
		t.Parallel()
		url, a, b, on := grounds(t)
		l := lock(t, url, taken)
		created := answer(b, on)
		l.parked(1)
		must(t, a, update("acme/x", 2)) // while the create holds its ground
		l.exec("rollback")
		if err := <-created; err != nil {
			t.Error(err)
		}
	})
}

func rawly(t *testing.T, url, text string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), text)
	return err
}
