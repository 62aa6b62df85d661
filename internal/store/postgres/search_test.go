package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
)

// indexer fills the text index of a store until it is closed.
type indexer struct {
	store *postgres.Store
	relay *feed.Relay
	feed  *feed.Feed
	index *postgres.TextIndex
	stop  func()
}

func fill(t testing.TB, s *postgres.Store) *indexer {
	t.Helper()
	x := &indexer{store: s, relay: feed.NewRelay(s.ReadMany, quiet()), index: s.TextIndex()}
	x.feed = feed.Open(feed.SourceOf(s), x.relay, quiet())
	x.stop = s.Subscribe(func(c store.Change) { x.feed.Committed() })
	if err := x.index.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.feed.Consumer(postgres.SearchConsumer, s.Positions(), func(ctx context.Context, b feed.Batch) error { return x.index.Apply(ctx, b.Reset, b.Rows) })
	t.Cleanup(x.close)
	return x
}

func (x *indexer) close() {
	x.stop()
	x.feed.Close()
	x.relay.Close()
	x.index.Close()
}

// settled waits until the index holds everything.
func settled(t testing.TB, s *postgres.Store) {
	t.Helper()
	end := time.Now().Add(5 * time.Minute)
	for {
		state, err := s.Search(t.Context())
		if err == nil && state.Whole && state.Behind == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the index does not come up: %+v, %v", state, err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func parse(t testing.TB, text string) query.Query {
	t.Helper()
	q, err := query.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return q
}

// alike compares a query's answer with that of a look at all nodes, and tells whether the index was used.
func alike(t *testing.T, s *postgres.Store, text string) (found int, used bool) {
	t.Helper()
	var with, without []node.Node
	eventually(t, "an answer to "+text, func() (err error) { // its server may be about to come back
		with, without, used, err = s.BothWays(t.Context(), parse(t, text))
		return err
	})
	list := func(nodes []node.Node) string {
		var all []string
		for _, n := range nodes {
			all = append(all, fmt.Sprint(n.Path, " ", n.Version))
		}
		return strings.Join(all, ", ")
	}
	if a, b := list(with), list(without); a != b {
		t.Errorf("%s: the index finds\n%s\nand a look at all\n%s", text, a, b)
	}
	return len(without), used
}

func explained(t testing.TB, conn *pgx.Conn, text string, args ...any) string {
	t.Helper()
	rows, err := conn.Query(t.Context(), "explain "+text, args...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// bulk writes a hundred thousand nodes with texts, as nobody of ours.
func bulk(t testing.TB, conn *pgx.Conn, nodes int) {
	t.Helper()
	exec(t, conn, "set hubmesh.origin = 'test'")
	exec(t, conn, "insert into mesh_partitions (name, folded) values ('acme', 'acme') on conflict do nothing")
	exec(t, conn, `insert into mesh_nodes (path, main_node, folded, version, node_type, name, content)
select p, p, replace(p, '/', E'\x01'), 1, 'Task', 'Task ' || i, json_build_object('text', (
  select string_agg('word' || (i * 31 + k * 7919) % 5000, ' ') from generate_series(1, 15) k) || case when i % 9973 = 17 then ' Needle' else '' end)
from (select i, 'acme/n' || i as p from generate_series(1, $1::int) i) a`, nodes)
	exec(t, conn, "analyze mesh_nodes")
}

// issue 4: a text query over many nodes uses the index, and reads few rows. With HUBMESH_SOAK they are 100,000.
func TestATextQueryOverManyNodesUsesTheIndexAndReadsFewRows(t *testing.T) {
	t.Parallel()
	nodes, needles := 20_000, 3
	if os.Getenv("HUBMESH_SOAK") != "" {
		nodes, needles = 100_000, 11
	}
	url := database(t)
	s := open(t, postgres.Restless(postgres.Options{URL: url}))
	conn := stranger(t, url)
	bulk(t, conn, nodes)
	begun := time.Now()
	ask := func() time.Duration {
		begun := time.Now()
		found, err := s.Select(t.Context(), parse(t, "needle"))
		if err != nil || len(found) != needles {
			t.Fatal(len(found), err)
		}
		return time.Since(begun)
	}
	before := ask()
	fill(t, s)
	settled(t, s)
	t.Logf("indexed in %v", time.Since(begun))
	exec(t, conn, "analyze")
	for what, plans := range map[string]string{"as it is": "", "for any terms": "set plan_cache_mode = force_generic_plan", "without statistics": "delete from pg_statistic where starelid in ('mesh_nodes'::regclass, 'mesh_search'::regclass)"} {
		if plans != "" {
			exec(t, conn, plans)
		}
		exec(t, conn, "set enable_seqscan = off; set jit = off") // as the statement does for itself
		for _, text := range []string{"needle", "needle path:acme scope:subtree", "(needle OR word4999) nodeType:Task"} {
			q, args := postgres.FoundText(parse(t, text), store.Position{XID: 1 << 40})
			plan := explained(t, conn, q, args...)
			if strings.Contains(plan, "Seq Scan on mesh_") || !strings.Contains(plan, "mesh_search_grams") || !strings.Contains(plan, "mesh_changes_pkey") {
				t.Errorf("%s, %s: the index is not used:\n%s", what, text, plan)
			}
		}
	}
	// A few nodes have the needle, and fewer have its grams without it; nothing else is looked at.
	if n, used, err := s.Found(t.Context(), parse(t, "needle")); err != nil || !used || n != needles {
		t.Errorf("%d candidates, %v, %v", n, used, err)
	}
	after := min(ask(), ask(), ask())
	t.Logf("a query took %v without the index, %v with it", before, after)
	// With few candidates it stays within the bound on what a query may look at, where a look at all would not.
	few := open(t, postgres.Options{URL: url, ScanRows: 1000})
	if found, err := few.Select(t.Context(), parse(t, "needle")); err != nil || len(found) != needles {
		t.Error(len(found), err)
	}
	if _, err := few.Select(t.Context(), parse(t, "-needle")); !errors.As(err, new(*store.ScanLimitError)) {
		t.Error(err)
	}
	if found, err := few.Select(t.Context(), parse(t, "word4999 limit:3")); err != nil || len(found) != 3 {
		t.Error(len(found), err)
	}
}
