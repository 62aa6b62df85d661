package node_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hubmesh/hubmesh/internal/node"
)

func TestAPatchOfANodeChangesItsWritableFields(t *testing.T) {
	t.Parallel()
	n := sample(t)
	got, err := node.ApplyPatch(n, []byte(`{"name":"New","description":null,"order":null,"content":{"phone":null,"city":"Annecy"},
		"excludeFromContext":["browse"],"syncBehavior":null,"state":"Rejected","path":"/Northwind/Supplier/Gai_pâturage","id":"Gai_pâturage",
		"namespace":"Northwind/Supplier","version":99,"createdBy":"mallory","mainNode":"Northwind"}`), node.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	want := n
	want.Name, want.Description, want.Order, want.State, want.MainNode = "New", "", nil, node.StateRejected, "Northwind"
	want.ExcludeFromContext, want.SyncBehavior = []string{"browse"}, node.SyncInclude
	want.Content = parse(t, `{"$type":"SupplierContent","supplierId":28,"big":12345678901234567890.10,"city":"Annecy"}`)
	if diff := cmp.Diff(want, got, compareContents); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(sample(t), n, compareContents); diff != "" {
		t.Errorf("the patched node itself changed:\n%s", diff)
	}
}

func TestAnEmptyPatchIsNoChange(t *testing.T) {
	t.Parallel()
	got, err := node.ApplyPatch(sample(t), []byte(`{}`), node.DefaultLimits)
	if err != nil || !got.SameAs(sample(t)) {
		t.Errorf("%v", err)
	}
}

func TestABadPatchNamesTheMember(t *testing.T) {
	t.Parallel()
	for text, field := range map[string]string{
		`{"nmae":"x"}`: "nmae", `{"path":"Northwind/Supplier"}`: "path", `{"id":"x"}`: "id", `{"namespace":""}`: "namespace",
		`{"path":null}`: "path", `{"state":null}`: "state", `{"name":[]}`: "name", `{"mainNode":"a//b"}`: "mainNode",
	} {
		_, err := node.ApplyPatch(sample(t), []byte(text), node.DefaultLimits)
		var refused *node.FieldError
		if !errors.As(err, &refused) || refused.Field != field || refused.Unknown != (field == "nmae") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{``, `[]`, `"x"`, `{"name":"a","name":"b"}`, `{"content":` + strings.Repeat("[", 201) + strings.Repeat("]", 201) + `}`} {
		var refused *node.ContentError
		if _, err := node.ApplyPatch(sample(t), []byte(text), node.DefaultLimits); !errors.As(err, &refused) {
			t.Errorf("%.40s: %v", text, err)
		}
	}
}

// issue: a node has at most 1 MiB
func TestPatchesCannotGrowANodeBeyondItsLimit(t *testing.T) {
	t.Parallel()
	n := sample(t)
	half := strings.Repeat("x", 600<<10)
	n, err := node.ApplyPatch(n, []byte(`{"content":{"a":"`+half+`"}}`), node.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	var refused *node.ContentError
	if _, err = node.ApplyPatch(n, []byte(`{"content":{"b":"`+half+`"}}`), node.DefaultLimits); !errors.As(err, &refused) || refused.Kind != node.ContentSize {
		t.Errorf("got %v", err)
	}
	if _, err = node.ApplyPatch(n, []byte(`{"content":{"a":"`+half+`"}}`), node.DefaultLimits); err != nil {
		t.Errorf("a patch that does not grow it: %v", err)
	}
}

func TestTheDiffOfTwoNodesIsOverTheirPublicForm(t *testing.T) {
	t.Parallel()
	a := sample(t)
	b := a
	b.Version, b.Name, b.Icon = 8, "New", ""
	b.Content = parse(t, `{"$type":"SupplierContent","supplierId":29,"phone":"38.76.98.06","big":12345678901234567890.10}`)
	patch, ok := node.NodeDiff(a, b)
	if want := `{"icon":null,"name":"New","content":{"supplierId":29},"version":8}`; !ok || patch.Text() != want {
		t.Errorf("got %s, %v", patch, ok)
	}
	merged, err := node.MergePatch(node.RawContent(string(a.AppendJSON(nil))), patch)
	if err != nil || !node.Equal(merged, node.RawContent(string(b.AppendJSON(nil)))) {
		t.Errorf("the patch leads to %s, %v", merged, err)
	}
	b.Content = parse(t, `{"supplierId":null}`)
	if _, ok := node.NodeDiff(a, b); ok {
		t.Error("a merge patch cannot set a member to null")
	}
}
