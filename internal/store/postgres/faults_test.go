package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	neturl "net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
)

var at = time.Date(2026, 6, 26, 10, 0, 0, 0, time.UTC)

func sample(path string, version int64) node.Node {
	return node.Node{Path: node.Path(path), NodeType: "Task", Name: fmt.Sprint(path, " v", version), State: node.StateActive, Version: version,
		Content: node.RawContent(fmt.Sprintf(`{"v":%d.0}`, version)), CreatedAt: at, CreatedBy: "emma", ModifiedAt: at.Add(time.Duration(version) * time.Second), ModifiedBy: "paul"}
}

func create(path string, version int64) store.Write {
	return store.Write{Op: store.OpCreate, Node: sample(path, version)}
}

func update(path string, version int64) store.Write {
	return store.Write{Op: store.OpUpdate, Node: sample(path, version), Expected: version - 1}
}

func remove(path string, version int64) store.Write {
	return store.Write{Op: store.OpDelete, Node: node.Node{Path: node.Path(path), Version: version, ModifiedAt: at, ModifiedBy: "paul"}, Expected: version - 1}
}

func must(t testing.TB, s store.Store, batch ...store.Write) {
	t.Helper()
	results, err := s.Commit(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Err != nil {
			t.Fatalf("%s: %v", batch[i].Node.Path, r.Err)
		}
	}
}

func space(t testing.TB, s store.Store, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := s.EnsurePartition(t.Context(), name, "test"); err != nil {
			t.Fatal(err)
		}
	}
}

func proxied(t testing.TB, on *pgtest.Server) *pgtest.Proxy {
	t.Helper()
	p, err := on.Proxy()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// fault 30
// storage.md §4: after a connection error the outcome is unknown
func TestACommitWhoseAnswerIsLostIsAnsweredAsWhatItIs(t *testing.T) {
	t.Parallel()
	for what, last := range map[string]store.Write{"a create": create("acme/new", 1), "an update": update("acme/old", 2), "a delete": remove("acme/old", 2)} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := proxied(t, server)
			s := open(t, postgres.Options{URL: p.Through(database(t))})
			space(t, s, "acme")
			must(t, s, create("acme/old", 1))
			var mu sync.Mutex
			var told []store.Change
			defer s.Subscribe(func(c store.Change) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, c)
			})()
			answered := make(chan struct{})
			p.Hold(func(b []byte) bool { // the tag of our statement, and ReadyForQuery: the server has committed
				match := bytes.Contains(b, []byte("Z\x00\x00\x00\x05I")) && bytes.Contains(b, []byte("SELECT 1\x00"))
				if match {
					close(answered)
				}
				return match
			})
			done := make(chan struct{})
			var results []store.Result
			var err error
			go func() {
				defer close(done)
				results, err = s.Commit(context.Background(), []store.Write{last})
			}()
			<-answered
			p.Cut()
			<-done
			if err != nil || results[0].Err != nil {
				t.Fatalf("%+v %v", results, err)
			}
			infos, err := s.Versions(t.Context(), last.Node.Path, store.VersionPage{})
			if err != nil || infos[0].Version != last.Node.Version {
				t.Fatalf("%+v %v", infos, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(told) != 1 || told[0].Version != last.Node.Version {
				t.Errorf("subscribers were told %+v", told)
			}
			if last.Op == store.OpDelete && results[0].Node.Name != "acme/old v1" {
				t.Errorf("the removed node is %+v", results[0].Node)
			}
		})
	}
}

func TestACommitThatAnotherProcessWonIsAConflictAlsoWhenAnAnswerWasLost(t *testing.T) {
	t.Parallel()
	p := proxied(t, server)
	url := database(t)
	a, b := open(t, postgres.Options{URL: p.Through(url)}), open(t, postgres.Options{URL: url})
	space(t, a, "acme")
	must(t, a, create("acme/x", 1))
	done := make(chan store.Result)
	w := update("acme/x", 2)
	w.Node.Name = "the other one"
	p.Swallow(true) // the batch of a never arrives
	go func() {
		results, err := a.Commit(context.Background(), []store.Write{w})
		if err != nil {
			t.Error(err)
			results = make([]store.Result, 1)
		}
		done <- results[0]
	}()
	must(t, b, update("acme/x", 2))
	p.Swallow(false)
	p.Cut()
	var conflict *store.ConflictError
	if r := <-done; !errors.As(r.Err, &conflict) || conflict.Actual != 2 {
		t.Errorf("%+v", r)
	}
	if n, err := b.Read(t.Context(), "acme/x"); err != nil || n.Name != "acme/x v2" {
		t.Errorf("%+v %v", n, err)
	}
}

// issue 4: server killed and restarted under load
func TestWhatWasAcknowledgedIsThereAfterTheServerWasKilled(t *testing.T) {
	t.Parallel()
	own, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	url, err := own.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, postgres.Options{URL: url})
	space(t, s, "acme")
	const writers = 8
	acked := make([]int64, writers)
	stop := make(chan struct{})
	var work sync.WaitGroup
	progress := make(chan struct{}, 1<<16)
	for i := range writers {
		path := fmt.Sprint("acme/n", i)
		must(t, s, create(path, 1))
		acked[i] = 1
		work.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				results, err := s.Commit(context.Background(), []store.Write{update(path, acked[i]+1)})
				var unknown *store.OutcomeUnknownError
				switch {
				case err != nil:
					var away *store.UnavailableError
					if !errors.As(err, &away) || !away.Transient {
						t.Errorf("%s: %v", path, err)
						return
					}
				case errors.As(results[0].Err, &unknown):
					n, err := s.Read(context.Background(), node.Path(path))
					if err == nil {
						acked[i] = n.Version
					}
				case results[0].Err != nil:
					t.Errorf("%s at %d: %v", path, acked[i], results[0].Err)
					return
				default:
					acked[i]++
					progress <- struct{}{}
				}
			}
		})
	}
	for range 4 {
		for range 200 {
			<-progress
		}
		own.Kill()
		if err := own.Run(); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		<-progress
	}
	close(stop)
	work.Wait()
	for i, version := range acked {
		path := node.Path(fmt.Sprint("acme/n", i))
		n, err := s.Read(t.Context(), path)
		if err != nil || n.Version != version {
			t.Errorf("%s: acknowledged %d, stored %d: %v", path, version, n.Version, err)
		}
		infos, err := s.Versions(t.Context(), path, store.VersionPage{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for k, info := range infos {
			if info.Version != version-int64(k) {
				t.Fatalf("%s: version %d stands at %d", path, info.Version, k)
			}
		}
	}
}

// issue 4: two processes migrating at once
func TestOfSeveralProcessesThatStartTogetherOneMigrates(t *testing.T) {
	t.Parallel()
	url, err := server.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	u, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	// Migrating waits for another process however little the database lets others wait.
	if err := rawly(t, url, "alter database \""+strings.Trim(u.Path, "/")+"\" set lock_timeout = '1ms'"); err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	for range 6 {
		work.Go(func() {
			s, err := postgres.Open(context.Background(), postgres.Options{URL: url, Log: quiet(), Readers: 2})
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.EnsurePartition(context.Background(), "acme", ""); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
}

// storage.md §4
func TestARowThatTheServerRefusesFailsAlone(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Options{})
	space(t, s, "acme")
	must(t, s, create("acme/a", 1))
	bad := create("acme/bad", 1)
	bad.Node.NodeType = strings.Repeat("x", 1025)
	results, err := s.Commit(t.Context(), []store.Write{update("acme/a", 2), bad, create("acme/b", 1)})
	var row *store.RowError
	if err != nil || results[0].Err != nil || results[2].Err != nil || !errors.As(results[1].Err, &row) {
		t.Fatalf("%+v %v", results, err)
	}
}

// data §1.3
func TestAContentIsKeptAsItWasWritten(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Options{})
	space(t, s, "acme")
	const text = `{ "b": 1.0, "a": 1e400, "z": -0, "u": "\u0000\ud800", "b2": 12345678901234567890.123456789 }`
	w := create("acme/x", 1)
	w.Node.Content = node.RawContent(text)
	must(t, s, w)
	if n, err := s.Read(t.Context(), "acme/x"); err != nil || n.Content.Text() != text {
		t.Errorf("%s %v", n.Content.Text(), err)
	}
}

// decision 7; bad input: what ends the wait for a synchronous standby acknowledges nothing
func TestAWriteWhoseAnswerWasLostIsAcknowledgedOnlyOnceTheSynchronousStandbyHasIt(t *testing.T) {
	t.Parallel()
	own, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	url, err := own.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, postgres.Options{URL: url})
	space(t, s, "acme")
	exec := func(text string) {
		t.Helper()
		if err := own.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	watch := stranger(t, url)
	var created chan error
	waits := func(since time.Time) (pid int, began time.Time) { // the backend that has begun to wait for the standby
		t.Helper()
		for pid == 0 {
			if len(created) > 0 {
				t.Fatal("it is answered: ", <-created)
			}
			err := watch.QueryRow(t.Context(), `select coalesce(max(pid), 0), coalesce(max(query_start), now()) from pg_stat_activity
where wait_event = 'SyncRep' and application_name = 'hubmesh write' and query_start > $1`, since).Scan(&pid, &began)
			if err != nil {
				t.Fatal(err)
			}
		}
		return pid, began
	}
	exec("alter system set synchronous_standby_names = 'gone'")
	exec("select pg_reload_conf()")
	created = answer(s, create("acme/x", 1))
	waiter, began := waits(time.Time{})
	for _, end := range []string{"pg_cancel_backend", "pg_terminate_backend"} {
		exec(fmt.Sprintf("select %s(%d)", end, waiter))
		waiter, began = waits(began) // it is found written, and waits again
	}
	// Whoever finds it there, and would acknowledge it for that, waits as well.
	settled := make(chan error, 1)
	go func() { settled <- s.Settle(t.Context()) }()
	for n := 0; n < 2; {
		if err := watch.QueryRow(t.Context(), "select count(*) from pg_stat_activity where wait_event = 'SyncRep'").Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	if len(settled) > 0 {
		t.Errorf("it is said to be safe: %v", <-settled)
	}
	exec("alter system reset synchronous_standby_names")
	exec("select pg_reload_conf()")
	if err := errors.Join(<-created, <-settled); err != nil {
		t.Error(err)
	}
}
