package nodehub

import (
	"context"
	"log/slog"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// typeRows are rows that count how often they are read; during runs inside a read, before its answer.
type typeRows struct {
	rows   map[node.Path]node.Node
	reads  int
	during func()
}

func (r *typeRows) Read(_ context.Context, path node.Path) (node.Node, error) {
	r.reads++
	n, ok := r.rows[path]
	if r.during != nil {
		r.during()
	}
	if !ok {
		return node.Node{}, &store.NotFoundError{Path: path}
	}
	return n, nil
}

func schemaNode(path node.Path) node.Node {
	return node.Node{Path: path, NodeType: node.TypeNodeType, Version: 1, Content: node.RawContent(`{"schema":{"required":["total"]}}`)}
}

// data §1.3
func TestThatARegisteredTypeHasNoNodeIsReadOnceUntilThereIsOne(t *testing.T) {
	rows := &typeRows{rows: map[node.Path]node.Node{}}
	types := newTypes(rows, slog.New(slog.DiscardHandler))
	types.register("shop/Order")
	for range 3 {
		if info, err := types.resolve(t.Context(), "shop/Order"); err != nil || info.schema != nil {
			t.Fatal(info, err)
		}
	}
	if rows.reads != 1 {
		t.Fatalf("read %d times", rows.reads)
	}
	n := schemaNode("shop/Order")
	rows.rows[n.Path] = n
	types.changed(store.Change{Kind: store.Created, Path: n.Path, Node: n, Version: 1})
	if info, err := types.resolve(t.Context(), "shop/Order"); err != nil || info.schema == nil {
		t.Fatal("the type's new schema is not used", err)
	}
}

// data §1.3
func TestATypeThatIsCreatedWhileItIsLookedForIsNotMissed(t *testing.T) {
	rows := &typeRows{rows: map[node.Path]node.Node{}}
	types := newTypes(rows, slog.New(slog.DiscardHandler))
	types.register("shop/Order")
	n := schemaNode("shop/Order")
	rows.during = func() { // the row was read as absent, then it is committed
		rows.during = nil
		rows.rows[n.Path] = n
		types.changed(store.Change{Kind: store.Created, Path: n.Path, Node: n, Version: 1})
	}
	if _, err := types.resolve(t.Context(), "shop/Order"); err != nil {
		t.Fatal(err)
	}
	if info, err := types.resolve(t.Context(), "shop/Order"); err != nil || info.schema == nil {
		t.Fatal("the absence was kept", err)
	}
}
