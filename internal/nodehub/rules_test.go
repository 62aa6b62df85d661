package nodehub_test

import (
	"errors"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

// data §1.1
// Deleted is the mark of a tombstone: an Editor, who may not delete, does not write it either, by no way
// of writing, and a deletion still does.
func TestANodeIsDeletedByADeleteAndNotByItsState(t *testing.T) {
	r := newRig(t)
	r.create("acme/a", "", `{"x":1}`)
	if err := r.c.Grant(r.root, "acme", "ed", "Editor"); err != nil {
		t.Fatal(err)
	}
	ed := as("ed")
	refused := func(what string, err error) {
		t.Helper()
		var field *node.FieldError
		if !errors.As(err, &field) || field.Field != "state" {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := r.c.Patch(ed, "acme/a", []byte(`{"state":"Deleted"}`), nodehub.Condition{})
	refused("PATCH", err)
	_, _, err = r.c.Put(ed, node.Node{Path: "acme/a", State: node.StateDeleted, Content: node.RawContent(`{}`)}, nodehub.Condition{})
	refused("PUT", err)
	_, err = r.c.Create(ed, node.Node{Path: "acme/b", State: node.StateDeleted, Content: node.RawContent(`{}`)})
	refused("create", err)
	if n, err := r.c.Patch(ed, "acme/a", []byte(`{"state":"Rejected"}`), nodehub.Condition{}); err != nil || n.State != node.StateRejected || n.Version != 2 {
		t.Fatalf("another state: %+v %v", n, err)
	}
	if _, err := r.c.Delete(r.root, "acme/a", false, nodehub.Condition{}); err != nil {
		t.Fatal(err)
	}
}

// data §1.4
// What may not be created may not be left by a write either: a node with neither a type nor a content.
func TestAWriteThatLeavesNeitherTypeNorContentIsRefused(t *testing.T) {
	r := newRig(t)
	r.create("acme/a", "", `{"x":1}`)
	var rule *nodehub.RuleError
	if _, err := r.c.Patch(r.root, "acme/a", []byte(`{"content":null}`), nodehub.Condition{}); !errors.As(err, &rule) {
		t.Errorf("PATCH: %v", err)
	}
	if _, _, err := r.c.Put(r.root, node.Node{Path: "acme/a"}, nodehub.Condition{}); !errors.As(err, &rule) {
		t.Errorf("PUT: %v", err)
	}
	if n := r.get("acme/a"); n.Version != 1 || n.Content.Text() != `{"x":1}` {
		t.Fatalf("%+v", n)
	}
	if n, err := r.c.Patch(r.root, "acme/a", []byte(`{"content":null,"nodeType":"Markdown"}`), nodehub.Condition{}); err != nil || n.Version != 2 {
		t.Fatalf("a type without a content: %+v %v", n, err)
	}
}

// RFC 9110 §13.1.1
// A write that demands a node, of whatever version, makes none.
func TestAWriteThatDemandsANodeMakesNone(t *testing.T) {
	r := newRig(t)
	demand := nodehub.Condition{Present: true}
	var missing *store.NotFoundError
	if _, _, err := r.c.Put(r.root, node.Node{Path: "acme/a", Content: node.RawContent(`{}`)}, demand); !errors.As(err, &missing) {
		t.Fatal(err)
	}
	r.create("acme/a", "", `{"x":1}`)
	if n, created, err := r.c.Put(r.root, node.Node{Path: "acme/a", Content: node.RawContent(`{}`)}, demand); err != nil || created || n.Version != 2 {
		t.Fatalf("%+v %v %v", n, created, err)
	}
}
