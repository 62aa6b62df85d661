package feed

import (
	"cmp"
	"math"

	"github.com/hubmesh/hubmesh/internal/store"
)

// advance is where a position is after a page: the highest row delivered, and what was open below it.
func advance(p store.Position, page store.ChangePage) store.Position {
	next := store.Position{XID: p.XID, Pos: p.Pos}
	for _, r := range page.Rows {
		if r.XID > next.XID || r.XID == next.XID && r.Pos > next.Pos {
			next.XID, next.Pos = r.XID, r.Pos
		}
	}
	for _, id := range page.Snapshot.Open {
		if id < next.XID {
			next.Open = append(next.Open, id)
		}
	}
	return next
}

// resting is the furthest position that is as good as p for a store: everything below the oldest open
// transaction has been read. It is for positions that are stored by a later, synchronous commit, which makes
// sure that no id below it is ever handed out again. Without it, a consumer that found nothing for a quarter
// of an hour would look as if it had missed what was pruned.
func resting(p store.Position, s store.Snapshot) store.Position {
	if p.XID < s.Min {
		return store.Position{XID: s.Min - 1, Pos: math.MaxInt64}
	}
	return p
}

// floorOf is the transaction below which a position has read every row.
func floorOf(p store.Position) uint64 {
	switch {
	case len(p.Open) > 0:
		return p.Open[0]
	case p.Pos == math.MaxInt64:
		return p.XID + 1
	}
	return p.XID
}

func byPos(a, b store.ChangeRow) int { return cmp.Compare(a.Pos, b.Pos) }

// before tells which of two rows of one path was committed first. Positions say so, unless somebody has moved their
// sequence; of two that hubmesh processes wrote the versions do, which they count upwards over all lives of a path.
func before(a, b store.ChangeRow) bool {
	if a.Origin != "" && b.Origin != "" && a.Version != b.Version {
		return a.Version < b.Version
	}
	return a.Pos < b.Pos
}
