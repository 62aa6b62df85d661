package txlog

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Change is one write of a transaction.
type Change struct {
	Path     node.Path
	Kind     store.ChangeKind
	Version  int64
	NodeType string
}

// Log is the database. Safe for concurrent use.
type Log struct {
	mu       sync.Mutex
	next     uint64 // the id that the next transaction gets
	pos      int64
	open     map[uint64]*Tx
	locked   map[node.Path]*Tx
	rows     []store.ChangeRow // committed, by (XID, Pos)
	commits  [][]store.ChangeRow
	pruned   uint64
	system   int64
	timeline int64
	nodes    map[node.Path]node.Node
}

// New returns an empty database.
func New() *Log {
	return &Log{next: 100, open: map[uint64]*Tx{}, locked: map[node.Path]*Tx{}, system: 7, timeline: 1, nodes: map[node.Path]node.Node{}}
}

// Tx is a transaction. It gets its id with its first write, or with ID.
type Tx struct {
	log  *Log
	id   uint64
	rows []store.ChangeRow
	done bool
}

// Begin starts a transaction.
func (l *Log) Begin() *Tx { return &Tx{log: l} }

// ID is the transaction's id, which it takes if it has none.
func (t *Tx) ID() uint64 {
	t.log.mu.Lock()
	defer t.log.mu.Unlock()
	return t.take()
}

func (t *Tx) take() uint64 {
	if t.id == 0 && !t.done {
		t.id = t.log.next
		t.log.next++
		t.log.open[t.id] = t
	}
	return t.id
}

// Write adds a change of an origin; false where another transaction holds the row's lock, or this one is over.
func (t *Tx) Write(origin string, c Change) bool {
	l := t.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if holder := l.locked[c.Path]; t.done || holder != nil && holder != t {
		return false
	}
	t.take()
	l.locked[c.Path] = t
	l.pos++
	t.rows = append(t.rows, store.ChangeRow{XID: t.id, Pos: l.pos, At: time.Now(), Version: c.Version, Kind: c.Kind, Path: c.Path, NodeType: c.NodeType, Origin: origin})
	return true
}

// Commit makes the writes visible to snapshots from now on, and durable.
func (t *Tx) Commit() []store.ChangeRow {
	l := t.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.done {
		return nil
	}
	t.end()
	if len(t.rows) > 0 {
		l.commits = append(l.commits, t.rows)
		l.rows = append(l.rows, t.rows...)
		l.sort()
		l.apply(t.rows)
	}
	return t.rows
}

// Rollback ends the transaction without a trace but for its id.
func (t *Tx) Rollback() {
	t.log.mu.Lock()
	defer t.log.mu.Unlock()
	t.end()
}

func (t *Tx) end() {
	t.done = true
	delete(t.log.open, t.id)
	maps.DeleteFunc(t.log.locked, func(_ node.Path, holder *Tx) bool { return holder == t })
}

func (l *Log) sort() {
	slices.SortFunc(l.rows, func(a, b store.ChangeRow) int { return cmp.Or(cmp.Compare(a.XID, b.XID), cmp.Compare(a.Pos, b.Pos)) })
}

func (l *Log) apply(rows []store.ChangeRow) {
	for _, r := range rows {
		switch r.Kind {
		case store.Deleted:
			delete(l.nodes, r.Path)
		case store.Created, store.Updated:
			l.nodes[r.Path] = node.Node{Path: r.Path, MainNode: r.Path, Version: r.Version, NodeType: r.NodeType}
		}
	}
}

// Burn takes n ids that nothing durable carries, as a notifier with asynchronous commits does.
func (l *Log) Burn(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next += uint64(n)
}

// Crash ends what is open and hands out again every id that no commit carries.
func (l *Log) Crash() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.crash()
}

func (l *Log) crash() {
	for _, t := range l.open {
		t.end()
	}
	l.next, l.pos = 100, 0
	for _, rows := range l.commits {
		for _, r := range rows {
			l.next, l.pos = max(l.next, r.XID+1), max(l.pos, r.Pos)
		}
	}
}

// Failover promotes a standby that has not got the last n commits.
func (l *Log) Failover(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commits = l.commits[:max(0, len(l.commits)-n)]
	l.rows = nil
	clear(l.nodes)
	for _, rows := range l.commits {
		l.rows = append(l.rows, rows...)
		l.apply(rows)
	}
	l.rows = slices.DeleteFunc(l.rows, func(r store.ChangeRow) bool { return r.XID < l.pruned })
	l.sort()
	l.timeline++
	l.crash()
}

// Prune removes the rows of the transactions below xid, or below the oldest open one.
func (l *Log) Prune(xid uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pruned = max(l.pruned, min(xid, l.snapshot().Min))
	l.rows = slices.DeleteFunc(l.rows, func(r store.ChangeRow) bool { return r.XID < l.pruned })
}

// Restore makes it another database: one that was restored from a copy.
func (l *Log) Restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.system++
	l.rows, l.commits = nil, nil
}

func (l *Log) snapshot() store.Snapshot {
	s := store.Snapshot{Min: l.next, Max: l.next, Open: slices.Sorted(maps.Keys(l.open))}
	if len(s.Open) > 0 {
		s.Min = s.Open[0]
	}
	return s
}

// Start answers the highest row there is, and the snapshot.
func (l *Log) Start() store.ChangePage {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.page()
	if len(l.rows) > 0 {
		p.Rows = []store.ChangeRow{l.rows[len(l.rows)-1]}
	}
	return p
}

func (l *Log) page() store.ChangePage {
	return store.ChangePage{Snapshot: l.snapshot(), SystemID: l.system, PrunedBefore: l.pruned}
}

// Read answers what a position has not seen: every row of its open ids, and at most limit rows behind it.
func (l *Log) Read(from store.Position, limit int) store.ChangePage {
	return l.Select(limit,
		func(r store.ChangeRow) bool { return slices.Contains(from.Open, r.XID) },
		func(r store.ChangeRow) bool { return r.XID > from.XID || r.XID == from.XID && r.Pos > from.Pos })
}

// Select answers every row that late takes, and at most limit of those that behind takes.
func (l *Log) Select(limit int, late, behind func(store.ChangeRow) bool) store.ChangePage {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.page()
	n := 0
	for _, r := range l.rows {
		switch {
		case late(r):
			p.Rows = append(p.Rows, r)
		case behind(r) && n < limit:
			p.Rows = append(p.Rows, r)
			n++
		}
	}
	p.Cut = n == limit
	return p
}

// Found counts which of the rows are there.
func (l *Log) Found(last []store.ChangeRow) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, want := range last {
		if slices.ContainsFunc(l.rows, func(r store.ChangeRow) bool {
			return r.XID == want.XID && r.Pos == want.Pos && r.Path == want.Path && r.Version == want.Version
		}) {
			n++
		}
	}
	return n
}

// Identity is the server's system id, its timeline, and below which id rows may be gone.
func (l *Log) Identity() (system, timeline int64, pruned uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.system, l.timeline, l.pruned
}

// Nodes returns the nodes at the paths that have one.
func (l *Log) Nodes(paths []node.Path) []node.Node {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []node.Node
	for _, p := range paths {
		if n, ok := l.nodes[p]; ok {
			found = append(found, n)
		}
	}
	return found
}

// Committed returns every commit that has not been lost, in the order of the commits.
func (l *Log) Committed() [][]store.ChangeRow {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.commits)
}
