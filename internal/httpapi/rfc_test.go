package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// RFC 9110 §13.1.1
// If-Match: * holds for any node and never where none is; a condition on what is absent does not hold, and
// nothing is created by it.
func TestIfMatchHoldsForWhatIsThereAndNeverForWhatIsNot(t *testing.T) {
	m := newMesh(doc("acme/a", 3))
	_, base := serve(t, m)
	body := `{"name":"A","nodeType":"Markdown"}`
	any, seven := []string{"If-Match", "*"}, []string{"If-Match", `"7"`}
	runAll(t, base, []scenario{
		{"any version, PUT", "PUT", "/api/nodes/acme/a", any, body, 200, nil},
		{"any version, PATCH", "PATCH", "/api/nodes/acme/a", any, `{"name":"B"}`, 200, nil},
		{"another version", "PATCH", "/api/nodes/acme/a", seven, `{"name":"C"}`, 412, []string{`"code":"stale"`, `"actual":5`}},
		{"any version of nothing, PUT", "PUT", "/api/nodes/acme/none", any, body, 412, []string{`"code":"stale"`}},
		{"any version of nothing, PATCH", "PATCH", "/api/nodes/acme/none", any, `{"name":"B"}`, 412, []string{`"code":"stale"`}},
		{"a version of nothing, PATCH", "PATCH", "/api/nodes/acme/none", seven, `{"name":"B"}`, 412, []string{`"code":"stale"`}},
		{"a version of nothing, DELETE", "DELETE", "/api/nodes/acme/none", seven, "", 412, []string{`"code":"stale"`}},
		{"any version of nothing, DELETE", "DELETE", "/api/nodes/acme/none", any, "", 412, []string{`"code":"stale"`}},
		{"nothing was made by it", "GET", "/api/nodes/acme/none", nil, "", 404, nil},
		{"no condition, PATCH of nothing", "PATCH", "/api/nodes/acme/none", nil, `{"name":"B"}`, 404, nil},
		{"any version, DELETE", "DELETE", "/api/nodes/acme/a", any, "", 200, nil},
	})
}

// RFC 9110 §14.4
// A range that can not be satisfied, or is none, is 416 with the size; the last 0 bytes are no part of a
// file, and where they stand in a list the others count.
func TestARangeThatCanNotBeSatisfiedIsAnsweredWithTheSize(t *testing.T) {
	m := newMesh(doc("acme", 1))
	m.files["acme/content/a.txt"] = "hello"
	_, base := serve(t, m)
	for header, want := range map[string]struct {
		status int
		part   string
	}{
		"bytes=-0":           {416, "bytes */5"},
		"bytes=-00":          {416, "bytes */5"},
		"bytes= -0":          {416, "bytes */5"},
		"bytes=-0,-0":        {416, "bytes */5"},
		"bytes=9-":           {416, "bytes */5"},
		"bytes=a-b":          {416, "bytes */5"},
		"bytes=3-1":          {416, "bytes */5"},
		"bytes=--1":          {416, "bytes */5"},
		"bananas":            {416, "bytes */5"},
		"bytes=0-1":          {206, "bytes 0-1/5"},
		"bytes=-2":           {206, "bytes 3-4/5"},
		"bytes=-0,1-2":       {206, "bytes 1-2/5"},
		"bytes=1-2,-0":       {206, "bytes 1-2/5"},
		"bytes=4-99":         {206, "bytes 4-4/5"},
		"bytes=10-10,-0,0-0": {206, "bytes 0-0/5"},
	} {
		got := send(t, base, "GET", "/api/content/acme/content/a.txt", []string{"Range", header}, nil)
		if got.status != want.status || got.header.Get("Content-Range") != want.part {
			t.Errorf("%q: %d %q, want %d %q", header, got.status, got.header.Get("Content-Range"), want.status, want.part)
		}
	}
}

// RFC 9457 §3.1.1
// Whoever gets a problem can read what it means: the type of each is an anchor of a page that needs no
// token.
func TestTheTypeOfAProblemLeadsToItsMeaningWithoutAToken(t *testing.T) {
	_, base := serve(t, newMesh())
	got := send(t, base, "GET", "/api/nodes/acme/none", nil, nil)
	var p struct{ Type string }
	if err := json.Unmarshal([]byte(got.body), &p); err != nil {
		t.Fatal(err)
	}
	route, anchor, _ := strings.Cut(p.Type, "#")
	page := send(t, base, "GET", route, []string{"Authorization", "Bearer wrong"}, nil)
	if page.status != http.StatusOK || !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") || !strings.Contains(page.body, `<h2 id="`+anchor+`">`) {
		t.Fatalf("%s: %d %s", p.Type, page.status, page.body)
	}
	for _, c := range codes {
		if !strings.Contains(page.body, `<h2 id="`+c.name+`">`) {
			t.Errorf("the page lacks %s", c.name)
		}
	}
	if strings.Contains(page.body, "`") {
		t.Error("a backtick is left")
	}
}

// edge §5
// What browsers, robots and scanners ask every host for is not answered with the page.
func TestWhatEveryHostIsAskedForIsNotThePage(t *testing.T) {
	for name, change := range map[string]func(*Config){"with a page": builtPage, "without": func(*Config) {}} {
		t.Run(name, func(t *testing.T) {
			_, base := serve(t, newMesh(), change)
			runAll(t, base, []scenario{
				{"robots", "GET", "/robots.txt", nil, "", 200, []string{"Disallow", "Content-Type: text/plain", "!<title>"}},
				{"an icon", "GET", "/favicon.ico", nil, "", 200, []string{"<svg", "Content-Type: image/svg+xml"}},
				{"a profile", "GET", "/debug/pprof/", nil, "", 404, []string{`"code":"not_found"`}},
				{"variables", "GET", "/debug/vars", nil, "", 404, []string{`"code":"not_found"`}},
			})
		})
	}
}

// edge invariant 48
// A member that nodes do not have is refused by name and not dropped: a mistyped one would empty the
// field that was meant. The type marker of the JSON of nodes is taken.
func TestAMistypedMemberIsRefusedByName(t *testing.T) {
	m := newMesh(doc("acme/a", 3))
	_, base := serve(t, m)
	runAll(t, base, []scenario{
		{"PUT", "PUT", "/api/nodes/acme/a", nil, `{"nodeType":"Markdown","contnet":{}}`, 400, []string{"'contnet'", `"field":"contnet"`}},
		{"POST", "POST", "/api/nodes/acme/b", nil, `{"nodeType":"Markdown","contnet":{}}`, 400, []string{`"field":"contnet"`}},
		{"POST of many", "POST", "/api/nodes", nil, `{"nodes":[{"path":"acme/c","contnet":1},{"path":"acme/d","content":1}]}`, 200, []string{`"field":"contnet"`, `{"path":"acme/d","version":1}`}},
		{"nothing was lost", "GET", "/api/nodes/acme/a", nil, "", 200, []string{"# Hi"}},
		{"the type marker", "PUT", "/api/nodes/acme/a", nil, `{"$type":"MeshNode","nodeType":"Markdown","content":{"markdown":"x"}}`, 200, nil},
		{"many without the list", "POST", "/api/nodes", nil, `{}`, 400, []string{`"field":"nodes"`}},
		{"many that is null", "POST", "/api/nodes", nil, `{"nodes":null}`, 400, []string{`"field":"nodes"`}},
		{"many that are none", "POST", "/api/nodes", nil, `{"nodes":[]}`, 200, []string{`{"results":[]}`}},
	})
}

// RFC 9110 §13.1, §14.5, §8.4
func TestTheConditionsOfAFileAreRead(t *testing.T) {
	m := newMesh(doc("acme", 1))
	_, base := serve(t, m)
	const at = "/api/files/acme/content/a.txt"
	for _, c := range []struct {
		headers []string
		status  int
		match   []string
		none    []string
		since   bool
	}{
		{nil, 201, nil, nil, false},
		{[]string{"If-Match", `"a=="`}, 200, []string{`"a=="`}, nil, false},
		{[]string{"If-Match", ` "a,b" , W/"c" `, "If-Match", `"d"`}, 200, []string{`"a,b"`, `W/"c"`, `"d"`}, nil, false},
		{[]string{"If-Match", "*"}, 200, []string{"*"}, nil, false},
		{[]string{"If-None-Match", "*"}, 200, nil, []string{"*"}, false},
		{[]string{"If-None-Match", `"a","b"`}, 200, nil, []string{`"a"`, `"b"`}, false},
		{[]string{"If-Match", `"a"`, "If-None-Match", `"b"`}, 200, []string{`"a"`}, []string{`"b"`}, false},
		{[]string{"If-Unmodified-Since", "Sat, 29 Oct 1994 19:43:31 GMT"}, 200, nil, nil, true},
		{[]string{"If-Unmodified-Since", "Sat, 29 Oct 1994 19:43:31 GMT", "If-Match", `"a"`}, 200, []string{`"a"`}, nil, false},
		{[]string{"If-Unmodified-Since", "yesterday"}, 200, nil, nil, false},
		{[]string{"If-Match", ""}, 400, nil, nil, false},
		{[]string{"If-Match", ", ,"}, 400, nil, nil, false},
		{[]string{"If-Match", "a"}, 400, nil, nil, false},
		{[]string{"If-Match", `"a" "b"`}, 400, nil, nil, false},
		{[]string{"If-Match", `*, "b"`}, 400, nil, nil, false},
		{[]string{"If-None-Match", `"a`}, 400, nil, nil, false},
	} {
		for _, method := range []string{"PUT", "DELETE"} {
			m.cond = FileCondition{}
			got := send(t, base, method, at, c.headers, nil)
			want := c.status
			if method == "DELETE" && want < 300 {
				want = 204
			}
			if got.status != want || !slices.Equal(m.cond.Match, c.match) || !slices.Equal(m.cond.NoneMatch, c.none) || m.cond.Unchanged.IsZero() == c.since {
				t.Errorf("%s %q: %d %+v %s", method, c.headers, got.status, m.cond, got.body)
			}
		}
	}
	runAll(t, base, []scenario{
		{"the answer has the tag to go on with", "PUT", at, nil, "hello", 200, []string{"Etag: " + tagOf("hello"), `"etag":"\"` + strings.Trim(tagOf("hello"), `"`)}},
		{"a part is refused", "PUT", at, []string{"Content-Range", "bytes 0-4/100"}, "hello", 400, []string{`"field":"Content-Range"`, "the whole"}},
		{"of a node too", "PUT", "/api/nodes/acme", []string{"Content-Range", "bytes 0-1/100"}, "{}", 400, []string{`"field":"Content-Range"`}},
		{"an encoded file is refused", "PUT", at, []string{"Content-Encoding", "gzip"}, "hello", 415, []string{`"code":"unsupported_media_type"`}},
		{"and an encoded node", "PUT", "/api/nodes/acme", []string{"Content-Encoding", "br"}, "{}", 415, []string{"Content-Encoding"}},
		{"identity is no encoding", "PUT", at, []string{"Content-Encoding", "identity"}, "hello", 200, nil},
	})
	// What is not there, or not the caller's to know of, is 412 where If-Match asks for it.
	m.fail = problem("not_found", "there is no such file")
	runAll(t, base, []scenario{
		{"PUT", "PUT", at, []string{"If-Match", "*"}, "x", 412, []string{`"code":"stale"`, "or it is not yours to read"}},
		{"DELETE", "DELETE", at, []string{"If-Match", `"a"`}, "", 412, []string{`"code":"stale"`, "or it is not yours to read"}},
		{"the control", "DELETE", at, []string{"If-None-Match", `"a"`}, "", 404, nil},
	})
}

// The reader of tags takes what may stand in a header and never runs on.
func FuzzFileTags(f *testing.F) {
	for _, seed := range []string{"", "*", `"a"`, `W/"a", "b"`, `"a" "b"`, `,,"a",,`, `"a,b"`, "\"\x80\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := fileTags("If-Match", []string{text})
		if (err == nil) != (len(list) > 0) {
			t.Fatalf("%q: %q %v", text, list, err)
		}
		for _, tag := range list {
			if tag != "*" && !fileTag.MatchString(tag) {
				t.Fatalf("%q: %q", text, tag)
			}
		}
	})
}
