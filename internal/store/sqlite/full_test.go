package sqlite_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/sqlite"
)

// fillUp writes until the store is full and returns what was acknowledged.
func fillUp(t *testing.T, s *sqlite.Store) []store.Write {
	t.Helper()
	var acknowledged []store.Write
	for i := 0; ; i++ {
		if i > 100_000 {
			t.Fatal("it never gets full")
		}
		w := create(fmt.Sprint("acme/n", i), 1)
		results, err := s.Commit(t.Context(), []store.Write{w})
		if err != nil {
			kind(t, err, store.UnavailableFull, "free some space")
			var u *store.UnavailableError
			if errors.As(err, &u) && !u.Transient {
				t.Error("a full disk passes")
			}
			return acknowledged
		}
		if results[0].Err != nil {
			t.Fatal(results[0].Err)
		}
		acknowledged = append(acknowledged, w)
	}
}

func checkAll(t *testing.T, s store.Store, acknowledged []store.Write) {
	t.Helper()
	if len(acknowledged) == 0 {
		t.Fatal("nothing was acknowledged")
	}
	for _, w := range acknowledged {
		n, err := s.Read(t.Context(), w.Node.Path)
		if err != nil || n.Content != w.Node.Content {
			t.Fatalf("%s: %+v, %v", w.Node.Path, n, err)
		}
	}
	count := 0
	for _, err := range s.Descendants(t.Context(), "acme") {
		if err != nil {
			t.Fatal(err)
		}
		count++
	}
	if count != len(acknowledged) {
		t.Errorf("%d nodes are stored, %d were acknowledged", count, len(acknowledged))
	}
}

// issue: a full disk
func TestAFullStoreRefusesWritesKeepsWhatWasAcknowledgedAndGoesOnWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	s := open(t, sqlite.Options{})
	provision(t, s, "acme")
	if _, err := s.Pragma("max_page_count = 100"); err != nil {
		t.Fatal(err)
	}
	acknowledged := fillUp(t, s)
	checkAll(t, s, acknowledged)
	kind(t, s.Ready(t.Context()), store.UnavailableFull)
	kind(t, s.EnsurePartition(t.Context(), "more", string(make([]byte, 30_000))), store.UnavailableFull)
	if all, err := s.Partitions(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("a partition that was not committed is listed: %v, %v", all, err)
	}

	if _, err := s.Pragma("max_page_count = 100000"); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("with room again: %v", err)
	}
	more := create("acme/more", 1)
	commit(t, s, more)
	checkAll(t, s, append(acknowledged, more))
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestABatchThatMeetsTheFullDiskIsUndoneWhole(t *testing.T) {
	t.Parallel()
	s := open(t, sqlite.Options{})
	provision(t, s, "acme")
	commit(t, s, create("acme/x", 1))
	if _, err := s.Pragma("max_page_count = 60"); err != nil {
		t.Fatal(err)
	}
	batch := []store.Write{update("acme/x", 2)}
	for i := range 500 {
		batch = append(batch, create(fmt.Sprint("acme/n", i), 1))
	}
	told := 0
	s.Subscribe(func(store.Change) { told++ })
	results, err := s.Commit(t.Context(), batch)
	kind(t, err, store.UnavailableFull)
	if results != nil || told != 0 {
		t.Errorf("%d results, %d changes", len(results), told)
	}
	if n, err := s.Read(t.Context(), "acme/x"); err != nil || n.Version != 1 {
		t.Errorf("%+v, %v", n, err)
	}
	if infos, err := s.Versions(t.Context(), "acme/x", store.VersionPage{}); err != nil || len(infos) != 1 {
		t.Errorf("%v, %v", infos, err)
	}
	if nodes, err := s.ReadMany(t.Context(), []node.Path{"acme/n0", "acme/n1"}); err != nil || len(nodes) != 0 {
		t.Errorf("%v, %v", nodes, err)
	}
}
