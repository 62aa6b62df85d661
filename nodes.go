package hubmesh

import (
	"context"
	"encoding/json"

	"github.com/hubmesh/hubmesh/internal/mirror"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/query"
)

// The values of the mesh.
type (
	// Node is one versioned record.
	Node = node.Node
	// Path is the path of a node.
	Path = node.Path
	// Content is the JSON of a node's content.
	Content = node.Content
	// Condition makes a write depend on what is stored.
	Condition = nodehub.Condition
	// Frame is one step of a watch.
	Frame = mirror.Frame
	// Watch follows one node; see [Mesh.Watch].
	Watch = mirror.Watch
)

// The kinds of frames.
const (
	Full    = mirror.Full
	Patch   = mirror.Patch
	Deleted = mirror.Deleted
)

// Well-known node types.
const (
	Space    = node.TypeSpace
	Markdown = node.TypeMarkdown
)

// JSON returns v as a content.
func JSON(v any) (Content, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return Content{}, err
	}
	return node.ParseContent(text, node.DefaultLimits)
}

// Get returns the node at a path.
func (m *Mesh) Get(ctx context.Context, path string) (Node, error) {
	p, err := node.ParsePath(path)
	if err != nil {
		return Node{}, err
	}
	return m.nodes.Get(ctx, p)
}

// Create creates a node of a type with a content, given as a value that marshals to JSON. A top-level
// node of type [Space] makes its space.
func (m *Mesh) Create(ctx context.Context, path, nodeType string, content any) (Node, error) {
	p, err := node.ParsePath(path)
	if err != nil {
		return Node{}, err
	}
	c, err := JSON(content)
	if err != nil {
		return Node{}, err
	}
	return m.nodes.Create(ctx, Node{Path: p, NodeType: nodeType, Name: p.ID(), Content: c})
}

// CreateMany creates many nodes, each with its own outcome in order: nil, or why it was not created.
func (m *Mesh) CreateMany(ctx context.Context, nodes []Node) ([]error, error) {
	out, err := m.nodes.CreateMany(ctx, nodes)
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(out))
	for i, o := range out {
		errs[i] = o.Err
	}
	return errs, nil
}

// Put creates a node or replaces its writable fields.
func (m *Mesh) Put(ctx context.Context, n Node, cond Condition) (Node, error) {
	got, _, err := m.nodes.Put(ctx, n, cond)
	return got, err
}

// Patch merges an RFC 7396 patch, given as a value that marshals to it, over a node.
func (m *Mesh) Patch(ctx context.Context, path string, patch any, cond Condition) (Node, error) {
	p, err := node.ParsePath(path)
	if err != nil {
		return Node{}, err
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return Node{}, err
	}
	return m.nodes.Patch(ctx, p, text, cond)
}

// Delete deletes a node, or with recursive its subtree.
func (m *Mesh) Delete(ctx context.Context, path string, recursive bool) error {
	p, err := node.ParsePath(path)
	if err != nil {
		return err
	}
	_, err = m.nodes.Delete(ctx, p, recursive, Condition{})
	return err
}

// Query returns the nodes that match a query and that the caller may read.
func (m *Mesh) Query(ctx context.Context, text string) ([]Node, error) {
	q, err := query.Parse(text)
	if err != nil {
		return nil, err
	}
	return m.nodes.Select(ctx, q)
}

// Watch follows the node at a path from version since on (0: from now): a full frame, then patches. A
// write that was acknowledged before Watch returned is in the first frame, a later one in a later
// frame. Close the watch.
func (m *Mesh) Watch(ctx context.Context, path string, since int64) (*Watch, error) {
	p, err := node.ParsePath(path)
	if err != nil {
		return nil, err
	}
	return m.mirrors.Watch(ctx, p, since)
}

// Grant gives a subject a role ("Viewer", "Editor", "Admin") at a scope and everything below it; scope
// "" is everything.
func (m *Mesh) Grant(ctx context.Context, scope, subject, role string) error {
	return m.nodes.Grant(ctx, node.Path(scope), subject, role)
}
