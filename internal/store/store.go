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
// returned. "Path order" is that of [node.Path.Compare]. Rows that come in are taken as checked by
// their owner ([node.ParsePath], [node.ParseContent]); what no store can keep is a *[RowError].
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
	// subscribers before it returns. Once a batch is being written, ctx no longer stops it.
	Commit(ctx context.Context, batch []Write) ([]Result, error)

	// Children returns the direct children of path in path order. Levels without a node of their own
	// are returned as Entry values without a node (data.md §1.2: missing intermediate nodes are
	// legal). Satellites, and levels with nothing but satellites, are left out unless the page asks for
	// them; among satellites everything is returned.
	Children(ctx context.Context, path node.Path, page Page) ([]Entry, error)

	// Descendants yields the paths of every node below path, satellites included, in path order,
	// path itself excluded. It is authoritative: an error ends it and is yielded.
	Descendants(ctx context.Context, path node.Path) iter.Seq2[node.Path, error]

	// Select returns the nodes that q matches, sorted and limited as q says; *ScanLimitError where
	// that would look at, or return, more than the store allows.
	Select(ctx context.Context, q query.Query) ([]node.Node, error)

	// Versions lists the history of path, newest first; empty for a path that never had a node.
	// History survives deletion: the deletion itself is the version of the tombstone. The store keeps
	// a number of versions a node (1,000 unless configured), and up to a sixteenth more until it
	// prunes.
	Versions(ctx context.Context, path node.Path, page VersionPage) ([]VersionInfo, error)

	// At returns the node as it was at version; *NotFoundError when that version is not kept, or was
	// the deletion.
	At(ctx context.Context, path node.Path, version int64) (node.Node, error)

	// EnsurePartition provisions a partition; it is idempotent. A name is the first path segment; two
	// names that differ in case only are refused with *PartitionError, and so is a name that is being
	// deleted. The partition "_Access" of the root assignments is always there and is not listed.
	EnsurePartition(ctx context.Context, name string, by string) error
	// Partitions lists the provisioned partitions in name order.
	Partitions(ctx context.Context) ([]Partition, error)
	// MarkPartition marks a partition as being deleted, or takes the mark away. In a marked partition
	// only deletes are accepted. *PartitionError when there is no such partition.
	MarkPartition(ctx context.Context, name string, deleting bool) error
	// RemovePartition removes the partition and the history in it once no node is left in it;
	// *PartitionError otherwise. Tombstones stay, so that a path that comes back continues its count.
	RemovePartition(ctx context.Context, name string) error

	// Subscribe registers fn for every committed change, in commit order for a path. fn runs on the
	// committing goroutine before the writer is answered, so it must be short and must not write; a
	// panic in fn is contained and counted. The returned function ends the subscription and waits for
	// a running call.
	Subscribe(fn func(Change)) (cancel func())

	// Blobs returns the key-value side table for things that are not nodes: tokens, import
	// fingerprints, settings.
	Blobs() Blobs

	// Settle returns once everything that could be read when it was called is as safe as an acknowledged commit.
	// What another one has committed can be read before it was acknowledged, so whoever acknowledges a write
	// because nothing has to be changed settles first. *UnavailableError where that is not known within 10 s.
	Settle(ctx context.Context) error

	// Ready returns nil when the store can serve, or what keeps it from it.
	Ready(ctx context.Context) error

	// Close waits for a running commit and releases the store.
	Close() error
}

// Op is what a Write does.
type Op uint8

// The operations of a Write. Their numbers are not stored.
const (
	// OpCreate inserts; it fails with *ExistsError when the path has a node, or one that differs in
	// case only, with *ConflictError when Node.Version is not above the path's tombstone, and with
	// *GroundError when its Ground is gone.
	OpCreate Op = iota + 1
	// OpUpdate replaces the row but for its creation stamps; it fails with *ConflictError unless the
	// stored version is Expected (nothing is stored as 0) and Node.Version is above it.
	OpUpdate
	// OpDelete removes the row and leaves a tombstone at Node.Version; Expected < 0 means "whatever is
	// there". It fails with *NotFoundError when there is no node, so that of several racers one wins,
	// and with *ConflictError unless the stored version is Expected and Node.Version is above it, and
	// with *NotEmptyError where it is to be Empty and is not. Of Node it uses Path, Version, ModifiedAt
	// and ModifiedBy.
	OpDelete
)

// Write is one row of a batch. Node.Version is the version after the write, minted by the owner.
type Write struct {
	Op       Op
	Node     node.Node
	Expected int64 // for OpUpdate and OpDelete: the version that must be stored
	// ExpectedAt, of the same, is the ModifiedAt that the row of that version must have; zero is any. Where a database
	// has lost its last transactions another row of the version may stand there than was read.
	ExpectedAt time.Time
	Origin     string // who wrote it, echoed in the Change; lets a writer know its own changes

	// Ground, of an OpCreate, is the node that the new one stands on: it commits only while that node is
	// there. Below a space it is at least the space's own node. Of a create and a deletion of its ground, whichever process makes them, one comes first: a
	// create that came first is seen by whoever looks after the deletion, and by Empty.
	Ground Ground
	// Empty, of an OpDelete, has it fail while a node stands below that Spare does not name.
	Empty bool
	Spare []node.Path
}

// Ground is one life of a node; the zero value is none.
type Ground struct {
	Path node.Path
	Born time.Time // CreatedAt: a node that was created again is another one
}

// NoSpace is the ground of a create in a partition whose own node does not stand: until it does, the create is refused as
// one into a partition that is missing.
func NoSpace(partition string) Ground { return Ground{Path: node.Path(partition)} }

// GroundOf returns a node as the ground of others.
func GroundOf(n node.Node) Ground { return Ground{n.Path, n.CreatedAt} }

// Is tells whether n, which stands at the path of g, is the life that was meant.
func (g Ground) Is(n node.Node) bool { return n.CreatedAt.Equal(g.Born) }

// Result answers one Write.
type Result struct {
	Node node.Node // as stored; for OpDelete the node that was removed
	Err  error     // nil, *ExistsError, *ConflictError, *NotFoundError, *PartitionError, *GroundError, *NotEmptyError, *LockedError, ErrBatchDuplicate or a *RowError
}

// ChangeKind says what happened to a node.
type ChangeKind uint8

// The kinds of change (data.md §2.2).
const (
	Created ChangeKind = iota + 1
	Updated
	Deleted
)

// String returns "created", "updated" or "deleted".
func (k ChangeKind) String() string {
	switch k {
	case Created:
		return "created"
	case Updated:
		return "updated"
	case Deleted:
		return "deleted"
	}
	return "unknown"
}

// MarshalText writes the kind as its name.
func (k ChangeKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

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
	HasChildren bool       // nodes exist below; satellites count only among satellites
}

// Page bounds a listing of children.
type Page struct {
	After      string // return entries whose last segment sorts after this one
	Limit      int    // 0 means 1,000; at most 10,000
	Satellites bool   // include satellite segments such as _Access
	NoContent  bool   // leave the contents out of the nodes, which makes a long listing cheap
}

// VersionPage bounds a listing of versions.
type VersionPage struct {
	Before int64 // return versions strictly below; 0 means from the newest
	Limit  int   // 0 means 100; at most 1,000
}

// VersionInfo is one line of a node's history.
type VersionInfo struct {
	Version int64      `json:"version"`
	Kind    ChangeKind `json:"kind"` // of the version: created, updated, deleted
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
// bucket; both are UTF-8 text of at most 1,024 bytes without NUL. Values are at most 64 KiB. What is
// put is durable when the call returns.
type Blobs interface {
	Get(ctx context.Context, bucket, key string) ([]byte, error) // *NotFoundError when absent
	Put(ctx context.Context, bucket, key string, value []byte) error
	// PutMany puts all values or none; for many records it is much faster than Put.
	PutMany(ctx context.Context, bucket string, values map[string][]byte) error
	Delete(ctx context.Context, bucket, key string) error // of an absent key: nothing
	List(ctx context.Context, bucket string) (map[string][]byte, error)
}
