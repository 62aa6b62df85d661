package content

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

// edge §4
// edge invariant 37
func TestAnUploadIsSeenAtOnceReplacesAtOnceAndAFailedOneLeavesNothing(t *testing.T) {
	r := newRig(t, nil)
	r.put("acme", "content", "a/b.txt", "one")
	r.mustRead("acme/a/b.txt", "one")
	f, err := r.content.Read(r.admin, []string{"acme", "a", "b.txt"})
	if err != nil {
		t.Fatal(err)
	}
	r.put("acme", "content", "a/b.txt", "two") // while a reader holds the old file
	if b, err := io.ReadAll(f); err != nil || string(b) != "one" {
		t.Fatalf("%q %v", b, err)
	}
	f.Close()
	r.mustRead("acme/a/b.txt", "two")
	_, _, err = r.content.Put(r.admin, "acme", "content", "a/b.txt", io.MultiReader(bytes.NewReader([]byte("thr")), broken{}))
	if err == nil {
		t.Fatal("a broken upload was stored")
	}
	r.mustRead("acme/a/b.txt", "two")
	list, err := r.content.List(r.admin, "acme", "content", "a")
	if err != nil || len(list) != 1 || list[0].Name != "b.txt" || list[0].Size != 3 {
		t.Fatalf("%+v %v", list, err)
	}
	if err := r.content.Delete(r.admin, "acme", "content", "a/b.txt"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.read(r.admin, "acme/a/b.txt"); !isNotFound(err) {
		t.Fatal(err)
	}
	// A node without a collection gets one by its first upload.
	r.create("acme/fresh")
	if err := r.nodes.Grant(r.admin, "acme", "ed", "Editor"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.content.Put(as("stranger"), "acme", "content", "x.txt", strings.NewReader("x")); err == nil {
		t.Fatal("a stranger uploads")
	}
	if _, _, err := r.content.Put(as("ed"), "acme/fresh", "content", "x.txt", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
}

// edge §4
// What stands where a file should go is named, as the caller's fault and not the server's: an upload onto
// a folder, and one below a file. Nothing is stored and nothing is lost.
func TestAnUploadOntoAFolderOrBelowAFileSaysWhatIsInTheWay(t *testing.T) {
	r := newRig(t, nil)
	r.put("acme", "content", "a/b.txt", "one")
	for file, dir := range map[string]bool{"a": true, "a/b.txt/c.txt": false, "a/b.txt/c/d.txt": false} {
		_, _, err := r.content.Put(r.admin, "acme", "content", file, strings.NewReader("x"))
		var way *InTheWayError
		if !errors.As(err, &way) || way.Dir != dir || way.ProblemCode() != "exists" {
			t.Errorf("%s: %v", file, err)
		}
	}
	r.mustRead("acme/a/b.txt", "one")
	list, err := r.content.List(r.admin, "acme", "content", "a")
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v %v", list, err)
	}
}

// CR-3
// A name that no file can have is refused with the reason, whether there is a node or not.
func TestAnUploadWithABadNameSaysWhy(t *testing.T) {
	r := newRig(t, nil)
	for _, file := range []string{"~", "a ", " a", "a\nb", "~upload-x"} {
		for _, at := range []string{"acme", "nowhere"} {
			_, _, _, err := r.content.Split(r.admin, []string{at, "content", file})
			var name *NameError
			if !errors.As(err, &name) || name.Reason == "" || name.ProblemCode() != "invalid_path" {
				t.Errorf("%s/%q: %v", at, file, err)
			}
		}
	}
}

// edge §4
// A folder that is not there is told apart from a node that is not, to whoever may read the node alone.
func TestAMissingFolderIsNamedToWhoeverMayReadTheNode(t *testing.T) {
	r := newRig(t, nil)
	var folder *FolderError
	if _, err := r.content.List(r.admin, "acme", "content", "nope"); !errors.As(err, &folder) || folder.Dir != "nope" {
		t.Fatal(err)
	}
	if _, err := r.content.List(as("eve"), "acme", "content", "nope"); err == nil || errors.As(err, &folder) {
		t.Fatalf("to a stranger: %v", err)
	}
}

// CR-9
// The files of the nodes below an inherited collection's owner lie in it. Asking through the owner does
// not lead around what is decided at such a node: not by reading, listing, writing or deleting.
func TestAnInheritedCollectionDoesNotLeadAroundTheNodesBelow(t *testing.T) {
	r := newRig(t, nil)
	if err := r.nodes.Grant(r.admin, "acme", "ed", "Editor"); err != nil {
		t.Fatal(err)
	}
	deny := node.RawContent(`{"accessObject":"ed","roles":[{"role":"Editor","denied":true}]}`)
	if _, err := r.nodes.Create(r.admin, node.Node{Path: "acme/doc/_Access/ed_Access", NodeType: node.TypeAccessAssignment, Content: deny}); err != nil {
		t.Fatal(err)
	}
	ed := as("ed")
	if got, err := r.read(ed, "acme/content/hello.txt"); err != nil || got != "hello" {
		t.Fatalf("control: %q %v", got, err)
	}
	for _, path := range []string{"acme/doc/page.svg", "acme/content/doc/page.svg"} {
		if got, err := r.read(ed, path); !isNotFound(err) {
			t.Errorf("%s: %q %v", path, got, err)
		}
	}
	list, err := r.content.List(ed, "acme", "content", "")
	if err != nil || len(list) != 1 || list[0].Name != "hello.txt" {
		t.Errorf("listed: %+v %v", list, err)
	}
	if list, err := r.content.List(ed, "acme", "content", "doc"); !errors.As(err, new(*FolderError)) {
		t.Errorf("listed below: %+v %v", list, err)
	}
	if _, _, err := r.content.Put(ed, "acme", "content", "doc/page.svg", strings.NewReader("x")); !isNotFound(err) {
		t.Errorf("written: %v", err)
	}
	if err := r.content.Delete(ed, "acme", "content", "doc/page.svg"); !isNotFound(err) {
		t.Errorf("deleted: %v", err)
	}
	r.mustRead("acme/doc/page.svg", "<svg/>")
}

// edge §4
// A node in the place of a collection's configuration that configures none is refused when it is written;
// where one is there all the same, an upload says so and does not claim that there is no file.
func TestANodeThatConfiguresNoCollectionIsRefusedWithTheReason(t *testing.T) {
	r := newRig(t, nil)
	var rule *nodehub.RuleError
	for _, n := range []node.Node{
		{Path: "acme/doc/_Content/content", Content: node.RawContent(`{}`)},
		{Path: "acme/doc/_Content/content", NodeType: nodehub.TypeCollection, Content: node.RawContent(`{"isStatic":"yes"}`)},
	} {
		if _, err := r.nodes.Create(r.admin, n); !errors.As(err, &rule) {
			t.Errorf("%+v: %v", n, err)
		}
	}
	// As an earlier version may have stored it.
	if _, err := r.nodes.Create(r.admin, node.Node{Path: "solo", NodeType: node.TypeSpace, Content: node.RawContent("{}")}); err != nil {
		t.Fatal(err)
	}
	row := node.Node{Path: "solo/_Content/content", MainNode: "solo/_Content/content", State: node.StateActive, Version: 1, Content: node.RawContent(`{}`)}
	if res, err := r.store.Commit(t.Context(), []store.Write{{Op: store.OpCreate, Node: row}}); err != nil || res[0].Err != nil {
		t.Fatal(res, err)
	}
	_, _, err := r.content.Put(r.admin, "solo", "content", "x.txt", strings.NewReader("x"))
	var none *CollectionError
	if !errors.As(err, &none) || !none.Broken || none.ProblemCode() != "bad_request" {
		t.Fatal(err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the client has gone") }
