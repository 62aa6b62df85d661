package nodehub

import (
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Condition makes a write depend on what is stored. The zero value is "whatever is there".
type Condition struct {
	// Version, when not 0, is the version that must be stored (If-Match).
	Version int64
	// Absent demands that there is no node (If-None-Match: *).
	Absent bool
	// Present demands that there is a node, of whatever version (If-Match: *).
	Present bool
}

type (
	// GetRequest asks for the node.
	GetRequest struct{}
	// NodeReply is a node.
	NodeReply struct {
		Node    node.Node
		Created bool
	}
	// PatchRequest merges an RFC 7396 patch over the writable fields.
	PatchRequest struct {
		Patch string // JSON text
		If    Condition
	}
	// PutRequest replaces the writable fields.
	PutRequest struct {
		Node node.Node
		If   Condition
	}
	// CreateRequest creates one node.
	CreateRequest struct{ Node node.Node }
	// CreateManyRequest writes many nodes, each on its own.
	CreateManyRequest struct{ Nodes []node.Node }
	// CreateManyReply has an outcome a node, in order.
	CreateManyReply struct{ Outcomes []Outcome }
	// ImportRequest writes a chunk of an import: what is new is created, what differs is replaced,
	// what is the same is left alone.
	ImportRequest struct{ Nodes []node.Node }
	// DeleteRequest deletes a node.
	DeleteRequest struct {
		Path      node.Path
		Recursive bool
		If        Condition
	}
	// DeleteReply says what was deleted.
	DeleteReply struct {
		Deleted int
		Version int64 // of the root's tombstone
		// Untold are silos that may still answer for what was deleted, and why: a bound fired before they were
		// told. They hear of it from the change feed.
		Untold []string
	}
	// CollectionsRequest asks the owner which of the named content collections it has, and whether
	// the caller may read the node: the question is the permission check (edge.md CR-5, CR-9).
	CollectionsRequest struct{ Names []string }
	// CollectionsReply is the owner's answer.
	CollectionsReply struct {
		Collections []Collection
		MayRead     bool // an independent evaluation for this caller
	}

	changed struct {
		change store.Change
		epoch  uint64 // of the service when it was told
	}
	refresh struct{}
)

// Outcome is the result of one node of many.
type Outcome struct {
	Path    node.Path
	Version int64
	Same    bool // an import found it as it is
	Created bool // an import made it, at version 1 or after what was there before it was deleted
	Err     error
}

// The messages of node hubs and of the node operations hub.
var (
	Get         = hub.Define[*GetRequest, *NodeReply]("node/get", message.Request|message.Safe)
	Patch       = hub.Define[*PatchRequest, *NodeReply]("node/patch", message.Request)
	Put         = hub.Define[*PutRequest, *NodeReply]("node/put", message.Request)
	Create      = hub.Define[*CreateRequest, *NodeReply]("node/create", message.Request)
	CreateMany  = hub.Define[*CreateManyRequest, *CreateManyReply]("node/create-many", message.Request)
	Import      = hub.Define[*ImportRequest, *CreateManyReply]("node/import", message.Request)
	Delete      = hub.Define[*DeleteRequest, *DeleteReply]("node/delete", message.Request)
	Collections = hub.Define[*CollectionsRequest, *CollectionsReply]("content/collections", message.Request|message.Safe)

	changedType = hub.Define[*changed, *hub.None]("node/changed", message.System)
	refreshType = hub.Define[*refresh, *hub.None]("node/refresh", message.System)
)
