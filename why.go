package hubmesh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/content"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/route"
	"github.com/hubmesh/hubmesh/internal/store"
)

// why is what this process has observed of one address. It claims nothing else.
type why struct {
	Address    string      `json:"address"`
	AnsweredBy string      `json:"answeredBy"` // the process
	ObservedAt time.Time   `json:"observedAt"`
	Kind       string      `json:"kind"`   // "node" or "process"
	Clause     string      `json:"clause"` // on one line
	Hub        *whyHub     `json:"hub,omitempty"`
	Activation string      `json:"activation,omitempty"` // of a hub that is not published: in-flight(ms), none-recorded, unknown
	Bounds     []whyBound  `json:"bounds"`               // which bound would fire, in the order of their size
	Cluster    *whyCluster `json:"cluster,omitempty"`    // of a silo: what it and others have observed
	// AsKnown says that permissions can not be determined for the moment, and by what this was answered.
	AsKnown string `json:"asKnown,omitempty"`
	// Store says why it is not known whether there is such a node.
	Store  string          `json:"store,omitempty"`
	Lapses []content.Lapse `json:"lapses,omitempty"` // recent content reads of this address that lapsed; for an Admin of the root scope
}

// whyCluster is what the silos that have to do with an address have observed of it.
type whyCluster struct {
	AskedBy   string          `json:"askedBy"` // the silo
	View      string          `json:"view"`
	SlotOwner string          `json:"slotOwner,omitempty"`
	Owner     *cluster.Holder `json:"owner,omitempty"` // who serves it by the directory, or says so itself; absent: nobody
	// OwnerReport is the hub as its own silo sees it.
	OwnerReport json.RawMessage `json:"ownerReport,omitempty"`
	Answered    []string        `json:"answered"` // the silos that were asked and answered
	Missing     []string        `json:"missing"`  // those that did not, each with the reason
	// Observations are what each of them has seen, the last refusals and repairs included.
	Observations []cluster.Observation `json:"observations"`
}

// whyOf sums up what silos have observed.
func whyOf(x cluster.Explanation) *whyCluster {
	w := &whyCluster{AskedBy: x.AskedBy, View: x.View, SlotOwner: x.SlotOwner, Answered: []string{}, Missing: []string{}, Observations: x.Observations}
	for _, o := range x.Observations {
		if o.Missing != "" {
			w.Missing = append(w.Missing, o.Silo+": "+o.Missing)
			continue
		}
		if !slices.Contains(w.Answered, o.Silo) {
			w.Answered = append(w.Answered, o.Silo)
		}
		if o.Slot != nil && o.Slot.Entry != nil && o.Role == "slot-owner" {
			w.Owner = o.Slot.Entry
		}
		if o.Serving {
			w.OwnerReport = o.Hub
			if w.Owner == nil && o.Claim != nil {
				w.Owner = &cluster.Holder{Silo: o.Silo, Epoch: o.Epoch, Registration: o.Claim.Reg}
			}
		}
	}
	return w
}

// fired are the silos whose answer was waited for until a bound fired.
func (w *whyCluster) fired(b budget.Bound) (silos []string) {
	if w == nil {
		return nil
	}
	for _, o := range w.Observations {
		if o.Fired == b.String() && !slices.Contains(silos, o.Silo) {
			silos = append(silos, o.Silo)
		}
	}
	return silos
}

type whyHub struct {
	Kind      string           `json:"kind"`
	RunLevel  string           `json:"runLevel"`
	Gates     string           `json:"gates,omitempty"`
	Queue     int              `json:"queue"`
	Deferred  int              `json:"deferred"`
	Executing string           `json:"executing,omitempty"`
	ForMS     int64            `json:"forMs,omitempty"`
	Pending   []hub.PendingAsk `json:"pending,omitempty"` // for an Admin of the root scope
	Handled   uint64           `json:"handled"`
	InitError string           `json:"initError,omitempty"`
}

type whyBound struct {
	Name string `json:"name"`
	MS   int64  `json:"ms"`
	For  string `json:"for"`
	// Fired are the silos for which this bound has just ended the wait for an answer.
	Fired []string `json:"fired,omitempty"`
}

type inspectAPI struct{ m *Mesh }

// Why observes a node's hub for whoever may read the node, and a process hub for an Admin of the root
// scope.
func (a inspectAPI) Why(ctx context.Context, address string) (any, error) {
	m := a.m
	w := why{Address: address, AnsweredBy: m.id, ObservedAt: time.Now().UTC(), Kind: "node"}
	path, err := node.ParsePath(address)
	if err != nil {
		return nil, err
	}
	if route.IsProcessAddress(path.Partition()) {
		w.Kind = "process"
		err = m.nodes.Require(ctx, "", access.Administer)
	} else {
		err = m.nodes.Require(ctx, path, access.Read)
	}
	if w.AsKnown, err = a.operator(ctx, err); err != nil {
		return nil, err
	}
	probe := m.hubs.Probe(string(path), nil)
	// What the hub awaits, and what others have read in vain, names the paths of others.
	admin, err := m.nodes.IsAdmin(ctx)
	if known, err := a.operator(ctx, err); err != nil {
		return nil, err
	} else if known != "" {
		admin, w.AsKnown = true, known
	}
	if !admin {
		probe = probe.Discreet()
		probe.Snapshot.Pending = nil
	}
	w.Clause, w.Activation = probe.Clause(), probe.Activation
	if probe.Found {
		s := probe.Snapshot
		w.Hub = &whyHub{Kind: s.Kind, RunLevel: s.Level.String(), Gates: s.Gates, Queue: s.Queue, Deferred: s.Deferred, Executing: s.Executing,
			ForMS: s.Since.Milliseconds(), Pending: s.Pending, Handled: s.Version}
		if s.InitError != nil {
			w.Hub.InitError = s.InitError.Error()
		}
	} else if w.Kind == "node" {
		// Whether there is such a node is the store's to say; asking it starts nothing.
		bound, cancel := m.hubs.Bounds().Context(ctx, budget.StoreRead, "why")
		defer cancel()
		if _, err := m.store.Read(bound, path); admin && errors.As(err, new(*store.UnavailableError)) {
			w.Store = err.Error() // what the silos have observed is worth the more
		} else if err != nil {
			return nil, err
		}
	}
	if m.silo != nil {
		x, err := m.silo.router.Explain(ctx, string(path))
		if err != nil {
			return nil, err
		}
		w.Cluster = whyOf(x)
		var owner struct{ Clause string }
		if !probe.Found && json.Unmarshal(w.Cluster.OwnerReport, &owner) == nil && owner.Clause != "" {
			w.Clause, w.Activation = owner.Clause, ""
		}
	}
	for _, b := range []budget.Bound{budget.Observe, budget.StoreRead, budget.Read, budget.Commit, budget.Defer, budget.Activate, budget.Request, budget.Initialise} {
		w.Bounds = append(w.Bounds, whyBound{b.String(), m.hubs.Bounds().Own(b).Milliseconds(), b.Doc(), w.Cluster.fired(b)})
	}
	for _, l := range m.content.Lapses() {
		if admin && l.Target == string(path) && len(w.Lapses) < 10 {
			w.Lapses = append(w.Lapses, l)
		}
	}
	return w, nil
}

// Lapses lists the recent lapses, for an Admin of the root scope.
func (a inspectAPI) Lapses(ctx context.Context) (any, error) {
	if _, err := a.operator(ctx, a.m.nodes.Require(ctx, "", access.Administer)); err != nil {
		return nil, err
	}
	return map[string]any{"process": a.m.id, "lapses": a.m.content.Lapses()}, nil
}

// HoldsNothing tells whether the caller is a visitor to whom nothing is granted.
func (a inspectAPI) HoldsNothing(ctx context.Context) bool { return a.m.nodes.HoldsNothing(ctx) }

// IsAdmin tells whether the caller administers the root scope.
func (a inspectAPI) IsAdmin(ctx context.Context) (bool, error) {
	return a.m.nodes.IsAdmin(ctx)
}

// WasAdmin tells whether the caller administered the root scope by what was heard of last.
func (a inspectAPI) WasAdmin(ctx context.Context) bool { return a.m.nodes.WasAdmin(ctx) }

// operator lets in whoever err does not refuse, and an Admin of the root scope as it was known last where err says that
// permissions are undetermined. asKnown then says what the answer stands on.
func (a inspectAPI) operator(ctx context.Context, err error) (asKnown string, _ error) {
	if err == nil || !errors.As(err, new(*access.UndeterminedError)) || !a.m.nodes.WasAdmin(ctx) {
		return "", err
	}
	why := "the assignments are read anew"
	if f := a.m.shared; f != nil && !f.feed.Current() {
		why = fmt.Sprintf("what other processes commit could not be read for %v", f.feed.Behind().Round(time.Second))
	}
	return "the caller is answered as the Admin that it was when that was known last: " + why, nil
}

// metrics is the registry that /metrics shows.
func (m *Mesh) metrics() *prometheus.Registry {
	r := prometheus.NewRegistry()
	gauge := func(name, help string, f func(hub.Stats) float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "hubmesh_" + name, Help: help}, func() float64 { return f(m.hubs.Stats()) }))
	}
	gauge("hubs", "Hubs in this process.", func(s hub.Stats) float64 { return float64(s.Hubs) })
	gauge("asks_pending", "Requests that wait for their outcome.", func(s hub.Stats) float64 { return float64(s.Pending) })
	count := func(name, help string, labels prometheus.Labels, f func(hub.Stats) int64) {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "hubmesh_" + name, Help: help, ConstLabels: labels}, func() float64 { return float64(f(m.hubs.Stats())) }))
	}
	const outcomes, drops = "asks_total", "messages_dropped_total"
	count(outcomes, "Requests by outcome.", prometheus.Labels{"outcome": "replied"}, func(s hub.Stats) int64 { return s.Replied })
	count(outcomes, "Requests by outcome.", prometheus.Labels{"outcome": "failed"}, func(s hub.Stats) int64 { return s.Failed })
	count(outcomes, "Requests by outcome.", prometheus.Labels{"outcome": "lapsed"}, func(s hub.Stats) int64 { return s.Lapsed })
	count(outcomes, "Requests by outcome.", prometheus.Labels{"outcome": "cancelled"}, func(s hub.Stats) int64 { return s.Cancelled })
	count(drops, "Messages that nobody awaited and that were not handled.", prometheus.Labels{"reason": "shed"}, func(s hub.Stats) int64 { return s.Shed })
	count(drops, "Messages that nobody awaited and that were not handled.", prometheus.Labels{"reason": "storm"}, func(s hub.Stats) int64 { return s.StormDropped })
	count(drops, "Messages that nobody awaited and that were not handled.", prometheus.Labels{"reason": "unheard"}, func(s hub.Stats) int64 { return s.Unheard })
	count("notices_total", "Failures of messages that nobody awaited, told to the hubs that had sent them.", nil, func(s hub.Stats) int64 { return s.Notified })
	count("asks_overloaded_total", "Requests, and messages that nobody awaited, refused because a queue was full.", nil, func(s hub.Stats) int64 { return s.Overloaded })
	count("messages_deferred_total", "Messages that waited behind a gate.", nil, func(s hub.Stats) int64 { return s.Deferred })
	count("handler_panics_total", "Panics of handlers.", nil, func(s hub.Stats) int64 { return s.Panics })
	count("slow_turns_total", "Turns of more than 500 ms.", nil, func(s hub.Stats) int64 { return s.SlowTurns })
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "hubmesh_watches", Help: "Watches of nodes that are open."}, func() float64 { return float64(m.mirrors.Counts().Nodes) }))
	if m.shared != nil {
		r.MustRegister(m.feedMetrics())
		r.MustRegister(m.searchMetrics())
	}
	if m.silo != nil {
		r.MustRegister(m.siloMetrics())
	}
	return r
}
