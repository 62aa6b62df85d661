package nodehub_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
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

// edge §2.5
// A page is of what the caller may read: where it ends, and whether another one follows, is told by that alone.
func TestAPageOfAListingTellsNothingOfWhatIsHidden(t *testing.T) {
	onStores(t, func(t *testing.T, r *rig) {
		for i := range 120 {
			r.create(fmt.Sprintf("acme/n%03d", i), "", `{}`)
		}
		if err := r.c.Grant(r.root, "acme", "vera", "Viewer"); err != nil {
			t.Fatal(err)
		}
		for i := range 120 {
			if i%60 != 0 {
				r.deny(fmt.Sprintf("acme/n%03d", i), "vera", "Viewer")
			}
		}
		for limit, want := range map[int]string{1: "n000 next n000; n060 end;", 2: "n000 n060 end;", 3: "n000 n060 end;", 0: "n000 n060 end;"} {
			got := ""
			for page := (store.Page{Limit: limit}); ; {
				entries, next, err := r.c.Children(as("vera"), "acme", page)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range entries {
					got += e.Path.ID() + " "
				}
				if page.After = next; next == "" {
					got += "end;"
					break
				}
				got += "next " + next + "; "
			}
			if got != want {
				t.Errorf("limit %d: %s, want %s", limit, got, want)
			}
		}
		// Control: who may read all gets full pages, and an empty one never follows.
		entries, next, err := r.c.Children(r.root, "acme", store.Page{Limit: 60})
		if err != nil || len(entries) != 60 || next != "n059" {
			t.Errorf("%d %q %v", len(entries), next, err)
		}
		entries, next, err = r.c.Children(r.root, "acme", store.Page{Limit: 60, After: next})
		if err != nil || len(entries) != 60 || next != "" {
			t.Errorf("%d %q %v", len(entries), next, err)
		}
	})
}

// bad input: one caller who lists a level of which he may read little, again and again
func TestAListingThatReadsOnBeyondAPageTakesATurnOfItsSubject(t *testing.T) {
	r := newRig(t)
	for i := range 4 {
		r.create(fmt.Sprintf("acme/n%d", i), "", `{}`)
	}
	if err := r.c.Grant(r.root, "acme/n3", "vera", "Viewer"); err != nil {
		t.Fatal(err)
	}
	each := max(2, runtime.GOMAXPROCS(0)) / 2
	entered, release := make(chan struct{}, 100), make(chan struct{})
	r.store.mu.Lock()
	r.store.onSelect = func() { entered <- struct{}{}; <-release }
	r.store.mu.Unlock()
	q := mustQuery(t, "scope:subtree name:x")
	var work sync.WaitGroup
	for range each { // her queries have all of her places
		work.Go(func() {
			if _, err := r.c.Select(as("vera"), q); err != nil {
				t.Error(err)
			}
		})
		<-entered
	}
	if got, _, err := r.c.Children(as("vera"), "acme", store.Page{}); err != nil || len(got) != 1 {
		t.Errorf("one page needs no turn: %v %v", got, err)
	}
	var mu sync.Mutex
	var events []string
	note := func(what string) { mu.Lock(); events = append(events, what); mu.Unlock() }
	first := make(chan struct{}, 1)
	var look func()
	look = func() {
		r.store.mu.Lock()
		r.store.onList = look // it is taken at each call
		r.store.mu.Unlock()
		note("read")
		select {
		case first <- struct{}{}:
		default: // a later page
		}
	}
	r.store.mu.Lock()
	r.store.onList = look
	r.store.mu.Unlock()
	work.Go(func() {
		if got, _, err := r.c.Children(as("vera"), "acme", store.Page{Limit: 1}); err != nil || len(got) != 1 {
			t.Errorf("more pages: %v %v", got, err)
		}
		note("done")
	})
	<-first // its first page; the next one waits
	if got, err := r.c.Get(r.root, "acme/n0"); err != nil {
		t.Errorf("somebody else: %v %v", got, err)
	}
	note("released")
	close(release)
	work.Wait()
	if slices.Index(events, "released") != 1 || len(events) < 4 { // read, released, read …, done
		t.Errorf("%v", events)
	}
}

// edge §2.5
// An entry has children exactly where its own listing, asked for in the same way, would show something: not
// for a configuration or an inbox, which listings leave out; for satellites only where they are asked for;
// and for a level that is only passed through only where something is reached.
func TestAnEntryHasChildrenWhereItsListingShowsSomething(t *testing.T) {
	onStores(t, func(t *testing.T, r *rig) {
		for _, p := range []string{"acme/files", "acme/talk", "acme/talk/_Thread/1", "acme/talk/_Thread/1/_ThreadMessage/2", "acme/note", "acme/note/_Comment/1", "acme/in",
			"acme/in/_Inbox/1", "acme/full", "acme/full/_a", "acme/full/_b", "acme/full/_c", "acme/full/z", "acme/shut/x/_Comment/1/y", "acme/hid", "acme/hid/a", "acme/hid/b"} {
			if p == "acme/shut/x/_Comment/1/y" {
				r.create("acme/shut/x", "", `{}`)
			}
			r.create(p, "", `{}`)
		}
		r.create("acme/files/_Content/content", nodehub.TypeCollection, `{"sourceType":"folder"}`)
		for subject, scopes := range map[string][]node.Path{"bob": {"acme/in/_Inbox/1", "acme/shut/x", "acme/hid/b"}, "vera": {"acme"}} {
			for _, scope := range scopes {
				if err := r.c.Grant(r.root, scope, subject, "Viewer"); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.deny("acme/hid/a", "vera", "Viewer")
		want := map[string]bool{ // by who asks, "+" for with satellites
			"root acme/files": false, "root+ acme/files": true, "root acme/talk": false, "root+ acme/talk": true, "root+ acme/talk/_Thread": true, "root+ acme/talk/_Thread/1": true,
			"root+ acme/note": true, "root acme/note": false, "root acme/in": false, "root+ acme/in": true, "root acme/full": true, "bob acme/in": false, "bob+ acme/in": true, "bob acme/shut": true,
			"bob acme/hid": true, "bob+ acme/hid/b": false, "vera acme/hid": true, "vera+ acme/hid/b": false, "vera+ acme/note": true,
		}
		seen := map[string]bool{}
		for who, ctx := range map[string]context.Context{"root": r.root, "bob": as("bob"), "vera": as("vera")} {
			for _, satellites := range []bool{false, true} {
				name := who
				if satellites {
					name += "+"
				}
				var walk func(at node.Path) int
				walk = func(at node.Path) int {
					entries, _, err := r.c.Children(ctx, at, store.Page{Satellites: satellites})
					if err != nil {
						t.Fatal(err)
					}
					for _, e := range entries {
						if below := walk(e.Path); e.HasChildren != (below > 0) {
							t.Errorf("%s %s: %v, and %d are listed", name, e.Path, e.HasChildren, below)
						}
						seen[name+" "+string(e.Path)] = e.HasChildren
					}
					return len(entries)
				}
				walk("")
			}
		}
		for at, has := range want {
			if got, listed := seen[at]; !listed || got != has {
				t.Errorf("%s: %v (listed: %v)", at, got, listed)
			}
		}
	})
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
