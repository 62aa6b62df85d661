package hubmesh

import (
	"context"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/nodehub"
)

// NodeType is a type of nodes with handlers of the program's own. Make one with [Type], give it to
// [Options].Types. A node of the type is created like any other; its nodeType is the name.
type NodeType struct {
	name  string
	adds  []func(k *hub.Kind)
	wires []hub.WireType // of its messages, which travel between silos
}

// Type declares a node type.
func Type(name string) *NodeType { return &NodeType{name: name} }

func (t *NodeType) build(k *hub.Kind) {
	for _, add := range t.adds {
		add(k)
	}
}

// Message is a request that nodes answer, with the type of its response.
type Message[Req, Resp any] struct {
	t *hub.Type[*Req, *Resp]
}

// Define declares a message. The name is its name in logs and on the wire, such as "orders/ship".
func Define[Req, Resp any](name string) Message[Req, Resp] {
	return Message[Req, Resp]{hub.Define[*Req, *Resp](name, message.Request)}
}

// Handle registers f for a message to nodes of the type. Calls of one node never overlap. The caller
// must be allowed to update the node; [HandleRead] takes messages from whoever may read it. ctx ends
// with the caller's budget and acts for the caller.
func Handle[Req, Resp any](t *NodeType, m Message[Req, Resp], f func(ctx context.Context, n *This, req *Req) (*Resp, error)) {
	handle(t, m, access.Update, f)
}

// HandleRead is [Handle] for messages that change nothing.
func HandleRead[Req, Resp any](t *NodeType, m Message[Req, Resp], f func(ctx context.Context, n *This, req *Req) (*Resp, error)) {
	handle(t, m, access.Read, f)
}

func handle[Req, Resp any](t *NodeType, m Message[Req, Resp], need access.Permission, f func(context.Context, *This, *Req) (*Resp, error)) {
	t.wires = append(t.wires, m.t.Wire())
	t.adds = append(t.adds, func(k *hub.Kind) {
		hub.Handle(k, m.t, func(ctx context.Context, h *hub.Hub, req *Req) (*Resp, error) {
			turn, err := nodehub.TurnOf(ctx, h, need)
			if err != nil {
				return nil, err
			}
			return f(ctx, &This{turn}, req)
		})
	})
}

// This is the node whose handler runs. It is valid during the call.
type This struct{ turn *nodehub.Turn }

// Node returns the node as it is now.
func (n *This) Node() Node { return n.turn.Node() }

// Decode reads the node's content into v.
func (n *This) Decode(v any) error { return n.turn.Node().Content.Decode(v) }

// Patch merges an RFC 7396 patch, given as a value that marshals to it, over the node. It returns once
// the change is durable.
func (n *This) Patch(ctx context.Context, patch any) (Node, error) { return n.turn.Patch(ctx, patch) }

// Ask puts a message to the node at a path and awaits its answer, for whoever ctx acts for. A node that
// is not running is started by it.
func (m Message[Req, Resp]) Ask(ctx context.Context, mesh *Mesh, path string, req *Req) (*Resp, error) {
	return m.t.Ask(ctx, mesh.hubs, path, req)
}

// As returns a context that acts for a subject, such as a user's id.
func As(ctx context.Context, subject string) context.Context {
	return message.WithIdentity(ctx, &message.Identity{Subject: subject, Name: subject})
}

// AsSystem returns a context that acts for the infrastructure: everything is allowed. It is for the
// program's own work, never for work on behalf of a caller.
func AsSystem(ctx context.Context) context.Context {
	return message.WithIdentity(ctx, message.SystemIdentity())
}
