package hubmesh_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh"
)

// data §2, issue 4: after a failover that lost commits, or a restored backup, everything shows what is stored
func TestStreamsAndGrantsGoBackWithWhatTheDatabaseHasLost(t *testing.T) {
	t.Run("over a connection that breaks, as of a failover", func(t *testing.T) { goesBack(t, true) })
	t.Run("over one that does not, as of a restore into the same database", func(t *testing.T) { goesBack(t, false) })
}

func goesBack(t *testing.T, breaks bool) {
	_, url, a, b, ctx := pair(t)
	for path, kind := range map[string]string{"acme": "Space"} {
		if _, err := a.Create(ctx, path, kind, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Create(ctx, "acme/x", "", map[string]any{"v": "kept"}); err != nil {
		t.Fatal(err)
	}
	if err := a.Grant(ctx, "acme", "alice", "Viewer"); err != nil {
		t.Fatal(err)
	}
	const alices = "acme/_Access/alice_Access"
	roles := func(list ...any) map[string]any {
		return map[string]any{"content": map[string]any{"roles": append([]any{}, list...)}}
	}
	if _, err := a.Patch(ctx, alices, roles(), hubmesh.Condition{}); err != nil { // version 2 grants nothing
		t.Fatal(err)
	}
	alice := hubmesh.As(t.Context(), "alice")
	l, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	exec := func(text string) {
		t.Helper()
		if _, err := l.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	exec("create table kept as select * from mesh_nodes")

	// Then what will be lost: three versions of a node, and a grant.
	watches := map[string]*hubmesh.Watch{}
	meshes := map[string]*hubmesh.Mesh{"a": a, "b": b}
	for v := range 3 {
		if _, err := a.Patch(ctx, "acme/x", map[string]any{"content": map[string]any{"v": v}}, hubmesh.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Patch(ctx, alices, roles(map[string]any{"role": "Viewer"}), hubmesh.Condition{}); err != nil {
		t.Fatal(err)
	}
	for name, m := range meshes {
		eventually(t, "the grant to count", func() error { _, err := m.Get(alice, "acme/x"); return err })
		w, err := m.Watch(ctx, "acme/x", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		await(t, w, 4)
		watches[name] = w
	}
	exec(`begin; set local session_replication_role = replica;
update mesh_nodes n set version = k.version, content = k.content, kind = k.kind, modified_at = k.modified_at from kept k where k.path = n.path and k.version < n.version;
delete from mesh_node_history h using kept k where k.path = h.path and h.version >= k.version;
delete from mesh_changes; commit`)
	if breaks {
		exec("select pg_terminate_backend(pid) from pg_stat_activity where application_name in ('hubmesh listen', 'hubmesh feed')")
	}
	for name, w := range watches {
		if f := await(t, w, 0); f.Kind != hubmesh.Full || f.Version != 1 || !f.Reset || f.Node.Content.Text() != `{"v":"kept"}` {
			t.Errorf("%s shows %+v", name, f)
		}
		if _, err := meshes[name].Get(alice, "acme/x"); err == nil {
			t.Errorf("%s: a grant that was lost counts", name)
		}
	}
	for v := int64(2); v <= 3; v++ {
		if _, err := b.Patch(ctx, "acme/x", map[string]any{"content": map[string]any{"v": v}}, hubmesh.Condition{}); err != nil {
			t.Fatal(err)
		}
		for name, w := range watches {
			if f := await(t, w, 0); f.Version != v {
				t.Errorf("%s shows version %d, want %d", name, f.Version, v)
			}
			if n, err := meshes[name].Get(ctx, "acme/x"); err != nil || n.Version != v {
				t.Errorf("%s is at version %d: %v", name, n.Version, err)
			}
		}
	}
	if _, err := a.Patch(ctx, alices, roles(map[string]any{"role": "Viewer"}), hubmesh.Condition{}); err != nil {
		t.Fatal(err)
	}
	for _, m := range meshes {
		eventually(t, "a grant of the same version to count", func() error { _, err := m.Get(alice, "acme/x"); return err })
	}
}

// data §1.3, issue 4: failover to a standby that has lost its last transactions
// Before it is noticed that commits were lost, a write over a lost row meets another one of the same version.
func TestAWriteOverALostRowKeepsWhatTookItsPlace(t *testing.T) {
	_, url, a, b, ctx := pair(t)
	if _, err := a.Create(ctx, "acme", "Space", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Create(ctx, "acme/x", "", map[string]any{"v": "kept"}); err != nil {
		t.Fatal(err)
	}
	patch := func(m *hubmesh.Mesh, member string) (hubmesh.Node, error) {
		return m.Patch(ctx, "acme/x", map[string]any{"content": map[string]any{member: true}}, hubmesh.Condition{})
	}
	l, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	if _, err := l.Exec(t.Context(), "create table kept as select * from mesh_nodes"); err != nil {
		t.Fatal(err)
	}
	if _, err := patch(a, "lost"); err != nil { // version 2, which a holds
		t.Fatal(err)
	}
	if _, err := l.Exec(t.Context(), `begin; set local session_replication_role = replica;
update mesh_nodes n set version = k.version, content = k.content, kind = k.kind, modified_at = k.modified_at from kept k where k.path = n.path and k.version < n.version;
delete from mesh_node_history h using kept k where k.path = h.path and h.version >= k.version; commit`); err != nil {
		t.Fatal(err)
	}
	if n, err := patch(b, "paid"); err != nil || n.Version != 2 {
		t.Fatal(n, err)
	}
	n, err := patch(a, "title")
	if err != nil || n.Version != 3 || n.Content.Text() != `{"v":"kept","paid":true,"title":true}` {
		t.Errorf("version %d %s: %v", n.Version, n.Content.Text(), err)
	}
	if m, err := b.Get(ctx, "acme/x"); err != nil || m.Version > 3 {
		t.Error(m, err)
	}
}

// issue 4: whatever the change rows say, a restore is noticed
func TestABackupThatIsRestoredUnderRunningProcessesIsNoticed(t *testing.T) {
	server, url, a, b, ctx := pair(t)
	meshes := map[string]*hubmesh.Mesh{"a": a, "b": b}
	if _, err := a.Create(ctx, "acme", "Space", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Create(ctx, "acme/x", "", map[string]any{"v": "monday"}); err != nil {
		t.Fatal(err)
	}
	dump := func() []byte {
		d, err := server.Dump(url)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	says := func(v string) {
		t.Helper()
		if _, err := a.Patch(ctx, "acme/x", map[string]any{"content": map[string]any{"v": v}}, hubmesh.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	shown := func(v string) {
		t.Helper()
		for name, m := range meshes {
			eventually(t, name+" to show "+v, func() error {
				n, err := m.Get(ctx, "acme/x")
				if err == nil && n.Content.Text() != `{"v":"`+v+`"}` {
					err = fmt.Errorf("version %d %s", n.Version, n.Content.Text())
				}
				return err
			})
		}
	}
	load := func(d []byte) {
		t.Helper()
		if err := server.Load(url, d); err != nil {
			t.Fatal(err)
		}
	}
	monday := dump()
	says("tuesday")
	tuesday := dump()
	says("wednesday")
	shown("wednesday")
	load(monday)
	shown("monday")
	load(tuesday) // a newer one: nothing that was read since is lost
	shown("tuesday")
	says("thursday")
	shown("thursday")
	load(monday)
	for i := range 150 { // more than are looked for again
		if _, err := b.Create(ctx, fmt.Sprint("acme/n", i), "", map[string]any{}); err != nil {
			t.Fatal(err)
		}
	}
	shown("monday")
}

// data §2, issue 4: a client that was away while the database lost commits comes back to another process
func TestAClientThatWasAwayDuringALossIsGivenTheRowThatTookThePlaceOfItsOwn(t *testing.T) {
	_, url := database(t)
	before := serveMesh(t, hubmesh.Options{Postgres: url, Logger: slog.New(slog.DiscardHandler)})
	before.make("acme", hubmesh.Space)
	before.make("acme/x", "")
	l, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	if _, err := l.Exec(t.Context(), "create table kept as select * from mesh_nodes"); err != nil {
		t.Fatal(err)
	}
	write := func(e *edge, member string, version int64) {
		t.Helper()
		n, err := e.mesh.Patch(e.admin, "acme/x", map[string]any{"content": map[string]any{member: true}}, hubmesh.Condition{})
		if err != nil || n.Version != version {
			t.Fatal(n, err)
		}
	}
	// comesBack reads the first event after an id, and the id of it.
	comesBack := func(e *edge, lastID string) (event, id string) {
		t.Helper()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, errors.New("no event came"))
		t.Cleanup(cancel)
		r, err := http.NewRequestWithContext(ctx, "GET", e.url+"/api/watch/acme/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+before.token["admin"])
		if lastID != "" {
			r.Header.Set("Last-Event-ID", lastID)
		}
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		for lines := bufio.NewScanner(resp.Body); ; {
			if !lines.Scan() {
				t.Fatalf("%s: the stream ended: %v", resp.Status, lines.Err())
			}
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				event = value
			case "id":
				id = value
			case "data":
				return event + " " + value, id
			}
		}
	}
	write(before, "lost", 2)
	_, id := comesBack(before, "")
	if !strings.HasPrefix(id, "2.") {
		t.Fatalf("the id of version 2 is %q", id)
	}
	if _, err := l.Exec(t.Context(), `begin; set local session_replication_role = replica;
update mesh_nodes n set version = k.version, content = k.content, kind = k.kind, modified_at = k.modified_at from kept k where k.path = n.path and k.version < n.version;
delete from mesh_node_history h using kept k where k.path = h.path and h.version >= k.version; commit`); err != nil {
		t.Fatal(err)
	}
	after := serveMesh(t, hubmesh.Options{Postgres: url, Logger: slog.New(slog.DiscardHandler)})
	anew := func(version, content string) {
		t.Helper()
		event, _ := comesBack(after, id)
		if !strings.HasPrefix(event, `full {"version":`+version+`,"reset":true,"node":`) || !strings.Contains(event, content) || strings.Contains(event, "lost") {
			t.Errorf("at version %s: %s", version, event)
		}
	}
	anew("1", `"content":{"markdown":"text"}`)
	write(after, "paid", 2)
	anew("2", `"content":{"markdown":"text","paid":true}`)
	_, second := comesBack(after, "")
	write(after, "title", 3)
	anew("3", `"content":{"markdown":"text","paid":true,"title":true}`)
	for _, known := range []string{"2", second} { // the control: the row that stands, and a version alone
		if event, _ := comesBack(after, known); !strings.HasPrefix(event, `patch {"version":3,"basedOn":2,"patch":`) {
			t.Errorf("from %s: %s", known, event)
		}
	}
}
