package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh"
	"github.com/hubmesh/hubmesh/client"
)

// serveMesh serves a real mesh in memory and returns its address and a file with an Admin's token.
func serveMesh(t *testing.T) (url, tokenFile string) {
	t.Helper()
	m, err := hubmesh.New(hubmesh.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tokenFile = filepath.Join(t.TempDir(), "admin-token")
	if _, err := m.AdminToken(t.Context(), tokenFile); err != nil {
		t.Fatal(err)
	}
	handler, err := m.Handler("test")
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler)
	t.Cleanup(func() {
		handler.Close()
		web.Close()
		if err := m.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return web.URL, tokenFile
}

// hm runs one command line.
func hm(t *testing.T, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, std{strings.NewReader(stdin), &o, &e})
	return code, o.String(), e.String()
}

// step is one command line and what it must do.
type step struct {
	name  string
	stdin string
	args  []string
	code  int
	out   []string // parts of the standard output
	errs  []string // parts of the standard error
}

func (s step) run(t *testing.T) {
	t.Helper()
	code, out, errs := hm(t, s.stdin, s.args...)
	if code != s.code {
		t.Fatalf("exit code %d, want %d\n%s%s", code, s.code, out, errs)
	}
	for _, want := range s.out {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q: %s", want, out)
		}
	}
	for _, want := range s.errs {
		if !strings.Contains(errs, want) {
			t.Errorf("the errors lack %q: %s", want, errs)
		}
	}
	if s.code == exitOK && errs != "" && len(s.errs) == 0 {
		t.Errorf("unexpected errors: %s", errs)
	}
}

func TestTheVerbsWorkOnARealMesh(t *testing.T) {
	url, token := serveMesh(t)
	t.Setenv("HUBMESH_SERVER", url)
	text, err := os.ReadFile(token)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HUBMESH_TOKEN", string(text))
	doc := filepath.Join(t.TempDir(), "doc.json")
	if err := os.WriteFile(doc, []byte(`{"name":"From a file","nodeType":"Markdown","content":{"markdown":"# <Hi>"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range []step{
		{"a space is created by flags", "", []string{"create", "acme", "--type", "Space", "--name", "ACME"}, 0, []string{`"path": "acme"`, `"version": 1`}, nil},
		{"a node is created from a file, as it is", "", []string{"create", "acme/a", "@" + doc}, 0, []string{`"name": "From a file"`, `# <Hi>`}, nil},
		{"a node is created from the standard input", `{"name":"B","nodeType":"Markdown"}`, []string{"create", "acme/b", "-"}, 0, []string{`"name": "B"`}, nil},
		{"an empty document is one", "", []string{"create", "acme/empty", "--markdown", ""}, 0, []string{`"nodeType": "Markdown"`, `"markdown": ""`}, nil},
		{"Markdown is a flag", "", []string{"create", "acme/c", "--markdown", "# C"}, 0, []string{`"nodeType": "Markdown"`, `"markdown": "# C"`}, nil},
		{"a node is printed", "", []string{"get", "acme/a"}, 0, []string{`"path": "acme/a"`}, nil},
		{"a put replaces", "", []string{"put", "acme/b", "--name", "B2", "--type", "Markdown"}, 0, []string{`"name": "B2"`, `"version": 2`}, nil},
		{"a patch merges", "", []string{"patch", "acme/b", `{"description":"d"}`, "--if-version", "2"}, 0, []string{`"version": 3`, `"name": "B2"`}, nil},
		{"history is printed", "", []string{"versions", "acme/b", "--limit", "2"}, 0, []string{`"versions": [`, `"kind": "updated"`}, nil},
		{"no history is no page of it", "", []string{"versions", "acme/b", "--limit", "0"}, 2, nil, []string{"--limit is 0", "above 0"}},
		{"nor before the first version", "", []string{"versions", "acme/b", "--before", "0"}, 2, nil, []string{"--before is 0"}},
		{"a condition on version 0 is no condition", "", []string{"put", "acme/b", "--type", "Markdown", "--if-version", "0"}, 2, nil, []string{"--if-version is 0"}},
		{"nor is one with its contrary", "", []string{"put", "acme/b", "--type", "Markdown", "--if-version", "1", "--if-absent"}, 2, nil, []string{"give one of them"}},
		{"nor for a patch", "", []string{"patch", "acme/b", "{}", "--if-version", "0"}, 2, nil, []string{"--if-version is 0"}},
		{"nor for a delete", "", []string{"delete", "acme/b", "--if-version=-1"}, 2, nil, []string{"--if-version is -1"}},
		{"a node as it was", "", []string{"get", "acme/b", "--at", "1"}, 0, []string{`"name": "B"`}, nil},
		{"a query finds", "", []string{"query", "path:acme", "scope:children", "nodeType:Markdown"}, 0, []string{`"nodes": [`, `"acme/a"`, `"acme/c"`}, nil},
		{"a query a line", "", []string{"query", "path:acme/a", "--lines"}, 0, []string{`{"path":"acme/a"`}, nil},
		{"why knows the hub", "", []string{"why", "acme/b"}, 0, []string{"acme/b"}, nil},
		{"a token is made", "", []string{"token", "create", "--as", "bob", "--name", "laptop"}, 0, []string{`"token": "hm_`}, nil},
		{"tokens are listed", "", []string{"token", "list"}, 0, []string{`"subject": "bob"`, `"name": "laptop"`}, nil},
		{"the version is printed", "", []string{"version"}, 0, []string{`"version":`, `"go": "go1`}, nil},

		{"not there is 3", "", []string{"get", "acme/none"}, 3, nil, []string{"No node found at 'acme/none' (not_found)", "see " + url + "/api/errors#not_found"}},
		{"a token file with more than a token is 2", "", []string{"get", "acme/a", "--token-file", doc}, 2, nil, []string{"more than a token"}},
		{"what exists is 6", "", []string{"create", "acme/a", "--type", "Markdown"}, 6, nil, []string{"(exists)"}},
		{"what is stale is 6", "", []string{"put", "acme/b", "--type", "Markdown", "--if-version", "1"}, 6, nil, []string{"(stale)", "read it again"}},
		{"what must be absent is 6", "", []string{"put", "acme/b", "--type", "Markdown", "--if-absent"}, 6, nil, []string{"(stale)"}},
		{"a missing partition is 6 and says what to do", "", []string{"create", "nowhere/a", "--type", "Markdown"}, 6, nil, []string{"create the space first"}},
		{"what has children is 6", "", []string{"delete", "acme"}, 6, nil, []string{"(has_children)"}},
		{"a bad path is 2", "", []string{"get", "acme/../b"}, 2, nil, []string{"(invalid_path)"}},
		{"a query that begins with a minus needs no --", "", []string{"query", "-is:main", "path:acme", "scope:children"}, 0, []string{`"nodes": [`}, nil},
		{"nor in the middle, nor after a flag", "", []string{"query", "--lines", "path:acme/a", "-nodeType:Nothing"}, 0, []string{`"acme/a"`}, nil},
		{"there is no version 0", "", []string{"get", "acme/b", "--at", "0"}, 2, nil, []string{"--at is 0"}},
		{"a bad query is 2", "", []string{"query", "(a"}, 2, nil, []string{"(invalid_query)"}},
		{"no server is 5", "", []string{"get", "acme", "--server", "http://127.0.0.1:1"}, 5, nil, []string{"connection refused", "hubmesh serve"}},

		{"no verb is 2", "", nil, 2, nil, []string{"--help"}},
		{"an unknown verb is 2", "", []string{"frob"}, 2, nil, []string{"frob"}},
		{"an unknown flag is 2", "", []string{"get", "a", "--frob"}, 2, nil, []string{"--frob"}},
		{"no path is 2", "", []string{"get"}, 2, nil, []string{"<path>"}},
		{"no JSON is 2", "", []string{"patch", "acme/b", "{name:"}, 2, nil, []string{"this is no JSON"}},
		{"a missing file is 2", "", []string{"create", "acme/x", "@/nowhere.json"}, 2, nil, []string{"/nowhere.json"}},
		{"a missing token file is 2", "", []string{"get", "acme", "--token-file", "/nowhere"}, 2, nil, []string{"--token-file"}},
		{"a bad address is 2", "", []string{"get", "acme", "--server", "localhost"}, 2, nil, []string{"http://HOST:PORT"}},
		{"help is 0", "", []string{"--help"}, 0, []string{"Exit codes: 0 ok", "serve", "import"}, nil},
		{"help of a verb is 0", "", []string{"put", "--help"}, 0, []string{"--if-version"}, nil},

		{"a subtree is deleted", "", []string{"delete", "acme/c", "--recursive"}, 0, []string{`"deleted": 1`}, nil},
	} {
		t.Run(s.name, func(t *testing.T) { s.run(t) })
	}
}

func TestATokenThatIsNotGoodIsNotAllowed(t *testing.T) {
	url, admin := serveMesh(t)
	code, out, errs := hm(t, "", "token", "create", "--as", "bob", "--server", url, "--token-file", admin)
	var made struct{ Token, ID string }
	if err := json.Unmarshal([]byte(out), &made); err != nil || code != 0 {
		t.Fatalf("%d %v %s", code, err, errs)
	}
	file := filepath.Join(t.TempDir(), "bob")
	if err := os.WriteFile(file, []byte(made.Token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bob := []string{"--server", url, "--token-file", file}
	with := func(args ...string) []string { return append(args, bob...) }
	step{name: "bob may not make tokens", args: with("token", "create", "--as", "eve"), code: 4, errs: []string{"(forbidden)"}}.run(t)
	step{name: "bob sees nothing", args: with("get", "acme"), code: 3}.run(t)
	step{name: "an Admin revokes", args: []string{"token", "revoke", made.ID, "--server", url, "--token-file", admin}, out: []string{made.ID}}.run(t)
	step{name: "the token is not good any more", args: with("get", "acme"), code: 4, errs: []string{"(unauthenticated)", "--token-file FILE"}}.run(t)
}

func TestAnImportIsFollowedToItsEnd(t *testing.T) {
	url, admin := serveMesh(t)
	to := []string{"--server", url, "--token-file", admin}
	good := filepath.Join(t.TempDir(), "good")
	write := func(dir, name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(good, "index.md", "# Home\n")
	write(good, "a/b.md", "---\ntitle: B\n---\n# B\n")
	step{args: append([]string{"import", good, "--into", "Doc"}, to...), out: []string{`"activity": "`, `"status": "Succeeded"`}, errs: []string{"Succeeded"}}.run(t)
	step{args: append([]string{"get", "Doc/a/b"}, to...), out: []string{`"path": "Doc/a/b"`}}.run(t)

	bad := filepath.Join(t.TempDir(), "bad")
	write(bad, "good.md", "# Good\n")
	// bad input: a broken file in an import
	write(bad, "broken.json", `{"id":"broken",`)
	code, out, errs := hm(t, "", append([]string{"import", bad, "--into", "Doc2"}, to...)...)
	if code != exitFailed || !strings.Contains(errs, "broken.json") || !strings.Contains(out, `"status"`) {
		t.Fatalf("exit code %d\n%s\n%s", code, out, errs)
	}
	step{args: append([]string{"get", "Doc2/good"}, to...), out: []string{`"path": "Doc2/good"`}}.run(t)
	code, _, errs = hm(t, "", append([]string{"import", "/nowhere", "--into", "Doc"}, to...)...)
	if code != exitUsage || !strings.Contains(errs, "/nowhere") {
		t.Fatalf("a source that is not there: %d %s", code, errs)
	}
}

func TestAWatchPrintsEachChangeOnALine(t *testing.T) {
	url, admin := serveMesh(t)
	to := []string{"--server", url, "--token-file", admin}
	step{args: append([]string{"create", "acme", "--type", "Space"}, to...)}.run(t)
	ctx, interrupt := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code := run(ctx, append([]string{"watch", "acme"}, to...), std{strings.NewReader(""), writer, io.Discard})
		writer.Close()
		ended <- code
	}()
	lines := bufio.NewScanner(reader)
	next := func() (line watchLine) {
		t.Helper()
		if !lines.Scan() {
			t.Fatal("the watch ended")
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		return line
	}
	if line := next(); line.Event != client.Full || line.Version != 1 {
		t.Fatalf("%+v", line)
	}
	step{args: append([]string{"patch", "acme", `{"name":"New"}`}, to...), out: []string{"New"}}.run(t)
	if line := next(); line.Event != client.Patch || line.Version != 2 || line.BasedOn != 1 || !strings.Contains(string(line.Node), `"name":"New"`) {
		t.Fatalf("%+v", line)
	}
	interrupt()
	if code := <-ended; code != exitOK {
		t.Fatalf("exit code %d after an interrupt", code)
	}
	step{name: "a watch of nothing", args: append([]string{"watch", "acme/none"}, to...), code: 3}.run(t)
}

func TestExitCodesFollowTheAnswer(t *testing.T) {
	for status, want := range map[int]int{400: 1, 401: 4, 403: 4, 404: 3, 409: 6, 412: 6, 413: 1, 422: 1, 429: 5, 500: 1, 503: 5, 507: 5} {
		retry := "never"
		if status == 429 || status == 503 || status == 507 {
			retry = "after"
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"code":"some_code","detail":"D","retry":%q,"type":"https://doc"}`, retry)
		}))
		code, _, errs := hm(t, "", "get", "a", "--server", server.URL)
		server.Close()
		if code != want || !strings.Contains(errs, "D (some_code)") || !strings.Contains(errs, "see https://doc") {
			t.Errorf("%d gives %d, want %d: %s", status, code, want, errs)
		}
		if retry == "after" && !strings.Contains(errs, "try again in 7s") {
			t.Errorf("%d says nothing of the wait: %s", status, errs)
		}
	}
}

// An import whose activity is deleted is not waited for: what is known is printed, and the code says that
// the activity is not there. The deletion comes between two events of the watch.
func TestAnImportWhoseActivityIsDeletedEnds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			fmt.Fprint(w, `{"activity":"DelX/_Activity/1"}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: full\ndata: {\"version\":1,\"node\":{\"path\":\"DelX/_Activity/1\",\"version\":1,\"content\":{\"status\":\"Running\",\"done\":7}}}\n\n"+
			"event: deleted\ndata: {\"version\":2}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	code, out, errs := hm(t, "", "import", "/x", "--into", "DelX", "--server", server.URL)
	if code != exitNotThere || !strings.Contains(out, `"done": 7`) || !strings.Contains(errs, "was deleted while it ran") {
		t.Fatalf("exit code %d\n%s\n%s", code, out, errs)
	}
}

// A start with a token file that is of no use is refused: with one of another mesh, with an empty one, with
// a folder. The file of this mesh is taken.
func TestAnAdminTokenFileOfNoUseIsRefused(t *testing.T) {
	_, other := serveMesh(t)
	m, err := hubmesh.New(hubmesh.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // a test of what comes before
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{other, empty, dir} {
		if _, err := m.AdminToken(t.Context(), file); err == nil || !strings.Contains(err.Error(), "remove") || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
	good := filepath.Join(dir, "good")
	for _, created := range []bool{true, false} {
		if got, err := m.AdminToken(t.Context(), good); err != nil || got != created {
			t.Fatalf("%v %v", got, err)
		}
	}
}

// A space whose page could not be opened is refused, with the reason.
func TestASpaceNamedLikeARouteOfTheServerIsRefused(t *testing.T) {
	url, admin := serveMesh(t)
	for _, name := range []string{"api", "static", "alive", "metrics", "login", "logout", "ready", "robots.txt", "favicon.ico", "debug", "index.html"} {
		step{args: []string{"create", name, "--type", "Space", "--server", url, "--token-file", admin}, code: 2, errs: []string{"choose another name"}}.run(t)
	}
	step{args: []string{"create", "apis", "--type", "Space", "--server", url, "--token-file", admin}, out: []string{"apis"}}.run(t)
}

// edge §2.3
// The lines of a start print no sign-in link for an Admin who was withdrawn, and say so.
func TestAStartPrintsNoSignInLinkForAWithdrawnAdmin(t *testing.T) {
	m, err := hubmesh.New(hubmesh.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // a test of what comes before
	file := filepath.Join(t.TempDir(), "token")
	lines := func() string {
		_, err := m.AdminToken(t.Context(), file)
		var withdrawn *hubmesh.WithdrawnError
		if err != nil && !errors.As(err, &withdrawn) {
			t.Fatal(err)
		}
		var out strings.Builder
		new(serveCmd).greet(&out, m, &net.TCPAddr{Port: 1}, file, false, withdrawn)
		return out.String()
	}
	if got := lines(); !strings.Contains(got, "/login?code=") { // the control
		t.Error(got)
	}
	h, err := m.Handler("test")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	defer h.Close()
	step{args: []string{"token", "create", "--as", "carl", "--server", server.URL, "--token-file", file}, out: []string{"hm_"}}.run(t)
	system := hubmesh.AsSystem(t.Context())
	if err := m.Grant(system, "", "carl", "Admin"); err != nil {
		t.Fatal(err)
	}
	if err := m.Delete(system, "_Access/admin_Access", false); err != nil {
		t.Fatal(err)
	}
	if got := lines(); strings.Contains(got, "code=") || !strings.Contains(got, "no sign-in link: 'admin' is no Admin") {
		t.Error(got)
	}
}
