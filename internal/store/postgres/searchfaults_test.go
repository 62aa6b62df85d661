package postgres_test

import (
	"fmt"
	"testing"

	"github.com/hubmesh/hubmesh/internal/store/postgres"
	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
)

// storage.md §6; issue 4: the index ends equal after each fault of its server
func TestTheTextIndexIsThatOfItsNodesAfterCrashesAPromotionAndARestoreOfTheServer(t *testing.T) {
	t.Parallel()
	own := func() *pgtest.Server {
		s, err := pgtest.Start() // with fsync: a crash is one
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	first := own()
	url, err := first.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := proxied(t, first)
	s := open(t, postgres.Restless(postgres.Options{URL: p.Through(url), Origin: "a"}))
	space(t, s, "acme")
	r := newTexter(7)
	fill(t, s)
	settled(t, s)
	// Writes go on until the index has some of them, and not all.
	write := func(n int) {
		t.Helper()
		eventually(t, "the server", func() error { return s.Ready(t.Context()) })
		for range n {
			r.scribble(t.Context(), t, s)
		}
	}
	same := func(after string) {
		t.Helper()
		check := func() {
			for range 25 {
				alike(t, s, whole(r.query()))
			}
		}
		eventually(t, "a read", func() error { _, err := s.Search(t.Context()); return err })
		check()
		write(10)
		check()
		settled(t, s)
		check()
		eventually(t, "a read", func() error {
			rows, err := s.Query(t.Context(), "select n.path, s.path from mesh_nodes n full join mesh_search s on s.path = n.path and s.version = n.version where n.path is null or s.path is null")
			if err != nil {
				return err
			}
			defer rows.Close()
			if rows.Next() {
				t.Errorf("after %s the index has other rows than there are nodes", after)
			}
			return rows.Err()
		})
	}
	for round := range 2 {
		write(60)
		first.Kill()
		if err := first.Run(); err != nil {
			t.Fatal(err)
		}
		same(fmt.Sprint("crash ", round))
	}

	standby, err := first.Standby()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = standby.Close() })
	write(30)
	first.Kill() // some of the writes may be lost with it
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Lead(standby)
	same("a promotion")

	other := own()
	write(30)
	if err := other.Restore(t.Context(), standby, url); err != nil {
		t.Fatal(err)
	}
	p.Lead(other)
	same("a restore on another server")

	dump, err := other.Dump(url)
	if err != nil {
		t.Fatal(err)
	}
	write(30)
	if err := other.Load(url, dump); err != nil {
		t.Fatal(err)
	}
	same("a restore into the same database")
}
