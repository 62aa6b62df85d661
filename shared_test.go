package hubmesh_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
)

// database starts a server of the test's own and makes a database in it.
func database(t *testing.T) (*pgtest.Server, string) {
	t.Helper()
	s, err := pgtest.Start("fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	url, err := s.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s, url
}

// share starts a mesh on a database that others use, too.
func share(t *testing.T, url string) (*hubmesh.Mesh, context.Context) {
	t.Helper()
	m, err := hubmesh.New(hubmesh.Options{Postgres: url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m, hubmesh.As(t.Context(), "admin")
}

// pair starts two processes on a database of their own that know nothing of each other, and makes whoever ctx carries Admin.
func pair(t *testing.T) (s *pgtest.Server, url string, a, b *hubmesh.Mesh, ctx context.Context) {
	t.Helper()
	s, url = database(t)
	a, ctx = share(t, url)
	b, _ = share(t, url)
	if err := a.Grant(hubmesh.AsSystem(t.Context()), "", "admin", "Admin"); err != nil {
		t.Fatal(err)
	}
	return s, url, a, b, ctx
}

// await reads frames until one has a version, minding that they go on from one to the next.
func await(t *testing.T, w *hubmesh.Watch, version int64) hubmesh.Frame {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, errors.New("no frame came"))
	defer cancel()
	for {
		f, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("waiting for version %d: %v", version, err)
		}
		if f.Version >= version {
			return f
		}
	}
}

// CF-7, data §3's incident, issue 4
func TestTwoProcessesOnOneDatabaseShowEachOthersEditsWithoutARequestBetweenThem(t *testing.T) {
	_, _, a, b, ctx := pair(t)
	create := func(m *hubmesh.Mesh, path, kind string) hubmesh.Node {
		t.Helper()
		var n hubmesh.Node
		eventually(t, "a create", func() (err error) {
			n, err = m.Create(ctx, path, kind, map[string]any{"v": 1})
			return err
		})
		return n
	}
	create(a, "acme", "Space")
	n := create(a, "acme/x", "")
	eventually(t, "the node to be seen elsewhere", func() error { _, err := b.Get(ctx, "acme/x"); return err }) // b's hub holds version 1 from here on
	w, err := b.Watch(ctx, "acme/x", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	await(t, w, n.Version)
	for v := 2; v <= 7; v++ {
		if n, err = a.Patch(ctx, "acme/x", map[string]any{"content": map[string]any{"v": v}}, hubmesh.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	await(t, w, n.Version)
	got, err := b.Get(ctx, "acme/x")
	if err != nil || got.Version != n.Version || got.Content.Text() != n.Content.Text() {
		t.Errorf("the exact read is at version %d (%s), stored is %d: %v", got.Version, got.Content, n.Version, err)
	}
	if found, err := b.Query(ctx, "path:acme scope:descendants"); err != nil || len(found) != 1 || found[0].Version != n.Version {
		t.Errorf("a query finds %+v: %v", found, err)
	}
	// The other way round, over what b's hub was told.
	m, err := b.Patch(ctx, "acme/x", map[string]any{"name": "from b"}, hubmesh.Condition{Version: n.Version})
	if err != nil || m.Version != n.Version+1 {
		t.Fatalf("version %d: %v", m.Version, err)
	}
	eventually(t, "a to see b's edit", func() error {
		got, err := a.Get(ctx, "acme/x")
		if err == nil && got.Name != "from b" {
			err = fmt.Errorf("version %d is told", got.Version)
		}
		return err
	})
	if err := a.Delete(ctx, "acme/x", false); err != nil {
		t.Fatal(err)
	}
	if f := await(t, w, m.Version+1); f.Kind != hubmesh.Deleted {
		t.Errorf("%+v", f)
	}
	eventually(t, "b to know of the deletion", func() error {
		if _, err := b.Get(ctx, "acme/x"); !errors.As(err, new(*store.NotFoundError)) {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
	if n := create(b, "acme/x", ""); n.Version <= m.Version+1 {
		t.Errorf("the next life begins at version %d", n.Version)
	}
}

// data §3: the control of the incident
func TestWithoutTheRelayAProcessAnswersAnOldVersionForEver(t *testing.T) {
	_, _, a, b, ctx := pair(t)
	n, err := a.Create(ctx, "acme", "Space", map[string]any{"v": 1})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node to be seen elsewhere", func() error { _, err := b.Get(ctx, "acme"); return err })
	b.Deafen()
	if _, err := a.Patch(ctx, "acme", map[string]any{"content": map[string]any{"v": 7}}, hubmesh.Condition{}); err != nil {
		t.Fatal(err)
	}
	if err := b.Synced(); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Get(ctx, "acme"); err != nil || got.Version != n.Version {
		t.Errorf("it is at version %d: %v; this control no longer shows the incident", got.Version, err)
	}
}

// eventually tries again until something holds, for as long as a change takes at the very most.
func eventually(t *testing.T, what string, holds func() error) {
	t.Helper()
	end := time.Now().Add(20 * time.Second)
	for {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited for %s: %v", what, err)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// AC-R1, CF-7
func TestAGrantAndItsRevocationByAnotherProcessCountHere(t *testing.T) {
	_, _, a, b, ctx := pair(t)
	for path, kind := range map[string]string{"acme": "Space"} {
		if _, err := a.Create(ctx, path, kind, nil); err != nil {
			t.Fatal(err)
		}
	}
	bob := hubmesh.As(t.Context(), "bob")
	if _, err := b.Get(bob, "acme"); err == nil {
		t.Fatal("bob reads without a grant")
	}
	if err := a.Grant(ctx, "acme", "bob", "Viewer"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the grant to count", func() error { _, err := b.Get(bob, "acme"); return err })
	w, err := b.Watch(bob, "acme", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	await(t, w, 1)
	assignments, err := a.Query(ctx, "path:acme/_Access scope:subtree nodeType:AccessAssignment")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range assignments {
		if string(n.Path) == "acme/_Access/bob_Access" {
			if err := a.Delete(ctx, string(n.Path), false); err != nil {
				t.Fatal(err)
			}
		}
	}
	next, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, errors.New("the watch goes on"))
	defer cancel()
	var f *message.Failure
	if _, err := w.Next(next); !errors.As(err, &f) || f.Type != message.Unauthorized {
		t.Errorf("after the revocation: %v", err)
	}
}

// issue 4: a commit whose expected version lost is merged anew, with a condition it is refused
func TestWritesOfTwoProcessesToOneNodeAreMergedAndNoneIsLost(t *testing.T) {
	_, _, a, b, ctx := pair(t)
	if _, err := a.Create(ctx, "acme", "Space", map[string]any{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the grant to count", func() error { _, err := b.Get(ctx, "acme"); return err })
	const each = 20
	var wg sync.WaitGroup
	for i, m := range []*hubmesh.Mesh{a, b} {
		wg.Go(func() {
			for k := range each {
				for {
					_, err := m.Patch(ctx, "acme", map[string]any{"content": map[string]any{fmt.Sprintf("p%d-%d", i, k): true}}, hubmesh.Condition{})
					if errors.As(err, new(*store.ConflictError)) {
						continue // lost three times in a row: the caller's to try again
					}
					if err != nil {
						t.Error(err)
					}
					break
				}
			}
		})
	}
	wg.Wait()
	n, err := a.Get(ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "both to hold everything", func() error {
		var members map[string]any
		for _, m := range []*hubmesh.Mesh{a, b} {
			if n, err = m.Get(ctx, "acme"); err != nil {
				return err
			}
			if err := n.Content.Decode(&members); err != nil {
				return err
			}
			if len(members) != 2*each {
				return fmt.Errorf("version %d has %d members", n.Version, len(members))
			}
		}
		return nil
	})
	var conflict *store.ConflictError
	if _, err := b.Patch(ctx, "acme", map[string]any{"name": "late"}, hubmesh.Condition{Version: n.Version - 1}); !errors.As(err, &conflict) {
		t.Errorf("an old condition: %v", err)
	}
}

// storage.md §6: what was missed while the database was away is found
func TestAfterTheDatabaseWasAwayEveryProcessShowsWhatIsStored(t *testing.T) {
	s, _, a, b, ctx := pair(t)
	if _, err := a.Create(ctx, "acme", "Space", nil); err != nil {
		t.Fatal(err)
	}
	var w *hubmesh.Watch
	eventually(t, "a watch", func() (err error) { w, err = b.Watch(ctx, "acme", 0); return err })
	defer w.Close()
	await(t, w, 1)
	for round := range 2 {
		s.Kill()
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
		var n hubmesh.Node
		eventually(t, "a write", func() (err error) {
			n, err = a.Patch(ctx, "acme", map[string]any{"name": fmt.Sprint("after ", round)}, hubmesh.Condition{})
			return err
		})
		await(t, w, n.Version)
	}
}

// AC-R1: an open stream ends within a second of a revocation, whoever was asked for it
func TestATokenThatIsRevokedByAnotherProcessEndsHereAtOnce(t *testing.T) {
	_, url := database(t)
	a, _ := share(t, url)
	b, _ := share(t, url)
	if err := a.Grant(hubmesh.AsSystem(t.Context()), "", "admin", "Admin"); err != nil {
		t.Fatal(err)
	}
	servers := make([]string, 2)
	for i, m := range []*hubmesh.Mesh{a, b} {
		servers[i] = listenAndServe(t, m)
	}
	file := t.TempDir() + "/token"
	if _, err := a.AdminToken(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	admin, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	call := func(server, method, path, token, body string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, server+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	status, text := call(servers[0], "POST", "/api/tokens", string(admin), `{"subject":"admin","name":"second"}`)
	var made struct{ Token, ID string }
	if err := json.Unmarshal([]byte(text), &made); err != nil || made.Token == "" || made.ID == "" {
		t.Fatal(status, text, err)
	}
	eventually(t, "the grant to count", func() error {
		if status, text := call(servers[1], "GET", "/api/whoami", made.Token, ""); status != 200 {
			return fmt.Errorf("%d %s", status, text)
		}
		return nil
	})
	r, err := http.NewRequestWithContext(t.Context(), "GET", servers[1]+"/api/live?children=", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+made.Token)
	stream, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if status, text := call(servers[0], "DELETE", "/api/tokens/"+made.ID, string(admin), ""); status >= 300 {
		t.Fatal(status, text)
	}
	revoked := time.Now()
	end, err := io.ReadAll(stream.Body) // until the server ends it
	if err != nil || !strings.Contains(string(end), "unauthenticated") {
		t.Errorf("the stream ended with %q: %v", end, err)
	}
	if took := time.Since(revoked); took > 5*time.Second { // a second, and what a busy machine adds
		t.Errorf("it ended %v after the revocation", took)
	}
	if status, _ := call(servers[1], "GET", "/api/whoami", made.Token, ""); status != 401 {
		t.Errorf("a request with it is answered %d", status)
	}
	http.DefaultClient.CloseIdleConnections()
}

func listenAndServe(t *testing.T, m *hubmesh.Mesh) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Serve(ctx, l, hubmesh.ServeOptions{}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// issue 4: queue usage as a metric
// fault 29
func TestTheNotificationQueueOfTheDatabaseIsAMetric(t *testing.T) {
	_, url := database(t)
	m, _ := share(t, url)
	server := listenAndServe(t, m)
	defer http.DefaultClient.CloseIdleConnections()
	ratio := func() (used float64, err error) {
		resp, err := http.Get(server + "/metrics")
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return 0, err
		}
		_, line, found := strings.Cut(string(text), "\nhubmesh_feed_notification_queue_ratio ")
		if !found {
			return 0, errors.New("no such metric")
		}
		_, err = fmt.Sscan(line, &used)
		return used, err
	}
	eventually(t, "the metric", func() error { _, err := ratio(); return err })
	l, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	for _, text := range []string{"listen other", "begin", "select 1"} { // a listener that takes nothing
		if _, err := l.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	notifier, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer notifier.Close(context.Background())
	if _, err := notifier.Exec(t.Context(), "select pg_notify('other', i || repeat('x', 7000)) from generate_series(1, 1500) i"); err != nil {
		t.Fatal(err)
	}
	m.LookAtQueue()
	if used, err := ratio(); err != nil || used <= 0 || used >= 1 {
		t.Errorf("with a listener that takes nothing it is %v: %v", used, err)
	}
}
