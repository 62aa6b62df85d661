package hubmesh_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hubmesh/hubmesh"
	"github.com/hubmesh/hubmesh/internal/activity"
)

// edge §4, AC-R2
// What an import tells of a space, such as the names of its files, is for who may read that space.
func TestTheActivityOfAnImportIsReadOnlyByWhoMayReadAllThatItTells(t *testing.T) {
	const denial = `{"nodeType":"AccessAssignment","content":{"accessObject":"vic","roles":[{"role":"Viewer","denied":true}]}}`
	plain := files("x.json", `{"content":{"n":1}}`, "broken.json", `{`)
	tests := []struct {
		name, into string
		src        fstest.MapFS
		below      string // where the activity lies
		vic        bool   // whether a Viewer of the space a reads it
	}{
		{"of several spaces", "", files("a/x.json", `{"content":{"n":1}}`, "b/hush.json", `{`), "Operations", false},
		{"into a space of one rule, the control", "c", plain, "c", true},
		{"into a node of one rule, the control", "c/node", plain, "c/node", true},
		{"into a node that is denied to some", "a/deep", plain, "a/deep", false},
		{"into a space of which a part is denied to some", "a", plain, "Operations", false},
		{"into a node that is not there yet", "c/new", plain, "Operations", false},
		{"of a part that comes denied to some", "c", files("late.json", `{"content":{}}`, "late/_Access/vic_Access.json", denial), "Operations", false},
	}
	m, ctx := open(t, t.TempDir())
	importFS(t, m, ctx, "", files("a/deep.json", `{"content":{}}`, "a/deep/_Access/vic_Access.json", denial, "b/y.json", `{"content":{}}`, "c/node.json", `{"content":{}}`), nil)
	for scope, subject := range map[string]string{"a": "vic", "c": "vic", "": "root"} {
		if err := m.Grant(ctx, scope, subject, "Viewer"); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Grant(ctx, "a", "ed", "Editor"); err != nil {
		t.Fatal(err)
	}
	vic, root, ed := hubmesh.As(t.Context(), "vic"), hubmesh.As(t.Context(), "root"), hubmesh.As(t.Context(), "ed")
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			at, err := m.ImportFS(ctx, "the test", c.src, c.into, nil)
			if err != nil {
				t.Fatal(err)
			}
			finished(t, m, ctx, at)
			if !strings.HasPrefix(at, c.below+"/_Activity/") {
				t.Errorf("it lies at %s", at)
			}
			if _, err := m.Get(vic, at); (err == nil) != c.vic {
				t.Errorf("a Viewer of the space: %v", err)
			}
			rows, err := m.Query(vic, "nodeType:Activity scope:subtree")
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, n := range rows {
				found = found || string(n.Path) == at
			}
			if found != c.vic {
				t.Errorf("a Viewer of the space finds it: %v", found)
			}
			if _, err := m.Get(root, at); err != nil {
				t.Errorf("a Viewer of the root scope: %v", err)
			}
			if _, err := m.Patch(ed, at, map[string]any{"content": map[string]any{"requestedStatus": "Cancelled"}}, hubmesh.Condition{}); (err == nil) != strings.HasPrefix(at, "a/") {
				t.Errorf("an Editor of a cancels it: %v", err)
			}
		})
	}
}

// edge §4
// A space of the mesh's own name is somebody's, who may have shared it: nothing is put there.
func TestTheActivityOfAnImportIsNotPutIntoASpaceOfItsNameThatIsSomebodys(t *testing.T) {
	m, ctx := open(t, t.TempDir())
	if err := m.Grant(ctx, "", "rita", "Admin"); err != nil {
		t.Fatal(err)
	}
	rita, vic := hubmesh.As(t.Context(), "rita"), hubmesh.As(t.Context(), "vic")
	if _, err := m.Create(rita, "Operations", hubmesh.Space, map[string]any{}); err != nil {
		t.Fatal(err)
	}
	if err := m.Grant(rita, "Operations", "vic", "Viewer"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it is made, and found
		at, err := m.ImportFS(rita, "the test", files("a/x.json", `{"content":{"n":1}}`), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		finished(t, m, ctx, at)
		if !strings.HasPrefix(at, "Operations-2/_Activity/") {
			t.Errorf("it lies at %s", at)
		}
		if _, err := m.Get(vic, at); err == nil {
			t.Error("who may read the space of its name reads it")
		}
	}
}

// edge §4
// What an activity tells is written by its work alone: nobody lifts that by giving its node another type.
func TestAnActivityIsItsWorksWhateverTypeItIsToBe(t *testing.T) {
	m, ctx := open(t, t.TempDir())
	if _, err := m.Create(ctx, "c", hubmesh.Space, map[string]any{}); err != nil {
		t.Fatal(err)
	}
	if err := m.Grant(ctx, "c", "ed", "Editor"); err != nil {
		t.Fatal(err)
	}
	ed := hubmesh.As(t.Context(), "ed")
	src := &standing{at: "b.json", here: make(chan struct{}), let: make(chan struct{}), MapFS: files("a.json", `{"content":{}}`, "b.json", `{"content":{}}`)}
	at, err := m.ImportFS(ctx, "the test", src, "c", nil)
	if err != nil {
		t.Fatal(err)
	}
	<-src.here
	for name, patch := range map[string]map[string]any{
		"another type":               {"nodeType": "Markdown"},
		"no type":                    {"nodeType": nil},
		"another type and a forgery": {"nodeType": "Markdown", "content": map[string]any{"status": "Succeeded", "messages": "hi"}},
		"another type and a request": {"nodeType": "Markdown", "content": map[string]any{"requestedStatus": "Cancelled"}},
	} {
		if n, err := m.Patch(ed, at, patch, hubmesh.Condition{}); !errors.As(err, new(*activity.OwnerError)) {
			t.Errorf("%s: %+v %v", name, n, err)
		}
	}
	close(src.let)
	if got := finished(t, m, ctx, at); got.Status != activity.Succeeded {
		t.Errorf("%+v", got)
	}
	// The control: a node of another type is given one freely.
	if _, err := m.Create(ed, "c/note", hubmesh.Markdown, map[string]any{"markdown": "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Patch(ed, "c/note", map[string]any{"nodeType": nil}, hubmesh.Condition{}); err != nil {
		t.Error(err)
	}
}
