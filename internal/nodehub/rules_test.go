package nodehub_test

import (
	"errors"
	"fmt"
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

// bad input: a schema that would take for ever. The control is the doubling itself: 2^60 visits.
// Neither the operation that creates nor the turn of a node that is changed is held by it.
func TestASchemaThatWouldTakeForEverHoldsNoNode(t *testing.T) {
	r := newRig(t)
	schema := `{"$defs":{"a0":{"type":"object"}`
	for i := 1; i <= 60; i++ {
		schema += fmt.Sprintf(`,"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, i, i-1, i-1)
	}
	r.create("acme/T", node.TypeNodeType, `{}`)
	r.create("acme/n", "acme/T", `{"x":1}`)
	schema = `{"schema":` + schema + `},"$ref":"#/$defs/a60"}}`
	_, err := r.c.Patch(r.root, "acme/T", []byte(`{"content":`+schema+`}`), nodehub.Condition{})
	if bad := wantErr[*nodehub.SchemaError](t, err); !bad.Broken {
		t.Errorf("where it is written: %v", err)
	}
	// One that an earlier version took.
	if _, err := r.commit.Submit(r.root, store.Write{Op: store.OpUpdate, Expected: 1, Node: node.Node{Path: "acme/T", NodeType: node.TypeNodeType, Version: 2, Content: node.RawContent(schema)}}); err != nil {
		t.Fatal(err)
	}
	_, err = r.c.Create(r.root, node.Node{Path: "acme/new", NodeType: "acme/T", Content: node.RawContent(`{}`)})
	if bad := wantErr[*nodehub.SchemaError](t, err); !bad.Broken || bad.ProblemCode() != "invalid_content" {
		t.Errorf("create: %v", err)
	}
	_, err = r.c.Patch(r.root, "acme/n", []byte(`{"content":{"x":2}}`), nodehub.Condition{})
	if bad := wantErr[*nodehub.SchemaError](t, err); !bad.Broken {
		t.Errorf("patch: %v", err)
	}
	if n := r.get("acme/n"); n.Version != 1 {
		t.Errorf("%+v", n)
	}
	r.close() // ends
}
