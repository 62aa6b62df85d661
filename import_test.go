package hubmesh_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/hubmesh/hubmesh"
	"github.com/hubmesh/hubmesh/internal/activity"
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

// edge §4
// A node that came without its type, as nobody knew it, gets it by an import after the type was made, and is told of
// until then. The space of the source is no exception.
func TestANodeThatWasImportedUntypedGetsItsTypeOnceThatIsThere(t *testing.T) {
	m, ctx := open(t, t.TempDir())
	src := files("ti.json", `{"nodeType":"Kinds/Ghost","content":{}}`, "ti/x.json", `{"nodeType":"Kinds/Ghost","content":{}}`, "ti/y.json", `{"content":{}}`)
	counts := func(name string, created, updated, unchanged, warnings int) {
		t.Helper()
		c := importFS(t, m, ctx, "", src, nil)
		addsUp(t, c)
		if n := c.Counts; n["created"] != created || n["updated"] != updated || n["unchanged"] != unchanged || n["warnings"] != warnings {
			t.Errorf("%s: %v %+v", name, c.Counts, c.Messages)
		}
	}
	counts("at first", 3, 0, 0, 2)
	counts("again", 0, 0, 3, 2)
	if _, err := m.Create(ctx, "Kinds", hubmesh.Space, map[string]any{}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Create(ctx, "Kinds/Ghost", "NodeType", map[string]any{}); err != nil {
		t.Fatal(err)
	}
	counts("with the type", 0, 2, 1, 0)
	for _, path := range []string{"ti", "ti/x"} {
		if n, err := m.Get(ctx, path); err != nil || n.NodeType != "Kinds/Ghost" {
			t.Errorf("%s: %q %v", path, n.NodeType, err)
		}
	}
	counts("the control", 0, 0, 3, 0)
}

// edge §4
// An activity of an import names every space that it has written to, and none that it has not.
func TestAnImportNamesEverySpaceThatItWroteTo(t *testing.T) {
	m, ctx := open(t, t.TempDir())
	src := files("ACME/a.json", `{"content":{}}`, "Brand.json", `{"nodeType":"Space"}`, "Northwind/x/y.json", `{"content":{}}`)
	if got := importFS(t, m, ctx, "", src, nil).Affected; !slices.Equal(got, []string{"Brand", "ACME", "Northwind"}) {
		t.Errorf("%v", got)
	}
	src["ACME/a.json"] = &fstest.MapFile{Data: []byte(`{"content":{"n":1}}`)}
	if got := importFS(t, m, ctx, "", src, nil).Affected; !slices.Equal(got, []string{"ACME"}) {
		t.Errorf("the control: %v", got)
	}
}

// edge §4
// An import of which every file is of no use lists each with its reason; one of nothing is refused.
func TestAnImportOfNothingButBadFilesListsThem(t *testing.T) {
	m, ctx := open(t, t.TempDir())
	c := importFS(t, m, ctx, "", files("q/~t.md", "text", "q/a\\b.md", "text"), nil)
	addsUp(t, c)
	if c.Status != activity.Failed || c.Counts["failed"] != 2 || len(c.Messages) != 2 || c.Messages[0].About == "" {
		t.Errorf("%s %v %+v", c.Status, c.Counts, c.Messages)
	}
	if _, err := m.ImportFS(ctx, "test", files("pic.png", "x"), "", nil); err == nil || !strings.Contains(err.Error(), "nothing to import") {
		t.Errorf("the control: %v", err)
	}
}

// AC-R1
// An import over HTTP ends with the token that it was started with, and with no other one.
func TestAnImportEndsWithTheTokenThatItWasStartedWith(t *testing.T) {
	for _, whose := range []string{"eve", "bob"} { // the second one is the control
		t.Run(whose, func(t *testing.T) {
			// The import stands where it asks the hub of a node for its collection, until it is let go.
			here, let := make(chan struct{}), make(chan struct{})
			var asked atomic.Int32
			e := serveMesh(t, hubmesh.Options{StartDelay: func(path string) time.Duration {
				if path != "many/sub" {
					return 0
				}
				if asked.Add(1) == 2 { // the first time tells whether there is a delay
					close(here)
					<-let
				}
				return 1
			}})
			e.known("eve")
			e.known("bob")
			e.grant("", "eve", "Admin")
			source, content := t.TempDir(), t.TempDir()
			if err := errors.Join(os.WriteFile(filepath.Join(source, "sub.json"), []byte(`{"content":{}}`), 0o600),
				os.Mkdir(filepath.Join(content, "sub"), 0o700), os.WriteFile(filepath.Join(content, "sub", "f.txt"), []byte("x"), 0o600)); err != nil {
				t.Fatal(err)
			}
			var started struct{ Activity string }
			a := e.send("eve", "POST", "/api/import", fmt.Sprintf(`{"source":%q,"content":%q,"into":"many"}`, source, content))
			if err := json.Unmarshal([]byte(a.body), &started); err != nil || started.Activity == "" {
				t.Fatalf("%d %s", a.status, a.body)
			}
			<-here
			if a := e.send("admin", "DELETE", "/api/tokens/"+e.ids[whose], ""); a.status != http.StatusNoContent {
				t.Fatalf("%d %s", a.status, a.body)
			}
			want := activity.Succeeded
			if whose == "eve" {
				want = activity.Cancelled
				saying(t, e, started.Activity, "was revoked")
			}
			close(let)
			if c := finished(t, e.mesh, e.admin, started.Activity); c.Status != want || (c.Counts["files"] == 1) != (want == activity.Succeeded) {
				t.Errorf("%s %v %+v", c.Status, c.Counts, c.Messages)
			}
		})
	}
}

// saying waits until the content of a node holds a text.
func saying(t *testing.T, e *edge, path, text string) {
	t.Helper()
	w, err := e.mesh.Watch(e.admin, path, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for {
		if n, err := e.mesh.Get(e.admin, path); err != nil || strings.Contains(n.Content.Text(), text) {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		if _, err := w.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// addsUp tells whether the counts of an import add up to the files that it considered.
func addsUp(t *testing.T, c activity.Content) {
	t.Helper()
	n := c.Counts
	if sum := n["created"] + n["updated"] + n["unchanged"] + n["failed"] + n["joined"] + n["passedOver"]; sum != n["considered"] {
		t.Errorf("%d were considered, %d counted: %v", n["considered"], sum, n)
	}
	if c.Done != c.Total {
		t.Errorf("it ended at %d of %d", c.Done, c.Total)
	}
}

// edge §4
func TestTheCountsOfAnImportAddUpToTheFilesThatItConsidered(t *testing.T) {
	m, ctx := open(t, t.TempDir())
	src := files(
		"x.json", `{"nodeType":"Space"}`, "x/index.md", "# Joined\n",
		"x/good.json", `{"content":{"a":1}}`, "x/other.md", "# Other\n",
		"x/both.json", `{"content":{}}`, "x/both.md", "# A document wins\n",
		"x/case.json", `{"content":{"n":1}}`, "x/case.JSON", `{"content":{"n":2}}`,
		"x/dup.md", "# Wins\n", "x/dup/index.md", "# Loses\n",
		"x/broken.json", `{"content":`, "x/broken.md", "---\nName: [\n---\n",
		"x/bad\\name.json", `{}`, "x/refused.json", `{"nodeType":"AccessAssignment","content":{}}`,
		"x/pic.png", "x", "x/.hidden", "x", ".git/a.json", "{}",
		"x/unknown.json", `{"nodeType":"Nowhere/Type","content":{}}`,
	)
	want := map[string]int{"considered": 16, "created": 7, "failed": 3, "joined": 1, "passedOver": 5, "warnings": 6}
	first := importFS(t, m, ctx, "", src, nil)
	addsUp(t, first)
	for name, n := range want {
		if first.Counts[name] != n {
			t.Errorf("%s: %d, want %d", name, first.Counts[name], n)
		}
	}
	if t.Failed() {
		t.Logf("%v %+v", first.Counts, first.Messages)
	}
	src["x/good.json"] = &fstest.MapFile{Data: []byte(`{"content":{"a":2}}`)}
	again := importFS(t, m, ctx, "", src, nil)
	addsUp(t, again)
	if again.Counts["updated"] != 1 || again.Counts["unchanged"] != 6 || again.Counts["failed"] != 3 {
		t.Errorf("%v", again.Counts)
	}
	// A space that can not be made fails, and so does each of its files; its own fault is no file's.
	refused := importFS(t, m, ctx, "", files("api/a.json", `{"content":{}}`, "x/new.json", `{"content":{}}`), nil)
	addsUp(t, refused)
	if refused.Counts["failed"] != 1 || refused.Counts["created"] != 1 || refused.Status != activity.Failed {
		t.Errorf("%v %+v", refused.Counts, refused.Messages)
	}
}

// edge §4
func TestAnImportWithMoreFailuresThanAreListedSaysSo(t *testing.T) {
	m, ctx := open(t, t.TempDir())
	src := files("x/good.md", "# Good\n")
	for i := range 700 {
		src[fmt.Sprintf("x/pic%d.png", i)] = &fstest.MapFile{Data: []byte("x")}
	}
	for i := range 1300 {
		src[fmt.Sprintf("x/broken%d.json", i)] = &fstest.MapFile{Data: []byte("{")}
	}
	c := importFS(t, m, ctx, "", src, nil)
	addsUp(t, c)
	if c.Counts["failed"] != 1300 || c.Counts["created"] != 1 || c.Counts["passedOver"] != 700 {
		t.Errorf("%v", c.Counts)
	}
	last := c.Messages[len(c.Messages)-1]
	if c.Dropped != 1000 || len(c.Messages) != 1001 || last.Level != "error" || last.Text != "1000 more messages are not listed, 800 of them errors" {
		t.Errorf("%d dropped, %d listed, the last %+v", c.Dropped, len(c.Messages), last)
	}
	count := 0
	for _, l := range c.Messages {
		if l.Level == "error" {
			count++
		}
	}
	if count != 501 { // warnings, which come first, leave room for them
		t.Errorf("%d errors are listed", count)
	}
	// The control: with fewer there is no such line.
	few := importFS(t, m, ctx, "Few", files("a.json", "{", "b.md", "b"), nil)
	if few.Dropped != 0 || len(few.Messages) != 1 {
		t.Errorf("%+v", few.Messages)
	}
}

// bad input: a document that is too large
func TestADocumentThatIsTooLargeIsNotCalledInvalidJSON(t *testing.T) {
	m, ctx := open(t, t.TempDir())
	c := importFS(t, m, ctx, "", files("x/large.md", strings.Repeat("a", 1<<20), "x/large2.json", `{"content":"`+strings.Repeat("a", 1<<20)+`"}`,
		"x/huge.md", strings.Repeat("a", 5<<20), "x/deep.md", "---\na: "+strings.Repeat("[", 300)+strings.Repeat("]", 300)+"\n---\n"), nil)
	addsUp(t, c)
	if c.Counts["failed"] != 4 {
		t.Errorf("%v", c.Counts)
	}
	want := map[string]string{"x/large.md": "too large", "x/large2.json": "too large", "x/huge.md": "has at most", "x/deep.md": "deeper than 200 levels"}
	for _, l := range c.Messages {
		if strings.Contains(l.Text, "JSON") || !strings.Contains(l.Text, want[l.About]) {
			t.Errorf("%s: %s", l.About, l.Text)
		}
	}
}

// edge §4
func TestContentThatIsInNoFolderOfANodeIsTold(t *testing.T) {
	m, ctx := open(t, t.TempDir())
	c := importFS(t, m, ctx, "", files("x/a.md", "a"), files("x/f.txt", "f", "loose.txt", "l", "bad~name/g.txt", "g", ".hidden", "h"))
	if c.Counts["files"] != 1 || c.Counts["filesFailed"] != 1 || c.Counts["warnings"] != 1 || c.Status != activity.Failed {
		t.Errorf("%v %+v", c.Counts, c.Messages)
	}
}

// edge §4, CR-3
// What could be listed and not asked for is not copied: it fails alone, with its reason.
func TestAContentFileWhoseAddressCanNotBeAskedForIsNotCopied(t *testing.T) {
	e := serveMesh(t, hubmesh.Options{})
	bad := []string{"a~b.txt", "~tmp.txt", " lead.txt", "ctl\x01.txt", "x%2fy.txt", "dir~/f.txt"}
	content := files("x/ok.txt", "ok", "x/100%.txt", "ok", "x/.dot", "ok")
	for _, name := range bad {
		content["x/"+name] = &fstest.MapFile{Data: []byte("x")}
	}
	got := importFS(t, e.mesh, e.admin, "", files("x/a.md", "a", "x.json", `{"nodeType":"Space"}`), content)
	if got.Counts["files"] != 3 || got.Counts["filesFailed"] != len(bad) {
		t.Errorf("%v %+v", got.Counts, got.Messages)
	}
	for _, l := range got.Messages {
		if !strings.Contains(l.Text, "is not a file name: ") {
			t.Errorf("%+v", l)
		}
	}
	var list struct{ Entries []struct{ Name, URL string } }
	if err := json.Unmarshal([]byte(e.send("admin", "GET", "/api/files/x", "").body), &list); err != nil || len(list.Entries) != 3 {
		t.Fatalf("%v %+v", err, list)
	}
	for _, entry := range list.Entries {
		if s := e.send("admin", "GET", entry.URL, ""); s.status != 200 {
			t.Errorf("%s: %d", entry.URL, s.status)
		}
	}
}
