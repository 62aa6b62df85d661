package nodehub

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// TypeCollection is the type of the nodes {node}/_Content/{name} that configure a content collection.
const TypeCollection = "ContentCollection"

// CollectionSegment is the segment below a node under which its collections are configured.
const CollectionSegment = "_Content"

// Collection is the configuration of a content collection as its owner tells it. Every field survives
// the wire; an absent boolean is false (edge.md CR-10).
type Collection struct {
	Name        string            `json:"name"`
	SourceType  string            `json:"sourceType"` // "folder": the server's own content folder
	DisplayName string            `json:"displayName,omitempty"`
	BasePath    string            `json:"basePath,omitempty"`
	Order       int               `json:"order,omitempty"`
	Address     string            `json:"address,omitempty"`     // the node that owns it
	IsStatic    bool              `json:"isStatic,omitempty"`    // published over HTTP (CR-8)
	IsEditable  bool              `json:"isEditable,omitempty"`  // takes uploads
	IsInherited bool              `json:"isInherited,omitempty"` // serves the nodes below its owner too
	Settings    map[string]string `json:"settings,omitempty"`
}

// collections keeps the configurations of every node, fed by the store's feed. It is safe for
// concurrent use.
type collections struct {
	mu sync.RWMutex
	of map[node.Path]map[string]entry // by owner and name
}

type entry struct {
	Collection
	version int64
	deleted bool
	fresh   bool // came with a change since the last load
}

func newCollections() *collections {
	return &collections{of: map[node.Path]map[string]entry{}}
}

// owner is the node whose collection a path configures.
func collectionOwner(path node.Path) (owner node.Path, ok bool) {
	dir := path.Parent()
	if dir.ID() != CollectionSegment || dir.Depth() < 2 {
		return "", false
	}
	return dir.Parent(), true
}

// apply takes a configuration node or its removal; the highest version of a path wins.
func (c *collections) apply(n node.Node, version int64, deleted bool) {
	c.take(n, version, deleted, true)
}

// take takes what was told, or what was read: that counts also with a lower version, where nothing was told since the
// read began.
func (c *collections) take(n node.Node, version int64, deleted, told bool) {
	owner, ok := collectionOwner(n.Path)
	if !ok {
		return
	}
	e := entry{version: version, deleted: deleted || n.NodeType != TypeCollection, fresh: told}
	if err := n.Content.Decode(&e.Collection); err != nil {
		e.deleted = true
	}
	e.Name, e.Address = n.Path.ID(), string(owner)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[owner] == nil {
		c.of[owner] = map[string]entry{}
	}
	if old, ok := c.of[owner][e.Name]; !ok || old.version < version || !told && !old.fresh {
		c.of[owner][e.Name] = e
	}
}

// checkCollection refuses a node in the place of a collection's configuration that configures none: it
// would only make the collection vanish.
func checkCollection(n node.Node) error {
	if _, ok := collectionOwner(n.Path); !ok {
		return nil
	}
	if n.NodeType != TypeCollection {
		return &RuleError{Path: n.Path, Reason: fmt.Sprintf("only nodes of type %s stand in %s, not '%s'", TypeCollection, CollectionSegment, n.NodeType)}
	}
	var c Collection
	if err := n.Content.Decode(&c); err != nil {
		return &RuleError{Path: n.Path, Reason: fmt.Sprintf("its content is no collection: %v", err)}
	}
	if base := strings.Trim(c.BasePath, "/"); base != "" && (!fs.ValidPath(base) || base == "." || strings.ContainsAny(base, "\\~")) {
		return &RuleError{Path: n.Path, Reason: fmt.Sprintf("its basePath %q is no folder within the collection: name folders with '/' between them, and neither '.' nor '..'", c.BasePath)}
	}
	return nil
}

// find returns the collection of a node by name: its own, or the nearest inherited one above.
func (c *collections) find(path node.Path, name string) (Collection, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e, ok := c.of[path][name]; ok && !e.deleted {
		return e.Collection, true
	}
	for above := range path.Ancestors() {
		if e, ok := c.of[above][name]; ok && !e.deleted && e.IsInherited {
			return e.Collection, true
		}
	}
	return Collection{}, false
}

// LoadCollections reads every configuration. Changes are fed from before it begins.
func (s *Service) LoadCollections(ctx context.Context) error {
	q, err := query.Parse("nodeType:" + TypeCollection + " scope:subtree")
	if err != nil {
		return err
	}
	s.content.begin()
	nodes, err := s.store.Select(ctx, q)
	if err != nil {
		return err
	}
	s.content.load(nodes)
	return nil
}

// begin says that everything is about to be read: what is told from now on is newer than that may be.
func (c *collections) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, byName := range c.of {
		for name, e := range byName {
			e.fresh = false
			byName[name] = e
		}
	}
}

// load takes what was read; a configuration that was not found is gone.
func (c *collections) load(nodes []node.Node) {
	found := make(map[node.Path]bool, len(nodes))
	for _, n := range nodes {
		found[n.Path] = true
		c.take(n, n.Version, false, false)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for owner, byName := range c.of {
		for name, e := range byName {
			at, err := owner.Join(CollectionSegment)
			if err == nil {
				at, err = at.Join(name)
			}
			// What changed while it was read has a later version than any that the read could have seen.
			if err == nil && !found[at] && !e.fresh {
				e.deleted = true
			}
			e.fresh = false
			byName[name] = e
		}
	}
}

// collections answers which of the named collections the node has. Asking is the permission check: the
// answer is for this caller and is not kept by anybody (edge.md CR-5).
func (s *Service) collections(ctx context.Context, h *hub.Hub, r *CollectionsRequest) (*CollectionsReply, error) {
	path := node.Path(h.Path())
	if err := s.permit(ctx, path, access.Read); err != nil {
		return nil, err
	}
	if err := s.serving(ctx, h); err != nil {
		return nil, err
	}
	if h.State().(*state).gone {
		return nil, &store.NotFoundError{Path: path}
	}
	verdict := s.MayRead(ctx, path)
	if verdict == access.Undetermined {
		return nil, &access.UndeterminedError{Path: path}
	}
	reply := &CollectionsReply{MayRead: verdict == access.Granted}
	for _, name := range r.Names {
		if c, ok := s.content.find(path, name); ok {
			reply.Collections = append(reply.Collections, c)
		}
	}
	return reply, nil
}
