package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
	"github.com/hubmesh/hubmesh/internal/store/storetest"
)

// storage.md §5: everything but the listener works through a transaction pooler
func TestBehindATransactionPoolerOurMarkIsOurs(t *testing.T) {
	t.Parallel()
	p, err := server.Pooler("transaction")
	if errors.Is(err, pgtest.ErrNoPooler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	url := database(t)
	s := open(t, postgres.Options{URL: p.Through(url), Origin: "p1"})
	if !s.Pooled() {
		t.Fatal("the pooler was not seen")
	}
	if direct := open(t, postgres.Options{URL: url}); direct.Pooled() {
		t.Fatal("a pooler was seen where there is none")
	}
	space(t, s, "acme")
	c, at := changes(t, s)
	other := stranger(t, p.Through(url)) // shares the pooler's connections
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			path := fmt.Sprint("acme/n", i)
			must(t, s, create(path, 1))
			must(t, s, update(path, 2))
			must(t, s, remove(path, 3))
		})
	}
	work.Wait()
	exec(t, other, "insert into mesh_nodes (path, main_node, folded, version) values ('acme/theirs', 'acme/theirs', '', 1)")
	counts := map[string]int{}
	for _, line := range follow(t, c, at) {
		counts[line[len(line)-4:]]++
	}
	if counts[`"p1"`] != 24 || counts[`k ""`]+counts[` "" `]+counts[`  ""`] != 1 {
		t.Errorf("change rows by origin: %v", counts)
	}
	if _, err := s.Listen(t.Context()); !errors.Is(err, postgres.ErrPooled) {
		t.Errorf("listening through a pooler: %v", err)
	}
	if err := s.Notify(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := s.Prune(t.Context()); err != nil {
		t.Error(err)
	}
	infos, err := s.Versions(t.Context(), "acme/n1", store.VersionPage{})
	if err != nil || len(infos) != 3 {
		t.Error(infos, err)
	}
	if all, err := s.Partitions(t.Context()); err != nil || !slices.ContainsFunc(all, func(p store.Partition) bool { return p.Name == "acme" }) {
		t.Error(all, err)
	}
}

// storage.md §5
func TestThePostgreSQLStoreKeepsTheContractBehindAPooler(t *testing.T) {
	t.Parallel()
	p, err := server.Pooler("transaction")
	if errors.Is(err, pgtest.ErrNoPooler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	storetest.Run(t, func(t testing.TB, o storetest.Options) store.Store {
		return open(t, postgres.Options{URL: p.Through(database(t)), History: o.History, ScanRows: o.ScanRows, ScanBytes: o.ScanBytes})
	})
}
