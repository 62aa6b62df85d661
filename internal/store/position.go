package store

import (
	"errors"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
)

// Position is how far a follower of the change rows has come (storage.md §2): it has read every row up to
// and with (XID, Pos), in that order, but for those of the transactions in Open, which were under way.
// It stops at the highest row delivered and not at the end of a snapshot, because a server that crashed
// hands out again the ids that nothing durable carried.
type Position struct {
	XID  uint64
	Pos  int64
	Open []uint64 // ascending, each below XID
}

// ChangeRow is one committed change as every process reads it. Pos rises with the commits of one path.
type ChangeRow struct {
	XID      uint64
	Pos      int64
	At       time.Time
	Version  int64      // after the write; of a deletion the tombstone's
	Kind     ChangeKind // 0: everything may have changed
	Path     node.Path
	NodeType string
	Origin   string // the process that wrote it; "" is a program that is not ours
}

// Snapshot is which transactions a statement saw: those below Min, and those below Max that are not in Open.
type Snapshot struct {
	Min, Max uint64
	Open     []uint64 // ascending
}

// ChangePage is what one read of the change rows found behind a position.
type ChangePage struct {
	Rows         []ChangeRow // of the transactions that were open, and behind the position, by (XID, Pos)
	Cut          bool        // there are more behind the last row
	Snapshot     Snapshot
	SystemID     int64  // of the server
	Tables       int64  // which these are: a restore makes other ones
	PrunedBefore uint64 // rows of transactions below it may be gone
}

// Verification is what a server says of itself, and of rows that were read before.
type Verification struct {
	SystemID, Timeline int64
	Tables             int64  // as of a page
	PrunedBefore       uint64 // rows of transactions below it may be gone
	Standby            bool   // its snapshots do not say what is open: nothing can be read from it
	Found              int    // how many of the rows asked for are there
}

// Notification is what a listener of a shared store heard.
type Notification struct {
	Payload string
	Own     bool // the echo of a ping
}

// ErrLeaseLost says that a consumer's lease is somebody else's by now.
var ErrLeaseLost = errors.New("store: the consumer's lease is held by another process")
