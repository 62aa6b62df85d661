package content

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

// configure replaces the configuration of a collection.
func (r *rig) configure(at node.Path, change func(*nodehub.Collection)) {
	r.t.Helper()
	c := nodehub.Collection{Name: "content", SourceType: "folder", IsStatic: true, IsEditable: true, IsInherited: true}
	change(&c)
	text := `{"sourceType":"folder","basePath":"` + c.BasePath + `"`
	for name, on := range map[string]bool{"isStatic": c.IsStatic, "isEditable": c.IsEditable, "isInherited": c.IsInherited} {
		if on {
			text += `,"` + name + `":true`
		}
	}
	n := node.Node{Path: at + "/_Content/" + node.Path(c.Name), NodeType: nodehub.TypeCollection, Content: node.RawContent(text + "}")}
	if _, _, err := r.nodes.Put(r.admin, n, nodehub.Condition{}); err != nil {
		r.t.Fatal(err)
	}
}

// edge §4
// data §1.4
// What a node's files in a collection of a node above are is told by what is on disk, and not by how that
// collection is configured when the node is deleted.
func TestTheFilesOfADeletedNodeDoNotComeBackHoweverTheCollectionIsConfiguredMeanwhile(t *testing.T) {
	for name, meanwhile := range map[string]func(r *rig){
		"not passed on": func(r *rig) { r.configure("acme", func(c *nodehub.Collection) { c.IsInherited = false }) },
		"another base":  func(r *rig) { r.configure("acme", func(c *nodehub.Collection) { c.BasePath = "b" }) },
		"no configuration, and a new start": func(r *rig) {
			r.remove("acme/_Content/content", false)
			r.again(func(string) {})
		},
		"the control: as it was": func(r *rig) {},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.put("acme/doc", "content", "further/x.txt", "old")
			r.mustRead("acme/doc/page.svg", "<svg/>")
			meanwhile(r)
			r.remove("acme/doc", true)
			r.configure("acme", func(*nodehub.Collection) {})
			r.create("acme/doc")
			for _, path := range []string{"acme/doc/page.svg", "acme/doc/further/x.txt", "acme/content/doc/page.svg"} {
				if got, err := r.read(r.admin, path); !isNotFound(err) {
					t.Errorf("%s: %q %v", path, got, err)
				}
			}
			r.mustRead("acme/hello.txt", "hello") // of the owner
		})
	}
}

// edge §4
// data §1.4
// What lay in a folder of an inherited collection before there was a node is the collection's owner's: it
// stays when the node goes. What came while the node was there goes with it, a replacement included.
func TestADeletedNodeTakesOnlyWhatCameWhileItWasThere(t *testing.T) {
	r := newRig(t, nil)
	r.put("acme", "content", "images/logo.png", "the owner's")
	r.put("acme", "content", "images/in/deep.png", "the owner's")
	r.put("acme", "content", "images/replaced.png", "the owner's")
	r.create("acme/images")
	r.mustRead("acme/images/logo.png", "the owner's")
	r.put("acme/images", "content", "new.png", "the node's")
	r.put("acme/images", "content", "in/new.png", "the node's")
	r.put("acme", "content", "images/through.png", "the node's")
	if created, _, err := r.content.Put(r.admin, "acme/images", "content", "replaced.png", strings.NewReader("the node's")); err != nil || created {
		t.Fatal(created, err)
	}
	r.mustRead("acme/images/replaced.png", "the node's")
	r.mustRead("acme/content/images/replaced.png", "the node's")
	r.wantFiles("acme", "images", "in/ logo.png new.png replaced.png through.png")
	r.wantFiles("acme/images", "in", "deep.png new.png")
	for range 2 {
		r.remove("acme/images", true)
		r.wantFiles("acme", "images", "in/ logo.png replaced.png")
		r.wantFiles("acme", "", "doc/ images/ hello.txt")
		r.create("acme/images")
		r.wantFiles("acme/images", "", "in/ logo.png replaced.png")
		r.wantFiles("acme/images", "in", "deep.png")
		r.mustRead("acme/images/replaced.png", "the owner's")
		r.put("acme/images", "content", "new.png", "the node's")
	}
	// A node deeper than that has its own, too.
	r.create("acme/images/in/sub")
	r.put("acme", "content", "images/in/sub/x.png", "of sub")
	r.put("acme", "content", "images/in/y.png", "of images")
	r.remove("acme/images/in/sub", false)
	r.wantFiles("acme/images", "in", "deep.png y.png")
}

// wantFiles compares a listing, folders with a slash and in front.
func (r *rig) wantFiles(at node.Path, dir, want string) {
	r.t.Helper()
	list, err := r.content.List(r.admin, at, "content", dir)
	if err != nil {
		r.t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		if e.Dir {
			e.Name += "/"
		}
		got = append(got, e.Name)
	}
	if strings.Join(got, " ") != want {
		r.t.Errorf("%s %q: %q, want %q", at, dir, strings.Join(got, " "), want)
	}
}

// edge §4
// A path is one file, in however many layers: it is replaced as one and deleted as one, and a folder and a
// file of one path exclude each other.
func TestAPathOfAnInheritedCollectionIsOneFile(t *testing.T) {
	r := newRig(t, nil)
	r.put("acme", "content", "images/a.png", "the owner's")
	r.put("acme", "content", "images/f", "a file")
	r.create("acme/images")
	r.put("acme/images", "content", "a.png", "the node's")
	if err := r.content.Delete(r.admin, "acme/images", "content", "a.png"); err != nil {
		t.Fatal(err)
	}
	if got, err := r.read(r.admin, "acme/images/a.png"); !isNotFound(err) {
		t.Fatalf("%q %v", got, err)
	}
	if err := r.content.Delete(r.admin, "acme/images", "content", "a.png"); !isNotFound(err) {
		t.Fatal(err)
	}
	r.create("acme/sub/node")
	r.put("acme/sub/node", "content", "x.png", "x")
	for file, dir := range map[string]bool{"images/f/x": false, "sub": true, "sub/node": true, "doc": true} {
		_, _, err := r.content.Put(r.admin, "acme", "content", file, strings.NewReader("x"))
		var way *InTheWayError
		if !errors.As(err, &way) || way.Dir != dir {
			t.Errorf("%s: %v", file, err)
		}
	}
	if err := r.content.Delete(r.admin, "acme", "content", "sub/node"); !isNotFound(err) {
		t.Fatal(err)
	}
	// A folder of nodes is none of the collection once they are gone.
	r.wantFiles("acme", "", "doc/ images/ sub/ hello.txt")
	r.remove("acme/sub/node", false)
	r.wantFiles("acme", "", "doc/ images/ hello.txt")
}

// CR-9
// A collection that is not passed on any more shows the files of nodes below to nobody: not to readers of
// its owner, who may not read those nodes.
func TestACollectionThatIsNotPassedOnAnyMoreShowsNothingOfTheNodesBelow(t *testing.T) {
	r := newRig(t, nil)
	r.configure("acme", func(c *nodehub.Collection) { c.IsInherited = false })
	if got, err := r.read(r.admin, "acme/content/doc/page.svg"); !isNotFound(err) {
		t.Errorf("%q %v", got, err)
	}
	r.wantFiles("acme", "", "hello.txt")
	r.configure("acme", func(c *nodehub.Collection) {})
	r.mustRead("acme/content/doc/page.svg", "<svg/>")
	r.wantFiles("acme", "", "doc/ hello.txt")
}

// fault 43
// A node is made anew while what an earlier process left is still being looked for: what is left of its
// former life is not its files, what was uploaded to it since is.
func TestANodeThatIsMadeAnewBeforeTheSweepFindsNothingOfItsFormerLife(t *testing.T) {
	r := newRig(t, nil)
	r.remove("acme/doc", false)
	left := []string{"acme/doc/~content/x.txt", "acme/~~/content/doc/~/x.txt", "acme/~~/content/doc/below/~/kept.txt"}
	for _, file := range left {
		file = filepath.Join(r.content.root.Name(), file)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sweeping := func(on bool) {
		r.content.trash.mu.Lock()
		defer r.content.trash.mu.Unlock()
		r.content.trash.sweeping, r.content.trash.landed = on, nil
	}
	sweeping(true)
	r.create("acme/doc")
	if got := r.stored("acme"); !slices.Equal(got, []string{"acme/~content/hello.txt", "acme/~~/content/doc/below/~/kept.txt"}) {
		t.Fatal(got)
	}
	// The feed may tell of the creation later than an upload comes.
	r.put("acme/doc", "content", "new.txt", "new")
	r.content.Changed(store.Change{Kind: store.Created, Path: "acme/doc", Version: 3})
	r.mustRead("acme/doc/new.txt", "new")
	sweeping(false)
}

// edge §4
// An upload makes a node's first collection; it does not publish files again whose collection was
// unpublished.
func TestAnUploadDoesNotPublishAgainWhatWasUnpublished(t *testing.T) {
	r := newRig(t, nil)
	if _, err := r.nodes.Create(r.admin, node.Node{Path: "solo", NodeType: node.TypeSpace, Content: node.RawContent("{}")}); err != nil {
		t.Fatal(err)
	}
	r.put("solo", "content", "d/secret.txt", "secret")
	r.remove("solo/_Content/content", false)
	_, _, err := r.content.Put(r.admin, "solo", "content", "x.txt", strings.NewReader("x"))
	var refused *UnpublishedError
	if !errors.As(err, &refused) || refused.ProblemCode() != "exists" || !strings.Contains(err.Error(), "solo/_Content/content") {
		t.Fatal(err)
	}
	if got, err := r.read(r.admin, "solo/d/secret.txt"); !isNotFound(err) {
		t.Fatalf("%q %v", got, err)
	}
	_, _, err = r.content.Put(as("eve"), "solo", "content", "x.txt", strings.NewReader("x"))
	if !errors.As(err, new(*store.NotFoundError)) {
		t.Fatalf("a stranger is told: %v", err)
	}
	// Published again on purpose they are there, and once there is no file an upload begins anew.
	r.configure("solo", func(c *nodehub.Collection) {})
	r.mustRead("solo/d/secret.txt", "secret")
	if err := r.content.Delete(r.admin, "solo", "content", "d/secret.txt"); err != nil {
		t.Fatal(err)
	}
	r.remove("solo/_Content/content", false)
	r.put("solo", "content", "x.txt", "x")
	r.mustRead("solo/x.txt", "x")
}

// edge §4
func TestACopyIntoACollectionThatTakesNoUploadsIsRefused(t *testing.T) {
	r := newRig(t, nil)
	r.configure("acme", func(c *nodehub.Collection) { c.IsEditable = false })
	src := fstest.MapFS{"hello.txt": {Data: []byte("x")}}
	_, _, err := r.content.CopyIn(r.admin, "acme", "content", "", src, func(file string, err error) { t.Error(file, err) })
	if !errors.As(err, new(*ReadOnlyError)) {
		t.Fatal(err)
	}
	r.mustRead("acme/hello.txt", "hello")
}

// edge §4
// The files of an import come to the nodes on their way; what a folder held before, and the import brings
// again, stays its owner's. A deletion beside the import leaves nothing.
func TestCopiedFilesAreOfTheNodesOnTheirWay(t *testing.T) {
	r := newRig(t, nil)
	src := fstest.MapFS{"doc/a.txt": {Data: []byte("a")}, "doc/b/c.txt": {Data: []byte("c")}, "plain/d.txt": {Data: []byte("d")}}
	in := func() {
		t.Helper()
		if _, _, err := r.content.CopyIn(r.admin, "acme", "content", "", src, func(file string, err error) { t.Error(file, err) }); err != nil {
			t.Fatal(err)
		}
	}
	in()
	r.create("acme/plain")
	in()
	r.mustRead("acme/doc/b/c.txt", "c")
	r.remove("acme/doc", false)
	r.remove("acme/plain", false)
	if got := strings.Join(r.stored("acme"), " "); got != "acme/~content/hello.txt acme/~content/plain/d.txt" {
		t.Fatal(got)
	}
	r.create("acme/doc")
	late := overtaken{fstest.MapFS{"doc/a.txt": {Data: []byte("a")}}, func() { r.remove("acme/doc", false) }}
	failed := map[string]error{}
	if _, _, err := r.content.CopyIn(r.admin, "acme", "content", "", late, func(file string, err error) { failed[file] = err }); err != nil {
		t.Fatal(err)
	}
	if got := r.stored("acme/~~"); !isNotFound(failed["doc/a.txt"]) || got != nil {
		t.Fatal(failed, got)
	}
}

// overtaken does something when a file is opened.
type overtaken struct {
	fstest.MapFS
	do func()
}

func (o overtaken) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, ".txt") {
		o.do()
	}
	return o.MapFS.Open(name)
}

// edge §4, CR-7
// A segment of a node path may be longer than a file name. Its node's files have a place in an inherited collection
// all the same; a name that is too long for a file, or for a folder that is no node's, is refused as that name.
func TestANodeWithALongSegmentHasFilesInAnInheritedCollection(t *testing.T) {
	for name, long := range map[string]string{"ASCII": strings.Repeat("b", 300), "two bytes a letter": strings.Repeat("é", 150), "longer than a file system's name": strings.Repeat("x", 900)} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			at := node.Path("acme/" + long)
			r.create(at)
			r.create(at + "/sub")
			r.put(at, "content", "f.txt", "of the node")
			r.put(at, "content", "dir/g.txt", "deep in it")
			r.put(at+"/sub", "content", "h.txt", "of the node below")
			r.put("acme", "content", long+"/o.txt", "through the owner")
			for file, want := range map[string]string{
				"f.txt": "of the node", "content/f.txt": "of the node", "dir/g.txt": "deep in it", "sub/h.txt": "of the node below", "o.txt": "through the owner"} {
				r.mustRead(string(at)+"/"+file, want)
			}
			r.mustRead("acme/content/"+long+"/f.txt", "of the node")
			r.wantFiles(at, "", "dir/ sub/ f.txt o.txt")
			r.wantFiles(at, "dir", "g.txt")
			r.wantFiles(at+"/sub", "", "h.txt")
			r.wantFiles("acme", long, "dir/ sub/ f.txt o.txt")
			r.wantFiles("acme", "", "doc/ hello.txt")
			if stored, err := r.content.PutIf(r.admin, at, "content", "f.txt", strings.NewReader("again"), Condition{NoneMatch: []string{"*"}}); !unmet(err) {
				t.Errorf("%+v %v", stored, err)
			}
			if created, _, err := r.content.Put(r.admin, at, "content", "f.txt", strings.NewReader("again")); err != nil || created {
				t.Errorf("created %v, %v", created, err)
			}
			if err := r.content.Delete(r.admin, at, "content", "o.txt"); err != nil {
				t.Error(err)
			}
			r.wantFiles(at, "", "dir/ sub/ f.txt")
			copied, _, err := r.content.CopyIn(r.admin, "acme", "content", long, fstest.MapFS{"in.txt": {Data: []byte("copied")}}, func(file string, err error) { t.Error(file, err) })
			if err != nil || copied != 1 {
				t.Error(copied, err)
			}
			r.mustRead(string(at)+"/in.txt", "copied")
			var bad *NameError
			for file, want := range map[string]string{long: long, "none/" + long + "/f.txt": long, "dir/" + long: long} {
				if _, _, err := r.content.Put(r.admin, at, "content", file, strings.NewReader("x")); len(file) < 900 && (!errors.As(err, &bad) || bad.Name != want) {
					t.Errorf("%.20s: %v", file, err)
				}
			}
			if _, err := r.read(r.admin, "acme/content/none-"+long+"/f.txt"); !isNotFound(err) {
				t.Error(err)
			}
			// Its files go with it.
			r.remove(at, true)
			r.create(at)
			r.wantFiles(at, "", "")
			if got, err := r.read(r.admin, string(at)+"/f.txt"); !isNotFound(err) {
				t.Errorf("%q %v", got, err)
			}
		})
	}
}
