package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Options is what the suite asks of a store; 0 is the store's standard.
type Options struct {
	History   int // versions kept of a node
	ScanRows  int // nodes that a query may look at
	ScanBytes int // bytes that a query may return
}

// Factory opens an empty store. It closes it in a cleanup of t; Close may be called twice.
type Factory func(t testing.TB, options Options) store.Store

// Run proves the contract of store.Store on the stores that open makes.
func Run(t *testing.T, open Factory) {
	for _, group := range []struct {
		name string
		run  func(*testing.T, Factory)
	}{
		{"writes", runWrites}, {"deletes", runDeletes}, {"ground", runGround}, {"races", runRaces}, {"history", runHistory},
		{"tree", runTree}, {"queries", runQueries}, {"partitions", runPartitions}, {"changes", runChanges},
		{"blobs", runBlobs}, {"lifecycle", runLifecycle},
	} {
		t.Run(group.name, func(t *testing.T) { group.run(t, open) })
	}
}

// bench is an open store with the partitions acme and other, and short verbs that fail the test.
type bench struct {
	t testing.TB
	store.Store
}

func setup(t testing.TB, open Factory, options Options) bench {
	t.Helper()
	b := bench{t, open(t, options)}
	for _, name := range []string{"acme", "other"} {
		if err := b.EnsurePartition(t.Context(), name, "system"); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// one commits a batch of one and returns its result.
func (b bench) one(w store.Write) (node.Node, error) {
	b.t.Helper()
	results, err := b.Commit(b.t.Context(), []store.Write{w})
	if err != nil || len(results) != 1 {
		b.t.Fatalf("%d results, %v", len(results), err)
	}
	return results[0].Node, results[0].Err
}

// create writes nodes at version 1, and fails the test where one is refused.
func (b bench) create(paths ...string) {
	b.t.Helper()
	batch := make([]store.Write, len(paths))
	for i, path := range paths {
		batch[i] = create(path, 1)
	}
	b.commit(batch...)
}

// commit writes a batch of which every row must succeed.
func (b bench) commit(batch ...store.Write) []store.Result {
	b.t.Helper()
	results, err := b.Commit(b.t.Context(), batch)
	if err != nil {
		b.t.Fatal(err)
	}
	for i, r := range results {
		if r.Err != nil {
			b.t.Fatalf("%s: %v", batch[i].Node.Path, r.Err)
		}
	}
	return results
}

func (b bench) read(path string) node.Node {
	b.t.Helper()
	n, err := b.Read(b.t.Context(), node.Path(path))
	if err != nil {
		b.t.Fatalf("read %s: %v", path, err)
	}
	return n
}

// absent checks that there is no node, and its last version.
func (b bench) absent(path string, last int64) {
	b.t.Helper()
	n, err := b.Read(b.t.Context(), node.Path(path))
	var missing *store.NotFoundError
	if !errors.As(err, &missing) || missing.LastVersion != last || missing.Path != node.Path(path) {
		b.t.Fatalf("read %s: %+v, %v; want not found, last version %d", path, n, err, last)
	}
}

// stamp is the modification time of a version in this suite.
func stamp(version int64) time.Time {
	return time.Date(2026, 6, 26, 10, 0, 0, int(version)*1000, time.UTC)
}

func simple(path string, version int64) node.Node {
	p := node.Path(path)
	return node.Node{
		Path: p, MainNode: p.Main(), Name: fmt.Sprintf("%s v%d", p.ID(), version), NodeType: "Task", State: node.StateActive,
		Content: node.RawContent(fmt.Sprintf(`{"path":%q,"version":%d}`, path, version)),
		Version: version, CreatedAt: stamp(0), CreatedBy: "creator", ModifiedAt: stamp(version), ModifiedBy: fmt.Sprint("writer", version),
	}
}

func create(path string, version int64) store.Write {
	return store.Write{Op: store.OpCreate, Node: simple(path, version)}
}

func update(path string, expected, version int64) store.Write {
	return store.Write{Op: store.OpUpdate, Node: simple(path, version), Expected: expected}
}

func remove(path string, expected, version int64) store.Write {
	n := node.Node{Path: node.Path(path), Version: version, ModifiedAt: stamp(version), ModifiedBy: fmt.Sprint("writer", version)}
	return store.Write{Op: store.OpDelete, Node: n, Expected: expected}
}

// same compares nodes; the order of members in a content does not matter.
func same(t testing.TB, want, got node.Node) {
	t.Helper()
	contents := cmp.Comparer(node.Equal)
	if diff := cmp.Diff(want, got, contents); diff != "" {
		t.Errorf("%s (-want +got):\n%s", want.Path, diff)
	}
}

func conflict(t testing.TB, err error, actual int64) {
	t.Helper()
	var c *store.ConflictError
	if !errors.As(err, &c) || c.Actual != actual {
		t.Errorf("got %v; want a conflict with version %d", err, actual)
	}
}

// canceled is a context that has ended.
func canceled(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
