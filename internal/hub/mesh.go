package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
)

// Router takes deliveries whose target has no hub in this process. Route must not block: it returns
// at once and sees to it that the delivery is posted to its hub or failed.
type Router interface {
	Route(d *Delivery)
}

// Options configure a mesh. Zero fields take the defaults.
type Options struct {
	ID     string       // process id, the suffix of process addresses; required
	Logger *slog.Logger // default: discards
	Bounds budget.Table // default: budget.Defaults()
	Router Router       // default: every unknown target is answered NotFound
	// Audit, when set, fingerprints every message at post and after its turn and panics when they
	// differ: a posted message is immutable. For tests.
	Audit func(msg any) uint64
}

// Mesh is one process's hubs, with the clock, the reply slots and the one timer that they share. All
// methods are safe for concurrent use.
type Mesh struct {
	id       string
	log      *slog.Logger
	bounds   budget.Table
	clock    budget.Clock
	router   atomic.Pointer[Router]
	watcher  atomic.Pointer[Watcher]
	audit    func(any) uint64
	registry *registry
	// addresses are those that messages have named lately.
	addresses *address.Cache
	slots     slab
	sweeper   sweeper
	root      *Hub
	wg        sync.WaitGroup // every goroutine that the mesh or a hub has started
	base      context.Context
	cancel    context.CancelFunc
	closing   atomic.Bool
	closed    chan struct{}
	report    atomic.Pointer[TeardownReport]
	traffic   trafficLog
	retire    retirer
	stats     counters
}

// counters are the sums that [Mesh.Stats] reports beside the outcomes of the slots.
type counters struct {
	expired, shed, stormDropped, overloaded, deferred, deferExpired, notified, unheard, panics, slow atomic.Int64
}

// New starts a mesh with its root hub "mesh/{id}". Close it to release what it holds.
func New(o Options) (*Mesh, error) {
	if o.ID == "" {
		return nil, errors.New("hub: a mesh needs an id")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Bounds == (budget.Table{}) {
		o.Bounds = budget.Defaults()
	}
	if err := o.Bounds.Check(); err != nil {
		return nil, fmt.Errorf("hub: bounds: %w", err)
	}
	m := &Mesh{
		id: o.ID, log: o.Logger, bounds: o.Bounds, clock: budget.NewClock(), audit: o.Audit,
		registry: newRegistry(), addresses: address.NewCache(), closed: make(chan struct{}),
	}
	m.base, m.cancel = context.WithCancel(context.Background())
	m.sweeper.mesh = m
	m.retire.mesh = m
	if o.Router != nil {
		m.SetRouter(o.Router)
	}
	root := NewKind("mesh", Limits{})
	root.System = true
	Handle(root, Ping, func(context.Context, *Hub, *PingRequest) (*Pong, error) { return &Pong{}, nil })
	h, err := m.Start(address.Of("mesh/"+o.ID), root, nil)
	if err != nil {
		return nil, err
	}
	m.root = h
	return m, nil
}

// SetRouter installs the router. It is called once, before deliveries to foreign targets.
func (m *Mesh) SetRouter(r Router) { m.router.Store(&r) }

// Watcher is told which hubs this process serves, hosted ones excluded. Its methods must not block.
type Watcher interface {
	// Registered: h can be found from now on. It is called before Start returns.
	Registered(h *Hub)
	// Removed: h cannot be found any more.
	Removed(h *Hub)
}

// SetWatcher installs the watcher, once. Hubs that were there before are told to it first.
func (m *Mesh) SetWatcher(w Watcher) {
	m.watcher.Store(&w)
	m.registry.each(w.Registered)
}

// ID is the process id.
func (m *Mesh) ID() string { return m.id }

// Root is the hub "mesh/{id}": the root of the process, a router only.
func (m *Mesh) Root() *Hub { return m.root }

// Bounds is the table of this mesh.
func (m *Mesh) Bounds() *budget.Table { return &m.bounds }

// Clock is the clock that budgets of this mesh are read on.
func (m *Mesh) Clock() budget.Clock { return m.clock }

// Context ends when the mesh closes; it is the parent of shared work.
func (m *Mesh) Context() context.Context { return m.base }

// Logger is the logger of this mesh.
func (m *Mesh) Logger() *slog.Logger { return m.log }

// Len is the number of hubs, the root included, hosted hubs excluded.
func (m *Mesh) Len() int { return m.registry.len() }

// ExistsError answers Start where a hub is already registered.
type ExistsError struct{ Address string }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("hub: '%s' is already served here", e.Address)
}

// Start registers a hub at an address and starts it. state is the hub's own and is reached by
// [Hub.State] on its turns. A kind without initialisers and gates is Started when Start returns.
func (m *Mesh) Start(at address.Address, k *Kind, state any) (*Hub, error) {
	return m.StartReady(at, k, state, false)
}

// StartReady is Start for a hub whose state is already complete: with ready its initialisers are
// skipped. The deliveries of first are in its inbox before anybody can see the hub, so that they come
// before whatever is posted to it later.
func (m *Mesh) StartReady(at address.Address, k *Kind, state any, ready bool, first ...*Delivery) (*Hub, error) {
	if m.closing.Load() {
		return nil, &message.Disposing{Address: "mesh/" + m.id}
	}
	h := newHub(m, m.root, at, k, state, ready)
	h.preload(first)
	if old, ok := m.registry.add(h); !ok {
		return old, &ExistsError{Address: at.String()}
	}
	// Close freezes by setting closing before it walks the registry: whoever registers after that
	// walk sees closing here and takes itself out again.
	if m.closing.Load() {
		m.registry.remove(h)
		return nil, &message.Disposing{Address: "mesh/" + m.id}
	}
	if w := m.watcher.Load(); w != nil {
		(*w).Registered(h)
	}
	m.retire.watch(k)
	h.launch()
	if len(first) > 0 {
		h.spawnRun()
	}
	return h, nil
}

// preload fills the inbox of a hub that nobody sees yet, and takes its turn for it.
func (h *Hub) preload(first []*Delivery) {
	var list chain
	for _, d := range first {
		d.next = nil
		d.hub = h
		d.rare() // it has waited for the hub: its stamp is old
		list.push(d)
	}
	h.head, h.tail, h.n = list.head, list.tail, int32(len(first))
	if len(first) > 0 {
		h.setFlags(flagRunning, 0)
	}
}

// Addresses parses addresses, and keeps those that were named lately.
func (m *Mesh) Addresses() *address.Cache { return m.addresses }

// Find returns the hub at a path in this process, and never starts one.
func (m *Mesh) Find(path string) *Hub { return m.registry.find(path) }

// Each calls f for every registered hub, in no order, without a lock held.
func (m *Mesh) Each(f func(h *Hub)) { m.registry.each(f) }

// Go runs f on a goroutine that Close waits for.
func (m *Mesh) Go(f func()) { m.wg.Go(f) }

// Stats are sums since the mesh started. A request's outcome is counted once, when it gets it.
type Stats struct {
	Hubs                                                            int
	Pending                                                         int
	Replied, Failed, Lapsed, Cancelled                              int64
	Expired, Shed, StormDropped, Overloaded, Deferred, DeferExpired int64
	Notified, Unheard, Panics, SlowTurns                            int64
}

// Stats sums the slots and counters.
func (m *Mesh) Stats() Stats {
	st := Stats{
		Hubs: m.registry.len(), Expired: m.stats.expired.Load(), Shed: m.stats.shed.Load(),
		StormDropped: m.stats.stormDropped.Load(), Overloaded: m.stats.overloaded.Load(), Deferred: m.stats.deferred.Load(),
		DeferExpired: m.stats.deferExpired.Load(), Notified: m.stats.notified.Load(), Unheard: m.stats.unheard.Load(),
		Panics: m.stats.panics.Load(), SlowTurns: m.stats.slow.Load(),
	}
	if p := m.slots.chunks.Load(); p != nil {
		for _, c := range *p {
			for i := range c {
				s := &c[i]
				st.Replied += int64(s.outcomes[phaseReplied].Load())
				st.Failed += int64(s.outcomes[phaseFailed].Load())
				st.Lapsed += int64(s.outcomes[phaseLapsed].Load())
				st.Cancelled += int64(s.outcomes[phaseCancelled].Load())
			}
		}
	}
	m.slots.each(func(*slot, uint32) { st.Pending++ })
	return st
}

// since is the time from an earlier reading of the clock.
func (m *Mesh) since(at int64) time.Duration { return time.Duration(m.clock.Now() - at) }
