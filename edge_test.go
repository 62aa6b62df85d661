package hubmesh_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh"
)

// edge is a mesh behind HTTP, with what sends requests to it.
type edge struct {
	t     *testing.T
	mesh  *hubmesh.Mesh
	admin context.Context
	url   string
	token map[string]string // by subject
	ids   map[string]string // of the tokens, by subject
}

func serveMesh(t *testing.T, o hubmesh.Options) *edge {
	t.Helper()
	m, err := hubmesh.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(t.TempDir(), "token")
	if _, err := m.AdminToken(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h, err := m.Handler("test")
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		h.Close()
		web.CloseClientConnections()
		web.Close()
	})
	e := &edge{t: t, mesh: m, admin: hubmesh.As(t.Context(), "admin"), url: web.URL, ids: map[string]string{}, token: map[string]string{"admin": strings.TrimSpace(string(token))}}
	return e
}

// known gives a subject a token, over HTTP.
func (e *edge) known(subject string) {
	e.t.Helper()
	var made struct{ Token, ID string }
	a := e.send("admin", "POST", "/api/tokens", `{"subject":"`+subject+`"}`)
	if err := json.Unmarshal([]byte(a.body), &made); err != nil || a.status != http.StatusOK {
		e.t.Fatalf("%d %s", a.status, a.body)
	}
	e.token[subject], e.ids[subject] = made.Token, made.ID
}

func (e *edge) make(path, nodeType string) {
	e.t.Helper()
	if _, err := e.mesh.Create(e.admin, path, nodeType, map[string]any{"markdown": "text"}); err != nil {
		e.t.Fatal(err)
	}
}

func (e *edge) grant(scope, subject, role string) {
	e.t.Helper()
	if err := e.mesh.Grant(e.admin, scope, subject, role); err != nil {
		e.t.Fatal(err)
	}
}

// deny takes a role of a subject away at a scope.
func (e *edge) deny(scope, subject, role string) {
	e.t.Helper()
	content := map[string]any{"accessObject": subject, "roles": []map[string]any{{"role": role, "denied": true}}}
	if _, err := e.mesh.Create(e.admin, scope+"/_Access/"+subject+"_Access", "AccessAssignment", content); err != nil {
		e.t.Fatal(err)
	}
}

// said is what a request was answered.
type said struct {
	status int
	header http.Header
	body   string
	took   time.Duration
}

func (e *edge) send(subject, method, target, body string, headers ...string) said {
	e.t.Helper()
	r, err := http.NewRequestWithContext(e.t.Context(), method, e.url+target, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	if subject != "" {
		r.Header.Set("Authorization", "Bearer "+e.token[subject])
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	began := time.Now()
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return said{resp.StatusCode, resp.Header, string(text), time.Since(began)}
}

// stream opens a stream with a header that says who asks, and reads its first frame.
func (e *edge) stream(target, header, value string) *bufio.Reader {
	e.t.Helper()
	r, err := http.NewRequestWithContext(e.t.Context(), "GET", e.url+target, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	r.Header.Set(header, value)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		e.t.Fatalf("%v %v", resp, err)
	}
	e.t.Cleanup(func() { resp.Body.Close() })
	b := bufio.NewReader(resp.Body)
	for {
		line, err := b.ReadString('\n')
		if err != nil {
			e.t.Fatal(err)
		}
		if strings.HasPrefix(line, "event: full") {
			return b
		}
	}
}

// AC-R1
// A browser that signs out loses the streams of its session, in every tab.
func TestALogoutEndsTheStreamsOfTheSession(t *testing.T) {
	e := serveMesh(t, hubmesh.Options{})
	e.make("acme", hubmesh.Space)
	code, err := e.mesh.LoginCode()
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", e.url+"/login?code="+code, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil || len(resp.Cookies()) != 1 {
		t.Fatalf("%v %v", resp, err)
	}
	resp.Body.Close()
	cookie := resp.Cookies()[0].String()
	cookie, _, _ = strings.Cut(cookie, ";")
	tab, other := e.stream("/api/live?node=acme", "Cookie", cookie), e.stream("/api/watch/acme", "Cookie", cookie)
	began := time.Now()
	if a := e.send("", "POST", "/logout", "", "Cookie", cookie); a.status != http.StatusNoContent {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for _, b := range []*bufio.Reader{tab, other} {
		if rest, err := io.ReadAll(b); err != nil || !strings.Contains(string(rest), `"code":"unauthenticated"`) {
			t.Errorf("%v %s", err, rest)
		}
	}
	if took := time.Since(began); took > 5*time.Second { // a second, and what a busy machine adds
		t.Errorf("the streams ended after %v", took)
	}
}

// DG-2
// What a hub awaits names the paths of others: why lists it to an Admin of the root scope, and counts it
// for whoever else may read the node.
func TestWhyListsToAnAdminAloneWhatAHubAwaits(t *testing.T) {
	e := serveMesh(t, hubmesh.Options{})
	e.make("acme", hubmesh.Space)
	e.grant("acme", "bob", "Viewer")
	e.known("bob")
	if a := e.send("bob", "GET", "/api/nodes/acme", ""); a.status != http.StatusOK { // starts the hub
		t.Fatalf("%d %s", a.status, a.body)
	}
	for subject, lists := range map[string]bool{"admin": true, "bob": false} {
		a := e.send(subject, "GET", "/api/why/acme", "")
		if a.status != http.StatusOK || !strings.Contains(a.body, "PendingCallbacks=0") || strings.Contains(a.body, "PendingCallbacks=0[") != lists {
			t.Errorf("%s: %d %s", subject, a.status, a.body)
		}
	}
}

// AC-R1
// Over the real mesh: whoever revokes a token sees its streams end, the watch as well as the several
// subscriptions of /api/live; another token of the same subject keeps its own.
func TestARevokedTokenLosesItsOpenStreams(t *testing.T) {
	e := serveMesh(t, hubmesh.Options{})
	e.make("acme", hubmesh.Space)
	e.grant("acme", "bob", "Viewer")
	e.known("bob")
	open := func(target string) *bufio.Reader { return e.stream(target, "Authorization", "Bearer "+e.token["bob"]) }
	streams := map[string]*bufio.Reader{"watch": open("/api/watch/acme"), "live": open("/api/live?node=acme&children=acme&query=" + url.QueryEscape("nodeType:Space"))}
	revoked := e.ids["bob"]
	e.known("bob")
	other := open("/api/watch/acme")
	began := time.Now()
	if a := e.send("admin", "DELETE", "/api/tokens/"+revoked, ""); a.status != http.StatusNoContent {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for name, b := range streams {
		rest, err := io.ReadAll(b) // it ends
		if err != nil || !strings.Contains(string(rest), "event: end\ndata: {\"code\":\"unauthenticated\"") {
			t.Errorf("%s: %v %s", name, err, rest)
		}
	}
	if took := time.Since(began); took > 5*time.Second { // a second, and what a busy machine adds
		t.Errorf("the streams ended after %v", took)
	}
	if _, err := e.mesh.Patch(e.admin, "acme", map[string]any{"name": "A"}, hubmesh.Condition{}); err != nil {
		t.Fatal(err)
	}
	for {
		line, err := other.ReadString('\n')
		if err != nil {
			t.Fatalf("the other token's stream: %v", err)
		}
		if strings.HasPrefix(line, "event: patch") {
			return
		}
	}
}

// CR-9
// edge §1.2
// On every route that asks a node's owner, whoever may not read a node that is slow to start gets the
// answer that an absent node gets, but for the name in it, long before the node has started.
func TestARefusalDoesNotWaitForTheNodeToStart(t *testing.T) {
	e := serveMesh(t, hubmesh.Options{StartDelay: func(path string) time.Duration {
		if path == "acme/slow" {
			return time.Minute
		}
		return 0
	}})
	e.make("acme", hubmesh.Space)
	e.make("acme/slow", hubmesh.Markdown)
	e.known("eve")
	for _, c := range []struct{ method, target, body string }{
		{"GET", "/api/nodes/acme/PATH", ""},
		{"PATCH", "/api/nodes/acme/PATH", `{"name":"x"}`},
		{"PUT", "/api/nodes/acme/PATH", `{"nodeType":"Markdown"}`},
		{"DELETE", "/api/nodes/acme/PATH", ""},
		{"GET", "/api/render/acme/PATH", ""},
		{"GET", "/api/watch/acme/PATH", ""},
		{"GET", "/api/content/acme/PATH/content/a.txt", ""},
		{"GET", "/api/content/acme/PATH/a.txt", ""},
		{"GET", "/api/files/acme/PATH", ""},
		{"PUT", "/api/files/acme/PATH/content/a.txt", "text"},
		{"DELETE", "/api/files/acme/PATH/content/a.txt", ""},
		{"GET", "/api/why/acme/PATH", ""},
		{"GET", "/api/versions/acme/PATH", ""},
		{"GET", "/api/children/acme/PATH", ""},
	} {
		ask := func(name string) said {
			a := e.send("eve", c.method, strings.Replace(c.target, "PATH", name, 1), c.body)
			a.body = strings.ReplaceAll(a.body, name, "PATH")
			return a
		}
		hidden, absent := ask("slow"), ask("none")
		if hidden.status != absent.status || hidden.body != absent.body {
			t.Errorf("%s %s:\nhidden %d %s\nabsent %d %s", c.method, c.target, hidden.status, hidden.body, absent.status, absent.body)
		}
		if hidden.took > 5*time.Second {
			t.Errorf("%s %s: the refusal took %v", c.method, c.target, hidden.took)
		}
	}
}

// CR-9
// edge §1.2
// An upload, a delete or a listing of files at a node that the caller may not read gets the very answer
// that it would get if there were no such node, whatever the caller may do above it.
func TestTheFilesRoutesTellNothingOfANodeThatIsNotTheCallersToRead(t *testing.T) {
	e := serveMesh(t, hubmesh.Options{})
	e.make("acme", hubmesh.Space)
	e.make("acme/hidden", hubmesh.Markdown)
	e.make("acme/hidden/deep", hubmesh.Markdown)
	for subject, role := range map[string]string{"stranger": "", "viewer": "Viewer", "editor": "Editor"} {
		e.known(subject)
		if role != "" {
			e.grant("acme", subject, role)
			e.deny("acme/hidden", subject, role)
		}
		for _, c := range []struct{ method, target string }{
			{"PUT", "/api/files/acme/PATH/content/a.txt"},
			{"PUT", "/api/files/acme/PATH/deep/content/a.txt"},
			{"PUT", "/api/files/acme/PATH/a.txt"},
			{"PUT", "/api/files/PATH/content/a.txt"},
			{"DELETE", "/api/files/acme/PATH/content/a.txt"},
			{"DELETE", "/api/files/acme/PATH/deep/content/b/a.txt"},
			{"GET", "/api/files/acme/PATH"},
			{"GET", "/api/files/acme/PATH?dir=nope"},
			{"GET", "/api/files/acme/PATH/deep?collection=other"},
		} {
			ask := func(name string) said {
				a := e.send(subject, c.method, strings.Replace(c.target, "PATH", name, 1), "text")
				a.body = strings.ReplaceAll(a.body, name, "PATH")
				return a
			}
			hidden, absent := ask("hidden"), ask("absent")
			if hidden.status != absent.status || hidden.body != absent.body || hidden.status < 400 {
				t.Errorf("%s: %s %s:\nhidden %d %s\nabsent %d %s", subject, c.method, c.target, hidden.status, hidden.body, absent.status, absent.body)
			}
		}
	}
	// To whoever may read the node the answers say what is missing, and what is in the way.
	e.known("owner")
	e.grant("acme", "owner", "Editor")
	for _, c := range []struct {
		method, target string
		status         int
		want           string
	}{
		{"PUT", "/api/files/acme/hidden/content/a/b.txt", http.StatusCreated, ""},
		{"PUT", "/api/files/acme/hidden/content/a", http.StatusConflict, "'a' is a folder"},
		{"PUT", "/api/files/acme/hidden/content/a/b.txt/c", http.StatusConflict, "would lie below a file"},
		{"PUT", "/api/files/acme/hidden/content/%7E", http.StatusBadRequest, "is not a file name"},
		{"PUT", "/api/files/acme/hidden/content/a%20", http.StatusBadRequest, "is not a file name"},
		{"PUT", "/api/files/acme/hidden/content/%20a", http.StatusBadRequest, "is not a file name"},
		{"PUT", "/api/files/acme/hidden/content/a%0Ab", http.StatusBadRequest, "is not a file name"},
		{"PUT", "/api/files/acme/hidden/other/a.txt", http.StatusNotFound, "has no collection 'other'"},
		{"GET", "/api/files/acme/hidden?dir=nope", http.StatusNotFound, "has no folder 'nope'"},
	} {
		if a := e.send("owner", c.method, c.target, "text"); a.status != c.status || !strings.Contains(a.body, c.want) {
			t.Errorf("%s %s: %d %s", c.method, c.target, a.status, a.body)
		}
	}
}

// edge §4
// data §1.4
// A space that is deleted leaves no files to who makes it anew.
func TestTheFilesOfADeletedSpaceAreNotServedToWhoMakesItAnew(t *testing.T) {
	e := serveMesh(t, hubmesh.Options{})
	must := func(method, target, body string, want int) string {
		t.Helper()
		got := e.send("admin", method, target, body, "Content-Type", "application/json")
		if got.status != want {
			t.Fatalf("%s %s: %d %s", method, target, got.status, got.body)
		}
		return got.body
	}
	must("POST", "/api/nodes/Re", `{"nodeType":"Space"}`, 201)
	must("PUT", "/api/files/Re/content/top.txt", "old", 201)
	must("GET", "/api/content/Re/content/top.txt", "", 200)
	must("DELETE", "/api/nodes/Re?recursive", "", 200)
	must("POST", "/api/nodes/Re", `{"nodeType":"Space"}`, 201)
	must("PUT", "/api/files/Re/content/new.txt", "new", 201)
	must("GET", "/api/content/Re/content/top.txt", "", 404)
	if list := must("GET", "/api/files/Re", "", 200); strings.Contains(list, "top.txt") {
		t.Fatal(list)
	}
}

// CR-4
// CR-7
// The files of a folder that is no node lie where their address is looked up, and are counted as such.
func TestImportedFilesOfAFolderThatIsNoNodeAreServedAtItsPath(t *testing.T) {
	e := serveMesh(t, hubmesh.Options{})
	got := importFS(t, e.mesh, e.admin, "X", files("a.json", `{"content":{}}`), files("Foo/f.txt", "in Foo", "a/g.txt", "in a"))
	if got.Status != "Succeeded" || got.Counts["files"] != 2 {
		t.Fatalf("%+v", got)
	}
	for target, want := range map[string]string{"/api/content/X/Foo/f.txt": "in Foo", "/api/content/X/a/g.txt": "in a"} {
		if s := e.send("admin", "GET", target, ""); s.status != 200 || s.body != want {
			t.Errorf("%s: %d %s", target, s.status, s.body)
		}
	}
}

// edge §4
// A collection that takes no uploads takes no files of an import either; the import says so and goes on.
func TestAnImportDoesNotWriteIntoACollectionThatTakesNoUploads(t *testing.T) {
	e := serveMesh(t, hubmesh.Options{})
	src := files("shut.json", `{"content":{}}`, "shut/_Content/content.json", `{"nodeType":"ContentCollection","content":{"sourceType":"folder","isStatic":true}}`)
	got := importFS(t, e.mesh, e.admin, "X", src, files("shut/f.txt", "f", "tail/g.txt", "g"))
	if got.Status != "Warning" || got.Counts["files"] != 1 || got.Counts["failed"] != 0 {
		t.Fatalf("%+v", got)
	}
	said := false
	for _, m := range got.Messages {
		said = said || m.About == "shut" && strings.Contains(m.Text, "takes no uploads")
	}
	if !said {
		t.Errorf("%+v", got.Messages)
	}
	for target, want := range map[string]int{"/api/content/X/shut/f.txt": 404, "/api/content/X/tail/g.txt": 200} {
		if s := e.send("admin", "GET", target, ""); s.status != want {
			t.Errorf("%s: %d %s", target, s.status, s.body)
		}
	}
}
