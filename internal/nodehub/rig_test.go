package nodehub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/route"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gate is a store whose reads and commits a test can watch and park.
type gate struct {
	store.Store
	mu       sync.Mutex
	onRead   func(path node.Path)
	onCommit func(batch []store.Write)
	onSelect func()       // before a query
	onRemove func() error // before a partition is removed; an error is the store's
	fail     func(batch []store.Write) error
	onList   func()       // before children, a query's rows or a version are read
	onSettle func() error // in place of the store's
	blobs    store.Blobs  // in place of the store's
	reads    map[node.Path]int

	onIdentity []string // subjects that rows were read as
}

func (g *gate) Read(ctx context.Context, path node.Path) (node.Node, error) {
	g.mu.Lock()
	g.reads[path]++
	if id := message.IdentityFrom(ctx); id != nil {
		g.onIdentity = append(g.onIdentity, id.Subject)
	}
	f := g.onRead
	g.mu.Unlock()
	n, err := g.Store.Read(ctx, path)
	if f != nil {
		f(path) // after the row was read: what is parked here holds an old row
	}
	return n, err
}

func (g *gate) Commit(ctx context.Context, batch []store.Write) ([]store.Result, error) {
	g.mu.Lock()
	f, fail := g.onCommit, g.fail
	g.mu.Unlock()
	if f != nil {
		f(batch)
	}
	if fail != nil {
		if err := fail(batch); err != nil {
			return nil, err
		}
	}
	return g.Store.Commit(ctx, batch)
}

func (g *gate) Settle(ctx context.Context) error {
	g.mu.Lock()
	f := g.onSettle
	g.mu.Unlock()
	if f != nil {
		return f()
	}
	return g.Store.Settle(ctx)
}

func (g *gate) listing() {
	g.mu.Lock()
	f := g.onList
	g.onList = nil
	g.mu.Unlock()
	if f != nil {
		f()
	}
}

func (g *gate) Children(ctx context.Context, path node.Path, page store.Page) ([]store.Entry, error) {
	g.listing()
	return g.Store.Children(ctx, path, page)
}

func (g *gate) Select(ctx context.Context, q query.Query) ([]node.Node, error) {
	g.listing()
	g.mu.Lock()
	f := g.onSelect
	g.mu.Unlock()
	if f != nil {
		f()
	}
	return g.Store.Select(ctx, q)
}

func (g *gate) At(ctx context.Context, path node.Path, version int64) (node.Node, error) {
	g.listing()
	return g.Store.At(ctx, path, version)
}

func (g *gate) Blobs() store.Blobs {
	if g.blobs != nil {
		return g.blobs
	}
	return g.Store.Blobs()
}

// failing makes commits fail as the store's own fault.
func (g *gate) failing(f func(batch []store.Write) error) {
	g.mu.Lock()
	g.fail = f
	g.mu.Unlock()
}

func (g *gate) RemovePartition(ctx context.Context, name string) error {
	g.mu.Lock()
	f := g.onRemove
	g.mu.Unlock()
	if f != nil {
		if err := f(); err != nil {
			return err
		}
	}
	return g.Store.RemovePartition(ctx, name)
}

func (g *gate) hook(onRead func(node.Path), onCommit func([]store.Write)) {
	g.mu.Lock()
	g.onRead, g.onCommit = onRead, onCommit
	g.mu.Unlock()
}

// rig is a process with nodes, on a memory store.
type rig struct {
	t      *testing.T
	mesh   *hub.Mesh
	store  *gate
	access *access.Index
	s      *nodehub.Service
	c      *nodehub.Client
	router *route.Router
	log    *bytes.Buffer
	root   context.Context // Admin of the root scope
	commit *store.Committer
	stop   func()
}

func newRig(t *testing.T, tweak ...func(*nodehub.Options)) *rig {
	t.Helper()
	return newRigOn(t, memory.New(memory.Options{}), tweak...)
}

func newRigOn(t *testing.T, on store.Store, tweak ...func(*nodehub.Options)) *rig {
	t.Helper()
	r := &rig{t: t, log: &bytes.Buffer{}}
	logger := slog.New(slog.NewTextHandler(&lockedWriter{w: r.log}, nil))
	m, err := hub.New(hub.Options{ID: "1", Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	r.mesh = m
	r.store = &gate{Store: on, reads: map[node.Path]int{}}
	r.commit = store.NewCommitter(r.store, store.CommitterOptions{})
	r.access = access.NewIndex(nil)
	o := nodehub.Options{Mesh: m, Store: r.store, Committer: r.commit, Access: r.access}
	for _, f := range tweak {
		f(&o)
	}
	if r.s, err = nodehub.New(o); err != nil {
		t.Fatal(err)
	}
	r.c = r.s.Client()
	r.router = route.New(m, r.store, r.s)
	m.SetRouter(r.router)
	r.stop = r.store.Subscribe(func(c store.Change) {
		r.access.Apply(access.Change{Path: c.Path, Version: c.Version, Deleted: c.Kind == store.Deleted, Node: c.Node})
		r.router.Changed(c.Path)
		r.s.Changed(c)
	})
	if err := r.access.Load(func(func(node.Node, error) bool) {}); err != nil {
		t.Fatal(err)
	}
	r.root = as("root")
	system := message.WithIdentity(context.Background(), message.SystemIdentity())
	if err := r.store.EnsurePartition(system, "_Access", "test"); err != nil {
		var bad *store.PartitionError
		if !errors.As(err, &bad) {
			t.Fatal(err)
		}
	}
	if err := r.c.Grant(system, "", "root", "Admin"); err != nil {
		t.Fatal(err)
	}
	r.create("acme", node.TypeSpace, `{}`)
	t.Cleanup(r.close)
	return r
}

func (r *rig) close() {
	if r.mesh == nil {
		return
	}
	if err := r.mesh.Close(context.Background()); err != nil {
		r.t.Error(err)
	}
	r.commit.Close()
	r.stop()
	r.store.Close()
	r.mesh = nil
}

type lockedWriter struct {
	mu sync.Mutex
	w  *bytes.Buffer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func as(subject string) context.Context {
	return message.WithIdentity(context.Background(), &message.Identity{Subject: subject})
}

func (r *rig) create(path, typ, content string) node.Node {
	r.t.Helper()
	n, err := r.c.Create(r.root, node.Node{Path: node.Path(path), NodeType: typ, Content: node.RawContent(content)})
	if err != nil {
		r.t.Fatalf("create %s: %v", path, err)
	}
	return n
}

func (r *rig) patch(path, patch string) node.Node {
	r.t.Helper()
	n, err := r.c.Patch(r.root, node.Path(path), []byte(patch), nodehub.Condition{})
	if err != nil {
		r.t.Fatalf("patch %s: %v", path, err)
	}
	return n
}

func (r *rig) get(path string) node.Node {
	r.t.Helper()
	n, err := r.c.Get(r.root, node.Path(path))
	if err != nil {
		r.t.Fatalf("get %s: %v", path, err)
	}
	return n
}

// member is a member of a node's content.
func member(t *testing.T, n node.Node, name string) any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(n.Content.String()), &m); err != nil {
		t.Fatal(err)
	}
	return m[name]
}

func wantErr[T error](t *testing.T, err error) T {
	t.Helper()
	var e T
	if !errors.As(err, &e) {
		t.Fatalf("got %T %v, want %T", err, err, e)
	}
	return e
}

// versions are the versions in a node's history, oldest first, as "1 2 3".
func (r *rig) versions(path string) string {
	r.t.Helper()
	list, err := r.c.Versions(r.root, node.Path(path), store.VersionPage{Limit: 1000})
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for i := len(list) - 1; i >= 0; i-- {
		out = append(out, fmt.Sprint(list[i].Version))
	}
	return strings.Join(out, " ")
}
