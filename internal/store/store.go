package store

import (
	"context"
	"iter"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
)

// Store keeps nodes. Implementations are safe for concurrent use. Every method observes ctx where it
// waits, and answers the typed errors of this package. Reads see every commit whose Commit call has
// returned.
type Store interface {
	// Read returns the node at path, or *NotFoundError, which carries the last version that the path
	// ever had (its tombstone), so that a re-creation continues the count.
	Read(ctx context.Context, path node.Path) (node.Node, error)

	// ReadMany returns the nodes that exist, in the order of paths; missing ones are left out.
	ReadMany(ctx context.Context, paths []node.Path) ([]node.Node, error)

	// Prefix returns the deepest existing node at or above path, or *NotFoundError.
	Prefix(ctx context.Context, path node.Path) (node.Node, error)

	// Commit writes one batch durably and atomically per row: a row that conflicts fails alone, with
	// its error in its Result; the others commit together. A path stands in a batch once; a second
	// write of a path in one batch fails with ErrBatchDuplicate. The error return is a fault of the
	// store as a whole: nothing of the batch was committed. Commit publishes the changes to the
	// subscribers before it returns.
	Commit(ctx context.Context, batch []Write) ([]Result, error)

	// Children returns the direct children of path in path order. Levels without a node of their own
	// are returned as Entry values without a node (data.md §1.2: missing intermediate nodes are
	// legal).
	Children(ctx context.Context, path node.Path, page Page) ([]Entry, error)

	// Descendants yields the paths of every node below path, satellites included, in path order,
	// path itself excluded. It is authoritative: an error ends it and is yielded.
	Descendants(ctx context.Context, path node.Path) iter.Seq2[node.Path, error]

	// Select returns the nodes that q matches, sorted and limited as q says.
	Select(ctx context.Context, q query.Query) ([]node.Node, error)

	// Versions lists the history of path, newest first. History survives deletion.
	Versions(ctx context.Context, path node.Path, page VersionPage) ([]VersionInfo, error)

	// At returns the node as it was at version; *NotFoundError when that version is not kept, or was
	// the deletion.
	At(ctx context.Context, path node.Path, version int64) (node.Node, error)

	// EnsurePartition provisions a partition; it is idempotent. A name is the first path segment; two
	// names that differ in case only are refused with *PartitionError.
	EnsurePartition(ctx context.Context, name string, by string) error
	// Partitions lists the provisioned partitions in name order.
	Partitions(ctx context.Context) ([]Partition, error)
	// RemovePartition removes the partition's row once no node is left in it; *PartitionError
	// otherwise.
	RemovePartition(ctx context.Context, name string) error

	// Subscribe registers fn for every committed change, in commit order for a path. fn runs on the
	// committing goroutine before the writer is answered, so it must be short and must not write; a
	// panic in fn is contained and counted. The returned function ends the subscription and waits for
	// a running call.
	Subscribe(fn func(Change)) (cancel func())

	// Blobs returns the key-value side table for things that are not nodes: tokens, import
	// fingerprints, settings.
	Blobs() Blobs

	// Ready returns nil when the store can serve, or what keeps it from it.
	Ready(ctx context.Context) error

	// Close waits for a running commit and releases the store.
	Close() error
}

// Op is what a Write does.
type Op uint8

// The operations of a Write. Their numbers are not stored.
const (
	// OpCreate inserts; it fails with *ExistsError when the path has a node, and with
	// *ConflictError when Node.Version is not above the path's tombstone.
	OpCreate Op = iota + 1
	// OpUpdate replaces the row; it fails with *ConflictError unless the stored version is Expected.
	OpUpdate
	// OpDelete removes the row and leaves a tombstone at Node.Version (which must be above the stored
	// version); Expected < 0 means "whatever is there".
	OpDelete
)

// Write is one row of a batch. Node.Version is the version after the write, minted by the owner.
type Write struct {
	Op       Op
	Node     node.Node
	Expected int64  // for OpUpdate and OpDelete: the version that must be stored
	Origin   string // who wrote it, echoed in the Change; lets a writer know its own changes
}

// Result answers one Write.
type Result struct {
	Node node.Node // as stored; for OpDelete the node that was removed
	Err  error     // nil, *ExistsError, *ConflictError, *NotFoundError, *PartitionError, ErrBatchDuplicate or a *RowError
}

// ChangeKind says what happened to a node.
type ChangeKind uint8

// The kinds of change (data.md §2.2).
const (
	Created ChangeKind = iota + 1
	Updated
	Deleted
)

// Change is one committed write as subscribers see it (data.md §2.2).
type Change struct {
	Kind    ChangeKind
	Path    node.Path
	Node    node.Node // after the write; for Deleted the removed node
	Version int64     // the version after the write; for Deleted the tombstone's
	At      time.Time
	Origin  string
}

// Entry is one child of a listing.
type Entry struct {
	Path        node.Path
	Node        *node.Node // nil where the level has no node of its own
	HasChildren bool       // non-satellite nodes exist below
}

// Page bounds a listing of children.
type Page struct {
	After      string // return entries whose last segment sorts after this one
	Limit      int    // 0 means 1,000; at most 10,000
	Satellites bool   // include satellite segments such as _Access
}

// VersionPage bounds a listing of versions.
type VersionPage struct {
	Before int64 // return versions strictly below; 0 means from the newest
	Limit  int   // 0 means 100; at most 1,000
}

// VersionInfo is one line of a node's history.
type VersionInfo struct {
	Version int64      `json:"version"`
	Kind    ChangeKind `json:"-"`
	At      time.Time  `json:"at"`
	By      string     `json:"by"`
	Name    string     `json:"name,omitempty"`
}

// Partition is one provisioned partition.
type Partition struct {
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"createdAt"`
	CreatedBy string    `json:"createdBy"`
	Deleting  bool      `json:"deleting,omitempty"`
}

// Blobs is a small durable key-value table, for records that are not nodes. Keys are grouped by
// bucket. Values are at most 64 KiB.
type Blobs interface {
	Get(ctx context.Context, bucket, key string) ([]byte, error) // *NotFoundError when absent
	Put(ctx context.Context, bucket, key string, value []byte) error
	Delete(ctx context.Context, bucket, key string) error
	List(ctx context.Context, bucket string) iter.Seq2[string, []byte]
}
