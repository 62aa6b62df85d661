package access_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/node"
)

func set(n node.Node, version int64) access.Change {
	n.Version = version
	return access.Change{Path: n.Path, Version: version, Node: n}
}

func gone(n node.Node, version int64) access.Change {
	return access.Change{Path: n.Path, Version: version, Deleted: true}
}

// edge invariant 2
func TestRemovingAnAssignmentRevokesAtOnce(t *testing.T) {
	g := grant("acme", "bob", "Viewer")
	x := load(t, g, grant("other", "bob", "Viewer"))
	before := x.Evaluator()
	x.Apply(gone(g, 2))
	if x.Evaluator().Permissions("bob", "acme") != 0 {
		t.Fatal("the grant outlives its node")
	}
	if !x.Evaluator().Permissions("bob", "other").Has(access.Read) {
		t.Fatal("another grant went with it")
	}
	if !before.Permissions("bob", "acme").Has(access.Read) {
		t.Fatal("a snapshot that was taken before has changed")
	}
	x.Apply(set(g, 3))
	if !x.Evaluator().Permissions("bob", "acme").Has(access.Read) {
		t.Fatal("a node that was created again does not count")
	}
}

// edge §2.2
func TestAnEditOfAnAssignmentMovesTheGrant(t *testing.T) {
	x := load(t, grant("acme", "bob", "Viewer"))
	x.Apply(set(assignment("acme", "bob_Access", `{"accessObject":"eve","roles":[{"role":"Viewer"}]}`), 2))
	e := x.Evaluator()
	if e.Permissions("bob", "acme") != 0 || !e.Permissions("eve", "acme").Has(access.Read) {
		t.Fatalf("bob %v, eve %v", e.Permissions("bob", "acme"), e.Permissions("eve", "acme"))
	}
	x.Apply(set(assignment("acme", "bob_Access", `{"roles":0}`), 3))
	if e := x.Evaluator(); e.Permissions("eve", "acme") != 0 {
		t.Fatal("an assignment that was broken by an edit still grants")
	}
}

// edge §2.2
func TestChangesDuringTheLoadWinOverWhatWasReadBeforeThem(t *testing.T) {
	removed, edited, kept := grant("acme", "bob", "Viewer"), grant("acme", "eve", "Viewer"), grant("acme", "zoe", "Viewer")
	x := access.NewIndex(nil)
	reading := func(yield func(node.Node, error) bool) {
		_ = yield(removed, nil) && yield(kept, nil)
		// Parked between the read of the rows and their use: the changes arrive now.
		x.Apply(gone(removed, 2))
		x.Apply(set(grant("acme", "eve", "-Viewer", "Viewer"), 2))
		x.Apply(set(grant("acme", "max", "Viewer"), 1))
		_ = yield(edited, nil)
	}
	if err := x.Load(reading); err != nil {
		t.Fatal(err)
	}
	e := x.Evaluator()
	for subject, want := range map[access.Subject]bool{"bob": false, "eve": false, "zoe": true, "max": true} {
		if got := e.Permissions(subject, "acme").Has(access.Read); got != want {
			t.Errorf("%s may read: %v, want %v", subject, got, want)
		}
	}
	x.Apply(set(removed, 1)) // control: after the load nothing is remembered of the deletion, commit order holds
	if !x.Evaluator().Permissions("bob", "acme").Has(access.Read) {
		t.Error("the deletion is remembered for ever")
	}
}

// edge §2.2
func TestAnOlderVersionOfAnAssignmentIsPassedOver(t *testing.T) {
	x := load(t)
	x.Apply(set(grant("acme", "bob", "Editor"), 5))
	x.Apply(set(grant("acme", "bob", "Admin"), 4))
	if x.Evaluator().Permissions("bob", "acme").Has(access.Administer) {
		t.Fatal("an older version was applied")
	}
}

// AC-R1
func TestWhoListensIsToldAfterTheNewSnapshotIsThere(t *testing.T) {
	x := access.NewIndex(nil)
	var told []node.Path
	mayRead := true
	cancel := x.Subscribe(func(scope node.Path) {
		told = append(told, scope)
		mayRead = x.Evaluator().Permissions("bob", "acme/a").Has(access.Read)
	})
	g := grant("acme/a", "bob", "Viewer")
	x.Apply(set(g, 1)) // not told: nothing can be decided yet
	if err := x.Load(sequence()); err != nil {
		t.Fatal(err)
	}
	x.Apply(set(node.Node{Path: "acme/a", Version: 2}, 2)) // not told: no assignment
	x.Apply(gone(g, 2))
	if mayRead {
		t.Fatal("the listener still sees the old permission")
	}
	cancel()
	x.Apply(set(g, 3))
	if got := strings.Join([]string{string(told[0]), string(told[1])}, ","); len(told) != 2 || got != ",acme/a" {
		t.Fatalf("told %q, want the root scope at the load, then acme/a", told)
	}
}

// edge §2.3
func TestTheLastAdminOfTheRootScopeStays(t *testing.T) {
	bob, eve := grant("", "bob", "Admin"), grant("", "eve", "Admin")
	tests := []struct {
		name   string
		nodes  []node.Node
		change access.Change
		ok     bool
	}{
		{"one of two may go", []node.Node{bob, eve}, gone(bob, 2), true},
		{"the last may not go", []node.Node{bob}, gone(bob, 2), false},
		{"the last may not be made less", []node.Node{bob}, set(grant("", "bob", "Editor"), 2), false},
		{"the last may not be denied", []node.Node{bob}, set(assignment("", "x", `{"accessObject":"bob","roles":[{"role":"Admin","denied":true}]}`), 1), false},
		{"the last may not be broken", []node.Node{bob}, set(assignment("", "bob_Access", `{}`), 2), false},
		{"the last may be handed over in one change", []node.Node{bob}, set(assignment("", "bob_Access", `{"accessObject":"eve","roles":[{"role":"Admin"}]}`), 2), true},
		{"Public is nobody who could mend it", []node.Node{bob, grant("", "Public", "Admin")}, gone(bob, 2), false},
		{"the first may come", nil, set(bob, 1), true},
		{"without one there is none to keep", []node.Node{grant("", "bob", "Viewer")}, gone(grant("", "bob"), 2), true},
		{"another scope has no such rule", []node.Node{bob, grant("acme", "bob", "Admin")}, gone(grant("acme", "bob"), 2), true},
		{"another node has none either", []node.Node{bob}, access.Change{Path: "acme", Deleted: true}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			release, err := load(t, test.nodes...).Admit(t.Context(), test.change)
			var last *access.LastAdminError
			if test.ok != (err == nil) || err != nil && !errors.As(err, &last) {
				t.Fatalf("admitted: %v", err)
			}
			if err == nil {
				release()
			}
		})
	}
	t.Run("who is given the right counts once it is given", func(t *testing.T) {
		x := load(t, bob)
		release, err := x.Admit(t.Context(), set(eve, 1))
		if err != nil {
			t.Fatal(err)
		}
		var last *access.LastAdminError
		if _, err := x.Admit(t.Context(), gone(bob, 2)); !errors.As(err, &last) {
			t.Fatalf("while the other grant may be given up: %v", err)
		}
		x.Apply(set(eve, 1))
		release()
		if _, err := x.Admit(t.Context(), gone(bob, 2)); err != nil {
			t.Fatalf("after the other grant: %v", err)
		}
	})
	t.Run("of the last two only one may go at a time", func(t *testing.T) {
		x := load(t, bob, eve)
		release, err := x.Admit(t.Context(), gone(bob, 2))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.Admit(t.Context(), gone(eve, 2)); err == nil {
			t.Fatal("both were admitted")
		}
		release() // the first was given up
		if _, err := x.Admit(t.Context(), gone(eve, 2)); err != nil {
			t.Fatalf("after the first was given up: %v", err)
		}
	})
}

// An assignment that is held counts beside the stored ones, and after everything was loaded anew.
func TestAHeldAssignmentOutlivesWhatIsLoaded(t *testing.T) {
	for _, stored := range [][]node.Node{nil, {assignment("", "Anonymous_Access", `{"accessObject":"Anonymous","roles":[]}`)}} {
		x := load(t, stored...)
		n := grant("", "Anonymous", "Viewer")
		n.Path = "_Access/~held"
		x.Hold(n)
		lost := load(t, stored...) // the control: as a change it is gone
		lost.Apply(set(n, 1))
		for name, c := range map[string]struct {
			x    *access.Index
			want access.Verdict
		}{"held": {x, access.Granted}, "applied": {lost, access.Denied}} {
			if err := c.x.Load(sequence(stored...)); err != nil {
				t.Fatal(err)
			}
			for _, n := range stored {
				c.x.Apply(gone(n, 2))
			}
			if got := c.x.Evaluator().Check(access.Anonymous, "acme", access.Read); got != c.want {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}

// accounts are those who can sign in.
type accounts struct {
	can  []access.Subject
	told func() // before who is left is counted
	err  error

	inside *int // changes that have entered and not left
}

func (a accounts) Enter(context.Context) (leave func(), err error) {
	if a.told != nil {
		a.told()
	}
	if a.inside != nil {
		*a.inside++
		return func() { *a.inside-- }, nil
	}
	return func() {}, nil
}

func (a accounts) CanSignIn(_ context.Context, subjects []access.Subject) ([]access.Subject, error) {
	return slices.DeleteFunc(subjects, func(s access.Subject) bool { return !slices.Contains(a.can, s) }), a.err
}

// edge §2.3
// Of the Admins of the root scope one who can sign in is left.
func TestTheLastAdminWhoCanSignInStays(t *testing.T) {
	bob, typo := grant("", "bob", "Admin"), grant("", "typo", "Admin")
	renamed := set(assignment("", "bob_Access", `{"accessObject":"typo","roles":[{"role":"Admin"}]}`), 2)
	down := errors.New("down")
	tests := []struct {
		name   string
		nodes  []node.Node
		change access.Change
		can    accounts
		ok     bool
	}{
		{"handed to nobody's account", []node.Node{bob}, renamed, accounts{can: []access.Subject{"bob"}}, false},
		{"handed to somebody, the control", []node.Node{bob}, renamed, accounts{can: []access.Subject{"bob", "typo"}}, true},
		{"gone beside nobody's account", []node.Node{bob, typo}, gone(bob, 2), accounts{can: []access.Subject{"bob"}}, false},
		{"gone beside somebody, the control", []node.Node{bob, typo}, gone(bob, 2), accounts{can: []access.Subject{"bob", "typo"}}, true},
		{"nobody's account goes", []node.Node{bob, typo}, gone(typo, 2), accounts{can: []access.Subject{"bob"}}, true},
		{"where nobody can sign in there is none to keep", []node.Node{bob, typo}, gone(bob, 2), accounts{}, true},
		{"who is left is not known", []node.Node{bob, typo}, gone(bob, 2), accounts{can: []access.Subject{"typo"}, err: down}, false},
		{"nobody loses anything, so nobody is asked", []node.Node{bob}, set(typo, 1), accounts{err: down}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x := load(t, test.nodes...)
			inside := 0
			test.can.inside = &inside
			x.GuardFor(test.can)
			release, err := x.Admit(t.Context(), test.change)
			var last *access.LastAdminError
			if test.ok != (err == nil) || err != nil && !errors.As(err, &last) && !errors.Is(err, down) {
				t.Fatalf("admitted: %v", err)
			}
			if err == nil {
				release()
			}
			if inside != 0 {
				t.Errorf("%d have not left", inside)
			}
		})
	}
	t.Run("what another process has withdrawn counts", func(t *testing.T) {
		x := load(t, bob, typo)
		x.GuardFor(accounts{can: []access.Subject{"bob", "typo"}, told: func() { x.Apply(gone(typo, 2)) }})
		var last *access.LastAdminError
		if _, err := x.Admit(t.Context(), gone(bob, 2)); !errors.As(err, &last) {
			t.Fatal(err)
		}
	})
}

// said is one assignment as the oracle reads it.
type said struct {
	scope   node.Path
	subject string
	roles   []string // "-" before a denied one
}

// oracle folds in the plainest way: for each role, from the path upwards, the first level at which any
// assignment names it.
func oracle(all map[node.Path]said, subject access.Subject, path node.Path) access.Permission {
	var held access.Permission
	for _, role := range []string{"Viewer", "Commenter", "Editor", "Admin", "PlatformAdmin"} {
		for at := path; ; at = at.Parent() {
			granted, denied := false, false
			for _, a := range all {
				if a.scope == at && a.subject == string(subject) {
					granted = granted || slices.Contains(a.roles, role)
					denied = denied || slices.Contains(a.roles, "-"+role)
				}
			}
			if granted && !denied {
				bits, _ := access.RolePermission(role)
				held |= bits
			}
			if granted || denied || at == "" {
				break
			}
		}
	}
	if subject != access.Public && subject != access.Anonymous {
		held |= oracle(all, access.Public, path)
	}
	return held
}

// edge §2.2
func TestTheIndexAgreesWithThePlainFoldAfterAnyChanges(t *testing.T) {
	scopes := []string{"", "a", "a/b", "a/b/c", "ab", "d/a"}
	subjects := []string{"bob", "eve", "Public", "Anonymous"}
	roles := []string{"Viewer", "-Viewer", "Editor", "-Editor", "Admin", "-Admin", "Commenter", "-Commenter", "Owner"}
	paths := []node.Path{"", "a", "a/b", "a/b/c", "a/b/c/d", "a/x", "ab", "ab/c", "d", "d/a/b"}
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		pick := func(from []string) string { return from[random.IntN(len(from))] }
		x := access.NewIndex(nil)
		nodes, all := map[node.Path]node.Node{}, map[node.Path]said{}
		loadAt, version := random.IntN(40), int64(0)
		for step := range 40 {
			if step == loadAt {
				var present []node.Node
				for _, n := range nodes {
					present = append(present, n)
				}
				if err := x.Load(sequence(present...)); err != nil {
					t.Fatal(err)
				}
			}
			version++
			a := said{node.Path(pick(scopes)), pick(subjects), []string{pick(roles), pick(roles)}}
			n := grant(string(a.scope), a.subject, a.roles...)
			if random.IntN(4) == 0 { // a second node about the same target
				n.Path += "2"
			}
			if random.IntN(3) == 0 {
				delete(nodes, n.Path)
				delete(all, n.Path)
				x.Apply(gone(n, version))
			} else {
				n.Version = version
				nodes[n.Path], all[n.Path] = n, a
				x.Apply(set(n, version))
			}
			if step < loadAt {
				continue
			}
			e := x.Evaluator()
			for _, subject := range []access.Subject{"bob", "eve", access.Public, access.Anonymous} {
				for _, path := range paths {
					if got, want := e.Permissions(subject, path), oracle(all, subject, path); got != want {
						t.Fatalf("seed %d, step %d: %s on %q has %v, want %v", seed, step, subject, path, got, want)
					}
				}
			}
		}
	}
}

func TestReadersAndWritersDoNotDisturbEachOther(t *testing.T) {
	x := load(t, grant("acme", "bob", "Viewer"))
	var writers sync.WaitGroup
	done := make(chan struct{})
	for w := range 4 {
		writers.Go(func() {
			n := grant("acme/"+string(rune('a'+w)), "bob", "Editor")
			for version := int64(1); version < 200; version += 2 {
				x.Apply(set(n, version))
				x.Apply(gone(n, version+1))
			}
		})
	}
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if !x.Evaluator().Permissions("bob", "acme").Has(access.Read) {
					t.Error("a grant that nobody touched was lost")
					return
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	if got := x.Evaluator().Permissions("bob", "acme/a"); got.Has(access.Update) {
		t.Fatalf("a grant that was removed is left: %v", got)
	}
}

func TestAskingAllocatesNothing(t *testing.T) {
	e := load(t, grant("acme", "bob", "Viewer"), grant("acme/a/b", "Public", "Viewer"), grant("", "eve", "Admin")).Evaluator()
	if n := testing.AllocsPerRun(100, func() { e.Permissions("bob", "acme/a/b/c/_Comment/d") }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func BenchmarkPermissions(b *testing.B) {
	nodes := []node.Node{grant("acme", "bob", "Viewer"), grant("acme/Stories", "Public", "Viewer")}
	for i := range 10_000 {
		nodes = append(nodes, grant("acme", "user"+strings.Repeat("x", i%50)+string(rune('a'+i%26)), "Viewer"))
	}
	e := load(b, nodes...).Evaluator()
	b.ReportAllocs()
	for b.Loop() {
		e.Permissions("bob", "acme/Stories/launch/detail")
	}
}

func BenchmarkApply(b *testing.B) {
	var nodes []node.Node
	for i := range 10_000 {
		nodes = append(nodes, grant("acme", "user"+strings.Repeat("x", i%100)+string(rune('a'+i%26)), "Viewer"))
	}
	x := load(b, nodes...)
	g := grant("acme", "bob", "Viewer")
	version := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		version++
		x.Apply(set(g, version))
	}
}

// decision 7: everything may have changed
func TestALoadThatIsRepeatedForgetsWhatIsGoneAndKeepsWhatCameMeanwhile(t *testing.T) {
	x := access.NewIndex(nil)
	old, kept, late, deleted := grant("acme/a", "bob", "Viewer"), grant("acme/b", "bob", "Viewer"), grant("acme/c", "bob", "Viewer"), grant("acme/d", "bob", "Viewer")
	for _, n := range []*node.Node{&old, &kept, &late, &deleted} {
		n.Version = 1
	}
	if err := x.Load(sequence(old, kept, deleted)); err != nil {
		t.Fatal(err)
	}
	err := x.Load(func(yield func(node.Node, error) bool) {
		x.Apply(set(late, 1)) // created after the read has passed it
		x.Apply(gone(deleted, 2))
		_ = yield(kept, nil) && yield(deleted, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[node.Path]bool{"acme/a": false, "acme/b": true, "acme/c": true, "acme/d": false} {
		if got := x.Evaluator().Permissions("bob", path).Has(access.Read); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	failing := errors.New("away")
	if err := x.Load(func(yield func(node.Node, error) bool) { yield(node.Node{}, failing) }); !errors.Is(err, failing) {
		t.Fatal(err)
	}
	x.Apply(gone(kept, 2))
	if x.Evaluator().Permissions("bob", "acme/b").Has(access.Read) {
		t.Error("a load that failed has left the index deaf")
	}
}
