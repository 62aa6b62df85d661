package postgres_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
)

// resetsOf is how often a process was told that everything may have changed.
func resetsOf(p *process) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resets
}

// awaited writes by one process and waits until the other was told.
func awaited(t *testing.T, by, at *process, version int64) {
	t.Helper()
	must(t, by.store, update("acme/x", version))
	eventually(t, at.name+" to be told", func() error {
		at.mu.Lock()
		defer at.mu.Unlock()
		if at.told["acme/x"] != version {
			return fmt.Errorf("it was told version %d, not %d", at.told["acme/x"], version)
		}
		return nil
	})
}

// storage.md §6: VERIFY
func TestARestoreOnAnotherServerUnderRunningProcessesIsOneReset(t *testing.T) {
	t.Parallel()
	var servers []*pgtest.Server
	for range 2 {
		own, err := pgtest.Start("fsync=off")
		if err != nil {
			t.Fatal(err)
		}
		defer own.Close()
		servers = append(servers, own)
	}
	url, err := servers[0].Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := proxied(t, servers[0])
	a, b := start(t, "a", p.Through(url)), start(t, "b", p.Through(url))
	space(t, a.store, "acme")
	conn := stranger(t, url)
	for range 3000 { // ids that the other server comes to much later
		exec(t, conn, "select pg_current_xact_id()")
	}
	must(t, a.store, create("acme/x", 1))
	awaited(t, a, b, 2)
	before := []int{resetsOf(a), resetsOf(b)}
	if err := servers[1].Restore(t.Context(), servers[0], url); err != nil {
		t.Fatal(err)
	}
	p.Lead(servers[1])
	for i, proc := range []*process{a, b} {
		eventually(t, proc.name+" to be told that everything may have changed", func() error {
			if resetsOf(proc) == before[i] {
				return errors.New("no reset")
			}
			return nil
		})
	}
	awaited(t, a, b, 3)
	settled := []int{resetsOf(a), resetsOf(b)}
	for version := int64(4); version < 12; version += 2 { // each is a read at either
		awaited(t, b, a, version)
		awaited(t, a, b, version+1)
	}
	for i, proc := range []*process{a, b} {
		if n := resetsOf(proc); n != settled[i] || n > before[i]+2 { // one more where a first read came before the proxy's cut was through
			t.Errorf("%s was told %d times, %d of them after it had settled", proc.name, n-before[i], n-settled[i])
		}
	}
	var strange bool
	rows, err := a.store.Query(t.Context(), "select m.system_id <> c.system_identifier from mesh_store m, pg_control_system() c")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if !rows.Next() || rows.Scan(&strange) != nil || strange {
		t.Error("the database is still that of the other server")
	}
}
