package nodehub

import (
	"context"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

const (
	// idleAfter is how long a node hub may be unused before it retires.
	idleAfter = 5 * time.Minute
	// defaultCache is the size of the content cache in bytes.
	defaultCache = 64 << 20
	// maxOperations bounds the creates and deletes that run at once; more are refused.
	maxOperations = 512
	// maxRemerge is how often a write without a condition is merged again over a newer version.
	maxRemerge = 3

	originHub = "hub" // of writes that a node hub made itself
	originOps = "ops" // of writes by the operations hub
)

// Committer commits writes in groups. A store.Committer does.
type Committer interface {
	Submit(ctx context.Context, w store.Write) (store.Result, error)
	SubmitBulk(ctx context.Context, ws []store.Write) ([]store.Result, error)
}

// Options configure a service.
type Options struct {
	Mesh      *hub.Mesh
	Store     store.Store
	Committer Committer
	Access    *access.Index
	Limits    node.Limits
	CacheSize int           // of contents over 1 KiB, in bytes; default 64 MiB
	Idle      time.Duration // of node hubs; default 5 minutes
	Logger    *slog.Logger
	// StartDelay, when set, delays the start of a node's hub; for tests of slow starts.
	StartDelay func(path node.Path) time.Duration
	// Isolated, when set, tells whether this process must not answer from what it holds, because others
	// may serve in its place.
	Isolated func() bool
	// Confirm, set where Isolated is, asks whether nobody else had begun to serve in its place when it was called. It
	// ends with ctx.
	Confirm func(ctx context.Context) bool
	// Shared says that other processes write the same store.
	Shared bool
	// Rivals says that hubs of other processes write the same nodes: no membership gives each node one hub.
	Rivals bool
	// Current, when set, tells whether this process has been told of late what others have committed, so that what it
	// holds may be answered from. It must be cheap.
	Current func() bool
	// Told, when set, returns once this process has been told everything that others had committed to the store before
	// the call: what they took from whom counts here then.
	Told func(context.Context) error
	// Tell, set where silos have hubs of the same nodes, returns once no other one answers for nodes as before a commit that
	// their hubs did not make; with those that may, and why, where a bound fired.
	Tell func(ctx context.Context, paths []node.Path) (untold []string)
	// Validators check writes of a node type beyond its schema, by type.
	Validators map[string]Validator
	// Types are registered node types: kinds whose handlers are added to those of every node.
	Types map[string]func(k *hub.Kind)
}

// Validator checks a write of one node type: before is nil at creation. ctx carries the writer. It runs
// on the node's turn and must not ask or block.
type Validator func(ctx context.Context, before *node.Node, after node.Node) error

// Service owns the kinds of node hubs and the process hubs for node operations and reads.
type Service struct {
	mesh      *hub.Mesh
	store     store.Store
	committer Committer
	access    *access.Index
	limits    node.Limits
	log       *slog.Logger
	cache     *contentCache
	guards    *guards
	types     *types
	queries   *fairPlaces // in which queries run
	content   *collections
	delay     func(path node.Path) time.Duration
	check     map[string]Validator
	isolated  func() bool
	confirm   func(context.Context) bool
	shared    bool
	rivals    bool
	fed       func() bool
	told      func(context.Context) error
	others    func(context.Context, []node.Path) []string

	kind  *hub.Kind            // of nodes whose type has no handlers of its own
	kinds map[string]*hub.Kind // by node type
	ops   *hub.Hub
	reads *hub.Hub

	running atomic.Int64  // operations under way
	epoch   atomic.Uint64 // raised when everything may have changed: rows of before are read again
}

// New starts the process hubs of a service.
func New(o Options) (*Service, error) {
	if o.CacheSize <= 0 {
		o.CacheSize = defaultCache
	}
	if o.Idle <= 0 {
		o.Idle = idleAfter
	}
	if o.Limits == (node.Limits{}) {
		o.Limits = node.DefaultLimits
	}
	if o.Logger == nil {
		o.Logger = o.Mesh.Logger()
	}
	s := &Service{
		mesh: o.Mesh, store: o.Store, committer: o.Committer, access: o.Access, limits: o.Limits, log: o.Logger, delay: o.StartDelay, check: o.Validators, isolated: o.Isolated, confirm: o.Confirm, shared: o.Shared, rivals: o.Rivals, fed: o.Current, told: o.Told, others: o.Tell,
		cache: newContentCache(o.CacheSize), guards: newGuards(), types: newTypes(o.Store, o.Logger), queries: newFairPlaces(max(2, runtime.GOMAXPROCS(0)), "queries wait for their turn"), content: newCollections(), kinds: map[string]*hub.Kind{},
	}
	s.kind = s.newKind("node", o.Idle)
	for name, add := range o.Types {
		s.types.register(name)
		k := s.newKind("node:"+name, o.Idle)
		add(k)
		s.kinds[name] = k
	}
	var err error
	if s.ops, err = o.Mesh.Start(address.Of("portal/nodeops-"+o.Mesh.ID()), s.opsKind(), nil); err != nil {
		return nil, err
	}
	// No handlers: whatever is asked in its name is answered straight to its slot (edge.md CR-6).
	if s.reads, err = o.Mesh.Start(address.Of("portal/reads-"+o.Mesh.ID()), hub.NewKind("reads", hub.Limits{}), nil); err != nil {
		return nil, err
	}
	return s, nil
}

// Reads is the process hub in whose name the edge reads.
func (s *Service) Reads() *hub.Hub { return s.reads }

// Operations is the process hub that creates and deletes.
func (s *Service) Operations() *hub.Hub { return s.ops }

// newKind is the kind of node hubs.
func (s *Service) newKind(name string, idle time.Duration) *hub.Kind {
	k := hub.NewKind(name, hub.Limits{})
	k.Idle = idle
	k.EndOnFailedStart = true
	k.AddInitialiser("delayed start", s.delayStart)
	hub.HandleQuick(k, Get, s.get)
	hub.HandleQuick(k, Collections, s.collections)
	hub.HandleQuick(k, hub.Ping, func(context.Context, *hub.Hub, *hub.PingRequest) (*hub.Pong, error) { return &hub.Pong{}, nil })
	hub.Handle(k, Patch, s.patch)
	hub.Handle(k, Put, s.put)
	hub.Handle(k, changedType, s.takeChange)
	hub.Handle(k, refreshType, s.refreshRow)
	return k
}

func (s *Service) delayStart(ctx context.Context, h *hub.Hub) error {
	t := time.NewTimer(s.delay(node.Path(h.Path())))
	defer t.Stop()
	select {
	case <-t.C:
		// What was written while the start was delayed.
		n, err := s.store.Read(ctx, node.Path(h.Path()))
		if err != nil {
			return err
		}
		h.State().(*state).set(s.cache, n)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// StartNode starts the hub of a node with the row that was read to find it.
func (s *Service) StartNode(n node.Node, first []*hub.Delivery) (*hub.Hub, error) {
	k := s.kinds[n.NodeType]
	if k == nil {
		k = s.kind
	}
	st := &state{service: s}
	st.set(s.cache, n)
	ready := s.delay == nil || s.delay(n.Path) <= 0
	s.log.Debug("[ACTIVATE]", "address", string(n.Path), "version", n.Version)
	return s.mesh.StartReady(address.Of(string(n.Path)), k, st, ready, first...)
}

// Refresh makes the hub at a path, if there is one, read its row again.
func (s *Service) Refresh(path node.Path) {
	if h := s.mesh.Find(string(path)); h != nil {
		_ = refreshType.PostHub(message.WithIdentity(context.Background(), message.SystemIdentity()), h, &refresh{}) // a hub that is going down needs no refresh
	}
}

// Reset takes note that everything may have changed: every hub reads its row again before its next use, types
// and collections are looked up anew.
func (s *Service) Reset(ctx context.Context) error {
	s.epoch.Add(1)
	s.cache.clear()
	s.types.clear()
	return s.LoadCollections(ctx)
}

// Forget takes a change by another process whose row is not needed: see [Service.Follows].
func (s *Service) Forget(c store.Change) { s.types.changed(c) }

// Needs tells whether the service decides with what stands at a path without asking its hub: it has to know of every
// change there.
func (s *Service) Needs(path node.Path) bool {
	_, collection := collectionOwner(path)
	return collection
}

// Follows tells whether the service holds anything of a path that a change by another process concerns, so
// that it needs the row.
func (s *Service) Follows(path node.Path) bool {
	return s.Needs(path) || s.mesh.Find(string(path)) != nil
}

// Changed takes a committed change from the store's feed: it tells the hub at the path, unless that
// hub wrote it. It runs on the committing goroutine and does not wait.
func (s *Service) Changed(c store.Change) {
	s.types.changed(c)
	s.content.apply(c.Node, c.Version, c.Kind == store.Deleted)
	if c.Kind == store.Deleted {
		s.cache.drop(c.Path)
	}
	if c.Origin == originHub {
		return
	}
	if h := s.mesh.Find(string(c.Path)); h != nil {
		_ = changedType.PostHub(message.WithIdentity(context.Background(), message.SystemIdentity()), h, &changed{c, s.epoch.Load()}) // a hub that is going down reads the row anew when it comes back
	}
}
