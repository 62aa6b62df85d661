package hub

import (
	"context"
	"fmt"
	"sync"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/lifecycle"
	"github.com/hubmesh/hubmesh/internal/message"
)

// children is a hub's table of hosted hubs. Its key is the path of the address: type and joined id,
// blind to hosts and segmentation.
type children struct {
	mu       sync.RWMutex
	hubs     map[string]*Hub
	making   map[string]chan struct{} // constructions under way, single-flight by path
	frozen   bool
	idle     chan struct{} // closed when no construction is under way; nil when none was asked about
	building int
}

// hosted returns the hub's table, making the place for it when needed.
func (h *Hub) hosted() *children {
	if e := h.ext.Load(); e != nil {
		return &e.children
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return &h.more().children
}

// Hosted returns the hub that this one hosts at a path, or nil. It never creates and never allocates.
func (h *Hub) Hosted(path string) *Hub {
	e := h.ext.Load()
	if e == nil {
		return nil
	}
	c := &e.children
	c.mu.RLock()
	found := c.hubs[path]
	c.mu.RUnlock()
	return found
}

// Host returns the hosted hub at a path, creating it when there is none: single-flight by path, and
// build, which may be slow, runs outside every lock. On a hub that is being disposed it fails with
// *message.Disposing.
func (h *Hub) Host(ctx context.Context, path string, k *Kind, build func(ctx context.Context) (state any, err error)) (*Hub, error) {
	at, err := newChild(path, h)
	if err != nil {
		return nil, err
	}
	c := h.hosted()
	for {
		c.mu.Lock()
		if found := c.hubs[path]; found != nil {
			c.mu.Unlock()
			return found, nil
		}
		if c.frozen {
			c.mu.Unlock()
			return nil, &message.Disposing{Address: h.addr.Path()}
		}
		wait, ok := c.making[path]
		if !ok {
			c.begin(path)
			c.mu.Unlock()
			break
		}
		c.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	var state any
	if build != nil {
		if state, err = guardedBuild(ctx, build); err != nil {
			c.end(path, nil)
			return nil, err
		}
	}
	child := newHub(h.mesh, h, at, k, state, false)
	c.end(path, child)
	// A construction that outlived the freeze is handed over to the disposal that waits for it.
	child.launch()
	if h.Level() >= lifecycle.Quiescing {
		child.Dispose()
		return nil, &message.Disposing{Address: h.addr.Path()}
	}
	return child, nil
}

func (c *children) begin(path string) {
	if c.making == nil {
		c.making = map[string]chan struct{}{}
	}
	c.making[path] = make(chan struct{})
	c.building++
}

func (c *children) end(path string, child *Hub) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.making[path])
	delete(c.making, path)
	if child != nil {
		if c.hubs == nil {
			c.hubs = map[string]*Hub{}
		}
		c.hubs[path] = child
	}
	if c.building--; c.building == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// freeze stops creation and returns the hubs that exist.
func (c *children) freeze() []*Hub {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = true
	return c.list()
}

func (c *children) list() []*Hub {
	hubs := make([]*Hub, 0, len(c.hubs))
	for _, h := range c.hubs {
		hubs = append(hubs, h)
	}
	return hubs
}

// all returns the hubs, and a channel that closes when no construction is under way; nil when none is.
func (c *children) all() ([]*Hub, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.building == 0 {
		return c.list(), nil
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	return c.list(), c.idle
}

func (c *children) remove(h *Hub) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hubs[h.addr.Path()] == h {
		delete(c.hubs, h.addr.Path())
	}
}

func guardedBuild(ctx context.Context, build func(context.Context) (any, error)) (state any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("hub: building a hosted hub panicked: %v", r)
		}
	}()
	return build(ctx)
}

// newChild is the address of a hosted hub.
func newChild(path string, host *Hub) (address.Address, error) {
	at, err := address.New(path)
	if err != nil {
		return address.Address{}, err
	}
	return at.Within(host.addr), nil
}
