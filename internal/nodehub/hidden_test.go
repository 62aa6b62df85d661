package nodehub_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

// hiding is a rig with a space that ed and vera may use, and one that neither may read.
func hiding(t *testing.T) (r *rig, ed, vera context.Context) {
	t.Helper()
	r = newRig(t)
	r.create("Par", node.TypeSpace, `{}`)
	r.create("Sec", node.TypeSpace, `{}`)
	for subject, role := range map[string]string{"ed": "Editor", "vera": "Viewer"} {
		if err := r.c.Grant(r.root, "Par", subject, role); err != nil {
			t.Fatal(err)
		}
	}
	return r, as("ed"), as("vera")
}

// deny denies a role at a scope.
func (r *rig) deny(scope, subject, role string) {
	r.t.Helper()
	r.create(scope+"/_Access/"+subject+"_Access", node.TypeAccessAssignment,
		`{"$type":"AccessAssignment","accessObject":"`+subject+`","roles":[{"role":"`+role+`","denied":true}]}`)
}

// said is an error as a caller sees it, with name in place of the path that was asked for. The edge answers
// everything that is not found by the path alone; here the router adds what is near.
func said(err error, path, name string) string {
	if err == nil {
		return "done"
	}
	text, _, _ := strings.Cut(err.Error(), "; the nearest ancestor")
	return strings.ReplaceAll(text, path, name)
}

// edge §2.5
func TestAMainNodeThatTheWriterMayNotReadIsNotThere(t *testing.T) {
	r, ed, _ := hiding(t)
	r.create("Sec/doc", "", `{"x":1}`)
	n := func(path, main string) node.Node {
		return node.Node{Path: node.Path(path), MainNode: node.Path(main), Content: node.RawContent(`{}`)}
	}
	for way, write := range map[string]func(node.Node) error{
		"create": func(n node.Node) error { _, err := r.c.Create(ed, n); return err },
		"put":    func(n node.Node) error { _, _, err := r.c.Put(ed, n, nodehub.Condition{}); return err },
		"many": func(n node.Node) error {
			out, err := r.c.CreateMany(ed, []node.Node{n})
			return errors.Join(err, out[0].Err)
		},
		"import": func(n node.Node) error {
			out, err := r.c.Import(ed, []node.Node{n})
			return errors.Join(err, out[0].Err)
		},
	} {
		hidden, absent := said(write(n("Par/m1", "Sec/doc")), "Sec/doc", "X"), said(write(n("Par/m1", "Sec/nope")), "Sec/nope", "X")
		if hidden != absent || !strings.Contains(hidden, "does not exist") {
			t.Errorf("%s: %q, and for what is not there %q", way, hidden, absent)
		}
	}
	// A patch moves no node to another main node, whichever it is.
	r.create("Par/a", "", `{"x":1}`)
	patch := func(main string) string {
		_, err := r.c.Patch(ed, "Par/a", []byte(`{"mainNode":"`+main+`"}`), nodehub.Condition{})
		return said(err, main, "X")
	}
	if hidden, absent := patch("Sec/doc"), patch("Sec/nope"); hidden != absent || hidden == "done" {
		t.Errorf("%q, %q", hidden, absent)
	}
	// One that he may change is his to name; one that he may only read is not.
	if _, err := r.c.Create(ed, n("Par/m2", "Par/a")); err != nil {
		t.Error(err)
	}
	if err := r.c.Grant(r.root, "Sec", "ed", "Viewer"); err != nil {
		t.Fatal(err)
	}
	_, err := r.c.Create(ed, n("Par/m3", "Sec/doc"))
	wantErr[*access.DeniedError](t, err)
}

// data §1.1
// edge §2.3
// A satellite that lies elsewhere than below its main node is let read, changed and deleted by its own path:
// the deletion of its main node leaves it as it is, with the name of a node that is not there.
func TestASatelliteElsewhereGoesByItsOwnPath(t *testing.T) {
	r, ed, _ := hiding(t)
	r.create("Par/main", "", `{"x":1}`)
	r.create("Par/main/_Comment/1", "", `{"x":1}`)
	if _, err := r.c.Create(ed, node.Node{Path: "Par/elsewhere", MainNode: "Par/main", Content: node.RawContent(`{}`)}); err != nil {
		t.Fatal(err)
	}
	// An Editor may delete a satellite by its path, and no node; the one elsewhere is a node there.
	if _, err := r.c.Delete(ed, "Par/main/_Comment/1", false, nodehub.Condition{}); err != nil {
		t.Error(err)
	}
	_, err := r.c.Delete(ed, "Par/elsewhere", false, nodehub.Condition{})
	wantErr[*access.DeniedError](t, err)
	if reply, err := r.c.Delete(r.root, "Par/main", true, nodehub.Condition{}); err != nil || reply.Deleted != 1 {
		t.Fatal(reply, err)
	}
	got, err := r.c.Patch(ed, "Par/elsewhere", []byte(`{"content":{"x":2}}`), nodehub.Condition{})
	if err != nil || got.MainNode != "Par/main" {
		t.Fatalf("%+v %v", got, err)
	}
	if reply, err := r.c.Delete(r.root, "Par/elsewhere", false, nodehub.Condition{}); err != nil || reply.Deleted != 1 {
		t.Fatal(reply, err)
	}
}

// edge §2.5
func TestATypeThatTheWriterMayNotReadIsNotKnown(t *testing.T) {
	r, ed, _ := hiding(t)
	r.create("Sec/T", node.TypeNodeType, `{"schema":{"required":["launchCode"]}}`)
	for way, write := range map[string]func(node.Node) error{
		"create": func(n node.Node) error { _, err := r.c.Create(ed, n); return err },
		"put":    func(n node.Node) error { _, _, err := r.c.Put(ed, n, nodehub.Condition{}); return err },
		"import": func(n node.Node) error {
			out, err := r.c.Import(ed, []node.Node{n})
			return errors.Join(err, out[0].Err)
		},
	} {
		n := func(typ string) node.Node {
			return node.Node{Path: "Par/u", NodeType: typ, Content: node.RawContent(`{}`)}
		}
		hidden, absent := said(write(n("Sec/T")), "Sec/T", "X"), said(write(n("Sec/Tnope")), "Sec/Tnope", "X")
		if hidden != absent || !strings.Contains(hidden, "is not known") {
			t.Errorf("%s: %q, and for what is not there %q", way, hidden, absent)
		}
	}
	for typ, want := range map[string]bool{"Sec/T": false, "Sec/Tnope": false, node.TypeMarkdown: true} {
		if known, err := r.c.KnowsType(ed, typ); err != nil || known != want {
			t.Errorf("%s: %v %v", typ, known, err)
		}
	}
	// A node that has the type is still checked, and the refusal says nothing of the schema.
	r.create("Par/u", "Sec/T", `{"launchCode":1}`)
	_, err := r.c.Patch(ed, "Par/u", []byte(`{"content":{"launchCode":null}}`), nodehub.Condition{})
	if bad := wantErr[*nodehub.SchemaError](t, err); bad.Reason != "" || strings.Contains(err.Error(), "launchCode") {
		t.Error(err)
	}
	if _, err := r.c.Patch(ed, "Par/u", []byte(`{"content":{"launchCode":2}}`), nodehub.Condition{}); err != nil {
		t.Error(err)
	}
	// The control: whoever may read the type is told.
	_, err = r.c.Patch(r.root, "Par/u", []byte(`{"content":{"launchCode":null}}`), nodehub.Condition{})
	if bad := wantErr[*nodehub.SchemaError](t, err); !strings.Contains(bad.Reason, "launchCode") {
		t.Error(err)
	}
}

// edge §2.5
func TestAListingSaysThatThereAreChildrenOnlyWhereItWouldShowOne(t *testing.T) {
	r, _, vera := hiding(t)
	for _, p := range []string{"Par/a", "Par/a/hid", "Par/b", "Par/b/hid", "Par/b/open", "Par/c", "Par/c/hid", "Par/c/hid/deep", "Par/d", "Par/d/x", "Par/e"} {
		r.create(p, "", `{"x":1}`)
	}
	for _, p := range []string{"Par/a/hid", "Par/b/hid", "Par/c/hid"} {
		r.deny(p, "vera", "Viewer")
	}
	if err := r.c.Grant(r.root, "Par/c/hid/deep", "vera", "Viewer"); err != nil {
		t.Fatal(err)
	}
	for _, satellites := range []bool{false, true} {
		entries, _, err := r.c.Children(vera, "Par", store.Page{Satellites: satellites})
		if err != nil {
			t.Fatal(err)
		}
		got := map[node.Path]bool{}
		for _, e := range entries {
			below, _, err := r.c.Children(vera, e.Path, store.Page{Satellites: satellites})
			if err != nil || e.HasChildren != (len(below) > 0) {
				t.Errorf("%s: %v, and %d are listed %v", e.Path, e.HasChildren, len(below), err)
			}
			got[e.Path] = e.HasChildren
		}
		if got["Par/a"] || !got["Par/b"] || !got["Par/c"] || !got["Par/d"] || got["Par/e"] {
			t.Errorf("%v", got)
		}
	}
}

// edge §2.5
// For whoever may do nothing at a path, it makes no difference whether there is a node that he may not read.
func TestAHiddenNodeIsRefusedLikeAnAbsentOne(t *testing.T) {
	r, ed, vera := hiding(t)
	r.create("Par/closed", "", `{"x":1}`)
	r.create("Par/closed/in", "", `{"x":1}`)
	for subject, role := range map[string]string{"vera": "Viewer", "ed": "Editor"} {
		r.deny("Par/closed", subject, role)
	}
	r.create("Sec/doc", "", `{"x":1}`)
	content := node.RawContent(`{}`)
	ways := map[string]func(path node.Path) error{
		"POST": func(p node.Path) error { _, err := r.c.Create(vera, node.Node{Path: p, Content: content}); return err },
		"PUT": func(p node.Path) error {
			_, _, err := r.c.Put(vera, node.Node{Path: p, Content: content}, nodehub.Condition{})
			return err
		},
		"PUT of a version": func(p node.Path) error {
			_, _, err := r.c.Put(vera, node.Node{Path: p, Content: content}, nodehub.Condition{Version: 7})
			return err
		},
		"PATCH": func(p node.Path) error {
			_, err := r.c.Patch(vera, p, []byte(`{"name":"x"}`), nodehub.Condition{})
			return err
		},
		"DELETE": func(p node.Path) error { _, err := r.c.Delete(vera, p, false, nodehub.Condition{}); return err },
		"DELETE of a version": func(p node.Path) error {
			_, err := r.c.Delete(vera, p, false, nodehub.Condition{Version: 7})
			return err
		},
		"DELETE of a subtree": func(p node.Path) error { _, err := r.c.Delete(vera, p, true, nodehub.Condition{}); return err },
	}
	for way, do := range ways {
		for hidden, absent := range map[node.Path]node.Path{"Par/closed": "Par/absent", "Par/closed/in": "Par/absent/in", "Par/closed/_Comment/1": "Par/absent/_Comment/1", "Sec/doc": "Sec/absent"} {
			a, b := said(do(hidden), string(hidden), "X"), said(do(absent), string(absent), "X")
			if a != b || a == "done" {
				t.Errorf("%s: '%s' answers %q, '%s' answers %q", way, hidden, a, absent, b)
			}
		}
	}
	// The name of a hidden node is not told by one that differs in case only.
	for _, path := range []node.Path{"Par/Closed", "Par/closed"} {
		_, err := r.c.Create(ed, node.Node{Path: path, Content: content})
		if got, want := said(err, string(path), "X"), "ed lacks Create on 'X'"; got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
	// The controls: what may be read is told apart.
	r.create("Par/open", "", `{"x":1}`)
	_, err := r.c.Delete(vera, "Par/open", false, nodehub.Condition{})
	wantErr[*access.DeniedError](t, err)
	_, err = r.c.Create(ed, node.Node{Path: "Par/Open", Content: content})
	if exists := wantErr[*store.ExistsError](t, err); exists.Other != "Par/open" {
		t.Error(err)
	}
}

// data §1.4, edge §2.3
// A subtree of which something is not the caller's to delete is forbidden, whether or not he may read that; and where
// there is nothing that he may read, it is not there.
func TestASubtreeThatIsNotAllTheCallersToDeleteIsForbidden(t *testing.T) {
	r, _, _ := hiding(t)
	if err := r.c.Grant(r.root, "Par", "amy", "Admin"); err != nil {
		t.Fatal(err)
	}
	amy := as("amy")
	for _, p := range []string{"Par/a", "Par/a/open", "Par/a/hid", "Par/b", "Par/b/read", "Par/none/hid", "Par/mixed/hid", "Par/mixed/open", "Par/mine", "Par/mine/x"} {
		r.create(p, "", `{}`)
	}
	for _, p := range []string{"Par/a/hid", "Par/b/read", "Par/none/hid", "Par/mixed/hid"} {
		r.deny(p, "amy", "Admin")
	}
	if err := r.c.Grant(r.root, "Par/b", "amy", "Viewer"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.c.Get(amy, "Par/b/read"); err != nil {
		t.Fatal(err)
	}
	del := func(p node.Path) error { _, err := r.c.Delete(amy, p, true, nodehub.Condition{}); return err }
	for _, p := range []node.Path{"Par/a", "Par/b", "Par/mixed"} {
		refused := wantErr[*nodehub.SubtreeError](t, del(p))
		if refused.ProblemCode() != "forbidden" || said(refused, string(p), "X") != "something below 'X' is not yours to delete; nothing was deleted" {
			t.Errorf("%s: %v", p, refused)
		}
	}
	if a, b := said(del("Par/none"), "Par/none", "X"), said(del("Par/void"), "Par/void", "X"); a != b {
		t.Errorf("hidden %q, absent %q", a, b)
	}
	for _, p := range []node.Path{"Par/a/open", "Par/a/hid", "Par/b/read", "Par/none/hid", "Par/mixed/open"} {
		if _, err := r.c.Get(r.root, p); err != nil {
			t.Error(err)
		}
	}
	if err := del("Par/mine"); err != nil { // the control
		t.Error(err)
	}
}
