package nodehub_test

import (
	"context"
	"slices"
	"testing"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// edge §2.5
func TestWhatACallerMayNotReadIsAbsentFromListingsAndQueries(t *testing.T) {
	r := newRig(t)
	for _, p := range []string{"acme/open", "acme/open/a", "acme/shut", "acme/shut/a", "acme/shut/deep/b"} {
		r.create(p, "", `{"x":1}`)
	}
	r.create("acme/_Content/content", nodehub.TypeCollection, `{"sourceType":"folder"}`)
	if err := r.c.Grant(r.root, "acme/open", "bob", "Viewer"); err != nil {
		t.Fatal(err)
	}
	if err := r.c.Grant(r.root, "acme/shut/deep/b", "bob", "Viewer"); err != nil {
		t.Fatal(err)
	}
	list := func(ctx context.Context, at node.Path) (paths []string, nodes int) {
		t.Helper()
		entries, _, err := r.c.Children(ctx, at, store.Page{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			paths = append(paths, string(e.Path))
			if e.Node != nil {
				nodes++
			}
		}
		return paths, nodes
	}
	if got, _ := list(r.root, "acme"); !slices.Equal(got, []string{"acme/open", "acme/shut"}) {
		t.Errorf("root: %v", got)
	}
	// The level through which something may be reached is shown, its own node is not.
	if got, nodes := list(as("bob"), "acme"); !slices.Equal(got, []string{"acme/open", "acme/shut"}) || nodes != 1 {
		t.Errorf("bob: %v, %d nodes", got, nodes)
	}
	if got, nodes := list(as("bob"), "acme/shut"); !slices.Equal(got, []string{"acme/shut/deep"}) || nodes != 0 {
		t.Errorf("bob: %v, %d nodes", got, nodes)
	}
	if got, _ := list(as("eve"), "acme"); len(got) != 0 {
		t.Errorf("eve: %v", got)
	}
	q, err := query.Parse("path:acme scope:subtree x:1 limit:2")
	if err != nil {
		t.Fatal(err)
	}
	for who, want := range map[string][]string{"bob": {"acme/open", "acme/open/a"}, "eve": nil} {
		rows, err := r.c.Select(as(who), q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range rows {
			got = append(got, string(n.Path))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", who, got, want)
		}
	}
	// An index that is not loaded is no denial: nothing is listed, and the caller is told to try again.
	empty := access.NewIndex(nil)
	if v := empty.Evaluator().Check("bob", "acme", access.Read); v != access.Undetermined {
		t.Error(v)
	}
}

// invariant 43
func TestTheRowIsReadAsTheSystemAndTheTurnIsTheCallersAgain(t *testing.T) {
	var turn *message.Identity
	whoami := hub.Define[*noteRequest, *hub.None]("test/whoami", message.Request)
	r := newRig(t, withType("Diary", func(k *hub.Kind) {
		hub.Handle(k, whoami, func(ctx context.Context, _ *hub.Hub, _ *noteRequest) (*hub.None, error) {
			turn = message.IdentityFrom(ctx)
			return &hub.None{}, nil
		})
	}))
	r.create("acme/d", "Diary", `{}`)
	r.store.mu.Lock()
	r.store.onIdentity = nil
	r.store.mu.Unlock()
	if _, err := whoami.Ask(as("alice"), r.mesh, "acme/d", &noteRequest{}); err != nil {
		t.Fatal(err)
	}
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	if len(r.store.onIdentity) != 1 || r.store.onIdentity[0] != message.SubjectSystem || turn.Subject != "alice" {
		t.Fatalf("read as %v, turn of %v", r.store.onIdentity, turn)
	}
}
