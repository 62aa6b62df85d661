package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample fills the parameters of a path.
var sample = strings.NewReplacer("{path}", "acme", "{node}", "acme", "{collection}", "content", "{file}", "a.txt", "{address}", "acme", "{name}", "person", "{id}", "1")

func TestTheTableTheMuxAndTheAPIPageAgree(t *testing.T) {
	table := map[string]bool{}
	for _, op := range operations {
		table[op.method+" "+op.path] = true
	}
	page := map[string]bool{}
	route := regexp.MustCompile("`((?:GET|HEAD|POST|PUT|PATCH|DELETE)(?:, (?:GET|HEAD|POST|PUT|PATCH|DELETE))*) (/[^`?]*)[^`]*`")
	for _, m := range route.FindAllStringSubmatch(apiPage(t), -1) {
		for method := range strings.SplitSeq(m[1], ", ") {
			if method != "HEAD" && m[2] != "/api/children" {
				page[method+" "+m[2]] = true
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(page)), slices.Sorted(maps.Keys(table))); diff != "" {
		t.Errorf("docs/api.md and the table (-page +table):\n%s", diff)
	}

	for _, op := range operations {
		if op.tag == "live" {
			continue // tested where the streams are
		}
		m := newMesh(doc("acme", 1))
		m.files["acme/content/a.txt"] = "x"
		_, base := serve(t, m)
		got := send(t, base, op.method, sample.Replace(op.path), []string{"Authorization", "Bearer root"}, nil)
		if got.status == http.StatusMethodNotAllowed || got.status == http.StatusNotFound {
			t.Errorf("%s %s: %d %s", op.method, op.path, got.status, got.body)
		}
	}
}

func TestAnotherMethodIsRefusedWithThoseThatAreTaken(t *testing.T) {
	_, base := serve(t, newMesh())
	runAll(t, base, []scenario{
		{"of a node", "FOO", "/api/nodes/acme", nil, "", 405, []string{"Allow: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT", `"code":"method_not_allowed"`}},
		{"of a list of nodes", "GET", "/api/nodes", nil, "", 405, []string{"Allow: OPTIONS, POST"}},
		// CR-1
		{"of content", "POST", "/api/content/acme/content/a", nil, "", 405, []string{"Allow: GET, HEAD, OPTIONS"}},
		{"of the page", "POST", "/acme", nil, "", 405, []string{"Allow: GET, HEAD, OPTIONS"}},
		{"OPTIONS tells them", "OPTIONS", "/api/nodes/acme", nil, "", 204, []string{"Allow: DELETE, GET"}},
		{"no route is 404", "GET", "/api/nothing", nil, "", 404, []string{`"code":"not_found"`}},
		{"no route is 404 for every method", "POST", "/api/nothing", nil, "", 404, nil},
	})
}

// Every answer below /api is JSON: no route is redirected to, with a page, for want of a slash.
func TestARouteWithoutItsLastSlashIsAnsweredAndNotRedirected(t *testing.T) {
	_, base := serve(t, newMesh(doc("acme", 1)))
	seen := map[string]bool{}
	for _, op := range operations {
		before, _, wild := strings.Cut(op.path, "{")
		bare := strings.TrimSuffix(before, "/")
		if !wild || seen[bare] || bare+"/" != before {
			continue
		}
		seen[bare] = true
		got := send(t, base, "GET", bare, []string{"Authorization", "Bearer root"}, nil)
		media := got.header.Get("Content-Type")
		if got.status/100 == 3 || media != mediaJSON && media != "application/problem+json" {
			t.Errorf("%s: %d %s", bare, got.status, media)
		}
	}
	for _, name := range closed {
		scenario{"the name " + name, "GET", "/" + name, nil, "", 404, []string{"Content-Type: application/problem+json"}}.run(t, base)
	}
	if len(seen) < 8 {
		t.Errorf("only %v", seen)
	}
	scenario{"a percent-encoded path", "GET", "/api/childre%6e", nil, "", 400, []string{"Content-Type: application/problem+json"}}.run(t, base)
}

func TestTheOpenAPIDocumentIsWholeAndOfTheTable(t *testing.T) {
	_, base := serve(t, newMesh(), func(c *Config) { c.Version = "1.2.3" })
	got := send(t, base, "GET", "/api/openapi.json", nil, nil)
	var d struct {
		OpenAPI    string
		Info       struct{ Version string }
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal([]byte(got.body), &d); err != nil {
		t.Fatal(err)
	}
	if d.OpenAPI != "3.1.0" || d.Info.Version != "1.2.3" {
		t.Errorf("%s %s", d.OpenAPI, d.Info.Version)
	}
	used := map[string]bool{}
	for _, m := range regexp.MustCompile(`"#/components/schemas/(\w+)"`).FindAllStringSubmatch(got.body, -1) {
		used[m[1]] = true
		if _, ok := d.Components.Schemas[m[1]]; !ok {
			t.Errorf("there is no schema %s", m[1])
		}
	}
	for name := range d.Components.Schemas {
		if !used[name] {
			t.Errorf("nothing uses the schema %s", name)
		}
	}
	ids := map[string]bool{}
	for _, op := range operations {
		item, ok := d.Paths[op.path][strings.ToLower(op.method)]
		if !ok {
			t.Errorf("%s %s is not in the document", op.method, op.path)
			continue
		}
		var described struct {
			OperationID string
			Responses   map[string]any
		}
		if err := json.Unmarshal(item, &described); err != nil {
			t.Fatal(err)
		}
		if ids[described.OperationID] || described.OperationID == "" {
			t.Errorf("operation id %q is taken", described.OperationID)
		}
		ids[described.OperationID] = true
		for _, a := range op.answers {
			if described.Responses[fmt.Sprint(a.status)] == nil {
				t.Errorf("%s lacks the answer %d", op.id, a.status)
			}
		}
		for _, name := range op.codes {
			if codeByName[name] == nil {
				t.Errorf("%s has the code %q, which is not in the table", op.id, name)
			}
		}
	}
}

// TestAnswersHaveTheMembersThatTheirSchemasRequire sends real requests and compares members by name.
func TestAnswersHaveTheMembersThatTheirSchemasRequire(t *testing.T) {
	m := newMesh(doc("acme", 1), doc("acme/a", 1))
	_, base := serve(t, m)
	for _, test := range []struct{ target, schema string }{
		{"/api/children/acme", "Children"}, {"/api/query?q=acme", "QueryResult"}, {"/api/render/acme", "Rendered"}, {"/api/files/acme", "FileList"},
		{"/api/whoami", "WhoAmI"}, {"/api/tokens", "TokenList"}, {"/alive", "Alive"}, {"/ready", "Ready"}, {"/api/nodes/none", "Problem"},
	} {
		var body map[string]any
		if err := json.Unmarshal([]byte(send(t, base, "GET", test.target, []string{"Authorization", "Bearer root"}, nil).body), &body); err != nil {
			t.Fatalf("%s: %v", test.target, err)
		}
		schema := schemas()[test.schema].(object)
		for _, name := range schema["required"].([]string) {
			if _, ok := body[name]; !ok {
				t.Errorf("%s lacks %s", test.target, name)
			}
		}
		for name := range body {
			if _, ok := schema["properties"].(object)[name]; !ok {
				t.Errorf("%s has %s, which is not in the schema", test.target, name)
			}
		}
	}
}
