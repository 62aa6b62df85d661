package content

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/route"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parked is a store whose look-ups a test can stop.
type parked struct {
	store.Store
	mu     sync.Mutex
	before func(path node.Path)
}

func (p *parked) wait(path node.Path) {
	p.mu.Lock()
	f := p.before
	p.mu.Unlock()
	if f != nil {
		f(path)
	}
}

func (p *parked) Read(ctx context.Context, path node.Path) (node.Node, error) {
	p.wait(path)
	return p.Store.Read(ctx, path)
}

func (p *parked) Prefix(ctx context.Context, path node.Path) (node.Node, error) {
	p.wait(path)
	return p.Store.Prefix(ctx, path)
}

func (p *parked) park(f func(path node.Path)) {
	p.mu.Lock()
	p.before = f
	p.mu.Unlock()
}

type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logbook) lines(phrase string) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		if strings.Contains(line, phrase) {
			out = append(out, line)
		}
	}
	return out
}

// rig is a process with one published collection: acme/content, inherited by what is below acme.
type rig struct {
	t        *testing.T
	mesh     *hub.Mesh
	store    *parked
	access   *access.Index
	nodes    *nodehub.Client
	service  *nodehub.Service
	content  *Service
	resolver *route.Resolver
	log      *logbook
	admin    context.Context
	asked    *counting
	release  func()
}

// counting counts the questions to owners.
type counting struct {
	Owners
	mu    sync.Mutex
	asked int
}

func (c *counting) Collections(ctx context.Context, path node.Path, names ...string) (*nodehub.CollectionsReply, error) {
	c.mu.Lock()
	c.asked++
	c.mu.Unlock()
	return c.Owners.Collections(ctx, path, names...)
}

func newRig(t *testing.T, delay map[node.Path]time.Duration) *rig {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	r := &rig{t: t, log: &logbook{}, store: &parked{Store: memory.New(memory.Options{})}, access: access.NewIndex(nil)}
	var err error
	r.mesh, err = hub.New(hub.Options{ID: "1", Logger: slog.New(slog.NewTextHandler(r.log, nil))})
	must(err)
	commits := store.NewCommitter(r.store, store.CommitterOptions{})
	o := nodehub.Options{Mesh: r.mesh, Store: r.store, Committer: commits, Access: r.access}
	var delays atomic.Pointer[map[node.Path]time.Duration] // in force once the rig stands
	delays.Store(&map[node.Path]time.Duration{})
	o.StartDelay = func(p node.Path) time.Duration { return (*delays.Load())[p] }
	r.service, err = nodehub.New(o)
	must(err)
	r.nodes = r.service.Client()
	r.asked = &counting{Owners: r.nodes}
	router := route.New(r.mesh, r.store, r.service)
	r.mesh.SetRouter(router)
	r.resolver = route.NewResolver(r.mesh, r.store)
	stop := r.store.Subscribe(func(c store.Change) {
		r.access.Apply(access.Change{Path: c.Path, Version: c.Version, Deleted: c.Kind == store.Deleted, Node: c.Node})
		r.resolver.Evict(c.Path)
		router.Changed(c.Path)
		r.service.Changed(c)
	})
	must(r.access.Load(func(func(node.Node, error) bool) {}))
	r.content, err = New(Options{Mesh: r.mesh, Resolver: r.resolver, Owners: r.asked, Permissions: r.nodes, Reads: r.service.Reads(), Dir: t.TempDir()})
	must(err)
	stopContent := r.store.Subscribe(func(c store.Change) { r.content.Changed(c) })
	r.content.Start(r.store)
	r.admin = as("admin")
	must(r.nodes.Grant(message.WithIdentity(context.Background(), message.SystemIdentity()), "", "admin", "Admin"))
	_, err = r.nodes.Create(r.admin, node.Node{Path: "acme", NodeType: node.TypeSpace, Content: node.RawContent("{}")})
	must(err)
	r.create("acme/doc")
	must(r.nodes.EnsureCollection(r.admin, "acme", nodehub.Collection{Name: "content", SourceType: "folder", IsStatic: true, IsEditable: true, IsInherited: true}))
	r.put("acme", "content", "hello.txt", "hello")
	r.put("acme", "content", "doc/page.svg", "<svg/>")
	delays.Store(&delay)
	r.release = func() {
		if r.mesh == nil {
			return
		}
		must(r.mesh.Close(context.Background()))
		commits.Close()
		stop()
		stopContent()
		must(r.content.Close())
		must(r.store.Close())
		r.mesh = nil
	}
	t.Cleanup(r.release)
	return r
}

func as(subject string) context.Context {
	return message.WithIdentity(context.Background(), &message.Identity{Subject: subject})
}

func (r *rig) create(path node.Path) {
	r.t.Helper()
	if _, err := r.nodes.Create(r.admin, node.Node{Path: path, Content: node.RawContent("{}")}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) put(at node.Path, name, file, text string) {
	r.t.Helper()
	if _, _, err := r.content.Put(r.admin, at, name, file, strings.NewReader(text)); err != nil {
		r.t.Fatal(err)
	}
}

// read returns the bytes at a content path.
func (r *rig) read(ctx context.Context, path string) (string, error) {
	r.t.Helper()
	f, err := r.content.Read(ctx, strings.Split(path, "/"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return string(b), err
}

func (r *rig) mustRead(path, want string) {
	r.t.Helper()
	if got, err := r.read(r.admin, path); err != nil || got != want {
		r.t.Fatalf("%s: %q, %v", path, got, err)
	}
}

// isNotFound tells whether there is nothing, by the content or by the hub of its node.
func isNotFound(err error) bool {
	var f *message.Failure
	return errors.As(err, new(*NotFoundError)) || errors.As(err, &f) && f.Type == message.NotFound
}
