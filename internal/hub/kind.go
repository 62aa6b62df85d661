package hub

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/message"
)

// maxGates is how many named gates a kind can have beside the built-in one.
const maxGates = 15

// Kind is what hubs of one sort share: rules, gates, initialisers and limits. Build it before the
// first hub starts; then it is read-only.
type Kind struct {
	name   string
	rules  []rule   // newest first
	table  [][]rule // by message type id; entry 0 is for types without a rule of their own
	quick  []bool   // by message type id: a single quick rule
	gates  []Gate
	inits  []initialiser
	limits Limits
	once   sync.Once
	frozen atomic.Bool

	// System stamps posts from a hub's own turns that carry no identity as the infrastructure's.
	System bool
	// Idle is how long a hub may be unused before it retires; 0 is never.
	Idle time.Duration
	// MayRetire, when set, is asked before an idle hub retires. It runs under the hub's lock and must
	// not block.
	MayRetire func(h *Hub) bool
	// EndOnFailedStart disposes a hub whose initialisers failed, so that the next message starts anew.
	EndOnFailedStart bool
	// Fallback, when set, answers every request that no rule takes with this verdict.
	Fallback *Fallback
	// Inherited are rules that run after the kind's own.
	Inherited *Kind
}

// Fallback is the verdict of a hub whose type is unusable (messaging.md §1.5).
type Fallback struct {
	Type         message.ErrorType
	Message      string
	NodeTypePath string
}

// Gate is a named one-way gate. While it is closed, only what Admits lets through is handled; the
// rest is deferred. Every closed gate must admit a message (architecture.md, "Superseded rules").
type Gate struct {
	Name   string
	Admits func(d *Delivery) bool // nil admits nothing
}

// GateInitialise is the built-in gate, open once all initialisers have finished.
const GateInitialise = "Initialize"

type initialiser struct {
	name string
	run  func(ctx context.Context, h *Hub) error
}

// Limits bound what waits in a hub. Zero fields take the defaults.
type Limits struct {
	Shed     int // inbox length from which ignorable messages are shed; default 10,000
	Hard     int // inbox length from which requests are refused; default 20,000
	Deferred int // messages behind closed gates; default 512
	Storm    int // unawaited posts per (sender, target, type) in a second; default 2,000
}

func (l Limits) withDefaults() Limits {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&l.Shed, 10_000)
	def(&l.Hard, 20_000)
	def(&l.Deferred, 512)
	def(&l.Storm, 2_000)
	return l
}

// NewKind returns an empty kind. The name appears in logs and snapshots.
func NewKind(name string, limits Limits) *Kind {
	return &Kind{name: name, limits: limits.withDefaults()}
}

// Name is the name given to NewKind.
func (k *Kind) Name() string { return k.name }

// AddGate adds a named gate, closed in every new hub until [Hub.OpenGate].
func (k *Kind) AddGate(g Gate) {
	k.mustBeOpen()
	if len(k.gates) == maxGates {
		panic("hub: a kind has at most 15 gates")
	}
	k.gates = append(k.gates, g)
}

// AddInitialiser appends work that runs off the turn before a hub starts, in the order of addition.
// ctx ends with the hub or after the bound "initialise".
func (k *Kind) AddInitialiser(name string, run func(ctx context.Context, h *Hub) error) {
	k.mustBeOpen()
	k.inits = append(k.inits, initialiser{name, run})
}

func (k *Kind) add(r rule) {
	k.mustBeOpen()
	k.rules = append([]rule{r}, k.rules...)
}

func (k *Kind) mustBeOpen() {
	if k.frozen.Load() {
		panic("hub: kind '" + k.name + "' already has hubs and cannot change")
	}
}

// freeze builds the table by type when the first hub starts.
func (k *Kind) freeze() { k.once.Do(k.build) }

func (k *Kind) build() {
	all := k.rules
	for in := k.Inherited; in != nil; in = in.Inherited {
		all = append(all[:len(all):len(all)], in.rules...)
	}
	var last uint32
	for _, r := range all {
		if r.info != nil {
			last = max(last, r.info.id)
		}
	}
	k.table = make([][]rule, last+1)
	k.quick = make([]bool, last+1)
	for id := range k.table {
		for _, r := range all {
			if r.info == nil || r.info.id == uint32(id) {
				k.table[id] = append(k.table[id], r)
			}
		}
		// A turn is quick only when its single rule is.
		k.quick[id] = len(k.table[id]) == 1 && k.table[id][0].quick
	}
	k.frozen.Store(true)
}

// rulesFor returns the kind's rules for a type, in order.
func (k *Kind) rulesFor(info *typeInfo) []rule {
	if int(info.id) < len(k.table) {
		return k.table[info.id]
	}
	return k.table[0]
}

func (k *Kind) quickFor(info *typeInfo) bool {
	return int(info.id) < len(k.quick) && k.quick[info.id]
}

// gateName names gate bit i; bit 0 is the built-in gate.
func (k *Kind) gateName(i int) string {
	if i == 0 {
		return GateInitialise
	}
	return k.gates[i-1].Name
}
