package httpapi

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/prometheus/client_golang/prometheus"
)

func builtPage(c *Config) {
	c.Page = fstest.MapFS{
		"index.html":     {Data: []byte("<!doctype html><title>hubmesh</title>")},
		"_app/app-1a.js": {Data: []byte("export{}")},
		"favicon.svg":    {Data: []byte("<svg/>")},
	}
}

func TestEveryOtherPathIsThePage(t *testing.T) {
	_, base := serve(t, newMesh(), builtPage)
	runAll(t, base, []scenario{
		{"the root", "GET", "/", nil, "", 200, []string{"<title>hubmesh", "Content-Type: text/html; charset=utf-8", "Cache-Control: no-cache", "Content-Security-Policy: script-src 'self'"}},
		{"the path of a node", "GET", "/acme/Stories/launch", nil, "", 200, []string{"<title>hubmesh"}},
		{"the path of a node with a dot", "GET", "/acme/v1.2.js", nil, "", 200, []string{"<title>hubmesh"}},
		{"index.html itself", "GET", "/index.html", nil, "", 200, []string{"<title>hubmesh", "Cache-Control: no-cache"}},
		{"a file whose name changes with it", "GET", "/_app/app-1a.js", nil, "", 200, []string{"export", "Cache-Control: public, max-age=2592000, immutable", "Content-Type: text/javascript"}},
		{"a file of another build", "GET", "/_app/app-2b.js", nil, "", 404, nil},
		{"another file", "GET", "/favicon.svg", nil, "", 200, []string{"Content-Type: image/svg+xml", "Cache-Control: no-cache"}},
		{"dots", "GET", "/../etc/passwd", nil, "", 400, nil},
		{"the headers of every answer", "HEAD", "/", nil, "", 200, []string{"X-Content-Type-Options: nosniff", "Referrer-Policy: same-origin", "Cross-Origin-Opener-Policy: same-origin"}},
	})
	tag := send(t, base, "GET", "/", nil, nil).header.Get("ETag")
	scenario{method: "GET", target: "/", headers: []string{"If-None-Match", tag}, status: 304}.run(t, base)
	_, without := serve(t, newMesh())
	scenario{method: "GET", target: "/", status: 404, want: []string{"serves no page"}}.run(t, without)
}

// CR-1, edge invariant 31
func TestBelowStaticAreBuiltInIconsAndNothingElse(t *testing.T) {
	m := newMesh(doc("acme", 1))
	m.files["acme/content/a.txt"] = "secret"
	_, base := serve(t, m, builtPage)
	root := []string{"Authorization", "Bearer root"}
	runAll(t, base, []scenario{
		{"an icon", "GET", "/static/NodeTypeIcons/shopping-bag.svg", nil, "", 200, []string{"<svg", "Content-Type: image/svg+xml", "Cache-Control: public, max-age=2592000, immutable"}},
		{"an unknown name gets the plain one", "GET", "/static/NodeTypeIcons/Nothing_1.svg", nil, "", 200, []string{"<svg", "Cache-Control: no-cache"}},
		{"another file", "GET", "/static/NodeTypeIcons/person.png", nil, "", 404, nil},
		{"another name", "GET", "/static/NodeTypeIcons/a%20b.svg", nil, "", 404, nil},
		{"no name", "GET", "/static/NodeTypeIcons/.svg", nil, "", 404, nil},
		{"dots", "GET", "/static/NodeTypeIcons/..%2f..%2fx.svg", nil, "", 404, nil},
		{"content, even for an Admin", "GET", "/static/acme/content/a.txt", root, "", 404, []string{"!secret"}},
	})
	if len(m.calls) > 0 {
		t.Fatalf("the mesh was asked: %q", m.calls)
	}
	icons, err := fs.Glob(iconFiles, "icons/*.svg")
	if err != nil || len(icons) < 10 {
		t.Fatalf("%d icons, %v", len(icons), err)
	}
	for _, name := range icons {
		text, err := iconFiles.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(strings.NewReader(string(text)))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

func TestAPageOfAnotherSiteCanNotWrite(t *testing.T) {
	m := newMesh(doc("acme", 1))
	_, base := serve(t, m)
	foreign := []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site", "Cookie", "hubmesh_session=s"}
	runAll(t, base, []scenario{
		{"it can not create", "POST", "/api/nodes/acme/x", foreign, "{}", 403, []string{`"code":"forbidden"`, "another site"}},
		{"it can not log out", "POST", "/logout", foreign, "", 403, nil},
		{"an older browser tells by its origin", "DELETE", "/api/nodes/acme", []string{"Origin", "https://evil.example"}, "", 403, nil},
		{"a token is its sender's own", "POST", "/api/nodes/acme/x", append([]string{"Authorization", asBob}, foreign[:4]...), "{}", 201, nil},
		{"the page itself may", "POST", "/api/nodes/acme/y", []string{"Origin", base, "Sec-Fetch-Site", "same-origin"}, "{}", 201, nil},
		{"a program may", "POST", "/api/nodes/acme/z", nil, "{}", 201, nil},
	})
}

func TestSigningInAndOut(t *testing.T) {
	_, base := serve(t, newMesh())
	runAll(t, base, []scenario{
		{"a good code", "GET", "/login?code=good", nil, "", 303, []string{"Location: /", "Set-Cookie: hubmesh_session=s; HttpOnly", "Cache-Control: no-store"}},
		{"a used code", "GET", "/login?code=old", nil, "", 401, []string{`"code":"unauthenticated"`}},
		{"a used code in a browser", "GET", "/login?code=old", []string{"Accept", "text/html,*/*"}, "", 401, []string{"<h1>", "used already", "Content-Type: text/html"}},
		{"a preview uses nothing up", "HEAD", "/login?code=old", nil, "", 200, nil},
		{"signing out", "POST", "/logout", nil, "", 204, []string{"Set-Cookie: hubmesh_session=; Max-Age=0"}},
		{"a visitor", "GET", "/api/whoami", nil, "", 200, []string{`"anonymous":true`, `"subject":"Anonymous"`, `"admin":false`}},
		{"an Admin", "GET", "/api/whoami", []string{"Authorization", "Bearer root"}, "", 200, []string{`"anonymous":false`, `"subject":"root"`, `"admin":true`}},
	})
}

// edge §2.3
func TestOperationIsForAnAdminOfTheRootScope(t *testing.T) {
	m := newMesh()
	_, base := serve(t, m)
	bob, root := []string{"Authorization", asBob}, []string{"Authorization", "Bearer root"}
	runAll(t, base, []scenario{
		{"importing", "POST", "/api/import", bob, `{"source":"/x"}`, 403, []string{"Admin of the root scope"}},
		{"making tokens", "POST", "/api/tokens", bob, `{"subject":"bob"}`, 403, nil},
		{"listing tokens", "GET", "/api/tokens", bob, "", 403, nil},
		{"revoking tokens", "DELETE", "/api/tokens/0123", bob, "", 403, nil},
		{"reading lapses", "GET", "/api/lapses", bob, "", 403, nil},
		{"reading the cluster's status", "GET", "/api/cluster", bob, "", 403, nil},
	})
	if len(m.calls) > 0 {
		t.Fatalf("the mesh was asked: %q", m.calls)
	}
	runAll(t, base, []scenario{
		{"an Admin imports", "POST", "/api/import", root, `{"source":"/x"}`, 202, []string{`"activity":"acme/_Activity/1"`, "Location: /api/nodes/acme/_Activity/1"}},
		{"a source is needed", "POST", "/api/import", root, `{}`, 400, []string{`"field":"source"`}},
		{"an Admin makes tokens", "POST", "/api/tokens", root, `{"subject":"bob","name":"n"}`, 200, []string{`"token":"hm_secret"`, `"id":"0123"`, "Cache-Control: no-store"}},
		{"an Admin revokes tokens", "DELETE", "/api/tokens/0123", root, "", 204, nil},
		{"an Admin reads lapses", "GET", "/api/lapses", root, "", 200, nil},
		{"an Admin reads the cluster's status", "GET", "/api/cluster", root, "", 200, []string{`"askedBy":"a"`}},
		{"why", "GET", "/api/why/mesh/1", bob, "", 200, []string{`"address":"mesh/1"`}},
		{"why of nothing", "GET", "/api/why/", bob, "", 400, nil},
	})
}

type waiting []string

func (w waiting) Waiting(context.Context) []string { return w }

// fault 44
func TestReadyTellsWhatItWaitsForAndAliveDependsOnNothing(t *testing.T) {
	_, base := serve(t, newMesh(), func(c *Config) { c.Readiness = waiting{"import of Guide"}; c.Caller = nil })
	runAll(t, base, []scenario{
		{"waiting", "GET", "/ready", nil, "", 503, []string{`{"ready":false,"waiting":["import of Guide"]}`, "Retry-After: 1"}},
		{"alive", "GET", "/alive", []string{"Authorization", "Bearer wrong"}, "", 200, []string{`{"alive":true}`}},
	})
	_, ready := serve(t, newMesh(), func(c *Config) { c.Readiness = waiting(nil) })
	scenario{method: "GET", target: "/ready", status: 200, want: []string{`{"ready":true,"waiting":[]}`}}.run(t, ready)
}

func TestTheLabelsOfMetricsAreBounded(t *testing.T) {
	registry := prometheus.NewRegistry()
	_, base := serve(t, newMesh(doc("acme", 1)), func(c *Config) { c.Registry = registry })
	for _, target := range []string{"/api/nodes/acme", "/api/nodes/other", "/any/page", "/another/page", "/api/nothing"} {
		send(t, base, "GET", target, nil, nil)
		send(t, base, "BREW", target, nil, nil)
	}
	got := send(t, base, http.MethodGet, "/metrics", nil, nil)
	routes := map[string]bool{}
	for _, m := range regexp.MustCompile(`hubmesh_http_requests_total\{method="(\w+)",route="([^"]*)",status="(\d+)"\}`).FindAllStringSubmatch(got.body, -1) {
		routes[m[1]+" "+m[2]+" "+m[3]] = true
	}
	for _, want := range []string{"GET /api/nodes/{rest...} 200", "GET /api/nodes/{rest...} 404", "other /api/nodes/{rest...} 405", "GET page 404", "other page 405"} {
		if !routes[want] {
			t.Errorf("no series %q", want)
		}
		delete(routes, want)
	}
	if len(routes) > 0 {
		t.Errorf("further series: %v", routes)
	}
}

func FuzzSegmentsAreNeverDotsOrSlashes(f *testing.F) {
	for _, path := range []string{"a/b", "a%2fb", "%2e%2e/x", "%252e", "a//b", `..\`, "%00", "%ff", "a%", ""} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		r, err := http.NewRequest("GET", "http://h/api/nodes/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.RawPath, r.URL.Path = "", "/api/nodes/"+path
		parts, err := segments(r, "/api/nodes/")
		if err != nil {
			return
		}
		for _, part := range parts {
			if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "/\\\x00") {
				t.Fatalf("%q has the segment %q", path, part)
			}
		}
	})
}

func FuzzConditionsAreReadOrRefused(f *testing.F) {
	f.Add(`"3"`, "")
	f.Add("", "*")
	f.Add(`W/"3", "4"`, `"1"`)
	f.Fuzz(func(t *testing.T, match, none string) {
		r := &http.Request{Header: http.Header{"If-Match": {match}, "If-None-Match": {none}}}
		cond, err := condition(r)
		if err == nil && cond.Version != 0 && strings.TrimSpace(strings.Trim(match, ", ")) != etag(cond.Version) {
			t.Fatalf("%q reads as %d", match, cond.Version)
		}
	})
}
