package node_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hubmesh/hubmesh/internal/node"
)

var compareContents = cmp.AllowUnexported(node.Content{})

func sample(t testing.TB) node.Node {
	order := 3
	return node.Node{
		Path: "Northwind/Supplier/Gai_pâturage", MainNode: "Northwind/Supplier/Gai_pâturage",
		NodeType: "Northwind/Supplier", Name: "Gai pâturage", Description: "Annecy, <France> & \"more\"",
		Category: "Suppliers", Icon: "/static/NodeTypeIcons/truck.svg", Order: &order, PreRenderedHTML: "<p>x</p>",
		Content: parse(t, `{"$type":"SupplierContent","supplierId":28,"phone":"38.76.98.06","big":12345678901234567890.10}`),
		Version: 7, State: node.StateActive,
		CreatedAt: time.Date(2026, 6, 26, 10, 47, 30, 878102000, time.UTC), CreatedBy: "emma",
		ModifiedAt: time.Date(2026, 6, 27, 10, 0, 0, 0, time.UTC), ModifiedBy: "paul",
		DesiredID: "gai", ExcludeFromContext: []string{"search", "create"}, SyncBehavior: node.SyncExcludeThisAndKids,
	}
}

func TestANodeHasThePublicFormOfTheAPI(t *testing.T) {
	t.Parallel()
	want := `{"path":"Northwind/Supplier/Gai_pâturage","id":"Gai_pâturage","namespace":"Northwind/Supplier",` +
		`"mainNode":"Northwind/Supplier/Gai_pâturage","nodeType":"Northwind/Supplier","name":"Gai pâturage",` +
		`"description":"Annecy, <France> & \"more\"","category":"Suppliers","icon":"/static/NodeTypeIcons/truck.svg",` +
		`"order":3,"preRenderedHtml":"<p>x</p>","content":{"$type":"SupplierContent","supplierId":28,"phone":"38.76.98.06",` +
		`"big":12345678901234567890.10},"version":7,"state":"Active","createdDate":"2026-06-26T10:47:30.878102Z",` +
		`"createdBy":"emma","lastModified":"2026-06-27T10:00:00Z","lastModifiedBy":"paul","desiredId":"gai",` +
		`"excludeFromContext":["search","create"],"syncBehavior":"ExcludeThisAndChildren"}`
	if got := string(sample(t).AppendJSON(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := string(node.Node{Path: "acme", MainNode: "acme"}.AppendJSON(nil)), `{"path":"acme","id":"acme","mainNode":"acme","state":"New"}`; got != want {
		t.Errorf("empty fields are written: %s", got)
	}
}

func TestANodeSurvivesItsJSON(t *testing.T) {
	t.Parallel()
	for _, n := range []node.Node{
		sample(t),
		{Path: "acme", MainNode: "acme", State: node.StateNew},
		{Path: "acme/_Thread/1", MainNode: "acme", State: node.StateActive},
		{Path: "_Access/x", MainNode: "", State: node.StateActive, Content: parse(t, `[1,null]`)},
	} {
		b, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		var got node.Node
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(n, got, compareContents); diff != "" {
			t.Errorf("%s (-was +is):\n%s", n.Path, diff)
		}
		if !n.SameAs(got) {
			t.Errorf("%s is not the same as its copy", n.Path)
		}
	}
}

func TestANodeFileIsReadWithWhatItDoesNotSay(t *testing.T) {
	t.Parallel()
	n, unknown, err := node.DecodeLoose([]byte(`{"$type":"MeshNode","id":"Gai_p\u00e2turage","namespace":"/Northwind/Supplier/",
		"name":null,"isPersistent":true,"state":2,"syncBehavior":1,"order":-4,"lastModified":"2026-06-26T12:47:30.8781029+02:00",
		"createdDate":"0001-01-01T00:00:00","content":{"a":null}}`))
	if err != nil {
		t.Fatal(err)
	}
	order := -4
	want := node.Node{
		Path: "Northwind/Supplier/Gai_pâturage", MainNode: "Northwind/Supplier/Gai_pâturage", State: node.StateActive,
		SyncBehavior: node.SyncExcludeThisOnly, Order: &order, Content: parse(t, `{"a":null}`),
		ModifiedAt: time.Date(2026, 6, 26, 10, 47, 30, 878102000, time.UTC),
	}
	if diff := cmp.Diff(want, n, compareContents); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Equal(unknown, []string{"$type", "isPersistent"}) {
		t.Errorf("unknown members: %q", unknown)
	}
}

func TestStatesAreReadByNameAndNumber(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]node.State{`"New"`: 0, `0`: 0, `"transient"`: 1, `"2"`: 2, `3`: 3, `"Deleted"`: 4, `null`: node.StateActive} {
		var n node.Node
		if err := json.Unmarshal([]byte(`{"state":`+text+`}`), &n); err != nil || n.State != want {
			t.Errorf("state %s is %v, %v", text, n.State, err)
		}
	}
}

func TestAFieldThatDoesNotFitIsNamed(t *testing.T) {
	t.Parallel()
	for text, field := range map[string]string{
		`{"name":1}`: "name", `{"state":"Gone"}`: "state", `{"state":5}`: "state", `{"state":true}`: "state",
		`{"order":1.5}`: "order", `{"order":"1"}`: "order", `{"order":4294967296}`: "order", `{"version":-1}`: "version",
		`{"version":1e3}`: "version", `{"createdDate":"yesterday"}`: "createdDate", `{"lastModified":5}`: "lastModified",
		`{"excludeFromContext":"search"}`: "excludeFromContext", `{"excludeFromContext":[1]}`: "excludeFromContext",
		`{"excludeFromContext":[""]}`: "excludeFromContext", `{"syncBehavior":"Maybe"}`: "syncBehavior",
		`{"path":"a/b","id":"c"}`: "id", `{"path":"a/b","namespace":"c"}`: "namespace", `{"mainNode":"a/../b"}`: "mainNode",
		`{"name":"` + strings.Repeat("x", 1025) + `"}`: "name",
	} {
		_, _, err := node.DecodeLoose([]byte(text))
		var refused *node.FieldError
		if !errors.As(err, &refused) || refused.Field != field {
			t.Errorf("%.60s: %v; want field %s", text, err, field)
		}
	}
	var path *node.PathError
	if _, _, err := node.DecodeLoose([]byte(`{"path":"a/../b"}`)); !errors.As(err, &path) {
		t.Errorf("an illegal path: %v", err)
	}
	var content *node.ContentError
	for _, text := range []string{`[]`, `1`, `null`, `{"a":1,"a":2}`, `{`} {
		if _, _, err := node.DecodeLoose([]byte(text)); !errors.As(err, &content) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// issue: limits, JSON depth 200 counts the content's levels
func TestTheDepthOfAContentIsTheSameHoweverItComes(t *testing.T) {
	levels := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	objects := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	ways := map[string]func(content string) error{
		"a content": func(c string) error { _, err := node.ParseContent([]byte(c), node.DefaultLimits); return err },
		"a node":    func(c string) error { _, _, err := node.DecodeLoose([]byte(`{"content":` + c + `}`)); return err },
		"a patch": func(c string) error {
			_, err := node.ApplyPatch(node.Node{Path: "a/b", MainNode: "a/b"}, []byte(`{"content":`+c+`}`), node.DefaultLimits)
			return err
		},
	}
	for name, way := range ways {
		for _, of := range []func(int) string{levels, objects} {
			if err := way(of(200)); err != nil {
				t.Errorf("%s of 200 levels: %v", name, err)
			}
			var refused *node.ContentError
			if err := way(of(201)); !errors.As(err, &refused) || refused.Kind != node.ContentDepth || !strings.Contains(refused.Reason, "deeper than 200 levels") {
				t.Errorf("%s of 201 levels: %v", name, err)
			}
		}
	}
	// A patch makes nothing deeper than itself and what is there.
	n, err := node.ApplyPatch(node.Node{Path: "a/b", MainNode: "a/b", Content: node.RawContent(objects(200))}, []byte(`{"content":`+objects(200)+`}`), node.DefaultLimits)
	if err != nil || n.Content.Text() != objects(200) {
		t.Errorf("%v", err)
	}
}

// data §1.3.1: only a proven change counts
func TestAnyWritableFieldMakesADifferenceAndStampsDoNot(t *testing.T) {
	t.Parallel()
	n := sample(t)
	other := 4
	for name, change := range map[string]func(*node.Node){
		"path": func(m *node.Node) { m.Path = "x" }, "mainNode": func(m *node.Node) { m.MainNode = "x" },
		"nodeType": func(m *node.Node) { m.NodeType = "x" }, "name": func(m *node.Node) { m.Name = "x" },
		"description": func(m *node.Node) { m.Description = "x" }, "category": func(m *node.Node) { m.Category = "x" },
		"icon": func(m *node.Node) { m.Icon = "x" }, "order": func(m *node.Node) { m.Order = &other }, "no order": func(m *node.Node) { m.Order = nil },
		"preRenderedHtml": func(m *node.Node) { m.PreRenderedHTML = "x" }, "content": func(m *node.Node) { m.Content = parse(t, `{}`) },
		"state": func(m *node.Node) { m.State = node.StateRejected }, "desiredId": func(m *node.Node) { m.DesiredID = "x" },
		"excludeFromContext": func(m *node.Node) { m.ExcludeFromContext = nil }, "syncBehavior": func(m *node.Node) { m.SyncBehavior = 0 },
	} {
		m := n
		change(&m)
		if n.SameAs(m) || m.SameAs(n) {
			t.Errorf("%s makes no difference", name)
		}
	}
	m := n
	same := 3
	m.Version, m.CreatedAt, m.CreatedBy, m.ModifiedAt, m.ModifiedBy, m.Order = 9, time.Time{}, "", time.Time{}, "", &same
	m.Content = parse(t, `{"big":12345678901234567890.10,"phone":"38.76.98.06","supplierId":28,"$type":"SupplierContent"}`)
	if !n.SameAs(m) {
		t.Error("stamps make a difference")
	}
	changed := n.WithWritable(node.Node{Path: "elsewhere", Name: "new", Version: 99})
	if changed.Path != n.Path || changed.Version != 7 || changed.CreatedBy != "emma" || changed.ModifiedBy != "paul" || changed.Name != "new" || changed.Icon != "" {
		t.Errorf("WithWritable: %+v", changed)
	}
}

func FuzzNodeJSON(f *testing.F) {
	f.Add(sample(f).AppendJSON(nil))
	for _, seed := range []string{`{"id":"a","namespace":"b","state":2}`, `{"path":"_Access/x","content":[null]}`, `{"mainNode":"","path":"a"}`, `{"x":1}`, `{"lastModified":"2026-06-26T10:47:30+23:59"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, _, err := node.DecodeLoose(b)
		if err != nil {
			return
		}
		text := n.AppendJSON(nil)
		again, unknown, err := node.DecodeLoose(text)
		if err != nil || len(unknown) > 0 {
			t.Fatalf("%s is written as %s: %v, %q", b, text, err, unknown)
		}
		if n.MainNode == "" { // the root scope is left out, and absent means the path's own
			again.MainNode = ""
		}
		if diff := cmp.Diff(n, again, compareContents); diff != "" {
			t.Fatalf("%s (-was +is):\n%s", text, diff)
		}
	})
}
