package hubmesh_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh"
)

// life is one process on a data folder: what a start does, and what tokens then are.
type life struct {
	t    *testing.T
	mesh *hubmesh.Mesh
	http http.Handler
	end  func()
}

func begin(t *testing.T, dir string) *life {
	t.Helper()
	m, err := hubmesh.New(hubmesh.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	h, err := m.Handler("test")
	if err != nil {
		t.Fatal(err)
	}
	ended := false
	l := &life{t: t, mesh: m, http: h}
	l.end = func() {
		if ended {
			return
		}
		ended = true
		h.Close()
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(l.end)
	return l
}

// send is a request with a token.
func (l *life) send(token, method, target, body string) (int, string) {
	l.t.Helper()
	r := httptest.NewRequestWithContext(l.t.Context(), method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	l.http.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// isAdmin tells whether a token is good, and its subject Admin of the root scope.
func (l *life) isAdmin(token string) (good, admin bool) {
	l.t.Helper()
	status, text := l.send(token, "GET", "/api/whoami", "")
	var who struct{ Admin bool }
	if status == http.StatusOK {
		if err := json.Unmarshal([]byte(text), &who); err != nil {
			l.t.Fatal(err)
		}
	}
	return status == http.StatusOK, who.Admin
}

// must sends a request that has to succeed.
func (l *life) must(token, method, target, body string) string {
	l.t.Helper()
	status, text := l.send(token, method, target, body)
	if status/100 != 2 {
		l.t.Fatalf("%s %s: %d %s", method, target, status, text)
	}
	return text
}

// newAdmin makes a subject Admin with a token.
func (l *life) newAdmin(by, subject string) (token, id string) {
	l.t.Helper()
	var made struct{ Token, ID string }
	if err := json.Unmarshal([]byte(l.must(by, "POST", "/api/tokens", `{"subject":"`+subject+`"}`)), &made); err != nil {
		l.t.Fatal(err)
	}
	l.must(by, "PUT", "/api/nodes/_Access/"+subject+"_Access", assignment(subject, `[{"role":"Admin"}]`))
	return made.Token, made.ID
}

func assignment(subject, roles string) string {
	return `{"nodeType":"AccessAssignment","content":{"$type":"AccessAssignment","accessObject":"` + subject + `","roles":` + roles + `}}`
}

func tokenIn(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// edge §2.3
// A first Admin whose right was withdrawn, in whichever way, is none after the next start either: not by the old
// token, not by a new file, not by the sign-in link. The start says so and can serve.
func TestAStartGivesNothingBackToAWithdrawnAdmin(t *testing.T) {
	for name, withdraw := range map[string][3]string{
		"deleted":               {"DELETE", "/api/nodes/_Access/admin_Access", ""},
		"made less":             {"PUT", "/api/nodes/_Access/admin_Access", assignment("admin", `[{"role":"Viewer"}]`)},
		"given to another":      {"PATCH", "/api/nodes/_Access/admin_Access", `{"content":{"accessObject":"carl"}}`},
		"denied":                {"PUT", "/api/nodes/_Access/x", assignment("admin", `[{"role":"Admin","denied":true}]`)},
		"not at all, a control": {},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, other := filepath.Join(dir, "token"), filepath.Join(dir, "other")
			l := begin(t, dir)
			if created, err := l.mesh.AdminToken(t.Context(), file); !created || err != nil {
				t.Fatalf("%v %v", created, err)
			}
			old := tokenIn(t, file)
			carl, _ := l.newAdmin(old, "carl")
			stays := withdraw[0] == ""
			if !stays {
				l.must(carl, withdraw[0], withdraw[1], withdraw[2])
			}
			l.end()

			l = begin(t, dir)
			created, err := l.mesh.AdminToken(t.Context(), file)
			var withdrawn *hubmesh.WithdrawnError
			if created || stays != (err == nil) || err != nil && (!errors.As(err, &withdrawn) || !withdrawn.Others) {
				t.Errorf("the file is there: %v %v", created, err)
			}
			if good, admin := l.isAdmin(old); !good || admin != stays {
				t.Errorf("the old token: good %v, Admin %v", good, admin)
			}
			if created, err := l.mesh.AdminToken(t.Context(), other); created != stays || stays != (err == nil) {
				t.Errorf("without a file: %v %v", created, err)
			}
			if _, err := os.Stat(other); stays != (err == nil) {
				t.Errorf("a new file: %v", err)
			}
			if code, err := l.mesh.LoginCode(); stays != (err == nil) || err != nil && !errors.As(err, new(*hubmesh.WithdrawnError)) {
				t.Errorf("the sign-in link: %q %v", code, err)
			}
			if good, admin := l.isAdmin(carl); !good || !admin {
				t.Errorf("the other Admin: good %v, Admin %v", good, admin)
			}
		})
	}
}

// edge §2.3
// Where nobody who can sign in is Admin any more, a start without the token file makes the first Admin anew, by a
// new token alone; one with the file gives nothing back, and says what to do.
func TestAMeshWithoutAnAdminIsGivenOneByAStartWithoutTheTokenFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	l := begin(t, dir)
	if _, err := l.mesh.AdminToken(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	old := tokenIn(t, file)
	carl, id := l.newAdmin(old, "carl")
	l.must(carl, "DELETE", "/api/nodes/_Access/admin_Access", "")
	l.must(carl, "PUT", "/api/nodes/_Access/x", assignment("admin", `[{"role":"Admin","denied":true}]`))
	l.must(carl, "PUT", "/api/nodes/_Access/y", assignment("admin", `[{"role":"Viewer"}]`))
	l.must(carl, "DELETE", "/api/tokens/"+id, "") // the last credential of the last Admin: a stolen one must be able to end
	l.end()

	l = begin(t, dir)
	_, err := l.mesh.AdminToken(t.Context(), file)
	var withdrawn *hubmesh.WithdrawnError
	if !errors.As(err, &withdrawn) || withdrawn.Others || !strings.Contains(err.Error(), "remove '"+file+"'") {
		t.Errorf("with the file: %v", err)
	}
	if _, admin := l.isAdmin(old); admin {
		t.Error("the start has made the old token Admin")
	}
	l.end()

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	l = begin(t, dir)
	if created, err := l.mesh.AdminToken(t.Context(), file); !created || err != nil {
		t.Fatalf("without the file: %v %v", created, err)
	}
	if good, admin := l.isAdmin(tokenIn(t, file)); !good || !admin {
		t.Errorf("the new token: good %v, Admin %v", good, admin)
	}
	if good, _ := l.isAdmin(old); good {
		t.Error("the old token is good again")
	}
	l.must(tokenIn(t, file), "GET", "/api/nodes/_Access/y", "") // what denies nothing is let be
	if _, err := l.mesh.LoginCode(); err != nil {
		t.Errorf("the sign-in link: %v", err)
	}
}

// edge §2.3
// The last Admin who can sign in can not hand the right to a name without a token, nor leave such a one alone.
func TestTheRightOfTheLastAdminStaysWithSomebodyWhoCanSignIn(t *testing.T) {
	l := begin(t, t.TempDir())
	file := filepath.Join(t.TempDir(), "token")
	if _, err := l.mesh.AdminToken(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	admin := tokenIn(t, file)
	status, text := l.send(admin, "PATCH", "/api/nodes/_Access/admin_Access", `{"content":{"accessObject":"typo"}}`)
	if status != http.StatusForbidden || !strings.Contains(text, "who can sign in") {
		t.Errorf("handed to a typing error: %d %s", status, text)
	}
	l.must(admin, "PUT", "/api/nodes/_Access/typo_Access", assignment("typo", `[{"role":"Admin"}]`))
	if status, text := l.send(admin, "DELETE", "/api/nodes/_Access/admin_Access", ""); status != http.StatusForbidden {
		t.Errorf("left to a typing error: %d %s", status, text)
	}
	if _, is := l.isAdmin(admin); !is {
		t.Error("the Admin is none any more")
	}
	carl, _ := l.newAdmin(admin, "carl") // the control
	l.must(admin, "PATCH", "/api/nodes/_Access/admin_Access", `{"content":{"accessObject":"typo"}}`)
	if _, is := l.isAdmin(carl); !is {
		t.Error("nobody is Admin")
	}
}

// edge §2.6
// A token file that others on the machine may read is taken, and told of in the log.
func TestATokenFileThatOthersMayReadIsToldOf(t *testing.T) {
	var said strings.Builder
	m, err := hubmesh.New(hubmesh.Options{Logger: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // a test of what comes before
	file := filepath.Join(t.TempDir(), "token")
	for i, mode := range []os.FileMode{0o600, 0o666} { // the first one is the control
		if _, err := m.AdminToken(t.Context(), file); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		said.Reset()
		if _, err := m.AdminToken(t.Context(), file); err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(said.String(), "chmod 600"); told != (i == 1) {
			t.Errorf("%#o: told %v", mode, told)
		}
	}
}

// edge §2.2
// What --public-read grants counts whatever is stored for visitors, but for a denial, which is told of.
func TestPublicReadCountsBesideWhatIsStoredForVisitors(t *testing.T) {
	for name, c := range map[string]struct {
		roles string
		reads bool
	}{"nothing, the control": {"", true}, "no roles": {`[]`, true}, "a denial": {`[{"role":"Viewer","denied":true}]`, false}} {
		t.Run(name, func(t *testing.T) {
			var said strings.Builder
			m, err := hubmesh.New(hubmesh.Options{Logger: slog.New(slog.NewTextHandler(&said, nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // a test of what comes before
			system, visitor := hubmesh.AsSystem(t.Context()), hubmesh.As(t.Context(), "Anonymous")
			if _, err := m.Create(system, "acme", hubmesh.Space, nil); err != nil {
				t.Fatal(err)
			}
			const at = "_Access/Anonymous_Access"
			if c.roles != "" {
				if _, err := m.Create(system, at, "AccessAssignment", map[string]any{"accessObject": "Anonymous", "roles": json.RawMessage(c.roles)}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := m.Get(visitor, "acme"); err == nil {
				t.Error("a visitor reads before that was asked for")
			}
			m.PublicRead()
			if _, err := m.Get(visitor, "acme"); c.reads != (err == nil) {
				t.Errorf("a visitor: %v", err)
			}
			if told := strings.Contains(said.String(), "visitors can not read"); told == c.reads {
				t.Errorf("told: %v", told)
			}
			if c.roles != "" {
				if err := m.Delete(system, at, false); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := m.Get(visitor, "acme"); err != nil {
				t.Errorf("a visitor, after the assignment was deleted: %v", err)
			}
		})
	}
}
