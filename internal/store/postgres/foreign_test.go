package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
)

// stranger is a program that is not ours.
func stranger(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec(t testing.TB, conn *pgx.Conn, text string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// follow reads what a position has not seen.
func follow(t testing.TB, c *postgres.Changes, p *store.Position) (lines []string) {
	t.Helper()
	page, err := c.Read(t.Context(), *p, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Rows {
		lines = append(lines, fmt.Sprintf("%v %s %d %s %q", r.Kind, r.Path, r.Version, r.NodeType, r.Origin))
		if r.XID > p.XID || r.XID == p.XID && r.Pos > p.Pos {
			p.XID, p.Pos = r.XID, r.Pos
		}
	}
	return lines
}

func changes(t testing.TB, s *postgres.Store) (*postgres.Changes, *store.Position) {
	t.Helper()
	c, err := s.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	start, err := c.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := &store.Position{}
	for _, r := range start.Rows {
		p.XID, p.Pos = r.XID, r.Pos
	}
	return c, p
}

// data §2.3, storage.md §3
func TestEachCommitOfOursIsOneChangeRowARow(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Options{Origin: "p1"})
	space(t, s, "acme")
	c, p := changes(t, s)
	must(t, s, create("acme/x", 1), create("acme/y", 1))
	must(t, s, update("acme/x", 2), remove("acme/y", 2))
	if results, err := s.Commit(t.Context(), []store.Write{update("acme/x", 9)}); err != nil || results[0].Err == nil {
		t.Fatal(results, err)
	}
	want := []string{`created acme/x 1 Task "p1"`, `created acme/y 1 Task "p1"`, `deleted acme/y 2 Task "p1"`, `updated acme/x 2 Task "p1"`}
	got := follow(t, c, p)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// data §2.3: rows of other programs
func TestWhatAnotherProgramWritesHasVersionsHistoryTombstonesAndPayloads(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, postgres.Options{URL: url})
	space(t, s, "acme")
	c, p := changes(t, s)
	l, err := s.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other := stranger(t, url)
	exec(t, other, `insert into mesh_nodes (path, main_node, folded, version, name, content) values ('acme/x', 'acme/x', '', 0, 'first', '{"a":1}')`)
	exec(t, other, `update mesh_nodes set name = 'second' where path = 'acme/x'`)
	exec(t, other, `update mesh_nodes set name = 'second' where path = 'acme/x'`) // changes nothing
	exec(t, other, `delete from mesh_nodes where path = 'acme/x'`)
	exec(t, other, `insert into mesh_nodes (path, main_node, folded, version, name) values ('acme/X', 'acme/X', '', 1, 'in capitals')`)
	exec(t, other, `insert into mesh_nodes (path, main_node, folded, version, name) values ('acme/x', 'acme/x', 'other', 1, 'third') on conflict do nothing`)
	exec(t, other, `delete from mesh_nodes where path = 'acme/X'`)
	exec(t, other, `insert into mesh_nodes (path, main_node, folded, version, name) values ('acme/x', 'acme/x', '', 1, 'third')`)
	want := []string{
		`created acme/x 1  ""`, `updated acme/x 2  ""`, `deleted acme/x 3  ""`, `created acme/X 1  ""`, `deleted acme/X 2  ""`, `created acme/x 4  ""`,
	}
	if got := follow(t, c, p); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	infos, err := s.Versions(t.Context(), "acme/x", store.VersionPage{})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, i := range infos {
		kinds = append(kinds, fmt.Sprint(i.Version, " ", i.Kind, " ", i.Name))
	}
	if want := []string{"4 created third", "3 deleted second", "2 updated second", "1 created first"}; !slices.Equal(kinds, want) {
		t.Errorf("%q", kinds)
	}
	var ops []string
	for range want {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		heard, err := l.Wait(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		var said struct {
			Path, Op string
			Version  int64
		}
		if err := json.Unmarshal([]byte(heard.Payload), &said); err != nil {
			t.Fatal(err)
		}
		ops = append(ops, fmt.Sprint(said.Op, " ", said.Path, " ", said.Version))
	}
	if want := []string{"INSERT acme/x 1", "UPDATE acme/x 2", "DELETE acme/x 3", "INSERT acme/X 1", "DELETE acme/X 2", "INSERT acme/x 4"}; !slices.Equal(ops, want) {
		t.Errorf("%q", ops)
	}
	// Our own write goes on above it.
	w := update("acme/x", 5)
	must(t, s, w)
	if n, err := s.Read(t.Context(), "acme/x"); err != nil || n.Version != 5 {
		t.Error(n, err)
	}
	if _, err := other.Exec(t.Context(), "update mesh_nodes set path = 'acme/z' where path = 'acme/x'"); err == nil || !strings.Contains(err.Error(), "a path does not change") {
		t.Errorf("a rename: %v", err)
	}
	exec(t, other, "truncate mesh_nodes")
	if got := follow(t, c, p); len(got) != 2 || got[1] != `unknown  0  ""` {
		t.Errorf("after a truncation: %q", got)
	}
}

// bad input: one row of another program that nothing can serve would be in the way of every listing
func TestARowThatNoNodeCanBeIsRefusedByTheTable(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, postgres.Options{URL: url})
	space(t, s, "acme")
	other := stranger(t, url)
	insert := func(path, columns, values string) error {
		_, err := other.Exec(t.Context(), "insert into mesh_nodes (path, main_node, folded, version"+columns+") values ($1, $1, '', 1"+values+")", path)
		return err
	}
	for _, path := range []string{"acme/../keep", "acme/..", "acme/.", "./acme", "acme//b", "/acme", "acme/", "acme/a\\b", "acme/~x", "acme/a\tb", "missing/x"} {
		if err := insert(path, "", ""); err == nil {
			t.Errorf("%q is accepted", path)
		}
	}
	for what, c := range map[string][2]string{
		"an infinite time":       {", created_at", ", 'infinity'"},
		"another infinite time":  {", modified_at", ", '-infinity'"},
		"contexts that are none": {", exclude_from_context", `, '{"a":1}'`},
	} {
		if err := insert("acme/x", c[0], c[1]); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	if _, err := other.Exec(t.Context(), "insert into mesh_nodes (path, main_node, folded, version) values ('acme/x', 'acme/x', '', 9223372036854775807)"); err == nil {
		t.Error("a version that nothing is above is accepted")
	}
	if err := insert("acme/texts", ", exclude_from_context", `, '[1,{"a":2}]'`); err != nil { // a list, of what is no text
		t.Fatal(err)
	}
	if n, err := s.Read(t.Context(), "acme/texts"); err != nil || n.ExcludeFromContext != nil {
		t.Errorf("%+v %v", n, err)
	}
	if entries, err := s.Children(t.Context(), "acme", store.Page{}); err != nil || len(entries) != 1 {
		t.Error(entries, err)
	}
}

// data §2.3: many rows at once are one wake-up
func TestManyRowsOfAnotherProgramAreOnePayload(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, postgres.Options{URL: url})
	space(t, s, "acme")
	l, err := s.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	exec(t, stranger(t, url), "insert into mesh_nodes (path, main_node, folded, version) select 'acme/' || i, 'acme/' || i, '', 1 from generate_series(1, 600) i")
	if err := l.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	for want := range 2 {
		heard, err := l.Wait(t.Context())
		if err != nil || heard.Payload != "" || heard.Own != (want == 1) {
			t.Fatalf("%+v %v", heard, err)
		}
	}
}

// storage.md §3, issue 4: indexes that the planner in fact uses
func TestThePlannerUsesTheIndexes(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, postgres.Options{URL: url})
	other := stranger(t, url)
	exec(t, other, "set hubmesh.origin = 'test'")
	exec(t, other, "insert into mesh_partitions (name, folded) select 'p' || i, 'p' || i from generate_series(1, 10000) i")
	exec(t, other, `insert into mesh_nodes (path, main_node, folded, version, node_type)
select p || '/' || i, p || '/' || i, p || E'\x01' || i, 1, case when i = 3 then 'Rare' else 'Task' end
from (select 'p' || n as p from generate_series(1, 10000) n) a, generate_series(1, 5) i`)
	exec(t, other, "insert into mesh_changes (version, op, path) select 1, 'U', 'p1/1' from generate_series(1, 20000)")
	exec(t, other, "analyze")
	for what, c := range map[string]struct {
		text string
		args []any
		want []string // indexes, one of which is used
	}{
		"a point read":                         {postgres.ReadText, []any{"p77/3"}, []string{"mesh_nodes_pkey"}},
		"a listing":                            {postgres.ChildrenText, []any{"p77\x01", "p77\x02", "p77\x01", 5, false}, []string{"mesh_nodes_key"}},
		"the subtree":                          {"select key from mesh_nodes where key > $1 and key < $2 order by key limit $3", []any{"p77\x01", "p77\x02", 1000}, []string{"mesh_nodes_key"}},
		"an update":                            {postgres.UpdateText, postgres.UpdateArgs(16), []string{"mesh_nodes_pkey", "mesh_partitions_pkey"}},
		"a create on ground":                   {postgres.CreateText, postgres.AroundArgs(store.OpCreate, 16), []string{"mesh_nodes_pkey", "mesh_partitions_pkey"}},
		"a delete that is to be empty":         {postgres.DeleteText, postgres.AroundArgs(store.OpDelete, 16), []string{"mesh_nodes_key"}},
		"the change rows behind a position":    {postgres.FeedBehindText, []any{uint64(1), int64(5), 100}, []string{"mesh_changes_pkey"}},
		"the change rows of open transactions": {postgres.FeedOpenText, []any{[]uint64{3, 4}}, []string{"mesh_changes_pkey"}},
	} {
		t.Run(what, func(t *testing.T) {
			if strings.HasPrefix(what, "the change") {
				exec(t, other, "set enable_seqscan = off")
				exec(t, other, "set plan_cache_mode = force_custom_plan")
			}
			rows, err := other.Query(t.Context(), "explain "+c.text, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			plan := strings.Join(lines, "\n")
			if strings.Contains(plan, "Seq Scan on mesh_nodes") || strings.Contains(plan, "Seq Scan on mesh_changes") {
				t.Errorf("it scans the table:\n%s", plan)
			}
			for _, index := range c.want {
				if !strings.Contains(plan, index) {
					t.Errorf("%s is not used:\n%s", index, plan)
				}
			}
		})
	}
	// storage.md §9: with 10,000 partitions
	begin := time.Now()
	if n, err := s.Read(t.Context(), "p9999/3"); err != nil || n.NodeType != "Rare" {
		t.Error(n, err)
	}
	if entries, err := s.Children(t.Context(), "p9999", store.Page{}); err != nil || len(entries) != 5 {
		t.Error(entries, err)
	}
	if entries, err := s.Children(t.Context(), "", store.Page{Limit: 100}); err != nil || len(entries) != 100 || entries[0].Path != "p1" {
		t.Error(len(entries), err)
	}
	t.Logf("three reads took %v", time.Since(begin))
}

// storage.md §4: the mark of what may be gone is raised before the rows go
func TestOldChangeRowsAreRemovedAndTheMarkSaysSo(t *testing.T) { // alone: any open transaction keeps rows
	url := database(t)
	s := open(t, postgres.Options{URL: url})
	space(t, s, "acme")
	c, _ := changes(t, s)
	must(t, s, create("acme/x", 1))
	for v := int64(2); v <= 20; v++ {
		must(t, s, update("acme/x", v))
	}
	if removed, err := s.Prune(t.Context()); err != nil || removed != 0 {
		t.Fatal(removed, err) // nothing is old
	}
	removed, err := s.PruneOlder(t.Context(), 0)
	if err != nil || removed == 0 {
		t.Fatal(removed, err)
	}
	page, err := c.Read(t.Context(), store.Position{}, 100)
	if err != nil || page.PrunedBefore == 0 || len(page.Rows) != int(20-removed) {
		t.Errorf("%+v %v", page, err)
	}
	if n, err := s.Read(t.Context(), node.Path("acme/x")); err != nil || n.Version != 20 {
		t.Error(n, err)
	}
}
