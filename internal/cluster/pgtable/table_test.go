package pgtable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/membership/tabletest"
	"github.com/hubmesh/hubmesh/internal/cluster/pgtable"
	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
)

var server *pgtest.Server

func TestMain(m *testing.M) {
	var err error
	if server, err = pgtest.Start("fsync=off"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := server.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// database makes a database with the tables of the members.
func database(t *testing.T) string {
	t.Helper()
	url, err := server.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"0001_nodes.sql", "0002_members.sql"} {
		text, err := os.ReadFile("../../store/postgres/migrations/" + step)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, url, string(text))
	}
	return url
}

func exec(t *testing.T, url, text string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), text, args...); err != nil {
		t.Fatal(err)
	}
}

type world struct{ url string }

func open(t *testing.T, url string, changed func()) *pgtable.Table {
	t.Helper()
	table, err := pgtable.New(pgtable.Options{URL: url, Do: func(f func()) { f() }, Changed: changed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	return table
}

func (w world) Client(t *testing.T) membership.Table {
	table := open(t, w.url, func() {})
	if err := table.Judge(); err != nil {
		t.Fatal(err)
	}
	return table
}

func (w world) Age(t *testing.T, e membership.Epoch, by time.Duration) {
	exec(t, w.url, "update mesh_members set beat_at = beat_at - $2::interval where epoch = $1", int64(e), by)
}

// protocol.md §2
func TestTheTableInPostgreSQLKeepsItsRules(t *testing.T) {
	tabletest.Run(t, func(t *testing.T) tabletest.World { return world{database(t)} })
}

func join(t *testing.T, table *pgtable.Table, name string, e membership.Epoch) {
	t.Helper()
	done := make(chan error, 1)
	table.Join(membership.Member{Name: name, Epoch: e, Addr: name}, nil, func(_ *membership.View, err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// protocol.md §2: one transaction with NOTIFY
func TestEachChangeOfTheMembersWakesEverySilo(t *testing.T) {
	url := database(t)
	woken := make(chan struct{}, 100)
	a := open(t, url, func() {})
	open(t, url, func() { woken <- struct{}{} })
	<-woken // it listens
	join(t, a, "a", 1)
	<-woken
	done := make(chan error, 1)
	a.Gone(1, func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	<-woken
}

// protocol.md §2: no verdict of staleness in the first four seconds after a connection was made
func TestAfterItsOwnReconnectATableCallsNobodyStale(t *testing.T) {
	url := database(t)
	a := open(t, url, func() {})
	join(t, a, "a", 1)
	world{url}.Age(t, 1, time.Hour)
	b := open(t, url, func() {})
	rows := func() []membership.Row {
		got := make(chan []membership.Row, 1)
		b.Read(func(rows []membership.Row, err error) {
			if err != nil {
				t.Error(err)
			}
			got <- rows
		})
		return <-got
	}
	if r := rows(); len(r) != 1 || !r[0].Fresh {
		t.Errorf("%+v", r)
	}
	if err := b.Judge(); err != nil {
		t.Fatal(err)
	}
	if r := rows(); len(r) != 1 || r[0].Fresh {
		t.Errorf("the control: %+v", r)
	}
}

// protocol.md trap 18: the count and the change are one transaction
func TestOfTwoSilosThatVoteAgainstEachOtherAtOnceOneStays(t *testing.T) {
	url := database(t)
	a, b := open(t, url, func() {}), open(t, url, func() {})
	for round := range 10 {
		first, second := membership.Epoch(2*round+1), membership.Epoch(2*round+2)
		join(t, a, "a", first)
		join(t, a, "b", second)
		ends := make(chan error, 2)
		a.Vote(membership.Member{Name: "b", Epoch: second}, first, func(err error) { ends <- err })
		b.Vote(membership.Member{Name: "a", Epoch: first}, second, func(err error) { ends <- err })
		refused := 0
		for range 2 {
			if err := <-ends; errors.Is(err, pgtable.ErrNoRow) {
				refused++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		left := make(chan int, 1)
		a.View(func(v *membership.View, err error) {
			if err != nil {
				t.Error(err)
				left <- 0
				return
			}
			left <- len(v.Members())
		})
		if n := <-left; n != 1 || refused != 1 {
			t.Fatalf("%d are left, %d votes were refused", n, refused)
		}
	}
}

// issue 5: a silo that freezes in the middle of a transaction
func TestASiloThatFreezesWithTheLockKeepsTheOthersWaitingForSecondsOnly(t *testing.T) {
	url := database(t)
	p, err := server.Proxy()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	a, b := open(t, p.Through(url), func() {}), open(t, url, func() {})
	if err := a.Judge(); err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{})
	p.Hold(func(b []byte) bool { // the lock is taken, and nobody will give it back
		if !bytes.Contains(b, []byte("SELECT 1\x00")) {
			return false
		}
		close(seen)
		return true
	})
	a.Join(membership.Member{Name: "a", Epoch: 1, Addr: "a"}, nil, func(*membership.View, error) {})
	<-seen
	p.Keep()
	p.Swallow(true)
	began := time.Now()
	for {
		done := make(chan error, 1)
		b.Join(membership.Member{Name: "b", Epoch: 2, Addr: "b"}, nil, func(_ *membership.View, err error) { done <- err })
		if err := <-done; err == nil {
			break
		} else if time.Since(began) > 10*time.Second {
			t.Fatal(err)
		}
	}
	p.Cut()
}
