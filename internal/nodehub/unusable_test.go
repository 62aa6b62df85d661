package nodehub_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
)

// bad input: a type that no node could have
func TestATypeWithAnUnusableSchemaIsRefusedWhereItIsWritten(t *testing.T) {
	r := newRig(t)
	chain := func(n int) string {
		defs := make([]string, n)
		for i := range defs {
			defs[i] = fmt.Sprintf(`"a%d":{"$ref":"#/$defs/a%d"}`, i, i+1)
		}
		return fmt.Sprintf(`{"$defs":{%s,"a%d":{"type":"object"}},"$ref":"#/$defs/a0"}`, strings.Join(defs, ","), n)
	}
	for _, schema := range []string{`{"type":"bogus"}`, `{"pattern":"["}`, `{"$ref":"#/nope"}`, `5`, `[]`, `{"multipleOf":0}`,
		`{"$ref":"#"}`, `{"type":"object","$ref":"#"}`, `{"allOf":[{"$ref":"#"}]}`, `{"not":{"$ref":"#"}}`, `{"properties":{"a":{"$ref":"#/properties/a"}}}`,
		`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{},{"$ref":"#/$defs/a"}]}},"items":{"$ref":"#/$defs/a"}}`, chain(101)} {
		_, err := r.c.Create(r.root, node.Node{Path: "acme/T", NodeType: node.TypeNodeType, Content: node.RawContent(`{"schema":` + schema + `}`)})
		var bad *nodehub.SchemaError
		if !errors.As(err, &bad) || !bad.Broken {
			t.Errorf("%s: %v", schema, err)
		}
	}
	// The control: parts that lead to themselves one level down, or only for some values.
	for i, schema := range []string{`{"properties":{"a":{"$ref":"#"}}}`, `{"anyOf":[{"type":"object"},{"$ref":"#"}]}`, `{"$defs":{"a":{"$ref":"#/$defs/a"}},"type":"object"}`,
		`{"not":{"required":["k"],"$ref":"#"}}`, `{"oneOf":[{"type":"object"},{"type":"string","not":{"$ref":"#"}}]}`, chain(99)} {
		path := node.Path(fmt.Sprintf("acme/T%d", i))
		if _, err := r.c.Create(r.root, node.Node{Path: path, NodeType: node.TypeNodeType, Content: node.RawContent(`{"schema":` + schema + `}`)}); err != nil {
			t.Errorf("%.200s: %v", schema, err)
			continue
		}
		if _, err := r.c.Create(r.root, node.Node{Path: path + "-node", NodeType: string(path), Content: node.RawContent(`{}`)}); err != nil {
			t.Errorf("%.200s, a node: %v", schema, err)
		}
	}
	if _, err := r.c.Create(r.root, node.Node{Path: "acme/T", NodeType: node.TypeNodeType, Content: node.RawContent(`{"schema":{"type":"object"}}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.c.Patch(r.root, "acme/T", []byte(`{"content":{"schema":{"type":"bogus"}}}`), nodehub.Condition{}); !errors.As(err, new(*nodehub.SchemaError)) {
		t.Errorf("a patch: %v", err)
	}
}

// bad input: a collection whose uploads could only fail
func TestACollectionWithABasePathThatIsNoFolderIsRefused(t *testing.T) {
	r := newRig(t)
	for base, ok := range map[string]bool{"..": false, "../../": false, ".": false, "x/../y": false, `a\b`: false, "~x": false, "": true, "/x/y/": true, "über uns": true} {
		err := r.c.EnsureCollection(r.root, "acme", nodehub.Collection{Name: "c" + node.Fold("x"), SourceType: "folder", BasePath: base})
		if (err == nil) != ok {
			t.Errorf("%q: %v", base, err)
		}
		if err == nil {
			if _, err := r.c.Delete(r.root, "acme/_Content/cx", false, nodehub.Condition{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
