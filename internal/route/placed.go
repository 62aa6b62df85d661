package route

import (
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
)

// handOverUnused is how long a node hub must not have been used before it is handed over because its silo is
// much more loaded than others: one in use stays.
const handOverUnused = 10 * time.Second

// Load implements cluster.Host.
func (c *Cluster) Load() int { return c.silo.Claims.Nodes() }

// TypeOf implements cluster.Host: it reads the row, off the turn.
func (c *Cluster) TypeOf(addr string, done func(nodeType string, ok bool)) {
	c.after(0, func() {
		ctx, cancel := c.mesh.Bounds().Context(c.mesh.Context(), budget.StoreRead, "place "+addr)
		defer cancel()
		row, err := c.nodes.rows.Read(message.WithIdentity(ctx, message.SystemIdentity()), node.Path(addr))
		c.turn.Do(func() { done(row.NodeType, err == nil) })
	})
}

// HandOver implements cluster.Host.
func (c *Cluster) HandOver(n int, done func(ended int)) {
	c.after(0, func() {
		ended := c.mesh.RetireUnused(n, handOverUnused, func(h *hub.Hub) bool { return !IsProcessAddress(h.Address().Type()) })
		if ended > 0 {
			c.log.Info("Node hubs that are not used are handed over: this silo is much more loaded than another", "silo", c.name, "ended", ended, "wanted", n)
		}
		c.turn.Do(func() { done(ended) })
	})
}
