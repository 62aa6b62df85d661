package store

import (
	"errors"
	"fmt"

	"github.com/hubmesh/hubmesh/internal/node"
)

// ErrBatchDuplicate answers the second write of one path in one batch.
var ErrBatchDuplicate = errors.New("store: a path may stand in a batch once")

// ErrClosed answers every call after Close.
var ErrClosed = errors.New("store: closed")

// ErrOverloaded answers a write when the committer's queue is full: nothing was queued.
var ErrOverloaded = errors.New("store: the commit queue is full; nothing was queued, try again later")

// NotFoundError says that there is no node at Path (or no such version, blob or partition).
type NotFoundError struct {
	Path        node.Path
	LastVersion int64 // version of the tombstone; 0 when the path never had a node
	Version     int64 // the version asked for; 0 when the current one was meant
}

func (e *NotFoundError) Error() string {
	if e.Version != 0 {
		return fmt.Sprintf("No node found at '%s' with version %d", e.Path, e.Version)
	}
	return fmt.Sprintf("No node found at '%s'", e.Path)
}

// ExistsError answers a create of a path that has a node.
type ExistsError struct {
	Path    node.Path
	Version int64
	// Other is set when a path that differs in case only is what stands in the way.
	Other node.Path
}

func (e *ExistsError) Error() string {
	if e.Other != "" && e.Other != e.Path {
		return fmt.Sprintf("'%s' differs from the existing '%s' in case only", e.Path, e.Other)
	}
	return fmt.Sprintf("a node exists at '%s' (version %d)", e.Path, e.Version)
}

// ConflictError answers a write whose expected version is not the stored one, or whose new version is
// not above it (data.md §1.3.6 as amended: a lower write is a typed conflict).
type ConflictError struct {
	Path     node.Path
	Expected int64 // what the writer expected
	Actual   int64 // what is stored; 0 when nothing is
}

func (e *ConflictError) Error() string {
	if e.Actual == e.Expected {
		return fmt.Sprintf("'%s' is at version %d, which is another one than was read: the database has lost what was committed last", e.Path, e.Actual)
	}
	return fmt.Sprintf("'%s' is at version %d, not %d", e.Path, e.Actual, e.Expected)
}

// PartitionError answers a write into a partition that does not exist or is being deleted.
type PartitionError struct {
	Partition string
	Reason    string // "missing", "deleting", "not empty", "invalid name", "differs in case only from 'X'"
	Other     string // the partition that differs in case only, where that is the reason
}

func (e *PartitionError) Error() string {
	return fmt.Sprintf("partition '%s': %s", e.Partition, e.Reason)
}

// GroundError answers a create whose ground has been deleted ([Write.Ground]).
type GroundError struct {
	Path   node.Path
	Ground node.Path
}

func (e *GroundError) Error() string {
	return fmt.Sprintf("'%s' can not be created: '%s' above it has been deleted", e.Path, e.Ground)
}

// Groundless is the refusal of a create whose ground does not stand.
func Groundless(w Write) error {
	if partition := w.Node.Path.Partition(); string(w.Ground.Path) == partition && w.Ground.Born.IsZero() {
		return MissingPartition(partition)
	}
	return &GroundError{Path: w.Node.Path, Ground: w.Ground.Path}
}

// NotEmptyError answers a delete of a node that was to be empty ([Write.Empty]).
type NotEmptyError struct {
	Path  node.Path
	Below node.Path // one that stands below
}

func (e *NotEmptyError) Error() string {
	return fmt.Sprintf("'%s' can not be deleted: '%s' stands below it", e.Path, e.Below)
}

// RowError is a fault that concerns one row alone, such as text that the store cannot keep.
type RowError struct {
	Path node.Path
	Err  error `json:"-"`
}

func (e *RowError) Error() string { return fmt.Sprintf("store: '%s': %v", e.Path, e.Err) }
func (e *RowError) Unwrap() error { return e.Err }

// LockedError answers a write whose row something else holds, such as another program's transaction: nothing was
// written. A [Committer] tries such rows again, beside the others. Err is the *[UnavailableError] that a caller gets
// to see when that was in vain.
type LockedError struct {
	Path node.Path
	Err  error
}

func (e *LockedError) Error() string { return fmt.Sprintf("'%s' is locked: %v", e.Path, e.Err) }
func (e *LockedError) Unwrap() error { return e.Err }

// UnavailableKind says what ails a store.
type UnavailableKind uint8

// The kinds of *[UnavailableError].
const (
	UnavailableOther      UnavailableKind = iota
	UnavailableFull                       // no room on the disk; nothing acknowledged is lost
	UnavailableLocked                     // another process serves the same data
	UnavailableCorrupt                    // the data is damaged, or is no data of ours
	UnavailablePermission                 // the files may not be read or written
	UnavailableNewer                      // a newer program has written the data, or another one
)

// UnavailableError is a fault of the store as a whole: the disk is full, the file is locked or
// corrupt. Transient tells whether trying again may help; Hint says what an operator can do.
type UnavailableError struct {
	Kind      UnavailableKind
	Op        string
	Hint      string
	Transient bool
	Err       error `json:"-"`
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("store: %s: %v (%s)", e.Op, e.Err, e.Hint)
}
func (e *UnavailableError) Unwrap() error { return e.Err }

// OutcomeUnknownError answers a waiter that left before its write was answered: the write may be
// committed or not. Read the node to find out.
type OutcomeUnknownError struct {
	Path node.Path
	Err  error `json:"-"` // why the waiter left
}

func (e *OutcomeUnknownError) Error() string {
	return fmt.Sprintf("store: '%s': the outcome of the write is unknown: %v", e.Path, e.Err)
}
func (e *OutcomeUnknownError) Unwrap() error { return e.Err }

// ScanLimitError answers a query that would look at too many nodes or too much of them, or return too much:
// nothing is returned.
type ScanLimitError struct {
	Rows  int // the bound on nodes that are looked at; 0 when the bytes were too many
	Bytes int // the bound on the bytes of the result

	Work int64 // the bound on the bytes that its terms look at; 0 when it was another one
}

func (e *ScanLimitError) Error() string {
	if e.Rows > 0 {
		return fmt.Sprintf("store: the query looks at more than %d nodes; narrow it with path: or nodeType:, or add limit:", e.Rows)
	}
	if e.Work > 0 {
		return fmt.Sprintf("store: the terms of the query look at more than %d bytes of nodes; use fewer terms, or narrow it with path: or nodeType:, or add limit:", e.Work)
	}
	return fmt.Sprintf("store: the result has more than %d bytes; add limit: or select:", e.Bytes)
}
