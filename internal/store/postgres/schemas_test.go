package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/store/postgres"
)

// issue 4: tables that another program writes, whatever its search_path is
func TestAWriteOfAnotherProgramStaysInTheSchemaOfItsTable(t *testing.T) {
	t.Parallel()
	url := database(t) // has the tables in public
	if err := rawly(t, url, `create schema "an app"`); err != nil {
		t.Fatal(err)
	}
	public := open(t, postgres.Options{URL: url})
	space(t, public, "acme")
	app := open(t, postgres.Options{URL: url + "&search_path=%22an%20app%22"})
	space(t, app, "acme")
	inPublic, p := changes(t, public)
	inApp, q := changes(t, app)
	other := stranger(t, url) // its search_path leads to public
	exec(t, other, "create temp table mesh_changes (like public.mesh_changes)")
	for _, text := range []string{
		`insert into "an app".mesh_nodes (path, main_node, folded, version, name) values ('acme/x', 'acme/x', '', 1, 'first')`,
		`update "an app".mesh_nodes set name = 'second'`,
		`delete from "an app".mesh_nodes`,
		`insert into "an app".mesh_nodes (path, main_node, folded, version, name) values ('acme/x', 'acme/x', '', 1, 'third')`,
		`truncate "an app".mesh_nodes`,
	} {
		exec(t, other, text)
	}
	want := []string{`created acme/x 1  ""`, `updated acme/x 2  ""`, `deleted acme/x 3  ""`, `created acme/x 4  ""`, `unknown  0  ""`}
	if got := follow(t, inApp, q); !slices.Equal(got, want) {
		t.Errorf("its own schema has %q", got)
	}
	if got := follow(t, inPublic, p); len(got) != 0 {
		t.Errorf("the other schema has %q", got)
	}
	if got, want := history(t, app, "acme/x"), []string{"1 created first", "2 updated second", "3 deleted second", "4 created third", "5 deleted third"}; !slices.Equal(got, want) {
		t.Errorf("history %q", got)
	}
	if got := history(t, public, "acme/x"); len(got) != 0 {
		t.Errorf("history of the other schema %q", got)
	}
}

// issue 4
func TestTheControlATriggerWithoutASchemaOfItsOwnWritesWhereTheWriterLooks(t *testing.T) {
	t.Parallel()
	url := database(t)
	if err := rawly(t, url, "create schema app"); err != nil {
		t.Fatal(err)
	}
	public := open(t, postgres.Options{URL: url})
	space(t, public, "acme")
	space(t, open(t, postgres.Options{URL: url + "&search_path=app"}), "acme")
	c, p := changes(t, public)
	for _, name := range []string{"mesh_foreign_row", "mesh_foreign_inserted"} {
		if err := rawly(t, url, fmt.Sprintf("alter function app.%s() reset search_path", name)); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, stranger(t, url), `insert into app.mesh_nodes (path, main_node, folded, version, name) values ('acme/x', 'acme/x', '', 1, 'first')`)
	if got := follow(t, c, p); len(got) != 1 || !strings.HasPrefix(got[0], "created acme/x 1") {
		t.Fatal("this control no longer shows the fault", got)
	}
}
