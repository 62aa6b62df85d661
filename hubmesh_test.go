package hubmesh_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"

	"github.com/hubmesh/hubmesh"
	"github.com/hubmesh/hubmesh/internal/activity"
	"github.com/hubmesh/hubmesh/internal/store"
)

func TestMain(m *testing.M) {
	// The SQLite driver keeps nothing running; the HTTP client of other tests closes what it opens.
	goleak.VerifyTestMain(m)
}

// open starts a mesh in a folder, with its first Admin.
func open(t *testing.T, dir string) (*hubmesh.Mesh, context.Context) {
	t.Helper()
	m, err := hubmesh.New(hubmesh.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := m.Grant(hubmesh.AsSystem(t.Context()), "", "admin", "Admin"); err != nil {
		t.Fatal(err)
	}
	return m, hubmesh.As(t.Context(), "admin")
}

// finished waits for an activity and returns its content.
func finished(t *testing.T, m *hubmesh.Mesh, ctx context.Context, path string) activity.Content {
	t.Helper()
	w, err := m.Watch(ctx, path, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for {
		if _, err := w.Next(ctx); err != nil {
			t.Fatal(err)
		}
		n, err := m.Get(ctx, path)
		if err != nil {
			t.Fatal(err)
		}
		var c activity.Content
		if err := n.Content.Decode(&c); err != nil {
			t.Fatal(err)
		}
		if c.Status.Terminal() {
			return c
		}
	}
}

func files(pairs ...string) fstest.MapFS {
	out := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return out
}

func importFS(t *testing.T, m *hubmesh.Mesh, ctx context.Context, into string, src, content fstest.MapFS) activity.Content {
	t.Helper()
	var c fs.FS
	if content != nil {
		c = content
	}
	path, err := m.ImportFS(ctx, "the test", src, into, c)
	if err != nil {
		t.Fatal(err)
	}
	return finished(t, m, ctx, path)
}

var tree = files(
	"shop.json", `{"name":"Shop","nodeType":"Space","content":{"$type":"Space"}}`,
	"shop/index.md", "---\nName: ignored\n---\n# Welcome\n",
	"shop/Order.json", `{"nodeType":"NodeType","content":{"schema":{"required":["total"]}}}`,
	"shop/o-1.json", `{"nodeType":"shop/Order","content":{"total":1}}`,
	"shop/Dr. Käse's/notes.md", "# Notes\nText.",
	"shop/_Access/Bob_Access.json", `{"nodeType":"AccessAssignment","content":{"accessObject":"Bob","roles":[{"role":"Viewer"}]}}`,
	"lone/deep/x.md", "plain",
)

// edge §4
func TestAnImportMakesSpacesTypesDocumentsAndLiveAssignments(t *testing.T) {
	m, ctx := open(t, t.TempDir())
	if c := importFS(t, m, ctx, "", tree, files("shop/logo.svg", "<svg/>")); c.Status != activity.Succeeded || c.Counts["created"] != 6 || c.Counts["files"] != 1 {
		t.Fatalf("%+v", c)
	}
	n, err := m.Get(ctx, "shop")
	if err != nil || n.Name != "Shop" || !strings.Contains(n.Content.Text(), "# Welcome") {
		t.Fatalf("%+v %v", n, err)
	}
	n, err = m.Get(hubmesh.As(t.Context(), "Bob"), "shop/Dr. Käse's/notes")
	if err != nil || n.Name != "Notes" {
		t.Fatalf("%+v %v", n, err)
	}
	if _, err := m.Get(hubmesh.As(t.Context(), "Eve"), "shop"); !errors.As(err, new(*store.NotFoundError)) {
		t.Fatal(err)
	}
	if n, err := m.Get(ctx, "lone"); err != nil || n.NodeType != hubmesh.Space {
		t.Fatalf("the missing space: %+v %v", n, err)
	}
}

// edge §4
func TestAnUnchangedImportWritesNothingKeepsEditsAndHealsWhatVanished(t *testing.T) {
	m, ctx := open(t, t.TempDir())
	importFS(t, m, ctx, "", tree, nil)
	edited, err := m.Patch(ctx, "shop/o-1", map[string]any{"content": map[string]any{"total": 2}}, hubmesh.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Delete(ctx, "lone/deep/x", false); err != nil {
		t.Fatal(err)
	}
	c := importFS(t, m, ctx, "", tree, nil)
	if c.Counts["created"]+c.Counts["updated"] != 1 || c.Counts["unchanged"] != 5 {
		t.Fatalf("%+v", c.Counts)
	}
	if n, err := m.Get(ctx, "shop/o-1"); err != nil || n.Version != edited.Version {
		t.Fatalf("somebody's edit was overwritten: %+v %v", n, err)
	}
	if n, err := m.Get(ctx, "lone/deep/x"); err != nil || n.Version != 3 {
		t.Fatalf("not healed, or two lives share a version: %+v %v", n, err)
	}
	changed := files()
	for k, v := range tree {
		changed[k] = v
	}
	changed["shop/o-1.json"] = &fstest.MapFile{Data: []byte(`{"nodeType":"shop/Order","content":{"total":9}}`)}
	if c := importFS(t, m, ctx, "", changed, nil); c.Counts["updated"] != 1 {
		t.Fatalf("%+v", c.Counts)
	}
}

// edge §4
func TestABrokenFileFailsAloneWithItsNameAndReason(t *testing.T) {
	m, ctx := open(t, t.TempDir())
	src := files(
		"s/good.json", `{"content":{"a":1}}`,
		"s/broken.json", `{"content":`,
		"s/twice.json", `{"content":{"a":1,"a":2}}`,
		"s/front.md", "---\nName: [\n---\ntext",
		"s/open.md", "---\nName: x\ntext",
		"s/bad\\name.json", `{}`,
		"s/type.json", `{"nodeType":"Nowhere/Type","content":{}}`,
		"s/binary.exe", "x",
		"s/deep.json", `{"content":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+`}`,
	)
	c := importFS(t, m, ctx, "into/here", src, nil)
	if c.Status != activity.Failed || c.Counts["failed"] != 6 || c.Counts["created"] != 2 {
		t.Fatalf("%s %+v\n%+v", c.Status, c.Counts, c.Messages)
	}
	about := map[string]string{}
	for _, l := range c.Messages {
		about[l.About] = l.Level
	}
	for file, level := range map[string]string{"s/broken.json": "error", "s/twice.json": "error", "s/front.md": "error", "s/open.md": "error", "s/deep.json": "error", "s/type.json": "warning", "s/binary.exe": "warning"} {
		if about[file] != level {
			t.Errorf("%s: %q, want %q", file, about[file], level)
		}
	}
	if n, err := m.Get(ctx, "into/here/s/type"); err != nil || n.NodeType != "" {
		t.Fatalf("%+v %v", n, err)
	}
}

// edge §4
func TestOnlyAnAdminOfTheRootImportsAndTheActivityIsItsOwnWork(t *testing.T) {
	m, ctx := open(t, t.TempDir())
	if err := m.Grant(ctx, "shop", "ed", "Editor"); err == nil {
		t.Fatal("an assignment in a space that is not there")
	}
	importFS(t, m, ctx, "", tree, nil)
	if err := m.Grant(ctx, "shop", "ed", "Editor"); err != nil {
		t.Fatal(err)
	}
	ed := hubmesh.As(t.Context(), "ed")
	if _, err := m.ImportFS(ed, "x", tree, "", nil); err == nil {
		t.Fatal("an Editor imports")
	}
	rows, err := m.Query(ctx, "nodeType:Activity scope:subtree")
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	for _, patch := range []string{`{"content":{"status":"Running"}}`, `{"name":"x"}`, `{"content":{"requestedStatus":"Failed"}}`, `{"content":{"requestedStatus":"Cancelled","done":0}}`} {
		if _, err := m.Patch(ctx, string(rows[0].Path), json.RawMessage(patch), hubmesh.Condition{}); !errors.As(err, new(*activity.OwnerError)) {
			t.Errorf("%s: %v", patch, err)
		}
	}
	n, err := m.Patch(ctx, string(rows[0].Path), json.RawMessage(`{"content":{"requestedStatus":"Cancelled"}}`), hubmesh.Condition{})
	if err != nil || !strings.Contains(n.Content.Text(), `"Succeeded"`) {
		t.Fatalf("a terminal status stays: %v %v", n.Content, err)
	}
}

// data §2.4
func TestWhatWasAcknowledgedIsThereAfterReopening(t *testing.T) {
	dir := t.TempDir()
	func() {
		m, err := hubmesh.New(hubmesh.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close(context.Background())
		ctx := hubmesh.AsSystem(t.Context())
		if _, err := m.Create(ctx, "acme", hubmesh.Space, map[string]any{}); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Patch(ctx, "acme", map[string]any{"name": "Acme"}, hubmesh.Condition{}); err != nil {
			t.Fatal(err)
		}
		if err := m.Grant(ctx, "acme", "bob", "Viewer"); err != nil {
			t.Fatal(err)
		}
		if second, err := hubmesh.New(hubmesh.Options{Dir: dir}); err == nil {
			second.Close(context.Background())
			t.Fatal("two processes on one folder")
		}
	}()
	m, _ := open(t, dir)
	n, err := m.Get(hubmesh.As(t.Context(), "bob"), "acme")
	if err != nil || n.Version != 2 || n.Name != "Acme" {
		t.Fatalf("%+v %v", n, err)
	}
}

// locked is a tree with a folder that can not be read.
type locked struct {
	all fstest.MapFS
	dir string
}

func (l locked) Open(name string) (fs.File, error) { return l.all.Open(name) }

func (l locked) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == l.dir {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrPermission}
	}
	return l.all.ReadDir(name)
}

// edge §4
func TestAFolderThatCannotBeReadFailsAloneAmongNodesAndFiles(t *testing.T) {
	m, ctx := open(t, t.TempDir())
	src := locked{files("imp/a.md", "a", "imp/locked/b.md", "b", "imp/z.md", "z"), "imp/locked"}
	content := locked{files("imp/a.txt", "a", "imp/locked/b.txt", "b", "imp/z.txt", "z"), "imp/locked"}
	path, err := m.ImportFS(ctx, "the test", src, "", content)
	if err != nil {
		t.Fatal(err)
	}
	c := finished(t, m, ctx, path)
	if c.Counts["created"] != 2 || c.Counts["files"] != 2 || c.Counts["failed"] != 1 || c.Counts["filesFailed"] != 1 {
		t.Errorf("%+v", c)
	}
	for _, line := range c.Messages {
		if line.About != "imp/locked" || line.Level != "error" {
			t.Errorf("%+v", line)
		}
	}
}

// edge §4
func TestImportsOfOneTreeAtATimeMakeEachNodeOnce(t *testing.T) {
	m, ctx := open(t, t.TempDir())
	const imports = 4
	paths := make([]string, imports)
	var starting sync.WaitGroup
	for i := range imports {
		starting.Go(func() {
			var err error
			if paths[i], err = m.ImportFS(ctx, "the test", tree, "", nil); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	if t.Failed() {
		return
	}
	created := 0
	for _, path := range paths {
		c := finished(t, m, ctx, path)
		if c.Counts["failed"] != 0 {
			t.Errorf("%+v", c)
		}
		created += c.Counts["created"]
	}
	if created != len(tree)-1 { // shop.json and shop/index.md are one node
		t.Errorf("%d nodes were counted as made", created)
	}
	for _, path := range []string{"shop", "shop/Order", "shop/o-1", "lone/deep/x"} {
		if n, err := m.Get(ctx, path); err != nil || n.Version != 1 {
			t.Errorf("%s: version %d, %v", path, n.Version, err)
		}
	}
}
