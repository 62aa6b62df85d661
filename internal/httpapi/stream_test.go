package httpapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// listener reads the events of one stream.
type listener struct {
	t     *testing.T
	resp  *http.Response
	lines *bufio.Reader
	stop  context.CancelFunc
}

func listen(t *testing.T, base, target string, headers ...string) *listener {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", base+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{t: t, resp: resp, lines: bufio.NewReader(resp.Body), stop: stop}
	t.Cleanup(l.close)
	return l
}

func (l *listener) close() {
	l.stop()
	l.resp.Body.Close()
}

// block reads up to the next empty line: one event or comment. At the end of the stream it is "".
func (l *listener) block() string {
	l.t.Helper()
	var b strings.Builder
	for {
		line, err := l.lines.ReadString('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) && !errors.Is(err, io.ErrUnexpectedEOF) {
				l.t.Fatal(err)
			}
			return b.String()
		}
		if line == "\n" {
			return b.String()
		}
		b.WriteString(line)
	}
}

func (l *listener) want(parts ...string) {
	l.t.Helper()
	got := l.block()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			l.t.Fatalf("got %q, want %q", got, part)
		}
	}
	if len(parts) == 0 && got != "" {
		l.t.Fatalf("got %q, want the end of the stream", got)
	}
}

func TestAWatchSendsTheNodeAndThenItsChanges(t *testing.T) {
	m := newMesh(doc("acme/a", 3))
	_, base := serve(t, m)
	l := listen(t, base, "/api/watch/acme/a")
	if got := l.resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("Content-Type %q", got)
	}
	l.want(": open")
	l.want("event: full\nid: 3\ndata: {\"version\":3,\"node\":{\"path\":\"acme/a\"")
	m.feed <- Frame{Kind: Patch, Version: 4, BasedOn: 3, Patch: node.RawContent(`{"name":"A","description":null}`)}
	l.want("event: patch\nid: 4\ndata: {\"version\":4,\"basedOn\":3,\"patch\":{\"name\":\"A\",\"description\":null}}\n")
	m.feed <- Frame{Kind: Deleted, Version: 5}
	l.want("event: deleted\nid: 5\ndata: {\"version\":5}\n")
	m.feed <- Frame{Kind: Full, Version: 6, Node: doc("acme/a", 6)}
	l.want("event: full\nid: 6\n")
	m.feed <- Frame{Kind: Full, Version: 2, Node: doc("acme/a", 2), Reset: true} // the database has lost what came after
	l.want("event: full\nid: 2\ndata: {\"version\":2,\"reset\":true,\"node\":{\"path\":\"acme/a\"")
}

// fault 36
func TestAClientThatHasTheVersionHearsNothingUntilItChanges(t *testing.T) {
	m := newMesh(doc("acme/a", 3))
	_, base := serve(t, m)
	l := listen(t, base, "/api/watch/acme/a", "Last-Event-ID", "3")
	l.want(": open") // the stream is confirmed without an event
	m.feed <- Frame{Kind: Patch, Version: 4, BasedOn: 3, Patch: node.RawContent(`{"name":"A"}`)}
	l.want("event: patch\nid: 4\n")
	other := listen(t, base, "/api/watch/acme/a", "Last-Event-ID", "some other stream's id")
	other.want(": open")
	other.want("event: full\nid: 3\n")
}

// edge §1.2
func TestAStreamThatCanNotBeginIsAnsweredWithItsStatus(t *testing.T) {
	m := newMesh()
	_, base := serve(t, m)
	runAll(t, base, []scenario{
		{"an absent node", "GET", "/api/watch/acme/none", nil, "", 404, []string{`"code":"not_found"`, "'acme/none'"}},
		{"a path that is none", "GET", "/api/watch/acme/..", nil, "", 400, nil},
		{"a token that is not known", "GET", "/api/watch/acme", []string{"Authorization", "Bearer wrong"}, "", 401, []string{"Www-Authenticate: Bearer"}},
		{"a live of nothing", "GET", "/api/live", nil, "", 400, []string{"at least one"}},
		{"a live of too much", "GET", "/api/live?" + strings.Repeat("node=a&", 513), nil, "", 400, []string{"one connection takes 512"}},
	})
	m.fail = &access.DeniedError{Subject: "bob", Path: "acme", Need: access.Read}
	scenario{method: "GET", target: "/api/watch/acme", status: 404, want: []string{"No node found at 'acme'", "!bob"}}.run(t, base)
}

// AC-R1
func TestAStreamEndsWithTheReasonWhenItsWatcherEndsIt(t *testing.T) {
	m := newMesh(doc("acme/a", 3))
	_, base := serve(t, m)
	l := listen(t, base, "/api/watch/acme/a")
	l.want(": open")
	l.want("event: full")
	m.mu.Lock()
	m.fail = &access.DeniedError{Subject: "bob", Path: "acme/a", Need: access.Read}
	m.mu.Unlock()
	close(m.feed)
	l.want("event: end\ndata: {", `"code":"not_found"`, "No node found at 'acme/a'")
	l.want()
}

func TestLiveCarriesSeveralSubscriptionsByNumber(t *testing.T) {
	m := newMesh(doc("acme", 1), doc("acme/a", 3))
	_, base := serve(t, m)
	l := listen(t, base, "/api/live?node=acme/a&node=acme/none&node=a%2F%2Fb&children=acme&children=&query=path:acme/a&query=(")
	l.want(": open")
	got := map[string]bool{}
	var all []string
	for range 7 {
		ev := l.block()
		all = append(all, ev)
		for i, want := range []string{
			"event: full\ndata: {\"sub\":0,\"version\":3,\"node\":{\"path\":\"acme/a\"",
			`"sub":1`, `"sub":2`, `"sub":3`, `"sub":4`,
			"event: result\ndata: {\"sub\":5,\"query\":\"path:acme/a\",\"nodes\":[{\"path\":\"acme/a\"",
			`"sub":6`,
		} {
			if strings.Contains(ev, want) {
				got[want] = true
				wantKind := map[int]string{1: "sub-end", 2: "sub-end", 3: "children", 4: "children", 6: "sub-end"}[i]
				if !strings.Contains(ev, "event: "+wantKind) && wantKind != "" {
					t.Errorf("subscription %d: %s", i, ev)
				}
			}
		}
	}
	if len(got) != 7 {
		t.Fatalf("%d of 7 subscriptions spoke: %s", len(got), strings.Join(all, "\n"))
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{`"code":"not_found"`, "'acme/none'", `"code":"invalid_path"`, `"code":"invalid_query"`, `"path":"","sub":4`} {
		if !strings.Contains(text, want) {
			t.Errorf("no event has %s:\n%s", want, text)
		}
	}
	m.feed <- Frame{Kind: Patch, Version: 4, BasedOn: 3, Patch: node.RawContent(`{}`)}
	l.want("event: patch\ndata: {\"sub\":0,\"version\":4,\"basedOn\":3,\"patch\":{}}")
}

// fault 25
func TestAQuietStreamIsWrittenToEveryFifteenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{Services: newMesh(doc("acme", 1)).services()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		w := &lockedRecorder{ResponseRecorder: httptest.NewRecorder()}
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.ServeHTTP(w, httptest.NewRequest("GET", "/api/watch/acme", nil).WithContext(ctx))
		}()
		<-time.After(46 * time.Second)
		leave()
		<-done
		if n := strings.Count(w.text(), ": beat\n\n"); n != 3 {
			t.Fatalf("%d beats in 46 s:\n%s", n, w.text())
		}
	})
}

// lockedRecorder may be read while it is written to.
type lockedRecorder struct {
	mu sync.Mutex
	*httptest.ResponseRecorder
}

func (w *lockedRecorder) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ResponseRecorder.Write(b)
}

func (w *lockedRecorder) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Body.String()
}

func TestCloseEndsEveryStreamAndWaitsForIt(t *testing.T) {
	m := newMesh(doc("acme/a", 3))
	s, base := serve(t, m)
	watch, live := listen(t, base, "/api/watch/acme/a"), listen(t, base, "/api/live?children=acme")
	watch.want(": open")
	watch.want("event: full")
	live.want(": open")
	live.want("event: children")
	s.Close()
	for _, l := range []*listener{watch, live} {
		l.want("event: end", `"code":"shutting_down"`, `"retry":"after"`)
		l.want()
	}
	scenario{method: "GET", target: "/api/watch/acme/a", status: 503, want: []string{`"code":"shutting_down"`}}.run(t, base)
}

func TestOneStreamTooManyIsRefusedAndAPlaceIsGivenBack(t *testing.T) {
	m := newMesh(doc("acme/a", 3))
	_, base := serve(t, m, func(c *Config) { c.Limits.Streams = 1 })
	first := listen(t, base, "/api/watch/acme/a")
	first.want(": open")
	scenario{method: "GET", target: "/api/watch/acme/a", status: 503, want: []string{`"code":"overloaded"`, "1 open streams"}}.run(t, base)
	first.close()
	for {
		second := listen(t, base, "/api/watch/acme/a") // until the server has seen the client go
		if second.resp.StatusCode == http.StatusOK {
			return
		}
		second.close()
	}
}

// A watcher that writes more than the client takes.
type flooding struct{ Watcher }

func (flooding) Watch(_ context.Context, _ node.Path, _ Held, _ Turn, emit func(Frame) error) error {
	n := doc("acme", 1)
	n.Description = strings.Repeat("x", 1<<20)
	for {
		if err := emit(Frame{Kind: Full, Version: 1, Node: n}); err != nil {
			return err
		}
	}
}

// fault 25
func TestAClientThatDoesNotReadIsGivenUp(t *testing.T) {
	bounds := budget.Defaults().With(budget.Flush, 50*time.Millisecond)
	m := newMesh()
	s, base := serve(t, m, func(c *Config) { c.Bounds = &bounds; c.Watcher = flooding{} })
	l := listen(t, base, "/api/watch/acme")
	l.want(": open")
	ended := make(chan struct{})
	go func() {
		s.streamsEnd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the stream goes on though nobody reads it")
	}
}

// A watcher with a bug.
type broken struct{ Watcher }

func (broken) WatchChildren(context.Context, node.Path, Turn, func([]store.Entry) error) error {
	panic("secret state")
}

func TestAPanicOfOneSubscriptionEndsItAlone(t *testing.T) {
	m := newMesh(doc("acme", 1))
	_, base := serve(t, m, func(c *Config) { c.Watcher = broken{m} })
	l := listen(t, base, "/api/live?node=acme&children=acme")
	l.want(": open")
	got := l.block() + l.block()
	if !strings.Contains(got, `"code":"internal"`) || !strings.Contains(got, "event: full") || strings.Contains(got, "secret") {
		t.Fatalf("got %s", got)
	}
	m.feed <- Frame{Kind: Deleted, Version: 2}
	l.want("event: deleted\ndata: {\"sub\":0,\"version\":2}")
}

// bad input: one subject that opens streams and reads none of them
func TestOneSubjectHasSoManyOpenStreamsAndNoMore(t *testing.T) {
	m := newMesh(doc("acme/a", 3))
	_, base := serve(t, m, func(c *Config) { c.Limits.Streams, c.Limits.SubjectStreams = 100, 2 })
	open := []string{"Authorization", "Bearer good"}
	var listeners []*listener
	for range 2 {
		l := listen(t, base, "/api/watch/acme/a", open...)
		l.want(": open")
		listeners = append(listeners, l)
	}
	scenario{method: "GET", target: "/api/watch/acme/a", headers: open, status: 503, want: []string{`"code":"overloaded"`, "2 open streams", "/api/live"}}.run(t, base)
	visitor := listen(t, base, "/api/watch/acme/a") // somebody else
	visitor.want(": open")
	listeners[0].resp.Body.Close()
	for { // its place comes free once the server has seen the end
		r := send(t, base, "GET", "/api/watch/acme/none", open, nil)
		if r.status == 404 {
			break
		}
	}
}

// architecture decision 6
func TestAWatchedClusterIsToldEachSecondToAnAdmin(t *testing.T) {
	_, base := serve(t, newMesh())
	l := listen(t, base, "/api/cluster/watch", "Authorization", "Bearer root")
	l.want(": open")
	for range 2 {
		l.want("event: status", `"askedBy":"a"`)
	}
	scenario{method: "GET", target: "/api/cluster/watch", headers: []string{"Authorization", "Bearer bob"}, status: 403}.run(t, base)
}
