package feed

import (
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Invalidation tells a cache what to drop (data.md §2.2). Version 0 says that only the path is known; a
// Created or Updated one with neither version nor type that comes to the relay is read for first (CF-9,
// CF-11).
type Invalidation struct {
	Path     node.Path
	Kind     store.ChangeKind
	Version  int64 // after the change; of a deletion the tombstone's
	NodeType string
	Node     *node.Node // where it is carried: after the change, of a deletion what was removed
	Own      bool       // this process published it
	Origin   string     // of one that it published: who in it wrote
	At       time.Time  // of the change, as its writer or the server says; of a bare notification when it came

	// Reset says that everything may have changed, and Cause why. The rest is then empty.
	Reset bool
	Cause string
}

const causeQueue = "the subscriber was too slow"

// selfContained tells whether nothing has to be read to tell of it (CF-9).
func (i Invalidation) selfContained() bool {
	return i.Reset || i.Node != nil || i.Version != 0 || i.NodeType != "" || i.Kind == store.Deleted
}

func ofChange(c store.Change) Invalidation {
	return Invalidation{Path: c.Path, Kind: c.Kind, Version: c.Version, NodeType: c.Node.NodeType, Node: &c.Node, Own: true, Origin: c.Origin, At: c.At}
}

func ofRow(r store.ChangeRow) Invalidation {
	return Invalidation{Path: r.Path, Kind: r.Kind, Version: r.Version, NodeType: r.NodeType, At: r.At}
}
