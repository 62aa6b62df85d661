package content

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
)

func (r *rig) remove(path node.Path, recursive bool) {
	r.t.Helper()
	if _, err := r.nodes.Delete(r.admin, path, recursive, nodehub.Condition{}); err != nil {
		r.t.Fatal(err)
	}
}

// stored are the files below a folder of the content folder.
func (r *rig) stored(dir string) (files []string) {
	r.t.Helper()
	root := r.content.root.Name()
	err := filepath.WalkDir(filepath.Join(root, dir), func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it is removed meanwhile
		}
		if err == nil && !d.IsDir() {
			p, err = filepath.Rel(root, p)
			files = append(files, p)
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return files
}

// again is a new service on the same folder, as after a new start; its background work has ended.
func (r *rig) again(change func(root string)) {
	r.t.Helper()
	old := r.content
	if err := old.Close(); err != nil {
		r.t.Fatal(err)
	}
	change(old.root.Name())
	var err error
	if r.content, err = New(Options{Mesh: r.mesh, Resolver: r.resolver, Owners: r.asked, Permissions: r.nodes, Reads: r.service.Reads(), Dir: old.root.Name()}); err != nil {
		r.t.Fatal(err)
	}
	t := r.content.trash
	t.sweepAll(r.store)
	if err := t.empty(trashDir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.t.Fatal(err)
	}
}

// edge §4
// data §1.4
// The files of a deleted node do not come back to who makes a node there anew, neither those in its own
// collections nor those that lie at its place in a collection that is passed on to it. The node's
// neighbours keep theirs, and the bytes leave the disk.
func TestTheFilesOfADeletedNodeDoNotComeBack(t *testing.T) {
	r := newRig(t, nil)
	if err := r.nodes.EnsureCollection(r.admin, "acme", nodehub.Collection{Name: "based", SourceType: "folder", BasePath: "b/c", IsStatic: true, IsEditable: true, IsInherited: true}); err != nil {
		t.Fatal(err)
	}
	if err := r.nodes.EnsureCollection(r.admin, "acme", nodehub.Collection{Name: "own", SourceType: "folder", IsStatic: true, IsEditable: true}); err != nil {
		t.Fatal(err)
	}
	r.create("acme/doc2")
	r.put("acme/doc2", "content", "x.txt", "neighbour")
	r.put("acme/doc", "content", "top.txt", "old")
	r.put("acme/doc", "based", "top.txt", "old")
	r.put("acme", "own", "doc/kept.txt", "a folder of acme that has the name by chance")
	if err := r.nodes.EnsureCollection(r.admin, "acme/doc", nodehub.Collection{Name: "media", SourceType: "folder", IsStatic: true, IsEditable: true}); err != nil {
		t.Fatal(err)
	}
	r.put("acme/doc", "media", "top.txt", "old")
	r.remove("acme/doc", true)
	r.create("acme/doc")
	if err := r.nodes.EnsureCollection(r.admin, "acme/doc", nodehub.Collection{Name: "media", SourceType: "folder", IsStatic: true, IsEditable: true}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"acme/doc/top.txt", "acme/doc/page.svg", "acme/doc/based/top.txt", "acme/doc/media/top.txt"} {
		if got, err := r.read(r.admin, path); !isNotFound(err) {
			t.Errorf("%s: %q %v", path, got, err)
		}
	}
	r.mustRead("acme/own/doc/kept.txt", "a folder of acme that has the name by chance")
	r.mustRead("acme/doc2/x.txt", "neighbour")
	r.mustRead("acme/hello.txt", "hello")
	r.again(func(string) {})
	if left := r.stored(trashDir); left != nil {
		t.Fatalf("left on the disk: %v", left)
	}
}

// edge §4
func TestTheFilesOfADeletedSpaceDoNotComeBackToWhoMakesItAnew(t *testing.T) {
	r := newRig(t, nil)
	r.remove("acme", true)
	if files := r.stored("acme"); files != nil {
		t.Fatalf("there are still %v", files)
	}
	if _, err := r.nodes.Create(r.admin, node.Node{Path: "acme", NodeType: node.TypeSpace, Content: node.RawContent("{}")}); err != nil {
		t.Fatal(err)
	}
	r.put("acme", "content", "mine.txt", "mine")
	list, err := r.content.List(r.admin, "acme", "content", "")
	if err != nil || len(list) != 1 || list[0].Name != "mine.txt" {
		t.Fatalf("%+v %v", list, err)
	}
}

// edge §4
// Not to be passed on, or to have no configuration any more, is not to be deleted.
func TestACollectionThatIsUnpublishedKeepsItsFiles(t *testing.T) {
	r := newRig(t, nil)
	r.remove("acme/_Content/content", false)
	if err := r.nodes.EnsureCollection(r.admin, "acme", nodehub.Collection{Name: "content", SourceType: "folder", IsStatic: true}); err != nil {
		t.Fatal(err)
	}
	r.mustRead("acme/hello.txt", "hello")
}

// edge §4
// The deletion is parked inside of the upload: between its first byte and its last.
func TestAnUploadThatADeletionOvertakesLeavesNothing(t *testing.T) {
	r := newRig(t, nil)
	for _, file := range []string{"late.txt", "further/late.txt"} {
		body := &meanwhile{do: func() { r.remove("acme/doc", true) }, Reader: strings.NewReader("late")}
		if _, _, err := r.content.Put(r.admin, "acme/doc", "content", file, body); !isNotFound(err) {
			t.Fatalf("it was stored: %v", err)
		}
		r.create("acme/doc")
		if _, err := r.read(r.admin, "acme/doc/"+file); !isNotFound(err) {
			t.Fatal(err)
		}
	}
	// Through the owner of the collection it is a file of the node all the same.
	body := &meanwhile{do: func() { r.remove("acme/doc", true) }, Reader: strings.NewReader("late")}
	if _, _, err := r.content.Put(r.admin, "acme", "content", "doc/late.txt", body); !isNotFound(err) {
		t.Fatalf("it was stored: %v", err)
	}
	if left := r.stored(uploadsDir); left != nil {
		t.Fatalf("left: %v", left)
	}
	// And a deletion of another node is none of its business.
	r.create("acme/doc")
	r.create("acme/other")
	body = &meanwhile{do: func() { r.remove("acme/other", true) }, Reader: strings.NewReader("fine")}
	if _, _, err := r.content.Put(r.admin, "acme/doc", "content", "x.txt", body); err != nil {
		t.Fatal(err)
	}
}

// meanwhile does something before it is read.
type meanwhile struct {
	io.Reader
	do func()
}

func (m *meanwhile) Read(b []byte) (int, error) {
	if m.do != nil {
		m.do()
		m.do = nil
	}
	return m.Reader.Read(b)
}

// fault 43
// What an end of the process leaves is gone after the next start: an unfinished upload, what was in the
// trash, and the files of a node that was deleted. Where no tombstone says so they stay.
func TestWhatAnEndOfTheProcessLeavesIsGoneAfterTheNextStart(t *testing.T) {
	r := newRig(t, nil)
	r.create("acme/missing/there")
	r.put("acme/missing/there", "content", "x.txt", "kept")
	r.create("acme/gone")
	r.create("acme/far/gone")
	r.remove("acme/gone", true)
	r.remove("acme/far", true)
	r.again(func(root string) {
		for _, file := range []string{uploadsDir + "/x", trashDir + "/y/z/x", "acme/gone/~content/x.txt", "acme/gone/~media/x.txt",
			"acme/~~/content/gone/~/x.txt", "acme/~~/based~0/gone/~/d/x.txt", "acme/~~/content/far/gone/~/x.txt", "acme/~~/content/missing/~/x.txt", "acme/missing/~content/x.txt", "nowhere/~content/x"} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, file), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
	// Nothing says that there ever was a node at "missing" and "nowhere": a database that was lost would say
	// the same.
	want := "acme/missing/~content/x.txt acme/~content/hello.txt acme/~~/content/doc/~/page.svg acme/~~/content/missing/there/~/x.txt acme/~~/content/missing/~/x.txt nowhere/~content/x"
	if got := strings.Join(r.stored("."), " "); got != want {
		t.Fatalf("%s, want %s", got, want)
	}
}

// data §2.2
// A fault of the store says nothing about a node: its files stay.
func TestAStoreThatCanNotAnswerLosesNoFiles(t *testing.T) {
	r := newRig(t, nil)
	r.put("acme/doc", "content", "x.txt", "kept")
	before := len(r.stored("."))
	r.content.trash.sweepAll(noRows{r.store})
	if got := r.stored("."); len(got) != before {
		t.Fatalf("%v, of %d", got, before)
	}
}

// noRows can not tell.
type noRows struct{ Rows }

func (noRows) Read(context.Context, node.Path) (node.Node, error) {
	return node.Node{}, errors.New("the store is away")
}

// data §1.1
// A file whose size is the same and whose time is an older one is another file: it is copied.
func TestAChangedFileOfTheSameSizeAndAnOlderTimeIsCopied(t *testing.T) {
	r := newRig(t, nil)
	now := time.Now()
	in := func(text string, at time.Time, copied, same int) {
		t.Helper()
		src := fstest.MapFS{"f.txt": {Data: []byte(text), ModTime: at}}
		c, s, err := r.content.CopyIn(r.admin, "acme", "content", "sub", src, func(file string, err error) { t.Error(file, err) })
		if err != nil || c != copied || s != same {
			t.Fatalf("%s: %d copied, %d the same, %v", text, c, s, err)
		}
		r.mustRead("acme/sub/f.txt", text)
	}
	in("aaa", now, 1, 0)
	in("aaa", now, 0, 1)
	in("bbb", now.Add(-time.Hour), 1, 0)
	in("bbb", now.Add(-2*time.Hour), 0, 1) // touched, not changed
	in("ccc", now.Add(-2*time.Hour).Add(time.Second), 1, 0)
	r.remove("acme", true)
	src := fstest.MapFS{"f.txt": {Data: []byte("x")}}
	if _, _, err := r.content.CopyIn(r.admin, "acme", "content", "", src, nil); err == nil {
		t.Fatal("copied to a node that is not there")
	}
}

// edge §2.2
// The folder of a long path segment is nobody's collection: no collection can be configured onto it.
func TestNoCollectionLiesWhereALongSegmentDoes(t *testing.T) {
	long := node.Path("acme/" + strings.Repeat("s", 210))
	at, err := collectionDir(long, "content")
	if err != nil {
		t.Fatal(err)
	}
	folder := strings.Split(at, "/")[1]
	if _, err := diskPath("acme", strings.TrimPrefix(folder, "~"), "~content", "x.txt"); err == nil {
		t.Fatalf("a collection lies at %s", folder)
	}
	if _, err := diskPath("acme", "h"+strings.Repeat("z", 64), "", "x.txt"); err != nil {
		t.Fatal(err)
	}
}
