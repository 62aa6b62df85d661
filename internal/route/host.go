package route

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/claim"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/lifecycle"
)

// counts are what a cluster's router has counted since its start.
type counts struct {
	sent, arrived, lost           atomic.Int64
	landed, notLanding, madeAgain atomic.Int64
	refusedFor                    [16]atomic.Int64
}

func (c *counts) refused(r cluster.Reason) { c.refusedFor[r].Add(1) }

// Registered implements hub.Watcher: a process hub is claimed; the local route is written first (C1).
func (c *Cluster) Registered(h *hub.Hub) {
	if !IsProcessAddress(h.Address().Type()) {
		return // a node hub stands on its grant
	}
	handle := c.silo.Claims.Handle(c.turn, h.Path())
	c.mu.Lock()
	before := c.handles[h.Path()]
	c.handles[h.Path()] = localRoute{h, handle}
	c.mu.Unlock()
	if before.handle != nil { // its hub is gone, and that has still to be told
		before.handle.Dispose()
	}
	handle.Attach()
}

// Removed implements hub.Watcher.
func (c *Cluster) Removed(h *hub.Hub) {
	if !IsProcessAddress(h.Address().Type()) {
		c.ended(h.Path(), c.nodes.gone(h))
		return
	}
	c.mu.Lock()
	route := c.handles[h.Path()]
	if route.hub != h { // another hub has the address by now
		c.mu.Unlock()
		return
	}
	delete(c.handles, h.Path())
	c.mu.Unlock()
	route.handle.Dispose()
}

// localRoute is the hub of this process at an address, and its claim.
type localRoute struct {
	hub    *hub.Hub
	handle *claim.Handle
}

// ended gives the grant of a node hub back, by the registration on which it stood: the hub is gone, or did not
// start. A later grant of the node is another one's.
func (c *Cluster) ended(path string, reg uint64) {
	c.turn.Do(func() { c.silo.Claims.Ended(path, reg) })
}

// Serving implements claim.Host: the local route.
func (c *Cluster) Serving(addr string) (uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.handles[addr].handle
	if h == nil {
		return 0, false
	}
	return h.Reg(), true
}

// Granted implements claim.Host: the hub of a node that this silo serves now starts, with what waits.
func (c *Cluster) Granted(addr string, reg uint64) {
	waiting := c.parked[addr]
	delete(c.parked, addr)
	first := make([]*hub.Delivery, 0, len(waiting))
	for _, a := range waiting {
		first = append(first, a.d)
	}
	c.nodes.begin(addr, reg, first)
	for _, a := range waiting {
		a.posted()
	}
}

// StepAside implements claim.Host.
func (c *Cluster) StepAside(addr string, _ uint64) {
	c.note(addr, "stepped aside", "held elsewhere", "")
	c.log.Info("A node hub steps aside: another silo holds its address", "address", addr, "silo", c.name)
	c.nodes.revoke(addr)
	if h := c.mesh.Find(addr); h != nil {
		h.Dispose()
	}
}

// Stopping implements cluster.Host.
func (c *Cluster) Stopping(addr string) bool {
	if h := c.mesh.Find(addr); h != nil {
		return h.Level() >= lifecycle.Quiescing
	}
	_, starts := c.nodes.InFlight(addr)
	return !starts // its hub is gone, and the grant is about to be given back
}

// Evicted implements cluster.Host.
func (c *Cluster) Evicted() {
	c.self.Store(0)
	c.settled.Store(false)
	if c.silo.Member.Phase() >= membership.Leaving {
		c.log.Info("This silo has left the cluster", "silo", c.name)
	} else {
		c.log.Warn("This silo was put out of the cluster; it stops its node hubs and joins anew", "silo", c.name)
	}
	c.nodes.revokeAll()
	c.mesh.Each(func(h *hub.Hub) {
		if !IsProcessAddress(h.Address().Type()) {
			h.Dispose()
		}
	})
}

// Applied implements cluster.Host.
func (c *Cluster) Applied(v *membership.View) {
	c.view.Store(v)
	c.self.Store(uint64(c.silo.Self()))
	if c.silo.Self() != 0 {
		c.joinOnce.Do(func() { close(c.joined) })
	}
	c.log.Info("A view of the cluster counts", "silo", c.name, "epoch", c.silo.Self().String(), "view", v.String())
}

// description is a hub for people on other silos.
type description struct {
	Kind      string `json:"kind"`
	RunLevel  string `json:"runLevel"`
	Gates     string `json:"gates,omitempty"`
	Queue     int    `json:"queue"`
	Deferred  int    `json:"deferred,omitempty"`
	Executing string `json:"executing,omitempty"`
	ForMS     int64  `json:"forMs,omitempty"`
	Pending   int    `json:"pending"`
	Handled   uint64 `json:"handled"`
	Clause    string `json:"clause,omitempty"`
	// Starting is how long the start of a hub that is not there yet has been under way.
	Starting *int64 `json:"startingMs,omitempty"`
}

// Describe implements cluster.Describer.
func (c *Cluster) Describe(addr string) json.RawMessage {
	var d description
	p := c.mesh.Probe(addr, nil)
	switch s := p.Snapshot; {
	case p.Found:
		d = description{Kind: s.Kind, RunLevel: s.Level.String(), Gates: s.Gates, Queue: s.Queue, Deferred: s.Deferred, Executing: s.Executing,
			ForMS: s.Since.Milliseconds(), Pending: len(s.Pending), Handled: s.Version, Clause: p.Discreet().Clause()}
	default:
		since, starts := c.nodes.InFlight(addr)
		if !starts {
			return nil
		}
		ms := since.Milliseconds()
		d = description{RunLevel: "not started", Starting: &ms, Clause: p.Clause()}
	}
	b, err := json.Marshal(d)
	if err != nil {
		return nil
	}
	return b
}

// InFlight implements hub.Activations.
func (c *Cluster) InFlight(path string) (time.Duration, bool) { return c.nodes.InFlight(path) }

// Claiming implements claim.Observer.
func (c *Cluster) Claiming(addr string, reg uint64, round uint32, owner membership.Member, again bool) {
	if c.watch != nil {
		c.watch.Claiming(addr, reg, round, owner, again)
	}
}

// Settled implements claim.Observer.
func (c *Cluster) Settled(addr string, reg uint64, round uint32, landed bool) {
	if c.watch != nil {
		c.watch.Settled(addr, reg, round, landed)
	}
}

// Detaching implements claim.Observer.
func (c *Cluster) Detaching(addr string, reg uint64) {
	if c.watch != nil {
		c.watch.Detaching(addr, reg)
	}
}

// Landed implements claim.Observer (C32, C33).
func (c *Cluster) Landed(addr string, reg uint64, owner membership.Member, after time.Duration, late bool) {
	c.count.landed.Add(1)
	if late {
		c.log.Info(fmt.Sprintf("Pod-hub claim for %s landed after its initial budget was exhausted", addr),
			"address", addr, "registration", reg, "silo", c.name, "slot_owner", owner.Name, "after", after)
		return
	}
	c.log.Debug("Pod-hub claim landed", "address", addr, "registration", reg, "silo", c.name, "slot_owner", owner.Name, "after", after)
}

// NotLanding implements claim.Observer (C32).
func (c *Cluster) NotLanding(addr string, reg uint64, owner membership.Member, why string) {
	c.count.notLanding.Add(1)
	c.log.Warn(fmt.Sprintf("Pod-hub claim for %s did not land within its initial budget; it is being repeated", addr),
		"address", addr, "registration", reg, "silo", c.name, "slot_owner", owner.Name, "reason", why)
}

// Lost implements claim.Observer.
func (c *Cluster) Lost(addr string, reg uint64, owner membership.Member) {
	c.count.madeAgain.Add(1)
	c.note(addr, "claim made again", "lost", owner.Name)
	c.log.Warn(fmt.Sprintf("Pod-hub claim for %s was lost and is being made again", addr),
		"address", addr, "registration", reg, "silo", c.name, "slot_owner", owner.Name)
}

var _ claim.Host = (*Cluster)(nil)
