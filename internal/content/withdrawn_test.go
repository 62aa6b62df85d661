package content

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

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
