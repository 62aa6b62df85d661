package nodehub

import (
	"context"
	"encoding/json"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
)

// Turn is a node as a handler of its own type sees it, on the node's turn.
type Turn struct {
	s   *Service
	h   *hub.Hub
	now node.Node
}

// TurnOf returns the node whose turn ctx is, once the caller holds need there.
func TurnOf(ctx context.Context, h *hub.Hub, need access.Permission) (*Turn, error) {
	st, ok := h.State().(*state)
	if !ok {
		return nil, &message.Failure{Type: message.Failed, Message: "'" + h.Path() + "' is not a node"}
	}
	if err := st.service.permit(ctx, node.Path(h.Path()), need); err != nil {
		return nil, err
	}
	n, err := st.service.current(ctx, h)
	if err != nil {
		return nil, err
	}
	return &Turn{st.service, h, n}, nil
}

// Node is the node as it is now.
func (t *Turn) Node() node.Node { return t.now }

// Patch merges a patch, given as a value that marshals to it, and returns once it is durable.
func (t *Turn) Patch(ctx context.Context, patch any) (node.Node, error) {
	text, err := json.Marshal(patch)
	if err != nil {
		return node.Node{}, err
	}
	r, err := t.s.patch(ctx, t.h, &PatchRequest{Patch: string(text)})
	if err != nil {
		return node.Node{}, err
	}
	t.now = r.Node
	return r.Node, nil
}
