package httpapi

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/access"
)

const asBob = "Bearer bob"

func TestNodesAreReadAndWritten(t *testing.T) {
	m := newMesh(doc("acme", 1), doc("acme/a", 3), doc("acme/a/b", 1), doc("acme/old", 2), doc("acme/p", 5), doc("acme/tree", 1), doc("acme/tree/x", 1))
	_, base := serve(t, m)
	bob := []string{"Authorization", asBob, "Content-Type", "application/json"}
	with := func(more ...string) []string { return append(append([]string{}, bob...), more...) }
	runAll(t, base, []scenario{
		{"a node has its version for a tag", "GET", "/api/nodes/acme/a", bob, "", 200, []string{`ETag: "3"`, `"path":"acme/a"`, `"version":3`, "Content-Type: application/json", "Cache-Control: private, no-cache"}},
		{"a version that the caller has is not sent again", "GET", "/api/nodes/acme/a", with("If-None-Match", `"2", W/"3"`), "", 304, []string{`ETag: "3"`}},
		{"another version is sent", "GET", "/api/nodes/acme/a", with("If-None-Match", `"2"`), "", 200, []string{`"version":3`}},
		{"HEAD is GET without a body", "HEAD", "/api/nodes/acme/a", bob, "", 200, []string{`ETag: "3"`, `!"path"`}},
		{"an absent node is 404", "GET", "/api/nodes/acme/none", bob, "", 404, []string{`"code":"not_found"`, `No node found at 'acme/none'`, "Content-Type: application/problem+json", `"type":"/api/errors#not_found"`, `"retry":"never"`}},
		{"a path is case-sensitive", "GET", "/api/nodes/ACME/a", bob, "", 404, nil},

		{"a create answers the node and its place", "POST", "/api/nodes/acme/neu%20eins", bob, `{"name":"Neu","nodeType":"Markdown"}`, 201, []string{`ETag: "1"`, "Location: /api/nodes/acme/neu%20eins", `"name":"Neu"`}},
		{"a create does not replace", "POST", "/api/nodes/acme/a", bob, `{}`, 409, []string{`"code":"exists"`, `"version":3`}},
		// bad input: a missing partition
		{"a missing partition is named", "POST", "/api/nodes/nowhere/a", bob, `{}`, 409, []string{`"code":"partition_missing"`, `"partition":"nowhere"`, "create the space first"}},
		{"a body may repeat the path", "POST", "/api/nodes/acme/same", bob, `{"path":"/acme/same","id":"same","namespace":"acme"}`, 201, nil},
		{"an id alone agrees with the path", "POST", "/api/nodes/acme/x/y", bob, `{"id":"y"}`, 201, []string{`"mainNode":"acme/x/y"`}},
		{"another path is refused", "POST", "/api/nodes/acme/c1", bob, `{"path":"acme/c2"}`, 400, []string{`"code":"bad_request"`, `"field":"path"`}},
		{"another id is refused", "POST", "/api/nodes/acme/c1", bob, `{"id":"c2"}`, 400, []string{`"field":"id"`}},
		{"another namespace is refused", "POST", "/api/nodes/acme/c1", bob, `{"id":"c1","namespace":"other"}`, 400, []string{`"field":"namespace"`}},
		{"what a body says of versions and stamps is ignored", "POST", "/api/nodes/acme/c3", bob, `{"version":99,"createdBy":"eve"}`, 201, []string{`ETag: "1"`, "!eve"}},
		{"null in new content is content", "POST", "/api/nodes/acme/c4", bob, `{"content":{"a":null}}`, 201, []string{`{"a":null}`}},

		{"a put replaces", "PUT", "/api/nodes/acme/old", bob, `{"name":"New"}`, 200, []string{`ETag: "3"`, `"name":"New"`}},
		{"a put creates", "PUT", "/api/nodes/acme/put", bob, `{}`, 201, []string{"Location: /api/nodes/acme/put"}},
		// bad input: a stale If-Match
		{"a stale If-Match is 412 with both versions", "PUT", "/api/nodes/acme/a", with("If-Match", `"2"`), `{}`, 412, []string{`"code":"stale"`, `"expected":2`, `"actual":3`, `"retry":"now"`}},
		{"an If-Match that holds writes", "PUT", "/api/nodes/acme/a", with("If-Match", `"3"`), `{}`, 200, []string{`ETag: "4"`}},
		{"a tag of no version is stale", "PUT", "/api/nodes/acme/a", with("If-Match", `"abc"`), `{}`, 412, nil},
		{"a weak tag is stale", "PUT", "/api/nodes/acme/a", with("If-Match", `W/"4"`), `{}`, 412, nil},
		{"an If-Match of several tags is refused", "PUT", "/api/nodes/acme/a", with("If-Match", `"3", "4"`), `{}`, 400, []string{`"field":"If-Match"`}},
		{"an empty If-Match is no condition and is refused", "PUT", "/api/nodes/acme/a", with("If-Match", ""), `{}`, 400, []string{`"field":"If-Match"`}},
		{"If-None-Match: * refuses to replace", "PUT", "/api/nodes/acme/a", with("If-None-Match", "*"), `{}`, 412, []string{`"code":"stale"`, `"actual":4`}},

		{"a patch merges", "PATCH", "/api/nodes/acme/p", []string{"Authorization", asBob, "Content-Type", "application/merge-patch+json"}, `{"name":"P","content":{"markdown":null,"x":1}}`, 200, []string{`ETag: "6"`, `"name":"P"`, `{"x":1}`}},
		{"a patch may be application/json", "PATCH", "/api/nodes/acme/p", with("If-Match", `"6"`), `{"name":"Q"}`, 200, []string{`"name":"Q"`}},
		{"a patch of a field that nodes lack is refused", "PATCH", "/api/nodes/acme/p", bob, `{"nmae":"Q"}`, 400, []string{`"code":"invalid_patch"`, `"field":"nmae"`}},
		{"a patch is an object", "PATCH", "/api/nodes/acme/p", bob, `[]`, 400, []string{`"code":"invalid_json"`}},
		{"a patch of nothing is 404", "PATCH", "/api/nodes/acme/none", bob, `{}`, 404, nil},

		{"a node with children stays", "DELETE", "/api/nodes/acme/tree", bob, "", 409, []string{`"code":"has_children"`}},
		{"recursive takes the subtree", "DELETE", "/api/nodes/acme/tree?recursive", bob, "", 200, []string{`{"deleted":2,"version":2}`}},
		{"recursive=false does not", "DELETE", "/api/nodes/acme/a?recursive=false", bob, "", 409, nil},
		{"a flag is a boolean", "DELETE", "/api/nodes/acme/a?recursive=perhaps", bob, "", 400, []string{`"field":"recursive"`}},
		{"a stale delete is 412", "DELETE", "/api/nodes/acme/p", with("If-Match", `"1"`), "", 412, nil},

		{"many are created, each with its outcome", "POST", "/api/nodes", bob, `{"nodes":[{"path":"acme/m1"},{"path":"acme/a"},{"name":"no path"},{"path":"acme/../x"},{"path":"acme/m2"}]}`, 200,
			[]string{`{"path":"acme/m1","version":1}`, `"code":"exists"`, `"field":"path"`, `"code":"invalid_path"`, `{"path":"acme/m2","version":1}`}},
		{"many need a list", "POST", "/api/nodes", bob, `{"node":[]}`, 400, []string{`unknown field`}},

		{"children are listed in order", "GET", "/api/children/acme?limit=2", bob, "", 200, []string{`"path":"acme/a"`, `"hasChildren":false`, `"next":"c3"`}},
		{"a page follows another", "GET", "/api/children/acme?after=p", bob, "", 200, []string{`"next":""`, `!"acme/p"`}},
		{"the spaces are the children of nothing", "GET", "/api/children/", bob, "", 200, []string{`"path":"acme"`}},
		{"and so without the slash", "GET", "/api/children?limit=1", bob, "", 200, []string{"Content-Type: application/json", `"path":"acme"`}},
		{"a limit is above 0", "GET", "/api/children/acme?limit=0", bob, "", 400, []string{`"field":"limit"`}},
		{"no children is an empty list", "GET", "/api/children/acme/p", bob, "", 200, []string{`"children":[]`}},
		{"history is listed", "GET", "/api/versions/acme/p", bob, "", 200, []string{`"kind":"updated"`, `"by":"bob"`}},
		{"a path without a history is 404", "GET", "/api/versions/acme/none", bob, "", 404, []string{"'acme/none'"}},
		{"a node as it was", "GET", "/api/versions/acme/p?at=2", bob, "", 200, []string{`"version":2`, `ETag: "2"`}},
		{"a version that is not kept is 404", "GET", "/api/versions/acme/p?at=99", bob, "", 404, nil},
		{"a query finds nodes", "GET", "/api/query?q=path:acme/p", bob, "", 200, []string{`"nodes":[{"path":"acme/p"`, `"truncated":false`}},
		{"a query that can not be read says where", "GET", "/api/query?q=(a", bob, "", 400, []string{`"code":"invalid_query"`, `"offset"`}},
		{"a query string with a bad escape is named", "GET", "/api/query?q=%zz", bob, "", 400, []string{`"code":"invalid_query"`, "not well formed"}},
		{"an empty version is none", "GET", "/api/versions/acme/p?at=", bob, "", 400, []string{`"field":"at"`}},
		{"a document is rendered", "GET", "/api/render/acme/p", bob, "", 200, []string{`"path":"acme/p"`, `"html":`}},
		{"a preview is rendered", "POST", "/api/render/acme/p", bob, `{"markdown":"x"}`, 200, []string{`"html":`}},
		{"a preview of what is not there is 404", "POST", "/api/render/acme/none", bob, `{"markdown":"x"}`, 404, []string{`"code":"not_found"`, "No node found at 'acme/none'"}},
	})
}

// CR-2
func TestEachCallActsForWhoeverSentTheRequest(t *testing.T) {
	m := newMesh(doc("acme", 1))
	_, base := serve(t, m)
	send(t, base, "GET", "/api/nodes/acme", nil, nil)
	send(t, base, "GET", "/api/nodes/acme", []string{"Authorization", asBob}, nil)
	if got := strings.Join(m.calls, ", "); got != "Anonymous get acme, bob get acme" {
		t.Fatalf("calls: %s", got)
	}
}

// CR-3, fault 41, edge invariant 32, edge invariant 35
func TestPathsAreSplitThenDecodedOnceThenChecked(t *testing.T) {
	m := newMesh(doc("acme/two words", 1), doc("acme/grün", 1), doc("acme/100%20", 1))
	m.files["acme/content/two words.txt"] = "x"
	_, base := serve(t, m)
	var all []scenario
	for _, c := range []struct{ name, path string }{
		{"a space", "acme/two%20words"}, {"an umlaut", "acme/gr%C3%BCn"}, {"a literal %20", "acme/100%2520"},
	} {
		all = append(all, scenario{c.name + " is decoded once", "GET", "/api/nodes/" + c.path, nil, "", 200, nil})
	}
	for _, c := range []struct{ name, path string }{
		{"dots", "acme/../acme"},                         // bad input: dot segments in a path
		{"a dot", "acme/./b"},                            // bad input: dot segments in a path
		{"encoded dots", "acme/%2e%2e/b"},                // bad input: %2e in a path
		{"an encoded dot", "acme/%2E/b"},                 // bad input: %2e in a path
		{"half-encoded dots", "acme/.%2e/b"},             // bad input: %2e in a path
		{"dots encoded twice", "acme/%252e%252e/b"},      // bad input: %2e in a path
		{"an encoded slash", "acme%2Fa/b"},               // CR-3
		{"a backslash", `acme/..\b`},                     // bad input: a backslash in a path
		{"an encoded backslash", "acme/%5Cb"},            // bad input: a backslash in a path
		{"a NUL", "acme/a%00b"},                          // bad input: NUL in a path
		{"no UTF-8", "acme/%ff"},                         // bad input: invalid UTF-8
		{"an overlong slash", "acme/%c0%af"},             // bad input: invalid UTF-8
		{"an empty segment", "acme//b"},                  // CR-3
		{"an absolute path", "/etc/passwd"},              // CR-3
		{"a slash at the end", "acme/"},                  // CR-3
		{"a long path", strings.Repeat("a/", 600) + "a"}, // bad input: a 1 MiB path
	} {
		all = append(all,
			scenario{c.name + " is no node path", "GET", "/api/nodes/" + c.path, nil, "", 400, []string{`"code":"invalid_path"`}},
			scenario{c.name + " is no node path to write to", "PUT", "/api/nodes/" + c.path, nil, "{}", 400, []string{`"code":"invalid_path"`}},
		)
		if c.name != "dots encoded twice" && c.name != "a long path" { // to content these are names like others
			all = append(all, scenario{c.name + " is no content", "GET", "/api/content/" + c.path, nil, "", 404, []string{"there is nothing here"}})
		}
	}
	all = append(all,
		scenario{"a file's name is decoded once", "GET", "/api/content/acme/content/two%20words.txt", nil, "", 200, []string{"x"}},
		scenario{"an encoded route is none", "GET", "/%61pi/nodes/acme", nil, "", 400, []string{`"code":"invalid_path"`}},
	)
	runAll(t, base, all)
	for _, call := range m.calls {
		if strings.Contains(call, "..") && !strings.Contains(call, "%2e") || strings.Contains(call, "etc") {
			t.Errorf("a refused path got through: %s", call)
		}
	}
}

// bad input: a 1 MiB path
func TestAPathOfAMegabyteIsRefused(t *testing.T) {
	_, base := serve(t, newMesh())
	got := send(t, base, "GET", "/api/nodes/"+strings.Repeat("a", 1<<20), nil, nil)
	if got.status != http.StatusRequestHeaderFieldsTooLarge && got.status != http.StatusBadRequest {
		t.Fatalf("status %d", got.status)
	}
}

// endless is a body that never ends; it counts what is read of it.
type endless struct {
	text string
	read int64
	most int64
}

func (e *endless) Read(b []byte) (int, error) {
	if e.read >= e.most {
		return 0, io.EOF
	}
	n := copy(b, e.text[int(e.read)%len(e.text):])
	e.read += int64(n)
	return n, nil
}

func nested(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

func TestABodyIsCheckedWhileItIsRead(t *testing.T) {
	m := newMesh(doc("acme", 1))
	_, base := serve(t, m)
	typed := func(media string) []string { return []string{"Content-Type", media} }
	runAll(t, base, []scenario{
		// bad input: JSON nested too deep
		{"100,000 levels are refused", "POST", "/api/nodes/acme/deep", nil, `{"content":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, 400, []string{`"code":"invalid_json"`, `"offset"`}},
		// bad input: JSON nested too deep
		{"in other bodies too", "POST", "/api/nodes", nil, `{"nodes":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, 400, []string{`"code":"invalid_json"`}},
		{"200 levels are taken", "POST", "/api/nodes/acme/deep", nil, `{"content":` + nested(200) + `}`, 201, nil},
		{"201 levels are refused", "POST", "/api/nodes/acme/deeper", nil, `{"content":` + nested(201) + `}`, 400, []string{`"code":"invalid_json"`, "deeper than 200 levels"}},
		{"200 levels are taken in a patch", "PATCH", "/api/nodes/acme/deep", nil, `{"content":` + nested(200) + `}`, 200, nil},
		{"201 levels are refused in a patch", "PATCH", "/api/nodes/acme/deep", nil, `{"content":` + nested(201) + `}`, 400, []string{`"code":"invalid_json"`, "deeper than 200 levels"}},
		{"many of 200 levels are taken, and each of 201 fails alone", "POST", "/api/nodes", nil, `{"nodes":[{"path":"acme/many1","nodeType":"X","content":` + nested(200) + `},{"path":"acme/many2","nodeType":"X","content":` + nested(201) + `}]}`,
			200, []string{`{"path":"acme/many1","version":1}`, "the content is nested deeper than 200 levels"}},
		// bad input: invalid UTF-8
		{"text that is not UTF-8 is refused", "POST", "/api/nodes/acme/u", nil, "{\"name\":\"\xff\"}", 400, []string{`"code":"invalid_json"`}},
		{"a member twice is refused", "POST", "/api/nodes/acme/u", nil, `{"name":"a","name":"b"}`, 400, []string{`"code":"invalid_json"`}},
		{"no JSON is refused", "POST", "/api/nodes/acme/u", nil, `{"name":`, 400, []string{`"code":"invalid_json"`}},
		{"text after the JSON is refused", "POST", "/api/nodes/acme/u", nil, `{} {}`, 400, []string{`"code":"invalid_json"`}},
		{"no body is refused", "POST", "/api/nodes/acme/u", nil, "", 400, []string{`"code":"invalid_json"`, "there is no body"}},
		{"a node above its limit is refused", "POST", "/api/nodes/acme/u", nil, `{"content":"` + strings.Repeat("x", 1<<20) + `"}`, 413, []string{`"code":"too_large"`}},
		{"a form is refused", "POST", "/api/nodes/acme/u", typed("application/x-www-form-urlencoded"), `a=b`, 415, []string{`"code":"unsupported_media_type"`, "application/json"}},
		{"another encoding is refused", "POST", "/api/nodes/acme/u", typed("application/json; charset=latin1"), `{}`, 415, nil},
		{"a patch is no create", "POST", "/api/nodes/acme/u", typed("application/merge-patch+json"), `{}`, 415, nil},
		{"JSON in UTF-8 is taken", "POST", "/api/nodes/acme/u", typed("application/json; charset=UTF-8"), `{}`, 201, nil},
	})
	// bad input: a huge body
	t.Run("a body of 100 MiB is told to be too large", func(t *testing.T) {
		for _, declared := range []bool{true, false} {
			body := &endless{text: `{"content":"` + strings.Repeat("x", 1000), most: 100 << 20}
			r, err := http.NewRequestWithContext(t.Context(), "POST", base+"/api/nodes/acme/huge", body)
			if err != nil {
				t.Fatal(err)
			}
			if declared {
				r.ContentLength = body.most
			}
			resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
			if err != nil {
				t.Fatalf("declared %v: %v", declared, err)
			}
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 413 || !strings.Contains(string(text), `"code":"too_large"`) {
				t.Fatalf("declared %v: %d %s", declared, resp.StatusCode, text)
			}
		}
	})
	// bad input: a huge body
	t.Run("and is not held", func(t *testing.T) {
		s, _ := serve(t, m)
		for _, declared := range []int64{100 << 20, -1} {
			body := &endless{text: `{"content":"` + strings.Repeat("x", 1000), most: 100 << 20}
			r := httptest.NewRequest("POST", "/api/nodes/acme/huge", body)
			r.ContentLength = declared
			var size *http.MaxBytesError
			if _, err := s.body(httptest.NewRecorder(), r, mediaJSON); !errors.As(err, &size) || size.Limit != 8<<20 {
				t.Fatalf("declared %d: %v", declared, err)
			}
			if most := map[bool]int64{true: 0, false: 9 << 20}[declared > 0]; body.read > most {
				t.Fatalf("declared %d: %d bytes were read, at most %d are needed", declared, body.read, most)
			}
		}
	})
}

// Issue 2, bad input: a renderer works for nobody who may not read, and that is told like absence.
func TestAPreviewIsRenderedForWhoeverMayReadTheNodeOnly(t *testing.T) {
	m := newMesh(doc("acme/p", 1))
	_, base := serve(t, m)
	m.fail = &access.DeniedError{Subject: "anonymous", Path: "acme/p", Need: access.Read}
	denied := send(t, base, "POST", "/api/render/acme/p", []string{"Content-Type", "application/json"}, strings.NewReader(`{"markdown":"x"}`))
	m.fail = nil
	absent := send(t, base, "POST", "/api/render/acme/q", []string{"Content-Type", "application/json"}, strings.NewReader(`{"markdown":"x"}`))
	if denied.status != 404 || absent.status != 404 || !strings.Contains(denied.body, "No node found at 'acme/p'") || !strings.Contains(absent.body, "No node found at 'acme/q'") {
		t.Errorf("%+v\n%+v", denied, absent)
	}
	for _, call := range m.calls {
		if strings.HasSuffix(call, " render") {
			t.Errorf("rendered: %v", m.calls)
		}
	}
}
