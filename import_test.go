package hubmesh_test

import (
	"testing"
	"testing/fstest"
)

// edge §4
// A node that was deleted and comes again with an import is created, whatever its version.
func TestAnImportCountsWhatItMakesAgainAsCreated(t *testing.T) {
	m, ctx := open(t, t.TempDir())
	src := files("a.json", `{"content":{"n":1}}`, "b.json", `{"content":{"n":1}}`)
	if got := importFS(t, m, ctx, "X", src, nil).Counts; got["created"] != 2 {
		t.Fatalf("%v", got)
	}
	if err := m.Delete(ctx, "X/a", false); err != nil {
		t.Fatal(err)
	}
	src["b.json"] = &fstest.MapFile{Data: []byte(`{"content":{"n":2}}`)}
	got := importFS(t, m, ctx, "X", src, nil).Counts
	if got["created"] != 1 || got["updated"] != 1 || got["unchanged"] != 0 {
		t.Errorf("%v", got)
	}
	if n, err := m.Get(ctx, "X/a"); err != nil || n.Version < 3 {
		t.Errorf("it does not go on after its tombstone: %d %v", n.Version, err)
	}
}
