package hubmesh

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/activity"
	"github.com/hubmesh/hubmesh/internal/auth"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/content"
	"github.com/hubmesh/hubmesh/internal/httpapi"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/importer"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/mirror"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/render"
	"github.com/hubmesh/hubmesh/internal/route"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/memory"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
	"github.com/hubmesh/hubmesh/internal/store/sqlite"
)

// Options configure a mesh. The zero value is a mesh in memory.
type Options struct {
	// Dir is the data folder: an SQLite file and the content files. Empty keeps everything in memory
	// and content files in a temporary folder that Close removes.
	Dir string
	// Postgres is the URL of a PostgreSQL database that holds the nodes instead of an SQLite file, for any
	// number of processes. The content files stay in Dir, which the processes then have to share.
	Postgres string
	// Cluster makes this process one silo of many on the same database; it needs Postgres. nil: the process
	// serves every node itself.
	Cluster *Cluster
	// Embedded makes the mesh one of several silos in this process; Dir, Postgres and Cluster are then not used.
	// Its parts are made by packages of this module alone.
	Embedded *Embedded
	// Logger gets the mesh's log lines; nil discards them.
	Logger *slog.Logger
	// Types are the node types with handlers of their own; see [Type].
	Types []*NodeType
	// NodeBytes bounds one node, in bytes of JSON; 0 is 1 MiB.
	NodeBytes int
	// Depth bounds the nesting of a content; 0 is 200.
	Depth int
	// BodyBytes bounds the JSON body of a request, in bytes; 0 is 8 MiB.
	BodyBytes int64
	// HeldBytes bounds the bodies and answers that are on their way at a time, in bytes; 0 is 1 GiB. One subject has a
	// quarter of it, and all visitors together an eighth.
	HeldBytes int64
	// History is how many versions of a node are kept; 0 is 1,000.
	History int
	// Idle is how long a node's hub may be unused before it retires; 0 is 5 minutes.
	Idle time.Duration
	// StartDelay delays the start of a node's hub. It is for tests of slow starts; nil is no delay.
	StartDelay func(path string) time.Duration
}

// Mesh is a running mesh. All methods are safe for concurrent use. Close it.
type Mesh struct {
	id       string
	log      *slog.Logger
	limits   node.Limits
	bodies   int64
	held     int64
	hubs     *hub.Mesh
	store    store.Store
	commits  *store.Committer
	lanes    int // of the committer; 0 is one
	access   *access.Index
	service  *nodehub.Service
	nodes    *nodehub.Client
	router   *route.Router
	resolver *route.Resolver
	mirrors  *mirror.Hub
	content  *content.Service
	auth     *auth.Service
	work     *activity.Runner
	importer *importer.Service
	render   *render.Renderer
	bootWork bootWork

	isShared   bool    // others, of this process or another one, use the same data
	shared     *shared // nil: no other process writes the store
	silo       *silo   // nil: this process is no silo
	stopFeed   []func()
	removeDir  string
	closeOnce  sync.Once
	closeError error
}

// New starts a mesh. It fails with a clear reason when the data folder is in use by another process,
// is not readable, or is of a newer version.
func New(o Options) (m *Mesh, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	m = &Mesh{id: newID(), log: o.Logger, limits: node.DefaultLimits, bodies: o.BodyBytes, held: o.HeldBytes}
	if o.NodeBytes > 0 {
		m.limits.NodeBytes = o.NodeBytes
	}
	if o.Depth > 0 {
		m.limits.Depth = o.Depth
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close(context.Background()))
			m = nil
		}
	}()
	if err := m.openSilo(o); err != nil {
		return m, err
	}
	// Then the store: what it refuses is told before there is anything else to undo.
	contentDir, err := m.openStore(o)
	if err != nil {
		return m, err
	}
	if m.hubs, err = hub.New(hub.Options{ID: m.id, Logger: o.Logger, Bounds: budget.Defaults()}); err != nil {
		return m, err
	}
	if err := m.openNodes(o); err != nil {
		return m, err
	}
	if err := m.openServices(contentDir); err != nil {
		return m, err
	}
	m.follow()
	if err := m.load(); err != nil {
		return m, err
	}
	if m.silo != nil {
		if err := m.silo.join(m.hubs.Bounds()); err != nil {
			return m, err
		}
	}
	return m, m.recover()
}

// openStore opens the store that the options name, and returns the folder of content files.
func (m *Mesh) openStore(o Options) (contentDir string, err error) {
	m.isShared = o.Postgres != "" || o.Embedded != nil
	if o.Embedded != nil {
		m.store = o.Embedded.Store
		return o.Embedded.Content, nil
	}
	if o.Dir == "" {
		if m.removeDir, err = os.MkdirTemp("", "hubmesh-content-"); err != nil {
			return "", err
		}
	}
	if o.Postgres != "" {
		s, err := postgres.Open(context.Background(), postgres.Options{URL: o.Postgres, Origin: m.id, History: o.History, Log: o.Logger})
		if err != nil {
			return "", err
		}
		m.store, m.lanes = s, postgres.Lanes
		if o.Dir == "" {
			return m.removeDir, nil
		}
		return filepath.Join(o.Dir, "content"), os.MkdirAll(o.Dir, 0o750)
	}
	if o.Dir == "" {
		m.store = memory.New(memory.Options{History: o.History})
		return m.removeDir, nil
	}
	if err := os.MkdirAll(o.Dir, 0o750); err != nil {
		return "", fmt.Errorf("data folder: %w", err)
	}
	s, err := sqlite.Open(context.Background(), sqlite.Options{File: filepath.Join(o.Dir, "hubmesh.db"), History: o.History, Log: o.Logger})
	if err != nil {
		return "", err
	}
	m.store = s
	return filepath.Join(o.Dir, "content"), nil
}

// openNodes builds what serves nodes, bottom-up.
func (m *Mesh) openNodes(o Options) (err error) {
	m.commits = store.NewCommitter(m.store, store.CommitterOptions{Lanes: m.lanes})
	m.access = access.NewIndex(func(p access.Problem) {
		m.log.Warn("an assignment grants nothing", "address", string(p.Path), "reason", p.Reason)
	})
	var delay func(node.Path) time.Duration
	if o.StartDelay != nil {
		delay = func(p node.Path) time.Duration { return o.StartDelay(string(p)) }
	}
	types := map[string]func(*hub.Kind){}
	for _, t := range o.Types {
		types[t.name] = t.build
	}
	isolated, confirm := m.isolated()
	var current func() bool // nil: nobody else writes the store
	if _, ok := m.store.(*postgres.Store); ok {
		current = m.current
		m.access.DecideWhile(current)
	}
	m.service, err = nodehub.New(nodehub.Options{Mesh: m.hubs, Store: m.store, Committer: m.commits, Access: m.access, Limits: m.limits,
		Idle: o.Idle, Logger: m.log, StartDelay: delay, Types: types, Isolated: isolated, Confirm: confirm, Shared: m.isShared, Rivals: m.isShared && m.silo == nil, Current: current, Told: m.told, Tell: m.tell(), Validators: map[string]nodehub.Validator{node.TypeActivity: activity.Validate, node.TypeSpace: validateSpace}})
	if err != nil {
		return err
	}
	m.nodes = m.service.Client()
	m.router = route.New(m.hubs, m.store, m.service)
	m.resolver = route.NewResolver(m.hubs, m.store)
	m.mirrors = mirror.New(m.nodes)
	if m.silo != nil {
		return m.openRouter(o)
	}
	m.hubs.SetRouter(m.router)
	return nil
}

// validateSpace refuses a new space whose page could never be opened.
func validateSpace(_ context.Context, before *node.Node, after node.Node) error {
	if before == nil && after.Path.Depth() == 1 && httpapi.Reserved(string(after.Path)) {
		return &nodehub.RuleError{Path: after.Path, Reason: "the server answers at this name itself, so that the page of such a space could not be opened; choose another name"}
	}
	return nil
}

// changed takes one committed change to everything that must know it before the writer is answered, in
// this order: permissions first, then caches, then hubs, then views.
func (m *Mesh) changed(c store.Change) {
	m.access.Apply(access.Change{Path: c.Path, Version: c.Version, Deleted: c.Kind == store.Deleted, Node: c.Node})
	if c.Kind != store.Updated {
		m.resolver.Evict(c.Path)
	}
	m.router.Changed(c.Path)
	m.service.Changed(c)
	m.content.Changed(c)
	m.mirrors.Changed(c)
}

// openServices builds what reacts to nodes.
func (m *Mesh) openServices(contentDir string) (err error) {
	m.content, err = content.New(content.Options{Mesh: m.hubs, Resolver: m.resolver, Owners: m.nodes, Permissions: m.nodes, Reads: m.service.Reads(), Dir: contentDir, Shared: m.isShared, Logger: m.log})
	if err != nil {
		return err
	}
	m.work = activity.NewRunner(m.hubs, m.nodes, m.mirrors, m.log)
	m.importer = importer.New(importer.Options{Mesh: m.hubs, Nodes: m.nodes, Store: m.store, Content: m.content, Work: m.work, Limits: m.limits, Logger: m.log})
	m.render = render.New(m.nodes)
	records := m.store.Blobs()
	if s, ok := m.store.(*postgres.Store); ok {
		records = announced{records, s, m.log}
	}
	m.auth = auth.NewService(records, m.hubs.Bounds(), m.log)
	m.access.GuardFor(&accounts{m: m})
	return nil
}

// load reads what must be known before the first request is answered.
func (m *Mesh) load() error {
	ctx, cancel := m.hubs.Bounds().Context(message.WithIdentity(m.hubs.Context(), message.SystemIdentity()), budget.Initialise, "load")
	defer cancel()
	if err := m.loadAccess(ctx); err != nil {
		return err
	}
	if err := m.service.LoadCollections(ctx); err != nil {
		return fmt.Errorf("reading the content collections: %w", err)
	}
	m.content.Start(m.store)
	return nil
}

// recover settles what an earlier process left half done. A silo that is not alone leaves it be: what runs may
// run on another one.
func (m *Mesh) recover() error {
	if m.silo != nil && !m.silo.alone() {
		return nil
	}
	ctx, cancel := m.hubs.Bounds().Context(message.WithIdentity(m.hubs.Context(), message.SystemIdentity()), budget.Initialise, "recover")
	defer cancel()
	// Where other processes use the database and this one does not know of them, a deletion may be under way in one
	// of them. What was left half done stays closed until it is deleted again.
	if !m.isShared || m.silo != nil {
		if err := m.service.Recover(ctx); err != nil {
			return err
		}
	}
	return m.work.Recover(ctx, m.activityIdle())
}

// loadAccess reads every assignment.
func (m *Mesh) loadAccess(ctx context.Context) error {
	q, err := query.Parse("nodeType:" + node.TypeAccessAssignment + " scope:subtree")
	if err != nil {
		return err
	}
	return m.access.Load(func(yield func(node.Node, error) bool) {
		nodes, err := m.store.Select(ctx, q)
		if err != nil {
			yield(node.Node{}, fmt.Errorf("reading the access assignments: %w", err))
			return
		}
		for _, n := range nodes {
			if !yield(n, nil) {
				return
			}
		}
	})
}

// Close ends the mesh in order: running work, views, hubs, and only then what they depend on. Later
// calls return the first verdict.
func (m *Mesh) Close(ctx context.Context) error {
	m.closeOnce.Do(func() { m.closeError = m.close(ctx) })
	return m.closeError
}

func (m *Mesh) close(ctx context.Context) error {
	var errs []error
	m.bootWork.stopping()
	if m.work != nil {
		m.work.Stop(ctx)
	}
	if m.silo != nil {
		m.silo.leave(ctx)
	}
	if m.mirrors != nil {
		m.mirrors.Close()
	}
	if m.hubs != nil {
		errs = append(errs, m.hubs.Close(ctx))
	}
	if m.silo != nil { // after the last answer to another silo
		errs = append(errs, m.silo.close(ctx))
	}
	if m.auth != nil {
		m.auth.Close()
	}
	if m.commits != nil {
		m.commits.Close()
	}
	if m.shared != nil {
		m.shared.close()
	}
	for _, stop := range m.stopFeed {
		stop()
	}
	if m.content != nil { // after the last deletion
		errs = append(errs, m.content.Close())
	}
	if m.store != nil {
		errs = append(errs, m.store.Close())
	}
	if m.removeDir != "" {
		errs = append(errs, os.RemoveAll(m.removeDir))
	}
	return errors.Join(errs...)
}

// newID is the id of this process: its process addresses end with it.
func newID() string {
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(err) // the system has no random numbers: nothing can be safe
	}
	return hex.EncodeToString(b[:])
}

// CommitStats are sums over the group commits so far.
type CommitStats struct{ Batches, Rows int64 }

// CommitStats tells how writes were grouped.
func (m *Mesh) CommitStats() CommitStats {
	s := m.commits.Stats()
	return CommitStats{Batches: int64(s.Batches), Rows: int64(s.Rows)}
}
