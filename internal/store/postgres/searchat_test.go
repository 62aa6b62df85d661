package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
)

// saying is a create or an update of a node whose name is a text.
func saying(path string, version int64, text string) store.Write {
	w := create(path, version)
	if version > 1 {
		w = update(path, version)
	}
	w.Node.Name, w.Node.Content = text, node.Content{}
	return w
}

// finds checks what a text query finds, and whether the index was used.
func finds(t *testing.T, s *postgres.Store, text string, want int, by bool) {
	t.Helper()
	if found, used := alike(t, s, text); found != want || used != by {
		t.Errorf("%s: found %d, want %d; by the index: %v, want %v", text, found, want, used, by)
	}
}

// left is an index that holds two nodes, and that nobody fills any more.
func left(t *testing.T, url string) *postgres.Store {
	t.Helper()
	s := open(t, postgres.Restless(postgres.Options{URL: url, Origin: "a"}))
	space(t, s, "acme")
	must(t, s, saying("acme/x", 1, "the old needle"), saying("acme/y", 1, "nothing"))
	x := fill(t, s)
	settled(t, s)
	x.close()
	finds(t, s, "needle", 1, true)
	return s
}

// issue 4, data §5.1: queries do not lie
func TestWhatIsNotYetInTheTextIndexIsFound(t *testing.T) {
	t.Parallel()
	t.Run("creates, updates and deletes behind the index count", func(t *testing.T) {
		s := left(t, database(t))
		must(t, s, saying("acme/z", 1, "a new NEEDLE"), saying("acme/y", 2, "a needle now"), saying("acme/x", 2, "gone"))
		finds(t, s, "needle", 2, true)
		finds(t, s, "gone", 1, true)
		must(t, s, remove("acme/z", 2))
		finds(t, s, "needle", 1, true)
		again := saying("acme/z", 1, "a needle again")
		again.Node.Version = 3
		must(t, s, again)
		finds(t, s, "needle", 2, true)
		if state, err := s.Search(t.Context()); err != nil || !state.Whole || state.Behind <= 0 {
			t.Errorf("%+v %v", state, err)
		}
	})
	t.Run("with more behind it than a query may look at, all nodes are looked at", func(t *testing.T) {
		url := database(t)
		s := left(t, url)
		few := open(t, postgres.Options{URL: url, ScanRows: 3})
		for v := int64(2); v < 5; v++ {
			must(t, s, saying("acme/x", v, "the needle"))
		}
		finds(t, few, "needle", 1, true)
		must(t, s, saying("acme/x", 5, "the needle"))
		finds(t, few, "needle", 1, false)
		if state, err := few.Search(t.Context()); err != nil || state.Whole || !state.Followed || state.Behind <= 0 {
			t.Errorf("%+v %v", state, err)
		}
	})
	t.Run("with a position that is too far they do not", func(t *testing.T) { // the control
		url := database(t)
		s := left(t, url)
		must(t, s, saying("acme/z", 1, "a new needle"))
		exec(t, stranger(t, url), "update mesh_consumers set xid = '9000000000' where name = 'search'")
		with, without, used, err := s.BothWays(t.Context(), parse(t, "needle"))
		if err != nil || !used || len(with) != 1 || len(without) != 2 {
			t.Error(len(with), len(without), used, err)
		}
	})
	t.Run("a transaction that was open when the index went past it counts", func(t *testing.T) {
		url := database(t)
		s := left(t, url)
		other := stranger(t, url)
		exec(t, other, "begin")
		exec(t, other, "insert into mesh_nodes (path, main_node, folded, version, name) values ('acme/late', 'acme/late', '', 1, 'a late needle')")
		x := fill(t, s)
		must(t, s, saying("acme/z", 1, "an early needle"))
		settled(t, s)
		x.close()
		exec(t, other, "commit")
		finds(t, s, "needle", 3, true)
		fill(t, s)
		settled(t, s)
		finds(t, s, "needle", 3, true)
		orphans(t, other)
	})
}

// issue 4: after what it can not follow the index is not gone by, until everything was compared
func TestATextIndexThatMayMissSomethingIsNotGoneBy(t *testing.T) {
	t.Parallel()
	for what, harm := range map[string]string{
		"the server was promoted":              "update mesh_consumers set timeline = timeline + 1 where name = 'search'",
		"it is of another form":                "update mesh_search_state set form = 'another'",
		"it is of other tables":                "update mesh_search_state set tables = tables + 1",
		"its rows are of another form":         "with f as (update mesh_search_state set form = 'another') update mesh_search set form = 'another', grams = '{}', digest = ''",
		"there is no position":                 "delete from mesh_consumers",
		"change rows were pruned":              "update mesh_store set pruned_before = (select xid::text::bigint + 100 from mesh_consumers where name = 'search')::text::xid8",
		"everything may have changed":          "insert into mesh_changes (version, op, path) values (0, 'T', '')",
		"its nodes are gone":                   "truncate mesh_nodes",
		"its nodes are gone, and its index":    "with d as (delete from mesh_search) update mesh_search_state set form = ''",
		"the database is of another server":    "update mesh_store set system_id = 1",
		"somebody has dropped the index of it": "drop index mesh_search_grams; update mesh_search_state set form = ''",
	} {
		t.Run(what, func(t *testing.T) {
			url := database(t)
			s := left(t, url)
			other := stranger(t, url)
			must(t, s, saying("acme/z", 1, "another needle"))
			exec(t, other, harm)
			if what == "its nodes are gone" {
				must(t, s, saying("acme/n", 1, "needle"), saying("acme/o", 1, "needle"))
			}
			finds(t, s, "needle", 2, false)
			if what == "the database is of another server" {
				s = open(t, postgres.Restless(postgres.Options{URL: url, Origin: "b"})) // a start settles it
			}
			x := fill(t, s)
			settled(t, s)
			finds(t, s, "needle", 2, true)
			orphans(t, other)
			if x.index.Stats().Rebuilds == 0 {
				t.Error("nothing was compared")
			}
		})
	}
	t.Run("a comparison that is cut off is made again", func(t *testing.T) {
		url := database(t)
		s := open(t, postgres.Restless(postgres.Options{URL: url, Origin: "a"}))
		other := stranger(t, url)
		bulk(t, other, 3000)
		if _, ok, err := s.Positions().Take(t.Context(), postgres.SearchConsumer, "a", time.Minute); err != nil || !ok {
			t.Fatal(ok, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		index, ended := s.TextIndex(), make(chan error)
		go func() { ended <- index.Apply(ctx, true, nil) }()
		eventually(t, "some rows", func() error {
			var n int
			if err := other.QueryRow(t.Context(), "select count(*) from mesh_search").Scan(&n); err != nil || n == 0 {
				return fmt.Errorf("%d rows, %v", n, err)
			}
			return nil
		})
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		index.Close()
		if state, err := s.Search(t.Context()); err != nil || state.Whole {
			t.Errorf("%+v %v", state, err)
		}
		_, _, _ = s.Positions().Take(t.Context(), postgres.SearchConsumer, "a", 0)
		fill(t, s)
		settled(t, s)
		finds(t, s, "needle", 1, true)
		orphans(t, other)
	})
}

// decision 7: one process at a time fills the index
func TestAProcessWithoutTheLeaseWritesNothingIntoTheTextIndex(t *testing.T) {
	t.Parallel()
	url := database(t)
	a := left(t, url)
	b := open(t, postgres.Options{URL: url, Origin: "b"})
	if _, ok, err := b.Positions().Take(t.Context(), postgres.SearchConsumer, "b", time.Minute); err != nil || !ok {
		t.Fatal(ok, err)
	}
	must(t, a, saying("acme/z", 1, "a needle"))
	row := []store.ChangeRow{{Kind: store.Created, Path: "acme/z", Version: 1}}
	for origin, s := range map[string]*postgres.Store{"a": a, "b": b} {
		index := s.TextIndex()
		if err := index.Apply(t.Context(), false, row); errors.Is(err, store.ErrLeaseLost) != (origin == "a") {
			t.Errorf("%s: %v", origin, err)
		}
		index.Close()
	}
}

// data §2.4: what is removed with a partition leaves the index
func TestThePartitionThatIsRemovedLeavesTheTextIndex(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := left(t, url)
	fill(t, s)
	if err := s.MarkPartition(t.Context(), "acme", true); err != nil {
		t.Fatal(err)
	}
	must(t, s, remove("acme/x", 2), remove("acme/y", 2))
	if err := s.RemovePartition(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	settled(t, s)
	finds(t, s, "needle", 0, true)
	orphans(t, stranger(t, url))
}

// storage.md §5: everything but the listener works through a transaction pooler
func TestTheTextIndexIsFilledAndAskedThroughATransactionPooler(t *testing.T) {
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
	s := open(t, postgres.Options{URL: p.Through(url), Origin: "p"})
	other := stranger(t, url)
	bulk(t, other, 500)
	x := fill(t, s)
	settled(t, s)
	finds(t, s, "needle", 1, true)
	must(t, s, saying("acme/z", 1, "a needle"))
	settled(t, s)
	finds(t, s, "needle", 2, true)
	orphans(t, other)
	x.close() // before the pooler
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// data §5.1: a term that the index says nothing about is looked for in all nodes
func TestATermTheTextIndexSaysNothingAboutIsLookedForInAllNodes(t *testing.T) {
	t.Parallel()
	s := left(t, database(t))
	for text, used := range map[string]bool{
		"ne": false, "-needle": false, "(needle OR ne)": false, "(needle OR nodeType:Task)": false, "name:*needle*": false, `"++-"`: false,
		"needle": true, "needle ne": true, "(needle OR nothing)": true, "NEEDLE -nothing": true, `"e n"`: true, "needle scope:nextLevel path:acme": false,
	} {
		if _, by := alike(t, s, text); by != used {
			t.Errorf("%s: by the index: %v", text, by)
		}
	}
}
