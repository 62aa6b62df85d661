package main

import (
	"strings"
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

func TestANameWithoutATargetIsRefusedWithTheNamesThereAre(t *testing.T) {
	all := []target{{"./internal/node", "FuzzPath"}, {"./internal/node", "FuzzPatch"}, {"./internal/query", "FuzzParse"}}
	for _, names := range [][]string{{"./internal/query"}, {"internal/query/"}} {
		if got, err := named(all, names); err != nil || len(got) != 1 || got[0].name != "FuzzParse" {
			t.Errorf("%v: %v %v", names, got, err)
		}
	}
	if got, err := named(all, nil); err != nil || len(got) != 3 {
		t.Errorf("%v %v", got, err)
	}
	if _, err := named(all, []string{"./internal/query", "./nowhere"}); err == nil || !strings.Contains(err.Error(), "./nowhere has no fuzz target; these have: ./internal/node ./internal/query") {
		t.Errorf("%v", err)
	}
}
