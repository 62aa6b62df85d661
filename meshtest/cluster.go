package meshtest

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/memtable"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/mirror"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/route"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/memory"
)

// Options say what silos are made of. The zero value is three silos.
type Options struct {
	Silos  int
	Seed   uint64
	Logger func(silo string) *slog.Logger // nil discards
	// Types are further messages that travel between silos.
	Types []hub.WireType
	// Kinds are node types with handlers of their own.
	Kinds map[string]func(*hub.Kind)
	// StartDelay delays the start of node hubs; nil is no delay.
	StartDelay func(path string) time.Duration
	// RowDelay delays the answer of a row that is read for the start of a node hub; nil is no delay.
	RowDelay func(path string) time.Duration
	// NodeTypes are the node types that a silo handles; nil is all of them.
	NodeTypes func(silo string) []string
	// Config changes the protocol's sizes; nil leaves the defaults.
	Config func(*cluster.Config)
	Bounds *budget.Table // nil is the defaults
	// ClientHosted: see route.ClusterOptions.
	ClientHosted map[string]func(*hub.Delivery)
}

// Cluster is some silos in one process.
type Cluster struct {
	Network *transport.Network
	Table   *memtable.Table
	Store   store.Store
	Access  *access.Index

	t     testing.TB
	opts  Options
	unsub func()

	mu    sync.Mutex
	silos map[string]*Silo // by name, those that are gone included
	made  int
}

// Silo is one of them.
type Silo struct {
	Name    string
	Mesh    *hub.Mesh
	Router  *route.Cluster
	Service *nodehub.Service
	Nodes   *nodehub.Client
	Mirrors *mirror.Hub
	Net     *transport.Memory

	c       *Cluster
	commits *store.Committer
	table   *memtable.Client
	stop    []func()
	gone    bool
}

// New starts a cluster and waits until every silo stands in every view. It is taken down with the test.
func New(t testing.TB, o Options) *Cluster {
	t.Helper()
	if o.Silos == 0 {
		o.Silos = 3
	}
	c := &Cluster{t: t, opts: o, Network: transport.NewNetwork(transport.Timers(), o.Seed), Table: memtable.New(),
		Store: memory.New(memory.Options{}), silos: map[string]*Silo{}}
	c.Access = access.NewIndex(func(access.Problem) {})
	c.unsub = c.Store.Subscribe(func(ch store.Change) {
		c.Access.Apply(access.Change{Path: ch.Path, Version: ch.Version, Deleted: ch.Kind == store.Deleted, Node: ch.Node})
	})
	t.Cleanup(c.close)
	for i := range o.Silos {
		c.Add(fmt.Sprintf("s%d", i))
	}
	c.WaitJoined()
	return c
}

// Add starts a silo under a name that nobody has now.
func (c *Cluster) Add(name string) *Silo {
	c.t.Helper()
	c.mu.Lock()
	c.made++
	made := c.made
	c.mu.Unlock()
	log := slog.New(slog.DiscardHandler)
	if c.opts.Logger != nil {
		log = c.opts.Logger(name)
	}
	o := hub.Options{ID: fmt.Sprintf("%s-%d", name, made), Logger: log}
	if c.opts.Bounds != nil {
		o.Bounds = *c.opts.Bounds
	}
	m, err := hub.New(o)
	if err != nil {
		c.t.Fatal(err)
	}
	s := &Silo{Name: name, Mesh: m, c: c, commits: store.NewCommitter(c.Store, store.CommitterOptions{})}
	var delay func(node.Path) time.Duration
	if d := c.opts.StartDelay; d != nil {
		delay = func(p node.Path) time.Duration { return d(string(p)) }
	}
	if s.Service, err = nodehub.New(nodehub.Options{Mesh: m, Store: c.Store, Committer: s.commits, Access: c.Access, StartDelay: delay, Types: c.opts.Kinds, Logger: log,
		Isolated: func() bool { return s.Router != nil && s.Router.Isolated() },
		Confirm:  func(ctx context.Context) bool { return s.Router.Confirm(ctx) }}); err != nil {
		c.t.Fatal(err)
	}
	s.Nodes = s.Service.Client()
	s.Mirrors = mirror.New(s.Nodes)
	codec, err := route.NewCodec(append(nodehub.Wire(), c.opts.Types...), nodehub.Causes())
	if err != nil {
		c.t.Fatal(err)
	}
	config := cluster.Defaults()
	if c.opts.Config != nil {
		c.opts.Config(&config)
	}
	nodes := route.New(m, rows{c.Store, c.opts.RowDelay}, s.Service)
	s.table = c.Table.Client(func(f func()) { s.Router.Do(func(*cluster.Silo) { f() }) }, func() {
		s.Router.Do(func(x *cluster.Silo) { x.Member.Refresh() })
	})
	me := membership.Member{Name: name, Addr: name + ":1"}
	if c.opts.NodeTypes != nil {
		me.Types = c.opts.NodeTypes(name)
	}
	s.Router = route.NewCluster(route.ClusterOptions{Mesh: m, Nodes: nodes, Codec: codec, Table: s.table, Me: me,
		Config: config, Pace: membership.DefaultPace(), Timing: membership.DefaultTiming(), ClientHosted: c.opts.ClientHosted})
	s.stop = append(s.stop, c.Store.Subscribe(func(ch store.Change) {
		nodes.Changed(ch.Path)
		s.Service.Changed(ch)
		s.Mirrors.Changed(ch)
	}))
	s.Net = c.Network.Join(transport.Peer{Name: name, Addr: name + ":1"}, s.Router.Handler())
	s.Router.Start(s.Net)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silos[name] = s
	return s
}

// rows are those of the store, perhaps late.
type rows struct {
	store.Store
	delay func(path string) time.Duration
}

// Read implements route.Rows.
func (r rows) Read(ctx context.Context, path node.Path) (node.Node, error) {
	n, err := r.Store.Read(ctx, path)
	if r.delay != nil {
		<-time.After(r.delay(string(path)))
	}
	return n, err
}

// Silo returns the silo that has a name now.
func (c *Cluster) Silo(name string) *Silo {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.silos[name]
}

// Silos lists the silos that run, by name.
func (c *Cluster) Silos() []*Silo {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*Silo
	for _, name := range slices.Sorted(maps.Keys(c.silos)) {
		if s := c.silos[name]; !s.gone {
			out = append(out, s)
		}
	}
	return out
}

// WaitJoined waits until every running silo has a view in which every running silo stands, and no other.
func (c *Cluster) WaitJoined() {
	c.t.Helper()
	c.Wait("every silo to stand in every view", func() bool {
		running := c.Silos()
		for _, s := range running {
			v := s.View()
			if len(v.Members()) != len(running) {
				return false
			}
			for _, o := range running {
				if !v.Has(o.Epoch()) {
					return false
				}
			}
		}
		return true
	})
}

// waitFor is how long Wait waits, and waitEvery how often it looks.
const (
	waitFor   = 30 * time.Second
	waitEvery = 5 * time.Millisecond
)

// Wait waits until something holds. In a synctest bubble that takes no real time.
func (c *Cluster) Wait(what string, holds func() bool) {
	c.t.Helper()
	for end := time.Now().Add(waitFor); !holds(); {
		if time.Now().After(end) {
			c.t.Fatalf("waited %v for %s", waitFor, what)
		}
		<-time.After(waitEvery)
	}
}

// View is the silo's view.
func (s *Silo) View() (v *membership.View) {
	s.Router.Do(func(x *cluster.Silo) { v = x.View() })
	return v
}

// Epoch is the silo's epoch, 0 while it is in no view.
func (s *Silo) Epoch() (e membership.Epoch) {
	s.Router.Do(func(x *cluster.Silo) { e = x.Self() })
	return e
}

// Crash ends a silo without a word: its sockets close, nothing is handed over.
func (s *Silo) Crash() {
	s.c.Network.Crash(s.Name)
	s.end()
}

// Leave takes a silo out of the cluster in order.
func (s *Silo) Leave(ctx context.Context) error {
	if err := s.Router.Leave(ctx); err != nil {
		return err
	}
	if err := s.Router.Gone(ctx); err != nil {
		return err
	}
	err := s.Net.Close(ctx)
	s.end()
	return err
}

// end stops what runs of a silo that nobody can reach any more.
func (s *Silo) end() {
	s.c.mu.Lock()
	was := s.gone
	s.gone = true
	s.c.mu.Unlock()
	if was {
		return
	}
	s.table.Close()
	s.Mirrors.Close()
	s.Router.Stop()
	_ = s.Mesh.Close(context.Background()) // a crashed silo's hubs may be in the middle of anything
	s.commits.Close()
	for _, f := range s.stop {
		f()
	}
}

func (c *Cluster) close() {
	for _, s := range c.Silos() {
		s.Crash()
	}
	c.unsub()
	if err := c.Store.Close(); err != nil {
		c.t.Error(err)
	}
}
