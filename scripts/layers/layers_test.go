package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// files writes a module into memory: pairs of name and text; each package gets a doc.go.
func files(pairs ...string) fstest.MapFS {
	root := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		root[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
		dir := pairs[i][:strings.LastIndex(pairs[i], "/")+1]
		if _, ok := root[dir+"doc.go"]; !ok {
			root[dir+"doc.go"] = &fstest.MapFile{Data: []byte("package x\n")}
		}
	}
	return root
}

func importing(target string) string {
	return "package x\nimport _ \"" + target + "\"\n"
}

func own(dir string) string { return importing(module + "/" + dir) }

func TestTheCheckFindsWhatBreaksTheShape(t *testing.T) {
	tests := []struct {
		name string
		root fstest.MapFS
		want string // part of the only finding; "" is none
	}{
		{"an arrow downwards is fine", files("internal/hub/a.go", own("internal/node")), ""},
		{"an arrow upwards is named", files("internal/store/a.go", own("internal/hub")),
			"internal/store (floor 1) imports internal/hub (floor 2): the arrow points upwards"},
		{"a test's arrow counts too", files("internal/node/a_test.go", own("internal/store")),
			"internal/node (floor 0) imports internal/store (floor 1)"},
		{"a test that is a package of its own puts floors together", files("internal/node/a_test.go", strings.Replace(own("internal/store"), "package x", "package x_test", 1)), ""},
		{"access does not know store", files("internal/access/a.go", own("internal/store")), "both on floor 1"},
		{"a store stands on the contract", files("internal/store/sqlite/a.go", own("internal/store")), ""},
		{"the contract may know queries", files("internal/store/a.go", own("internal/query")), ""},
		{"the contract may not know its implementations", files("internal/store/a.go", own("internal/store/memory")), "the arrow points upwards"},
		{"two stores stand alone", files("internal/store/sqlite/a.go", own("internal/store/memory")), "both on floor 2"},
		{"parts of one package may know each other", files("internal/cluster/claim/a.go", own("internal/cluster/directory")), ""},
		{"a mirror may use route", files("internal/mirror/a.go", own("internal/route")), ""},
		{"route may not use a mirror", files("internal/route/a.go", own("internal/mirror")), "both on floor 3"},
		{"the HTTP layer and sign-in stand alone", files("internal/httpapi/a.go", own("internal/auth")), "both on floor 5"},
		{"floor 0 stands on the standard library", files("internal/node/a.go", importing("golang.org/x/text/unicode/norm")),
			"this floor stands on the standard library alone"},
		{"a test of floor 0 may compare with a library", files("internal/node/a_test.go", importing("github.com/google/go-cmp/cmp")), ""},
		{"a package without a floor is asked for one", fstest.MapFS{"internal/mystery/doc.go": {Data: []byte("package x\nimport _ \"fmt\"\n")}}, "internal/mystery has no floor"},
		{"the binary may import everything", files("cmd/hubmesh/a.go", own("internal/httpapi")), ""},
		{"the client stays light", files("client/a.go", own("internal/node")), "what stands under client/ may import of this module nothing only"},
		{"an example uses what others use", files("examples/orders/main.go", importing(module)), ""},
		{"an example does not look inside", files("examples/orders/main.go", own("internal/hub")), "what stands under examples/"},
		{"only the top knows the page", files("internal/httpapi/a.go", own("web")), "only the top may"},
		{"another module is not ours to check", fstest.MapFS{
			"bench/go.mod": {Data: []byte("module b\n")}, "bench/a.go": {Data: []byte(own("internal/hub"))}}, ""},
		{"a package has a doc.go", fstest.MapFS{"internal/hub/a.go": {Data: []byte("package hub\n")}}, "internal/hub has no doc.go"},
		{"a package of one file may be described there", fstest.MapFS{"web/embed.go": {Data: []byte("// Package web is the page.\npackage web\n")}}, ""},
		{"a package name says what is inside", files("internal/hub/helpers/a.go", "package helpers\n"), "package helpers says nothing"},
		{"a long file is split", files("internal/hub/a.go", "package hub\n"+strings.Repeat("\n", 600)), "601 lines, more than 600"},
		{"a file of 600 lines may stay", files("internal/hub/a.go", "package hub\n"+strings.Repeat("\n", 599)), ""},
		{"a test does not sleep", files("internal/hub/a_test.go", "package hub\nimport \"time\"\nfunc f() { time.Sleep(1) }\n"), "a.go"},
		{"code may sleep where it must", files("internal/hub/a.go", "package hub\nimport \"time\"\nfunc f() { time.Sleep(1) }\n"), ""},
		{"a deadline has a name", files("internal/hub/a.go", "package hub\nimport \"context\"\nvar f = context.WithTimeout\n"), "names no bound"},
		{"a deadline with a cause has one", files("internal/hub/a.go", "package hub\nimport \"context\"\nvar f = context.WithTimeoutCause\n"), ""},
		{"the budget makes deadlines", files("internal/budget/a.go", "package budget\nimport \"context\"\nvar f = context.WithTimeout\n"), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			loaded, err := load(test.root)
			if err != nil {
				t.Fatal(err)
			}
			found := check(loaded)
			switch {
			case test.want == "" && len(found) > 0:
				t.Fatalf("found %q, want nothing", found)
			case test.want == "":
			case len(found) != 1:
				t.Fatalf("found %q, want one finding with %q", found, test.want)
			case test.want == "a.go": // the sentence about sleeping names the line
				if !strings.Contains(found[0], "a_test.go:3:") || !strings.Contains(found[0], "does not sleep") {
					t.Fatalf("found %q, want the line that sleeps", found[0])
				}
			case !strings.Contains(found[0], test.want):
				t.Fatalf("found %q, want %q", found[0], test.want)
			}
		})
	}
}

func TestAFileThatDoesNotParseIsAFaultOfItsOwn(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(files("internal/hub/a.go", "package\n"), &out, &errs); code != 2 {
		t.Fatalf("exit code %d, want 2: %s", code, errs.String())
	}
}

func TestThisModuleKeepsToItsFloors(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(os.DirFS("../.."), &out, &errs); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, errs.String())
	}
}
