package nodehub_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/memory"
)

// known is the history that a caller is told of a path, and which of its versions he can read.
func (r *rig) known(ctx context.Context, path node.Path) string {
	r.t.Helper()
	list, err := r.c.Versions(ctx, path, store.VersionPage{})
	text := said(err, string(path), "X")
	for _, v := range list {
		text += fmt.Sprintf(" %s %d", v.Kind, v.Version)
	}
	for v := int64(1); v <= 6; v++ {
		n, err := r.c.At(ctx, path, v)
		if err == nil {
			text += fmt.Sprintf(" at %d", n.Version)
		}
	}
	return text
}

// edge §2.5
func TestAnEarlierLifeOfAPathIsToldToWhoAdministersItAndToNobodyElse(t *testing.T) {
	onStores(t, func(t *testing.T, r *rig) {
		r.private()
		vera := as("vera")
		r.patch("acme/priv", `{"content":{"s":"SECRET2"}}`)
		never := r.known(vera, "acme/never")
		_, none := r.c.At(vera, "acme/never", 1)
		if got := r.known(vera, "acme/priv"); got == never {
			t.Errorf("the control: what is denied is an error, %q", got)
		}
		if _, err := r.delete("acme/priv"); err != nil {
			t.Fatal(err)
		}
		for _, path := range []node.Path{"acme/priv", "acme/priv/kid", "acme/priv/kid/_Comment/c", "acme/priv/_Access/vera_Access"} {
			want := never
			if isAssignment(path) {
				want = r.known(vera, "acme/never/_Access/vera_Access")
			}
			if got := r.known(vera, path); got != want {
				t.Errorf("%s: %q, of a path that never was %q", path, got, want)
			}
			if got := r.known(r.root, path); got == never {
				t.Errorf("%s: who administers it is told %q", path, got)
			}
		}
		if _, err := r.c.At(vera, "acme/priv", 1); said(err, "acme/priv", "X") != said(none, "acme/never", "X") {
			t.Errorf("%v, of a path that never was %v", err, none)
		}
		r.create("acme/priv", "", `{"s":"open"}`)
		r.patch("acme/priv", `{"content":{"s":"open, too"}}`)
		if got, want := r.known(vera, "acme/priv"), "done updated 5 created 4 at 4 at 5"; got != want {
			t.Errorf("made anew: %q, want %q", got, want)
		}
		if got, want := r.known(r.root, "acme/priv"), "done updated 5 created 4 deleted 3 updated 2 created 1 at 1 at 2 at 4 at 5"; got != want {
			t.Errorf("made anew, to who administers it: %q, want %q", got, want)
		}
		// By the present permissions: one who administers it now, whoever he was then.
		if err := r.c.Grant(r.root, "acme/priv", "vera", "Admin"); err != nil {
			t.Fatal(err)
		}
		if got, want := r.known(vera, "acme/priv"), r.known(r.root, "acme/priv"); got != want {
			t.Errorf("an Admin is told %q", got)
		}
	})
}

// edge §2.5
func TestTheWholeOfALongLifeIsToldAndNothingOfTheOneBefore(t *testing.T) {
	r := newRigOn(t, memory.New(memory.Options{History: 3000}))
	if err := r.c.Grant(r.root, "acme", "vera", "Viewer"); err != nil {
		t.Fatal(err)
	}
	r.create("acme/x", "", `{"i":-1}`)
	if _, err := r.delete("acme/x"); err != nil {
		t.Fatal(err)
	}
	r.create("acme/x", "", `{"i":0}`)
	for i := range 1500 { // more than are looked at once
		r.patch("acme/x", fmt.Sprintf(`{"content":{"i":%d}}`, i+1))
	}
	if _, err := r.c.At(as("vera"), "acme/x", 1503); err != nil {
		t.Error(err)
	}
	if _, err := r.c.At(as("vera"), "acme/x", 1); err == nil {
		t.Error("an earlier life is told")
	}
	if list, err := r.c.Versions(as("vera"), "acme/x", store.VersionPage{Before: 1000}); err != nil || len(list) != 100 {
		t.Error(len(list), err)
	}
}

// edge §2.5
// The denial and the secret come after the permissions were asked and before the rows are read.
func TestWhatIsWrittenAfterADenialIsNotToldToWhoAskedBeforeIt(t *testing.T) {
	q, err := query.Parse("path:acme scope:subtree s:SECRET")
	if err != nil {
		t.Fatal(err)
	}
	for way, shows := range map[string]func(r *rig, ctx context.Context) bool{
		"query": func(r *rig, ctx context.Context) bool {
			rows, err := r.c.Select(ctx, q)
			return err == nil && len(rows) > 0
		},
		"listing": func(r *rig, ctx context.Context) bool {
			entries, _, err := r.c.Children(ctx, "acme", store.Page{})
			return err == nil && len(entries) > 0
		},
		"version": func(r *rig, ctx context.Context) bool {
			_, err := r.c.At(ctx, "acme/k", 2)
			return err == nil
		},
	} {
		t.Run(way, func(t *testing.T) {
			r := newRig(t)
			if err := r.c.Grant(r.root, "acme", "vera", "Viewer"); err != nil {
				t.Fatal(err)
			}
			r.create("acme/k", "", `{}`)
			r.store.onList = func() {
				r.deny("acme/k", "vera", "Viewer")
				r.patch("acme/k", `{"content":{"s":"SECRET"}}`)
			}
			if shows(r, as("vera")) {
				t.Error("told")
			}
			if !shows(r, r.root) {
				t.Error("the control: nothing is shown to anybody")
			}
		})
	}
}

// data §1.4
// The last Admin stays, whatever is deleted.
func TestTheAssignmentOfTheLastAdminIsNotDeleted(t *testing.T) {
	r := newRig(t)
	_, err := r.c.Delete(r.root, "_Access/root_Access", true, nodehub.Condition{})
	if err == nil || len(r.journal()) > 0 {
		t.Fatal(err)
	}
	r.get("_Access/root_Access")
}
