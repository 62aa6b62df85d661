package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/sqlite"
)

// storage.md §4: an EXPLAIN test pins the index
func TestQueriesAreAnsweredFromAnIndexAndNotByScanningTheTable(t *testing.T) {
	t.Parallel()
	s := open(t, sqlite.Options{})
	for text, want := range map[string]string{
		"path:acme/x":                               "nodes_key (key=?)",
		"path:acme scope:subtree":                   "nodes_key (key>? AND key<?)",
		"path:acme scope:descendants":               "nodes_key (key>? AND key<?)",
		"path:acme scope:children":                  "nodes_key (key=?)",
		"path:acme/x/y scope:ancestors":             "nodes_key (key=?)",
		"nodeType:Task":                             "nodes_type (node_type=?)",
		"nodeType:Task|Story":                       "nodes_type (node_type=?)",
		"nodeType:Task path:acme scope:descendants": "nodes_type (node_type=? AND key>? AND key<?)",
		"path:acme/Sto*":                            "nodes_key (key>? AND key<?)",
		"nodeType:Thread path:acme scope:subtree":   "nodes_type (node_type=?)",
		"-is:main path:acme scope:subtree":          "nodes_main (main>? AND main<?)",
	} {
		q, err := query.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		where, args := sqlite.WhereOf(q.Bounds())
		plan, err := s.Plan(t.Context(), where, args...)
		if err != nil {
			t.Fatalf("%s: %v in %s", text, err, where)
		}
		if !strings.Contains(plan, want) || strings.Contains(plan, "SCAN nodes\n") {
			t.Errorf("%s: %s\nplan:\n%s", text, where, plan)
		}
	}
	plan, err := s.PlanOfChildren(t.Context())
	if err != nil || strings.Contains(plan, "SCAN n") || strings.Count(plan, "nodes_key") < 4 {
		t.Errorf("children: %v\n%s", err, plan)
	}
}

func TestAForeignLockIsWaitedForAndThenReported(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mesh.db")
	s := open(t, sqlite.Options{File: file})
	provision(t, s, "acme")
	if _, err := s.Pragma("busy_timeout = 20"); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tool, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close()
	run := func(text string) {
		if _, err := tool.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	run("begin immediate")
	_, err = s.Commit(t.Context(), []store.Write{create("acme/x", 1)})
	kind(t, err, store.UnavailableLocked, "another program")
	var u *store.UnavailableError
	if !errors.As(err, &u) || !u.Transient {
		t.Error("a lock passes")
	}
	if _, err := s.Read(t.Context(), "acme/x"); !errors.As(err, new(*store.NotFoundError)) {
		t.Errorf("reads go on: %v", err)
	}
	run("rollback")
	commit(t, s, create("acme/x", 1))
}

func TestAReadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := open(t, sqlite.Options{})
	provision(t, s, "acme")
	for i := range 40 {
		var batch []store.Write
		for j := range 100 {
			batch = append(batch, create(fmt.Sprintf("acme/%d/%d", i, j), 1))
		}
		commit(t, s, batch...)
	}
	q, err := query.Parse("nothing-like-this")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := s.Select(ctx, q); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Select(t.Context(), q); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// architecture.md decision 8: a partition dies in slices, history included
func TestAPartitionWithALongHistoryIsRemovedInSlices(t *testing.T) {
	t.Parallel()
	s := open(t, sqlite.Options{})
	provision(t, s, "acme", "other")
	commit(t, s, create("other/x", 1))
	const nodes, versions = 100, 45
	for version := int64(1); version <= versions; version++ {
		var batch []store.Write
		for i := range nodes {
			w := update(fmt.Sprint("acme/n", i), version)
			switch version {
			case 1:
				w.Op = store.OpCreate
			case versions:
				w.Op = store.OpDelete
			}
			batch = append(batch, w)
		}
		commit(t, s, batch...)
	}
	if err := s.RemovePartition(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	if infos, err := s.Versions(t.Context(), "acme/n7", store.VersionPage{}); err != nil || len(infos) != 0 {
		t.Errorf("%v, %v", infos, err)
	}
	if infos, err := s.Versions(t.Context(), "other/x", store.VersionPage{}); err != nil || len(infos) != 1 {
		t.Errorf("%v, %v", infos, err)
	}
	if all, err := s.Partitions(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}
