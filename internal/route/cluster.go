package route

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/claim"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/cluster/turn"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/lifecycle"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
)

// ClusterOptions are what a silo's router is put together from.
type ClusterOptions struct {
	Mesh  *hub.Mesh
	Nodes *Router // starts the node hubs that this silo is granted
	Codec *Codec
	Table membership.Table
	// Me is this silo's name, the address that others dial, and the node types that it handles.
	Me     membership.Member
	Config cluster.Config
	Pace   membership.Pace
	Timing membership.Timing
	// ClientHosted are the address types whose hubs live in clients: a delivery to one that no silo serves is
	// handed to what carries it there, instead of being refused. Empty by default; a type is never
	// inferred from an answer (C26).
	ClientHosted map[string]func(*hub.Delivery)
	// Waiting hears why an attempt to join came to nothing, on the turn; see [membership.Events]. nil: nobody.
	Waiting func(error)
	// Hears returns once nothing older than what was committed before the call is answered here for some nodes; no
	// paths are all of them. nil: that is always so, since this process is told of each commit before its writer is
	// answered.
	Hears func(ctx context.Context, paths []node.Path) error
	// Process adds to this silo's report what is not the cluster's. It is called on the turn and must not
	// block. nil: nothing.
	Process func() any
	// Watch hears of each claim as it leaves and ends, on the turn: for measurements. nil: nobody does.
	Watch claim.Observer
}

// Cluster is the router of a mesh that is one silo of many: it finds the silo that serves an address,
// keeps the order of messages while addresses move, takes in what other silos send, and has this silo's
// own hubs claimed. It is safe for concurrent use.
type Cluster struct {
	mesh  *hub.Mesh
	nodes *Router
	codec *Codec
	reads reader
	log   *slog.Logger
	name  string
	turn  *turn.Loop
	silo  *cluster.Silo
	watch claim.Observer // nil: nobody
	net   cluster.Network

	self   atomic.Uint64 // the epoch in force, 0 in no view
	view   atomic.Pointer[membership.View]
	lane   atomic.Uint64
	sender uint64 // names this process to the receivers of its lanes
	lanes  *lanes

	mu      sync.Mutex
	handles map[string]localRoute // process hubs that are served here: the local route
	fences  Fences
	fenced  atomic.Bool           // there may be fences: read without the lock
	parked  map[string][]*arrival // for node hubs whose grant is under way; guarded by the turn
	timers  map[*time.Timer]struct{}
	stopped bool
	running sync.WaitGroup

	clientHosted map[string]func(*hub.Delivery)

	hears    func(ctx context.Context, paths []node.Path) error
	process  func() any
	joined   chan struct{} // closed by the first view in which this silo stands
	joinOnce sync.Once
	settled  atomic.Bool // the first claims have landed in the membership that counts

	unawaited time.Duration // how long a message that nobody awaits looks for its target
	refusals  refusalLog
	past      history
	count     counts
}

var (
	_ hub.Router         = (*Cluster)(nil)
	_ hub.Activations    = (*Cluster)(nil)
	_ hub.Watcher        = (*Cluster)(nil)
	_ cluster.Host       = (*Cluster)(nil)
	_ cluster.Deliveries = (*Cluster)(nil)
	_ cluster.Reporter   = (*Cluster)(nil)
	_ claim.Observer     = (*Cluster)(nil)
	_ transport.Handler  = (*cluster.Silo)(nil)
)

// NewCluster returns the router of a silo that has not joined. Give its network to [Cluster.Start].
func NewCluster(o ClusterOptions) *Cluster {
	m := o.Mesh
	c := &Cluster{mesh: m, nodes: o.Nodes, codec: o.Codec, log: m.Logger(), name: o.Me.Name, turn: turn.New(), sender: rand.Uint64(),
		watch: o.Watch, lanes: newLanes(), handles: map[string]localRoute{}, parked: map[string][]*arrival{}, timers: map[*time.Timer]struct{}{},
		unawaited: m.Bounds().Own(budget.Resolve), clientHosted: o.ClientHosted,
		hears: o.Hears, process: o.Process, joined: make(chan struct{})}
	c.silo = cluster.NewSilo(cluster.Parts{Clock: c.turn, Do: c.turn.Do, Table: o.Table, Host: c, Watch: c, Deliver: c,
		Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), Log: c.log, Me: o.Me, Config: o.Config, Pace: o.Pace, Timing: o.Timing, Waiting: o.Waiting})
	c.reads.types, c.reads.addresses = o.Codec.types, m.Addresses()
	o.Nodes.ended = c.ended
	if o.Me.Types != nil {
		o.Nodes.handles = o.Me.Handles
	}
	return c
}

// Handler is what the silo's transport hands requests and events to.
func (c *Cluster) Handler() transport.Handler { return c.silo }

// Start makes the mesh a silo on a network: its hubs are claimed once it has joined.
func (c *Cluster) Start(n cluster.Network) {
	c.net = n
	c.silo.Use(n)
	c.mesh.SetWatcher(c)
	c.mesh.SetRouter(c)
	c.turn.Do(c.silo.Start)
}

// StartFixed is Start for silos whose membership does not change by itself: self is this silo's epoch in
// the view. Nobody joins, votes or leaves; [Cluster.Fix] gives another view.
func (c *Cluster) StartFixed(n cluster.Network, self membership.Epoch, v *membership.View) {
	c.net = n
	c.silo.Use(n)
	n.SetEpoch(uint64(self))
	c.mesh.SetWatcher(c)
	c.mesh.SetRouter(c)
	c.turn.Do(func() {
		c.silo.Detector.Start()
		c.silo.Joined(self, v)
	})
}

// Fix gives a silo that was started by [Cluster.StartFixed] a newer view.
func (c *Cluster) Fix(v *membership.View) { c.turn.Do(func() { c.silo.Apply(v) }) }

// Explain asks this silo and those that have to do with an address what they have observed of it. It
// ends with ctx.
func (c *Cluster) Explain(ctx context.Context, addr string) (cluster.Explanation, error) {
	got := make(chan cluster.Explanation, 1)
	c.turn.Do(func() { c.silo.Explain(addr, func(x cluster.Explanation) { got <- x }) })
	select {
	case x := <-got:
		return x, nil
	case <-ctx.Done():
		return cluster.Explanation{}, context.Cause(ctx)
	}
}

// LaneTo describes the lane from this silo to an address; false where there is none.
func (c *Cluster) LaneTo(addr string) (st LaneState, ok bool) {
	if ch := c.lanes.find(addr); ch != nil {
		ch.with(func() { st = ch.lane.Describe() })
		return st, true
	}
	return st, false
}

// Isolated tells whether this silo must not answer from what it holds: see [cluster.Silo.Isolated].
func (c *Cluster) Isolated() bool { return c.silo.Isolated() }

// Confirm asks the membership where it must not: see [cluster.Silo.Confirm].
func (c *Cluster) Confirm(ctx context.Context) bool { return c.silo.Confirm(ctx) }

// Leave takes the silo out of the cluster in order: view(leaving), node hubs stop, detach. The caller
// drains and then calls [Cluster.Gone]. It ends with ctx.
func (c *Cluster) Leave(ctx context.Context) error {
	marked := make(chan struct{})
	c.turn.Do(func() {
		c.silo.Member.Leave(func(v *membership.View) {
			c.silo.Apply(v)
			close(marked)
		})
	})
	select {
	case <-marked:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var stopping []*hub.Hub
	c.mesh.Each(func(h *hub.Hub) {
		if !IsProcessAddress(h.Address().Type()) {
			h.Dispose()
			stopping = append(stopping, h)
		}
	})
	for _, h := range stopping {
		select {
		case <-h.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Gone removes the silo from the membership.
func (c *Cluster) Gone(ctx context.Context) error {
	done := make(chan error, 1)
	c.turn.Do(func() { c.silo.Member.Gone(func(err error) { done <- err }) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Stop ends the silo: nothing is claimed or resolved any more. Close the transport first.
func (c *Cluster) Stop() {
	c.turn.Do(func() {
		c.silo.Detector.Stop()
		c.silo.Stop()
		c.self.Store(0)
	})
	c.turn.Stop()
	c.mu.Lock()
	c.stopped = true
	for t := range c.timers {
		if t.Stop() {
			delete(c.timers, t)
			c.running.Done()
		}
	}
	c.mu.Unlock()
	c.running.Wait()
}

// Do runs f on the silo's turn, with the silo.
func (c *Cluster) Do(f func(*cluster.Silo)) { c.turn.Do(func() { f(c.silo) }) }

// after runs f once d has passed, unless the silo has been stopped.
func (c *Cluster) after(d time.Duration, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return
	}
	c.running.Add(1)
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		defer c.running.Done()
		c.mu.Lock()
		delete(c.timers, t)
		c.mu.Unlock()
		f()
	})
	c.timers[t] = struct{}{}
}

// target is the address that names the silo: the outermost host of a hosted hub.
func target(to address.Address) (key string, isNode bool, err error) {
	for host, hosted := to.Host(); hosted; host, hosted = to.Host() {
		to = host
	}
	if IsProcessAddress(to.Type()) {
		return to.Path(), false, nil
	}
	path, err := node.ParsePath(to.Path())
	return string(path), true, err
}

// Route implements hub.Router: a delivery whose target has no hub here goes on the lane to it.
func (c *Cluster) Route(d *hub.Delivery) {
	to := d.Target()
	ch := (*channel)(nil)
	if !hosted(to) {
		ch = c.lanes.find(to.Path()) // a lane that is there has a legal path
	}
	for ch == nil || !ch.submit(d) {
		key, isNode, err := target(to)
		if err != nil {
			c.mesh.Refuse(d, &message.Failure{Type: message.NotFound, Target: to.Path(), AnsweredBy: c.name, Reason: message.ReasonNoEntry,
				Message: fmt.Sprintf("No node found at '%s'", to.Path()), Cause: err})
			return
		}
		ch = c.lanes.get(c, key, isNode)
	}
}

// deliverHere posts a delivery that this silo is said to serve to its hub. The channel is locked, and its
// caller may be on the turn: no handler runs, and nobody is told anything, before both are free.
func (c *Cluster) deliverHere(ch *channel, d *hub.Delivery) Disposition {
	if ch.node {
		x, tell := c.nodes.take(ch.key, d)
		if tell != nil {
			ch.later(tell)
		}
		return x
	}
	host := c.mesh.Find(ch.key)
	if host == nil {
		return Missing
	}
	h := c.mesh.Local(d.Target())
	if h == nil {
		ch.later(func() { c.mesh.Refuse(d, unhosted(host, d)) })
		return Answered
	}
	tell, taken := c.mesh.Queue(h, d)
	if !taken {
		return Unsent
	}
	if tell != nil {
		ch.later(tell)
	}
	return Answered
}

func unhosted(host *hub.Hub, d *hub.Delivery) *message.Failure {
	if host.Level() >= lifecycle.Quiescing {
		return &message.Failure{Type: message.ShuttingDown, Target: d.Target().Path(), AnsweredBy: host.Path(), Reason: message.ReasonStopping,
			Message: (&message.Disposing{Address: host.Path()}).Error()}
	}
	return &message.Failure{Type: message.NotFound, Target: d.Target().Path(), AnsweredBy: host.Path(), Reason: message.ReasonNoEntry,
		Message: fmt.Sprintf("'%s' hosts no hub at '%s'", host.Path(), d.Target().Path())}
}

// unreadable is the failure of a message that can not be carried to another silo. It does not carry it.
func (c *Cluster) unreadable(d *hub.Delivery, err error) *message.Failure {
	c.log.Error("A message can not be carried to another silo", "address", d.Target().Path(), "operation", d.TypeName(), "delivery_id", d.ID(), "error", err)
	return &message.Failure{Type: message.Failed, Target: d.Target().Path(), AnsweredBy: c.name, Reason: message.ReasonUnreadable,
		Message: fmt.Sprintf("'%s' to '%s' can not be carried to another silo: %v", d.TypeName(), d.Target(), err), Cause: err}
}
