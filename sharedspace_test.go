package hubmesh_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/store"
)

// architecture.md decision 8: what deletions and creations of one space by several processes may leave
func TestInAPartitionThatIsLeftWithoutItsSpaceNothingIsCreatedUntilTheSpaceIs(t *testing.T) {
	_, url := database(t)
	a, ctx := share(t, url)
	if err := a.Grant(hubmesh.AsSystem(t.Context()), "", "admin", "Admin"); err != nil {
		t.Fatal(err)
	}
	l, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	// One that nobody deletes any more, and one whose deletion lacks its last step.
	if _, err := l.Exec(t.Context(), "insert into mesh_partitions (name, folded, created_at, created_by, deleting) values ('left', 'left', now(), '', false), ('ending', 'ending', now(), '', true)"); err != nil {
		t.Fatal(err)
	}
	var missing *store.PartitionError
	for _, path := range []string{"left/x", "left/x/y"} {
		if _, err := a.Create(ctx, path, "", map[string]any{}); !errors.As(err, &missing) || missing.Reason != store.ReasonMissing {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, space := range []string{"left", "ending"} {
		if _, err := a.Create(ctx, space, "Space", nil); err != nil {
			t.Errorf("%s: %v", space, err)
		}
		if _, err := a.Create(ctx, space+"/x", "", map[string]any{}); err != nil {
			t.Errorf("below %s: %v", space, err)
		}
	}
}

// edge.md: what helps is said
func TestASpaceThatAnotherProcessIsDeletingIsCreatedLater(t *testing.T) {
	_, url := database(t)
	a, ctx := share(t, url)
	if err := a.Grant(hubmesh.AsSystem(t.Context()), "", "admin", "Admin"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Create(ctx, "acme", "Space", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Create(ctx, "acme/x", "", map[string]any{}); err != nil {
		t.Fatal(err)
	}
	l, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	step := func(text string) {
		t.Helper()
		if _, err := l.Exec(t.Context(), "begin; set local hubmesh.origin = 'other'; "+text+"; commit"); err != nil {
			t.Fatal(err)
		}
	}
	step("update mesh_partitions set deleting = true where name = 'acme'; delete from mesh_nodes where path = 'acme'") // something below it is left
	var f *message.Failure
	if _, err := a.Create(ctx, "acme", "Space", nil); !errors.As(err, &f) || f.Type != message.ShuttingDown {
		t.Errorf("while it is being deleted: %v", err)
	}
	step("delete from mesh_nodes where path like 'acme/%'")
	if _, err := a.Create(ctx, "acme", "Space", nil); err != nil {
		t.Errorf("once nothing is left of it: %v", err)
	}
}
