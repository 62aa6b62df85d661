package main

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestEveryFuzzTargetOfTheModuleIsFound(t *testing.T) {
	text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	found, err := targets(fstest.MapFS{
		"internal/node/path_test.go": text("package node\n\nfunc FuzzPath(f *testing.F) {\n}\n\nfunc FuzzPatch(f *testing.F) {}\nfunc TestX(t *testing.T) {}\n"),
		"internal/node/fuzz.go":      text("package node\n\nfunc FuzzNot(f *testing.F) {}\n"),
		"bench/go.mod":               text("module bench\n"),
		"bench/a_test.go":            text("package b\n\nfunc FuzzOther(f *testing.F) {}\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []target{{"./internal/node", "FuzzPath"}, {"./internal/node", "FuzzPatch"}}
	if diff := cmp.Diff(want, found, cmp.AllowUnexported(target{})); diff != "" {
		t.Fatal(diff)
	}
}
