package route

import (
	"context"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/node"
)

var _ cluster.Follower = (*Cluster)(nil)

// Committed implements cluster.Follower: where this silo holds something of an address, it hears of everything
// that is committed until now before it answers.
func (c *Cluster) Committed(addrs []string, done func(err error)) {
	if c.hears == nil {
		done(nil)
		return
	}
	paths := make([]node.Path, len(addrs))
	for i, a := range addrs {
		paths[i] = node.Path(a)
	}
	c.after(0, func() {
		ctx, cancel := c.mesh.Bounds().Context(c.mesh.Context(), budget.CatchUp, "hear what was committed")
		defer cancel()
		err := c.hears(ctx, paths)
		c.turn.Do(func() { done(err) })
	})
}

// Tell tells the other silos that nodes were changed in the store without their hubs, and returns once each of them
// answers from nothing older or is out of the view; after within, with those that are left.
func (c *Cluster) Tell(ctx context.Context, paths []node.Path, within time.Duration) []cluster.Untold {
	addrs := make([]string, len(paths))
	for i, p := range paths {
		addrs[i] = string(p)
	}
	got := make(chan []cluster.Untold, 1)
	c.turn.Do(func() { c.silo.Tell(addrs, within, func(left []cluster.Untold) { got <- left }) })
	select {
	case left := <-got:
		return left
	case <-ctx.Done():
		return []cluster.Untold{{Silo: c.name, Why: context.Cause(ctx).Error()}}
	}
}
