package access_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/node"
)

// grant makes the node of an assignment; a role that begins with "-" is denied.
func grant(scope, subject string, roles ...string) node.Node {
	type role struct {
		Role   string `json:"role"`
		Denied bool   `json:"denied,omitempty"`
	}
	var list []role
	for _, r := range roles {
		name, denied := strings.CutPrefix(r, "-")
		list = append(list, role{name, denied})
	}
	text, err := json.Marshal(map[string]any{"$type": "AccessAssignment", "accessObject": subject, "roles": list})
	if err != nil {
		panic(err)
	}
	return assignment(scope, subject+"_Access", string(text))
}

func assignment(scope, id, content string) node.Node {
	path := strings.TrimPrefix(scope+"/_Access/"+id, "/")
	return node.Node{
		Path: node.Path(path), MainNode: node.Path(scope), NodeType: node.TypeAccessAssignment,
		State: node.StateActive, Version: 1, Content: node.RawContent(content),
	}
}

func sequence(nodes ...node.Node) iter.Seq2[node.Node, error] {
	return func(yield func(node.Node, error) bool) {
		for _, n := range nodes {
			if !yield(n, nil) {
				return
			}
		}
	}
}

// load returns an index that holds the nodes.
func load(t testing.TB, nodes ...node.Node) *access.Index {
	t.Helper()
	x := access.NewIndex(nil)
	if err := x.Load(sequence(nodes...)); err != nil {
		t.Fatal(err)
	}
	return x
}

// edge §2.1
func TestTheFixedRolesHoldTheirBits(t *testing.T) {
	for name, want := range map[string]access.Permission{
		"Viewer": 161, "Commenter": 145, "Editor": 1527,
		"Admin": 1535 | access.Administer, "PlatformAdmin": 1535 | access.Administer,
	} {
		if got, ok := access.RolePermission(name); !ok || got != want {
			t.Errorf("%s holds %d (%v), want %d", name, got, got, want)
		}
	}
	if _, ok := access.RolePermission("admin"); ok {
		t.Error("a role was found in another letter case")
	}
	if got := (access.Read | access.Compile).String(); got != "Read+Compile" {
		t.Errorf("Read and Compile read as %q", got)
	}
}

// edge §2.2
func TestTheClosestScopeThatNamesTheRoleDecides(t *testing.T) {
	const viewer, editor = access.Read | access.Execute | access.API, access.All&^access.Delete | access.Compile
	tests := []struct {
		name    string
		nodes   []node.Node
		subject access.Subject
		path    string
		want    access.Permission
	}{
		{"no grant is nothing", nil, "bob", "acme/a", 0},
		{"a grant covers its scope", []node.Node{grant("acme", "bob", "Viewer")}, "bob", "acme", viewer},
		{"a grant covers what is below", []node.Node{grant("acme", "bob", "Viewer")}, "bob", "acme/a/b/c", viewer},
		{"a grant does not cover what is above", []node.Node{grant("acme/a", "bob", "Viewer")}, "bob", "acme", 0},
		{"a grant does not cover its siblings", []node.Node{grant("acme/a", "bob", "Viewer")}, "bob", "acme/b", 0},
		// decision 12
		{"a scope ends at a segment", []node.Node{grant("ACME", "bob", "Viewer")}, "bob", "ACME2", 0},
		{"a scope is case-sensitive", []node.Node{grant("ACME", "bob", "Viewer")}, "bob", "acme", 0},
		{"a grant of the root scope covers everything", []node.Node{grant("", "bob", "Viewer")}, "bob", "acme/a", viewer},
		{"the root scope itself is covered", []node.Node{grant("", "bob", "Viewer")}, "bob", "", viewer},
		{"a grant is for its subject alone", []node.Node{grant("acme", "bob", "Viewer")}, "eve", "acme", 0},
		{"a subject is case-sensitive", []node.Node{grant("acme", "bob", "Viewer")}, "Bob", "acme", 0},
		{"roles add up over scopes", []node.Node{grant("acme", "bob", "Viewer"), grant("acme/a", "bob", "Commenter")},
			"bob", "acme/a", viewer | access.Comment},
		{"a denial beats a grant at the same scope", []node.Node{grant("acme", "bob", "Viewer", "-Viewer")}, "bob", "acme", 0},
		{"also when they are two nodes", []node.Node{grant("acme", "bob", "Viewer"),
			assignment("acme", "other", `{"accessObject":"bob","roles":[{"role":"Viewer","denied":true}]}`)}, "bob", "acme", 0},
		{"a denial below a grant holds there", []node.Node{grant("acme", "bob", "Viewer"), grant("acme/a", "bob", "-Viewer")}, "bob", "acme/a/x", 0},
		{"and nowhere else", []node.Node{grant("acme", "bob", "Viewer"), grant("acme/a", "bob", "-Viewer")}, "bob", "acme/b", viewer},
		// edge invariant 1
		{"a grant at a child beats a denial above it", []node.Node{grant("acme", "bob", "Editor"), grant("acme/a", "bob", "-Editor"),
			grant("acme/a/b", "bob", "Editor")}, "bob", "acme/a/b", editor},
		// edge invariant 1
		{"denying one role keeps the others", []node.Node{grant("acme", "bob", "Editor", "Viewer"), grant("acme/a", "bob", "-Editor")}, "bob", "acme/a", viewer},
		{"the system holds everything", nil, access.System, "acme", access.Everything},
		{"an assignment about the system changes nothing", []node.Node{grant("acme", string(access.System), "-Admin")}, access.System, "acme", access.Everything},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := load(t, test.nodes...).Evaluator().Permissions(test.subject, node.Path(test.path))
			if got != test.want {
				t.Fatalf("%s on %q: %v, want %v", test.subject, test.path, got, test.want)
			}
		})
	}
}

// edge §2.2
func TestPublicIsEverybodyWhoIsKnown(t *testing.T) {
	e := load(t, grant("acme", "Public", "Viewer"), grant("acme/a", "bob", "-Viewer"), grant("open", "Anonymous", "Viewer")).Evaluator()
	tests := []struct {
		name    string
		subject access.Subject
		path    node.Path
		want    bool
	}{
		{"an authenticated subject adds what Public has", "bob", "acme", true},
		{"a denial of the subject does not take what Public has", "bob", "acme/a", true},
		// edge invariant 6
		{"Anonymous does not inherit Public", access.Anonymous, "acme", false},
		{"the empty subject is Anonymous", "", "acme", false},
		{"a grant to Anonymous is for visitors", access.Anonymous, "open", true},
		{"the empty subject has it too", "", "open", true},
		{"and for nobody who is known", "bob", "open", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := e.Permissions(test.subject, test.path).Has(access.Read); got != test.want {
				t.Fatalf("%q may read %s: %v, want %v", test.subject, test.path, got, test.want)
			}
		})
	}
}

// edge invariant 10
func TestAPartitionThatBearsASubjectsIdIsItsOwnInAnyLetterCase(t *testing.T) {
	e := load(t, grant("bob", "bob", "-Admin"), grant("bob/secret", "bob", "-Admin")).Evaluator()
	admin, _ := access.RolePermission("Admin")
	for path, want := range map[node.Path]access.Permission{
		"bob": admin, "Bob/notes": admin, "bob2": 0, "acme/bob": 0, "": 0,
		"bob/secret": 0, // a closer scope still decides
	} {
		if got := e.Permissions("bob", path); got != want {
			t.Errorf("on %q: %v, want %v", path, got, want)
		}
	}
	if got := e.Permissions(access.Public, "Public"); got != 0 {
		t.Errorf("Public owns a partition: %v", got)
	}
}

// edge §2.3
func TestASatelliteAsksItsMainNode(t *testing.T) {
	e := load(t, grant("acme", "reader", "Viewer"), grant("acme", "writer", "Editor"), grant("acme", "guest", "Commenter"),
		grant("acme", "boss", "Admin")).Evaluator()
	tests := []struct {
		name    string
		subject access.Subject
		path    node.Path
		need    access.Permission
		want    bool
	}{
		{"Read needs Read", "reader", "acme/a/_Activity/1", access.Read, true},
		{"Update needs Update", "reader", "acme/a/_Activity/1", access.Update, false},
		{"Delete needs Update there", "writer", "acme/a/_Thread/1", access.Delete, true},
		{"while the main node's Delete is its own bit", "writer", "acme/a", access.Delete, false},
		{"a comment may be created with Comment", "guest", "acme/a/_Comment/1", access.Create, true},
		{"and not changed", "guest", "acme/a/_Comment/1", access.Update, false},
		{"other satellites may not be created with Comment", "guest", "acme/a/_Thread/1", access.Create, false},
		{"an Editor may not read assignments", "writer", "acme/_Access/x", access.Read, false},
		{"an Editor may not make himself Admin", "writer", "acme/_Access/writer_Access", access.Create, false},
		{"nor in another letter case of the segment", "writer", "acme/_access/writer_Access", access.Create, false},
		{"nor below an assignment", "writer", "acme/_Access/x/_Comment/1", access.Create, false},
		{"an Admin may", "boss", "acme/_Access/writer_Access", access.Read | access.Create | access.Update | access.Delete, true},
		{"at his scope alone", "boss", "_Access/boss_Access", access.Create, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := e.Permissions(test.subject, test.path).Has(test.need); got != test.want {
				t.Fatalf("%s may %v on %s: %v, want %v", test.subject, test.need, test.path, got, test.want)
			}
		})
	}
}

// edge §2.2
func TestWhatIsNoAssignmentGrantsNothingAndIsReported(t *testing.T) {
	untyped := grant("acme", "bob", "Admin")
	untyped.NodeType = "Note"
	deleted := grant("acme", "bob", "Admin")
	deleted.State = node.StateDeleted
	draft := grant("acme", "bob", "Admin")
	draft.State = node.StateTransient
	tests := []struct {
		name     string
		node     node.Node
		reported string
	}{
		{"without content", assignment("acme", "x", ""), "names no accessObject"},
		{"content of another shape", assignment("acme", "x", `["bob"]`), "is not an assignment"},
		{"roles of another shape", assignment("acme", "x", `{"accessObject":"bob","roles":"Admin"}`), "is not an assignment"},
		{"a denial that is no boolean", assignment("acme", "x", `{"accessObject":"bob","roles":[{"role":"Admin","denied":"no"}]}`), "is not an assignment"},
		{"no subject", assignment("acme", "x", `{"roles":[{"role":"Admin"}]}`), "names no accessObject"},
		{"no roles", assignment("acme", "x", `{"accessObject":"bob"}`), "lists no roles"},
		{"a role that does not exist", assignment("acme", "x", `{"accessObject":"bob","roles":[{"role":"Owner"}]}`), `"Owner" is no role`},
		{"another type", untyped, "its type is"},
		{"a deleted state", deleted, ""},
		{"a draft", draft, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var reported []access.Problem
			x := access.NewIndex(func(p access.Problem) { reported = append(reported, p) })
			if err := x.Load(sequence(test.node)); err != nil {
				t.Fatal(err)
			}
			if got := x.Evaluator().Permissions("bob", "acme"); got != 0 {
				t.Fatalf("it grants %v", got)
			}
			if diff := cmp.Diff(reported, x.Problems(), cmp.Transformer("", func(p access.Problem) string { return p.String() })); diff != "" && len(reported) > 0 {
				t.Fatalf("reported and listed differ:\n%s", diff)
			}
			if (test.reported == "") != (len(reported) == 0) || test.reported != "" && !strings.Contains(reported[0].String(), test.reported) {
				t.Fatalf("reported %v, want %q", reported, test.reported)
			}
			x.Apply(access.Change{Path: test.node.Path, Version: 2, Deleted: true})
			if left := x.Problems(); len(left) > 0 {
				t.Fatalf("the problem outlives its node: %v", left)
			}
		})
	}
	t.Run("a good role beside a bad one stands", func(t *testing.T) {
		x := load(t, assignment("acme", "x", `{"accessObject":"bob","roles":[{"role":"Owner"},{"role":"Viewer"}]}`))
		if !x.Evaluator().Permissions("bob", "acme").Has(access.Read) {
			t.Fatal("the good role does not count")
		}
	})
}

// edge §2.2
func TestUndeterminedIsNotDenied(t *testing.T) {
	x := access.NewIndex(nil)
	var undetermined *access.UndeterminedError
	if err := x.Evaluator().Require("bob", "acme", access.Read); !errors.As(err, &undetermined) {
		t.Fatalf("before the load: %v, want undetermined", err)
	}
	if err := x.Evaluator().Require(access.System, "acme", access.Read); err != nil {
		t.Fatalf("the system is asked to wait: %v", err)
	}
	broken := errors.New("the store is away")
	failing := func(yield func(node.Node, error) bool) {
		_ = yield(grant("acme", "bob", "Viewer"), nil) && yield(node.Node{}, broken)
	}
	if err := x.Load(failing); !errors.Is(err, broken) {
		t.Fatalf("a failed load: %v, want its cause", err)
	}
	if got := x.Evaluator().Check("bob", "acme", access.Read); got != access.Undetermined {
		t.Fatalf("after a failed load: %v, want undetermined", got)
	}
	if err := x.Load(sequence()); err != nil {
		t.Fatal(err)
	}
	var denied *access.DeniedError
	err := x.Evaluator().Require("", "acme", access.Read)
	if !errors.As(err, &denied) || err.Error() != "Anonymous lacks Read on 'acme'" {
		t.Fatalf("after the load: %v, want a denial that names who, what and where", err)
	}
}

func TestALevelAboveAGrantCanBeReached(t *testing.T) {
	e := load(t, grant("acme/a/b", "bob", "Viewer"), grant("acme/c", "Public", "Viewer"), grant("acme/d", "bob", "-Viewer")).Evaluator()
	for _, test := range []struct {
		subject access.Subject
		path    node.Path
		want    bool
	}{
		{"bob", "", true}, {"bob", "acme", true}, {"bob", "acme/a", true}, {"bob", "acme/a/b", false},
		{"bob", "acme/d", false}, {"bob", "acm", false}, {"eve", "acme", true}, {"eve", "acme/a", false},
		{"", "acme", false}, {access.System, "acme", true},
	} {
		if got := e.Reaches(test.subject, test.path); got != test.want {
			t.Errorf("%q reaches something below %q: %v, want %v", test.subject, test.path, got, test.want)
		}
	}
}

func TestReservedNamesAreNobodysAccount(t *testing.T) {
	for _, name := range []string{"", "Public", "public", "Anonymous", "system-security", "System-Security", "a/b", `a\b`, "a\nb", " a", "a\xff", strings.Repeat("a", 201),
		"bo\u200bb", "bob\ufe0f", "\u202ebob", "bo\u00adb", "\ue000"} {
		if _, err := access.ParseSubject(name); err == nil {
			t.Errorf("%q was accepted as an account", name)
		}
	}
	for _, name := range []string{"bob", "Bob Müller", "bob@example.org", "夏目漱石", "bob ❤"} {
		if got, err := access.ParseSubject(name); err != nil || string(got) != name {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}

func Example() {
	index := access.NewIndex(nil)
	_ = index.Load(sequence(grant("acme", "bob", "Viewer"))) // the sequence can not fail here
	fmt.Println(index.Evaluator().Check("bob", "acme/Stories/launch", access.Read))
	fmt.Println(index.Evaluator().Require("bob", "acme/Stories/launch", access.Update))
	// Output:
	// granted
	// bob lacks Update on 'acme/Stories/launch'
}
