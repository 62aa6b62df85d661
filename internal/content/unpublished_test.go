package content

import (
	"context"
	"errors"
	"testing"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
)

// edge invariant 31
func TestTheFilesOfAnUnpublishedCollectionAreListedForWhoMayUpdateItsNode(t *testing.T) {
	r := newRig(t, nil)
	for subject, role := range map[string]string{"vera": "Viewer", "ed": "Editor"} {
		if err := r.nodes.Grant(r.admin, "acme", subject, role); err != nil {
			t.Fatal(err)
		}
	}
	vera, ed := as("vera"), as("ed")
	r.put("acme", "content", "sub/hush.txt", "hush")
	list := func(ctx context.Context, at node.Path, name, dir string) int {
		t.Helper()
		entries, err := r.content.List(ctx, at, name, dir)
		var none *FolderError
		if errors.As(err, &none) {
			return -1
		}
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	if got := list(vera, "acme", "content", "sub"); got != 1 { // the control: it is published
		t.Fatal(got)
	}
	if _, err := r.nodes.Patch(r.admin, "acme/_Content/content", []byte(`{"content":{"isStatic":false}}`), nodehub.Condition{}); err != nil {
		t.Fatal(err)
	}
	for _, at := range []node.Path{"acme", "acme/doc"} { // its own, and one that is passed on
		for _, dir := range []string{"", "sub"} {
			if got, want := list(vera, at, "content", dir), list(vera, at, "none", dir); got != want {
				t.Errorf("%s, folder %q: %d entries, of a collection that is not there %d", at, dir, got, want)
			}
		}
	}
	if got := list(ed, "acme", "content", "sub"); got != 1 {
		t.Errorf("who may update the node: %d", got)
	}
}

// outrun are permissions that change after they have been asked a number of times.
type outrun struct {
	Permissions
	left  int
	after func()
}

func (o *outrun) Require(ctx context.Context, path node.Path, need access.Permission) error {
	err := o.Permissions.Require(ctx, path, need)
	if f := o.after; f != nil {
		if o.left--; o.left == 0 {
			o.after = nil
			f()
		}
	}
	return err
}

// edge §2.5
// The denial, and the file under it, come after the last question and before the file is opened.
func TestAFileThatCameAfterItsDenialIsNotReadByWhoAskedBeforeIt(t *testing.T) {
	for path, at := range map[string]node.Path{"acme/content/doc/late.txt": "acme/doc", "acme/content/late.txt": "acme"} {
		t.Run(path, func(t *testing.T) {
			r := newRig(t, nil)
			if err := r.nodes.Grant(r.admin, "", "vera", "Viewer"); err != nil {
				t.Fatal(err)
			}
			o := &outrun{Permissions: r.content.permit}
			r.content.permit = o
			change := func() {
				_, err := r.nodes.Create(r.admin, node.Node{Path: at + "/_Access/vera_Access", NodeType: node.TypeAccessAssignment,
					Content: node.RawContent(`{"accessObject":"vera","roles":[{"role":"Viewer","denied":true}]}`)})
				if err != nil {
					t.Fatal(err)
				}
				r.put(at, "content", "late.txt", "SECRET")
			}
			o.left, o.after = 1, change // where it lies
			if text, err := r.read(as("vera"), path); !isNotFound(err) {
				t.Errorf("%q %v", text, err)
			}
			r.mustRead(path, "SECRET")
			if err := r.nodes.Grant(r.admin, at, "vera", "Viewer"); err != nil {
				t.Fatal(err)
			}
			o.left = 2 // at the node, and where the folder lies
			o.after = func() {
				_, err := r.nodes.Patch(r.admin, at+"/_Access/vera_Access", []byte(`{"content":{"roles":[{"role":"Viewer","denied":true}]}}`), nodehub.Condition{})
				if err != nil {
					t.Fatal(err)
				}
			}
			if list, err := r.content.List(as("vera"), at, "content", ""); err == nil {
				t.Errorf("listed: %+v", list)
			}
		})
	}
}
