package content

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

// halfway is a body in whose middle something happens.
type halfway struct {
	text string
	then func()
}

func (h *halfway) Read(b []byte) (int, error) {
	if h.then != nil {
		then := h.then
		h.then = nil
		n := copy(b, h.text[:1])
		h.text = h.text[1:]
		then()
		return n, nil
	}
	if h.text == "" {
		return 0, io.EOF
	}
	n := copy(b, h.text)
	h.text = h.text[n:]
	return n, nil
}

// turning is a folder in which something happens once, when one of its files is opened.
type turning struct {
	fstest.MapFS
	at string
	do func()
}

func (f *turning) Open(name string) (fs.File, error) {
	if name == f.at && f.do != nil {
		f.do()
		f.do = nil
	}
	return f.MapFS.Open(name)
}

// edge invariant 31, AC-R1
// An import copies files for as long as its subject may write them: the file that is under way does not land, and none
// after it does. A right that is taken away below the owner alone keeps the files of that node out.
func TestACopyEndsWithTheRightToMakeIt(t *testing.T) {
	tests := []struct {
		name   string
		then   func(*rig) error // nil: nothing happens
		landed string
		ends   bool
		failed string
	}{
		{"nothing happens, the control", nil, "a.txt doc/b.txt doc/c.txt z.txt", false, ""},
		{"the grant is deleted", func(r *rig) error {
			_, err := r.nodes.Delete(r.admin, "acme/_Access/ed_Access", false, nodehub.Condition{})
			return err
		}, "a.txt", true, ""},
		{"the collection is closed", func(r *rig) error {
			_, err := r.nodes.Patch(r.admin, "acme/_Content/content", []byte(`{"content":{"isEditable":false}}`), nodehub.Condition{})
			return err
		}, "a.txt", true, ""},
		{"a node below is denied", func(r *rig) error {
			_, err := r.nodes.Create(r.admin, node.Node{Path: "acme/doc/_Access/ed_Access", NodeType: node.TypeAccessAssignment,
				Content: node.RawContent(`{"accessObject":"ed","roles":[{"role":"Editor","denied":true}]}`)})
			return err
		}, "a.txt z.txt", false, "doc/b.txt doc/c.txt"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, nil)
			if err := r.nodes.Grant(r.admin, "acme", "ed", "Editor"); err != nil {
				t.Fatal(err)
			}
			src := &turning{MapFS: fstest.MapFS{}, at: "doc/b.txt", do: func() {
				if c.then != nil {
					if err := c.then(r); err != nil {
						t.Error(err)
					}
				}
			}}
			for _, name := range []string{"a.txt", "doc/b.txt", "doc/c.txt", "z.txt"} {
				src.MapFS[name] = &fstest.MapFile{Data: []byte(name)}
			}
			var failed []string
			copied, _, err := r.content.CopyIn(as("ed"), "acme", "content", "", src, func(file string, err error) { failed = append(failed, file) })
			if c.ends != (err != nil) {
				t.Errorf("%v", err)
			}
			var landed []string
			for _, name := range slices.Sorted(maps.Keys(src.MapFS)) {
				if got, err := r.read(r.admin, "acme/"+name); err == nil && got == name {
					landed = append(landed, name)
				}
			}
			if got := strings.Join(landed, " "); got != c.landed || copied != len(landed) {
				t.Errorf("%d copied: %s", copied, got)
			}
			if got := strings.Join(failed, " "); got != c.failed {
				t.Errorf("failed alone: %s", got)
			}
			if left := r.stored(uploadsDir); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// edge invariant 31, AC-R1
// An upload whose right, or whose collection, is taken away while its body is on its way is refused like one that
// begins then, and leaves nothing.
func TestAnUploadLandsOnlyForWhoMayWriteWhenItEnds(t *testing.T) {
	config := func(text string) func(*testing.T, *rig) error {
		return func(t *testing.T, r *rig) error {
			_, err := r.nodes.Patch(r.admin, "acme/_Content/content", []byte(text), nodehub.Condition{})
			return err
		}
	}
	remove := func(path node.Path) func(*testing.T, *rig) error {
		return func(t *testing.T, r *rig) error {
			_, err := r.nodes.Delete(r.admin, path, false, nodehub.Condition{})
			return err
		}
	}
	missing := func(err error) bool { return errors.As(err, new(*store.NotFoundError)) || isNotFound(err) }
	denied := func(err error) bool { return missing(err) || errors.As(err, new(*access.DeniedError)) }
	tests := []struct {
		name string
		at   node.Path
		then func(*testing.T, *rig) error // nil: nothing happens
		want func(error) bool
	}{
		{"nothing happens, the control", "acme", nil, func(err error) bool { return err == nil }},
		{"nothing happens, below, the control", "acme/doc", nil, func(err error) bool { return err == nil }},
		{"the grant is deleted", "acme", remove("acme/_Access/ed_Access"), missing},
		{"the grant is deleted, below", "acme/doc", remove("acme/_Access/ed_Access"), missing},
		{"a Viewer is left", "acme", func(t *testing.T, r *rig) error {
			if err := remove("acme/_Access/ed_Access")(t, r); err != nil {
				return err
			}
			return r.nodes.Grant(r.admin, "acme", "ed", "Viewer")
		}, denied},
		{"the collection takes no uploads any more", "acme", config(`{"content":{"isEditable":false}}`),
			func(err error) bool { return errors.As(err, new(*ReadOnlyError)) }},
		{"the configuration is deleted", "acme", remove("acme/_Content/content"),
			func(err error) bool { return errors.As(err, new(*UnpublishedError)) }},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, nil)
			if err := r.nodes.Grant(r.admin, "acme", "ed", "Editor"); err != nil {
				t.Fatal(err)
			}
			ed := as("ed")
			put := func(ctx context.Context, file string, body io.Reader) error {
				_, err := r.content.PutIf(ctx, c.at, "content", file, body, Condition{})
				return err
			}
			err := put(ed, "late.txt", &halfway{text: "late", then: func() {
				if c.then != nil {
					if err := c.then(t, r); err != nil {
						t.Error(err)
					}
				}
			}})
			if !c.want(err) {
				t.Errorf("%v", err)
			}
			if fresh := put(ed, "fresh.txt", &halfway{text: "fresh"}); !c.want(fresh) {
				t.Errorf("a new one: %v", fresh)
			}
			if there := strings.Contains(strings.Join(r.stored("."), " "), "late.txt"); there != (c.then == nil) {
				t.Errorf("the file is there: %v", there)
			}
			if left := r.stored(uploadsDir); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
