package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/docs"
)

// stage is a demonstration with somebody at its front door.
type stage struct {
	*testing.T
	d      *Demo
	url    string
	client *http.Client
}

func begin(t *testing.T) *stage {
	t.Helper()
	d, err := New(Options{Dir: t.TempDir(), Guide: docs.Files()})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(d.Handler())
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	s := &stage{t, d, server.URL, server.Client()}
	s.await("the front door to know three silos", func(st State) bool {
		return !slices.ContainsFunc(st.Silos, func(x SiloState) bool { return !x.Ready })
	})
	return s
}

// await waits until the state is as wanted.
func (s *stage) await(what string, holds func(State) bool) State {
	s.Helper()
	for end := time.Now().Add(30 * time.Second); ; {
		st := s.d.State()
		if holds(st) {
			return st
		}
		if time.Now().After(end) {
			text, _ := json.MarshalIndent(st, "", " ")
			s.Fatalf("waited in vain for %s: %s", what, text)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// served waits until one silo serves the node, none of those named, and returns it.
func (s *stage) served(not ...string) string {
	s.Helper()
	st := s.await("the node to be served", func(st State) bool {
		return len(st.Node.ServedBy) == 1 && !slices.Contains(not, st.Node.ServedBy[0])
	})
	return st.Node.ServedBy[0]
}

type answered struct {
	status int
	silo   string
	body   map[string]any
}

func (s *stage) send(method, path, body string, headers ...string) answered {
	s.Helper()
	ctx, cancel := context.WithTimeoutCause(s.Context(), 30*time.Second, fmt.Errorf("%s %s was not answered", method, path))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.d.token)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.Fatal(context.Cause(ctx), err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	got := answered{status: resp.StatusCode, silo: resp.Header.Get(siloHeader)}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &got.body); err != nil {
			s.Fatalf("%s %s: %d %s", method, path, got.status, text)
		}
	}
	return got
}

func (s *stage) act(silo, action string) {
	s.Helper()
	if got := s.send("POST", "/api/demo/silos/"+silo, `{"action":"`+action+`"}`); got.status != http.StatusNoContent {
		s.Fatalf("%s %s: %v", action, silo, got)
	}
}

// typed writes a text and returns once it was acknowledged, or is there: as the page does it.
func (s *stage) typed(text string) (refusals int) {
	s.Helper()
	patch, err := json.Marshal(map[string]any{"content": map[string]string{"markdown": text}})
	if err != nil {
		s.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); refusals++ {
		got := s.send("PATCH", "/api/nodes/"+NodePath, string(patch), "Content-Type", "application/merge-patch+json")
		if got.status == http.StatusOK {
			return refusals
		}
		if got.status != http.StatusServiceUnavailable {
			s.Fatalf("a write was answered %v", got)
		}
		<-time.After(10 * time.Millisecond)
	}
	s.Fatal("a write was refused for 30 s")
	return 0
}

// text reads the node until it is answered: a silo that has just thawed says that it is not ready.
func (s *stage) text() string {
	s.Helper()
	for end := time.Now().Add(30 * time.Second); ; <-time.After(10 * time.Millisecond) {
		got := s.send("GET", "/api/nodes/"+NodePath, "")
		if content, ok := got.body["content"].(map[string]any); ok {
			return content["markdown"].(string)
		}
		if got.status != http.StatusServiceUnavailable || time.Now().After(end) {
			s.Fatalf("the node was answered %v", got)
		}
	}
}

// architecture decision 1; the demonstration of the product
func TestTypingGoesOnWhileTheSiloThatServesTheNodeIsKilledFrozenAndCutOff(t *testing.T) {
	s := begin(t)
	n := 0
	keys := func(times int) {
		t.Helper()
		for range times {
			n++
			s.typed(fmt.Sprint("key ", n))
			if got := s.text(); got != fmt.Sprint("key ", n) {
				t.Fatalf("after key %d was acknowledged the node has %q", n, got)
			}
		}
	}
	keys(20)
	owner := s.served()

	s.act(owner, "kill")
	keys(20)
	s.served(owner)
	s.act(owner, "restart")
	s.await("it to be back", func(st State) bool {
		return !slices.ContainsFunc(st.Silos, func(x SiloState) bool { return x.State != up || !x.Ready })
	})

	owner = s.served()
	s.act(owner, "freeze")
	keys(20)
	s.served(owner)
	s.act(owner, "thaw")
	keys(20)

	s.await("it to have joined anew", func(st State) bool {
		return !slices.ContainsFunc(st.Silos, func(x SiloState) bool { return x.State != up || !x.Ready })
	})
	owner = s.served()
	s.act(owner, "cut")
	keys(20)
	s.served(owner)
	s.act(owner, "heal")
	keys(20)

	owner = s.served()
	s.act(owner, "leave")
	keys(20)
	s.await("it to have left", func(st State) bool {
		return slices.ContainsFunc(st.Silos, func(x SiloState) bool { return x.Name == owner && x.State == left })
	})
	keys(20)
	s.served(owner)

	// Each version has one writer: the history has every key, and each once per write.
	got := s.send("GET", "/api/versions/"+NodePath+"?limit=1000", "")
	versions := got.body["versions"].([]any)
	for i, v := range versions {
		if want := float64(len(versions) - i); v.(map[string]any)["version"].(float64) != want {
			t.Fatalf("the history has %v at %d; want %v", v, i, want)
		}
	}
	if len(versions) < n {
		t.Errorf("%d keys were acknowledged and the history has %d versions", n, len(versions))
	}
}

// fault 9
func TestWhyNamesTheFrozenSiloAndTheBoundThatFired(t *testing.T) {
	s := begin(t)
	s.typed("here")
	owner := s.served()
	s.act(owner, "freeze")
	st := s.await("it to be out of the front door", func(st State) bool {
		return slices.ContainsFunc(st.Silos, func(x SiloState) bool { return x.Name == owner && !x.Ready })
	})
	if len(st.Node.ServedBy) > 0 {
		t.Errorf("a frozen silo is said to serve: %v", st.Node)
	}
	got := s.send("GET", "/api/why/"+NodePath, "")
	cluster, ok := got.body["cluster"].(map[string]any)
	if !ok || got.silo == owner {
		t.Fatalf("why was answered %v", got)
	}
	missing := fmt.Sprint(cluster["missing"])
	if answered := fmt.Sprint(cluster["answered"]); strings.Contains(answered, owner) {
		t.Errorf("the frozen %s has answered: %s", owner, answered)
	}
	if out := s.d.State(); fmt.Sprint(out.Node.ServedBy) == "[]" && !strings.Contains(missing, owner) {
		t.Errorf("the silos that did not answer are %s; want %s among them, with the reason", missing, owner)
	}
}

func TestTheFrontDoorSaysWhatCanNotBeDone(t *testing.T) {
	s := begin(t)
	for name, c := range map[string]struct {
		path, body string
		status     int
		detail     string
	}{
		"an unknown silo":    {"silos/s9", `{"action":"kill"}`, 404, "s1, s2 and s3"},
		"an unknown action":  {"silos/s1", `{"action":"burn"}`, 400, "none of kill"},
		"a thaw of no frost": {"silos/s1", `{"action":"thaw"}`, 409, "freeze it first"},
		"a start of one up":  {"silos/s1", `{"action":"restart"}`, 409, "kill it first"},
		"no JSON":            {"silos/s1", `{`, 400, ""},
		"an unknown field":   {"silos/s1", `{"act":"kill"}`, 400, "act"},
		"a link to itself":   {"links", `{"a":"s1","b":"s1","cut":true}`, 400, "two of"},
		"an unknown route":   {"nothing", `{}`, 404, ""},
	} {
		if got := s.send("POST", "/api/demo/"+c.path, c.body); got.status != c.status || !strings.Contains(fmt.Sprint(got.body["detail"]), c.detail) {
			t.Errorf("%s: %v; want %d with %q", name, got, c.status, c.detail)
		}
	}
	for _, path := range []string{"/api/demo/state", "/login?code=guess"} {
		if got := s.send("GET", path, "", "Authorization", "Bearer guess"); got.status != http.StatusUnauthorized {
			t.Errorf("%s to a stranger: %v", path, got)
		}
	}
	if got := s.send("POST", "/api/demo/silos/s1", `{"action":"kill"}`, "Authorization", "Bearer guess"); got.status != http.StatusUnauthorized || s.d.State().Silos[0].State != up {
		t.Errorf("a stranger's kill: %v", got)
	}
	for _, x := range s.d.State().Silos {
		s.act(x.Name, "kill")
	}
	if got := s.send("GET", "/api/nodes/"+NodePath, ""); got.status != http.StatusServiceUnavailable || got.silo != "" {
		t.Errorf("without a silo a read is answered %v", got)
	}
	s.act("s2", "restart")
	s.act("s2", "kill") // whatever it is doing
	s.act("s2", "restart")
	s.await("one to be back", func(st State) bool { return st.Silos[1].State == up && st.Silos[1].Ready })
	if got := s.text(); got != firstText {
		t.Errorf("after all were killed the node has %q", got)
	}
}

func TestTheLoginLinkLeadsToThePageAndLetsOneAct(t *testing.T) {
	s := begin(t)
	jar := &cookies{}
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Transport: s.client.Transport}
	for range 2 { // as often as one likes
		resp, err := browser.Get(s.url + s.d.LoginPath())
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/_demo" {
			t.Fatalf("the link is answered %d to %q", resp.StatusCode, resp.Header.Get("Location"))
		}
	}
	post := func(path, body string) int {
		resp, err := browser.Post(s.url+path, "application/json", bytes.NewBufferString(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	if got := post("/api/demo/links", `{"a":"s1","b":"s3","cut":true}`); got != http.StatusNoContent || !s.d.State().Links[1].Cut {
		t.Errorf("the cut of a link is answered %d; the links are %v", got, s.d.State().Links)
	}
	if got := post("/api/demo/links", `{"a":"s3","b":"s1","cut":false}`); got != http.StatusNoContent || s.d.State().Links[1].Cut {
		t.Errorf("the heal of a link is answered %d; the links are %v", got, s.d.State().Links)
	}
}

// cookies keeps every cookie, for whatever it is.
type cookies struct{ all []*http.Cookie }

func (c *cookies) SetCookies(_ *url.URL, list []*http.Cookie) { c.all = append(c.all, list...) }
func (c *cookies) Cookies(*url.URL) []*http.Cookie            { return c.all }
