package nodehub

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// recycled is how often an ask that met a hub on its way down is put to the next one.
const recycled = 3

// Client is how everybody above asks for nodes, in the name of whoever ctx carries. It is safe for
// concurrent use.
type Client struct {
	s *Service
}

// Client returns the client of the service.
func (s *Service) Client() *Client { return &Client{s} }

// ask puts a request to the hub of a node in the name of a process hub. A hub that is on its way down
// has done nothing with it, so the next one is asked once it is gone.
//
// Whoever is denied to read the node is answered as if there were none, at once and without starting a
// hub: a denial is a fold over the assignments and needs no row, and waiting for a slow start would tell
// that there is something to start. A grant says nothing here: the owner's answer stays the check.
func ask[Req, Resp any](ctx context.Context, s *Service, from *hub.Hub, t *hub.Type[Req, Resp], path node.Path, r Req, w budget.Bound) (Resp, error) {
	if message.IdentityFrom(ctx) != nil && s.MayRead(ctx, path) == access.Denied {
		var none Resp
		return none, &store.NotFoundError{Path: path}
	}
	for attempt := 0; ; attempt++ {
		resp, err := t.AskFrom(ctx, from, string(path), r, w)
		var f *message.Failure
		if attempt == recycled || !errors.As(err, &f) || f.Type != message.ShuttingDown || f.Reason != message.ReasonStopping || f.AnsweredBy != string(path) || f.OutcomeUnknown {
			return resp, err
		}
		h := s.mesh.Find(string(path))
		if h == nil {
			continue
		}
		select {
		case <-h.Done():
		case <-ctx.Done():
			return resp, err
		}
	}
}

// Get returns the node at a path. It is asked through the reads hub.
func (c *Client) Get(ctx context.Context, path node.Path) (node.Node, error) {
	r, err := ask(ctx, c.s, c.s.reads, Get, path, &GetRequest{}, budget.Read)
	if err != nil {
		return node.Node{}, err
	}
	return r.Node, nil
}

// Create creates one node.
func (c *Client) Create(ctx context.Context, n node.Node) (node.Node, error) {
	r, err := Create.AskWithin(ctx, c.s.mesh, c.s.ops.Path(), &CreateRequest{Node: n}, budget.Request)
	if err != nil {
		return node.Node{}, err
	}
	return r.Node, nil
}

// CreateMany creates many nodes, each with its own outcome.
func (c *Client) CreateMany(ctx context.Context, nodes []node.Node) ([]Outcome, error) {
	r, err := CreateMany.AskWithin(ctx, c.s.mesh, c.s.ops.Path(), &CreateManyRequest{Nodes: nodes}, budget.Request)
	if err != nil {
		return nil, err
	}
	return r.Outcomes, nil
}

// Import writes a chunk of an import, each node with its own outcome.
func (c *Client) Import(ctx context.Context, nodes []node.Node) ([]Outcome, error) {
	r, err := Import.AskWithin(ctx, c.s.mesh, c.s.ops.Path(), &ImportRequest{Nodes: nodes}, budget.Request)
	if err != nil {
		return nil, err
	}
	return r.Outcomes, nil
}

// KnowsType tells whether the caller's nodes may have a type: it is there, and the caller may read it.
func (c *Client) KnowsType(ctx context.Context, name string) (bool, error) {
	if c.s.typeHidden(ctx, name) && !c.s.types.isRegistered(name) {
		return false, nil
	}
	_, err := c.s.types.resolve(ctx, name)
	var unknown *TypeError
	if errors.As(err, &unknown) {
		return false, nil
	}
	return true, err
}

// Put replaces the writable fields of a node, or creates it. A create that loses its race becomes an
// update, and the other way round.
func (c *Client) Put(ctx context.Context, n node.Node, cond Condition) (got node.Node, created bool, err error) {
	for range recycled {
		r, err := ask(ctx, c.s, c.s.ops, Put, n.Path, &PutRequest{Node: n, If: cond}, budget.Request)
		if err == nil {
			return r.Node, false, nil
		}
		if !notFound(err) {
			return node.Node{}, false, err
		}
		if cond.Version != 0 || cond.Present {
			return node.Node{}, false, err
		}
		got, err = c.Create(ctx, n)
		var exists *store.ExistsError
		if err == nil || !errors.As(err, &exists) || cond.Absent || exists.Other != "" {
			return got, err == nil, err
		}
	}
	return node.Node{}, false, &store.ConflictError{Path: n.Path}
}

// notFound tells whether err says that there is no such node.
func notFound(err error) bool {
	var missing *store.NotFoundError
	if errors.As(err, &missing) {
		return true
	}
	t, ok := message.TypeOf(err)
	return ok && t == message.NotFound
}

// Patch merges an RFC 7396 patch over the writable fields of a node.
func (c *Client) Patch(ctx context.Context, path node.Path, patch []byte, cond Condition) (node.Node, error) {
	r, err := ask(ctx, c.s, c.s.ops, Patch, path, &PatchRequest{Patch: string(patch), If: cond}, budget.Request)
	if err != nil {
		return node.Node{}, err
	}
	return r.Node, nil
}

// Delete deletes a node, or with recursive its subtree.
func (c *Client) Delete(ctx context.Context, path node.Path, recursive bool, cond Condition) (*DeleteReply, error) {
	return Delete.AskWithin(ctx, c.s.mesh, c.s.ops.Path(), &DeleteRequest{Path: path, Recursive: recursive, If: cond}, budget.Request)
}

// Collections asks the owner of a node for its content collections.
func (c *Client) Collections(ctx context.Context, path node.Path, names ...string) (*CollectionsReply, error) {
	return ask(ctx, c.s, c.s.reads, Collections, path, &CollectionsRequest{Names: names}, budget.Read)
}

// Select returns the nodes that match a query and that the caller may read. It is eventually
// consistent with hubs: it asks the store (data.md Q-8).
func (c *Client) Select(ctx context.Context, q query.Query) ([]node.Node, error) {
	e := c.s.access.Evaluator()
	if !e.Loaded() {
		return nil, &access.UndeterminedError{}
	}
	ctx, cancel := c.s.mesh.Bounds().Context(ctx, budget.Read, "query")
	defer cancel()
	subject := SubjectOf(ctx)
	if e.HoldsNothing(subject) {
		return nil, nil // nothing is scanned for who may read nothing
	}
	// A query looks at many rows: those of one subject never take all the connections and processors that
	// reads, sign-ins and starts of hubs need.
	if err := c.s.queries.enter(ctx, string(subject)); err != nil {
		return nil, err
	}
	defer c.s.queries.leave(string(subject))
	nodes, err := c.s.store.Select(ctx, q.Only(func(n node.Node) bool { return e.Check(subject, n.Path, access.Read) == access.Granted }))
	now := c.s.access.Evaluator()
	if !now.Loaded() {
		return nil, &access.UndeterminedError{}
	}
	if now != e {
		// What was written after it was denied is in the rows, and the denial is not in what they were read with.
		nodes = slices.DeleteFunc(nodes, func(n node.Node) bool { return now.Check(subject, n.Path, access.Read) != access.Granted })
	}
	return nodes, err
}

// MayRead is the verdict on reading one path.
func (c *Client) MayRead(ctx context.Context, path node.Path) access.Verdict {
	return c.s.MayRead(ctx, path)
}

// Require is nil when the caller holds need at a path; whoever may not read it is answered as if there
// were no node.
func (c *Client) Require(ctx context.Context, path node.Path, need access.Permission) error {
	return c.s.permit(ctx, path, need)
}

// HoldsNothing tells whether the caller is nobody who is known, and nothing is granted to visitors anywhere.
func (c *Client) HoldsNothing(ctx context.Context) bool {
	return c.s.access.Evaluator().HoldsNothing(SubjectOf(ctx))
}

// IsAdmin tells whether the caller is Admin of the root scope.
func (c *Client) IsAdmin(ctx context.Context) (bool, error) {
	switch c.s.access.Evaluator().Check(SubjectOf(ctx), "", access.Administer) {
	case access.Granted:
		return true, nil
	case access.Undetermined:
		return false, &access.UndeterminedError{}
	}
	return false, nil
}

// WasAdmin tells whether the caller was Admin of the root scope by what was heard of last. Where IsAdmin can not tell,
// that says who may be told what goes on, and nothing about a node.
func (c *Client) WasAdmin(ctx context.Context) bool {
	return c.s.access.Known().Check(SubjectOf(ctx), "", access.Administer) == access.Granted
}

// Grant gives a subject a role at a scope, replacing what its assignment there says.
func (c *Client) Grant(ctx context.Context, scope node.Path, subject, role string) error {
	if _, ok := access.RolePermission(role); !ok {
		return &RuleError{Path: scope, Reason: "there is no role '" + role + "'"}
	}
	path, err := node.ParsePath(string(scope) + "/_Access/" + subject + "_Access")
	if err != nil {
		return err
	}
	_, _, err = c.Put(ctx, node.Node{Path: path, NodeType: node.TypeAccessAssignment, Name: subject + " Access", State: node.StateActive, Content: AssignmentContent(subject, role)}, Condition{})
	return err
}

// EnsureCollection makes a content collection of a node, unless it has one of that name. The caller
// needs Create below the node.
func (c *Client) EnsureCollection(ctx context.Context, at node.Path, col Collection) error {
	dir, err := at.Join(CollectionSegment)
	if err != nil {
		return err
	}
	path, err := dir.Join(col.Name)
	if err != nil {
		return err
	}
	text, err := json.Marshal(col)
	if err != nil {
		return err
	}
	_, err = c.Create(ctx, node.Node{Path: path, NodeType: TypeCollection, Name: col.Name, Content: node.RawContent(string(text)),
		ExcludeFromContext: []string{"search", "create", "browse"}})
	var exists *store.ExistsError
	if errors.As(err, &exists) {
		return nil
	}
	return err
}
