package nodehub

import (
	"container/list"
	"sync"

	"github.com/hubmesh/hubmesh/internal/node"
)

// inlineContent is the size up to which a hub keeps its content itself, in bytes; longer content lives
// in the one cache, so that 100,000 idle hubs do not hold 100,000 documents (hub.md §6).
const inlineContent = 1024

// contentCache keeps long contents by path and version, bounded in bytes, least recently used first
// out. It is safe for concurrent use.
type contentCache struct {
	mu    sync.Mutex
	limit int
	size  int
	order *list.List // of *cached, most recent first
	byKey map[node.Path]*list.Element
}

type cached struct {
	path    node.Path
	version int64
	content node.Content
}

func newContentCache(limit int) *contentCache {
	return &contentCache{limit: limit, order: list.New(), byKey: map[node.Path]*list.Element{}}
}

func (c *contentCache) get(path node.Path, version int64) (node.Content, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[path]
	if e == nil || e.Value.(*cached).version != version {
		return node.Content{}, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).content, true
}

func (c *contentCache) put(path node.Path, version int64, content node.Content) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if content.Len() > c.limit {
		c.remove(c.byKey[path])
		return
	}
	if e := c.byKey[path]; e != nil {
		old := e.Value.(*cached)
		if old.version > version {
			return
		}
		c.size += content.Len() - old.content.Len()
		old.version, old.content = version, content
		c.order.MoveToFront(e)
	} else {
		c.byKey[path] = c.order.PushFront(&cached{path, version, content})
		c.size += content.Len()
	}
	for c.size > c.limit {
		c.remove(c.order.Back())
	}
}

// clear forgets everything.
func (c *contentCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size = 0
	c.order.Init()
	clear(c.byKey)
}

func (c *contentCache) drop(path node.Path) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.byKey[path])
}

func (c *contentCache) remove(e *list.Element) {
	if e == nil {
		return
	}
	v := c.order.Remove(e).(*cached)
	delete(c.byKey, v.path)
	c.size -= v.content.Len()
}
