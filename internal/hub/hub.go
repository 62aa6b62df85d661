package hub

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/lifecycle"
	"github.com/hubmesh/hubmesh/internal/message"
)

// The bits of Hub.flags. They change under Hub.mu and may be read without it.
const (
	levelMask     = 0x7
	flagRunning   = 1 << 3 // a goroutine, or a quick turn's caller, has the turn
	flagGone      = 1 << 4 // out of the registry: whoever holds the pointer looks up again
	flagLifecycle = 1 << 5 // the lifecycle lane is not empty
	flagFailed    = 1 << 6 // initialisation failed: no handler runs any more
	flagAsked     = 1 << 7 // has asked at least once
	flagQuick     = 1 << 8 // the turn is a quick one, on its caller's goroutine
	gateShift     = 16
)

// Hub is a single-threaded actor. This struct is all of an idle hub.
type Hub struct {
	mu         sync.Mutex
	flags      atomic.Uint32
	n          int32 // deliveries in inbox and batch
	head, tail *Delivery
	batch      atomic.Pointer[Delivery] // what the running turn has taken; popped by compare-and-swap

	addr    address.Address
	mesh    *Mesh
	parent  *Hub
	kind    *Kind
	state   any
	ext     atomic.Pointer[extra]
	cur     atomic.Pointer[Delivery]
	loop    func()        // run as a value, made on the first turn: starting it allocates nothing
	version atomic.Uint64 // raised by each handled message
	used    atomic.Uint32 // seconds since the mesh started, at the end of the last turn
}

// extra holds what few hubs need. It is made on first use and guarded by Hub.mu but for what says
// otherwise.
type extra struct {
	lifeHead, lifeTail *Delivery

	deferHead, deferTail *Delivery
	deferN               int
	deferDue             int64 // earliest due of the deferred deliveries
	stuckLogged          bool  // one GATE-STUCK line an episode

	born        int64 // when it began to start
	initErr     error
	initCancel  context.CancelFunc
	initStep    string
	startedDone chan struct{}

	rules    atomic.Pointer[[]*rule] // added by On, newest first
	children children
	storm    *storm
	shedding bool // one overload line an episode

	cleanups  []func()
	flushes   []func(context.Context)
	done      chan struct{}
	dead      bool
	timedOut  bool // quiescing ran into its bound
	forced    bool // torn down by the watchdog
	shutTurns int
}

func newHub(m *Mesh, parent *Hub, at address.Address, k *Kind, state any, ready bool) *Hub {
	k.freeze()
	h := &Hub{addr: at, mesh: m, parent: parent, kind: k, state: state}
	h.used.Store(uint32(m.clock.Now() / int64(time.Second)))
	gates := uint32(0)
	if len(k.inits) > 0 && !ready {
		gates = 1
	}
	for i := range k.gates {
		gates |= 2 << i
	}
	level := lifecycle.Started
	if gates != 0 {
		level = lifecycle.Starting
	}
	h.flags.Store(uint32(level) | gates<<gateShift)
	return h
}

// launch starts the initialisers of a hub that has been registered.
func (h *Hub) launch() {
	if h.Level() != lifecycle.Starting {
		return
	}
	h.mu.Lock()
	e := h.more()
	e.born = h.mesh.clock.Now()
	if h.gates()&1 == 0 {
		h.mu.Unlock()
		return
	}
	ctx, cancel := h.mesh.bounds.Context(h.mesh.base, boundInit, "initialise "+h.addr.Path())
	e.initCancel = cancel
	h.mu.Unlock()
	h.mesh.Go(func() { h.initialise(ctx, cancel) })
}

// more returns the extra part, making it when needed. The caller holds mu.
func (h *Hub) more() *extra {
	if e := h.ext.Load(); e != nil {
		return e
	}
	e := &extra{}
	h.ext.Store(e)
	return e
}

// Address is where the hub is served.
func (h *Hub) Address() address.Address { return h.addr }

// Path is the registry key.
func (h *Hub) Path() string { return h.addr.Path() }

// Mesh is the process that the hub belongs to.
func (h *Hub) Mesh() *Mesh { return h.mesh }

// Kind is the hub's kind.
func (h *Hub) Kind() *Kind { return h.kind }

// Parent is the hub that hosts it; the root mesh hub has none.
func (h *Hub) Parent() *Hub { return h.parent }

// State is the hub's own state. It is touched by initialisers and on the hub's turns only.
func (h *Hub) State() any { return h.state }

// SetState replaces the state, from an initialiser or a turn.
func (h *Hub) SetState(state any) { h.state = state }

// Level is the run level.
func (h *Hub) Level() lifecycle.Level { return lifecycle.Level(h.flags.Load() & levelMask) }

// Version counts the messages that were handled.
func (h *Hub) Version() uint64 { return h.version.Load() }

// InitialisationError is why the hub's start failed, or nil.
func (h *Hub) InitialisationError() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.ext.Load(); e != nil {
		return e.initErr
	}
	return nil
}

// Gone tells whether the hub is out of the registry.
func (h *Hub) Gone() bool { return h.flags.Load()&flagGone != 0 }

func (h *Hub) gates() uint32 { return h.flags.Load() >> gateShift }

// setFlags changes flags; the caller holds mu.
func (h *Hub) setFlags(set, clear uint32) { h.flags.Store(h.flags.Load()&^clear | set) }

// raise lifts the run level; the caller holds mu. It is false when the hub is already there or above.
func (h *Hub) raise(to lifecycle.Level) bool {
	if h.Level() >= to {
		return false
	}
	h.setFlags(uint32(to), levelMask)
	return true
}

// addRule puts a rule in front of those that the hub already has.
func (h *Hub) addRule(r *rule) (remove func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.more()
	var old []*rule
	if p := e.rules.Load(); p != nil {
		old = *p
	}
	grown := append([]*rule{r}, old...)
	e.rules.Store(&grown)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		kept := make([]*rule, 0, len(*e.rules.Load()))
		for _, x := range *e.rules.Load() {
			if x != r {
				kept = append(kept, x)
			}
		}
		e.rules.Store(&kept)
	}
}

// OnDispose registers a cleanup that runs when the hub shuts down; on a dead hub it runs at once.
func (h *Hub) OnDispose(f func()) {
	h.mu.Lock()
	e := h.more()
	if e.dead || h.flags.Load()&flagGone != 0 {
		h.mu.Unlock()
		f()
		return
	}
	e.cleanups = append(e.cleanups, f)
	h.mu.Unlock()
}

// OnFlush registers work that runs at shutdown before the cleanups, each within the bound "quiesce".
func (h *Hub) OnFlush(f func(ctx context.Context)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.more()
	e.flushes = append(e.flushes, f)
}

// Done closes when the hub is Dead.
func (h *Hub) Done() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.doneLocked()
}

func (h *Hub) doneLocked() chan struct{} {
	e := h.more()
	if e.done == nil {
		e.done = make(chan struct{})
		if e.dead || h.flags.Load()&flagGone != 0 {
			close(e.done)
		}
	}
	return e.done
}

// disposing is the failure for whoever asks a hub that goes down.
func (h *Hub) disposing() *message.Failure {
	err := &message.Disposing{Address: h.addr.Path()}
	return &message.Failure{Type: message.ShuttingDown, Message: err.Error(), Target: h.addr.Path(),
		AnsweredBy: h.addr.Path(), Reason: message.ReasonStopping, Cause: err}
}
