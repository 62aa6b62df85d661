package feed

import (
	"cmp"
	"slices"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// buffer holds the rows of a read until its last page has come: only then is it known in which order the
// commits of a path were made. Of a read that was cut it keeps the last row of each path, and the last of
// this process, by which the relay knows its own changes again.
type buffer struct {
	list   []store.ChangeRow
	origin string
	paths  map[node.Path]*latest // nil until a read is cut
}

type latest struct{ any, own store.ChangeRow }

func (b *buffer) add(rows []store.ChangeRow) {
	if b.paths == nil {
		b.list = append(b.list, rows...)
		return
	}
	for _, r := range rows {
		b.keep(r)
	}
}

// cut says that there is more to come.
func (b *buffer) cut(origin string) {
	if b.paths != nil {
		return
	}
	b.origin, b.paths = origin, make(map[node.Path]*latest, len(b.list))
	for _, r := range b.list {
		b.keep(r)
	}
	b.list = nil
}

func (b *buffer) keep(r store.ChangeRow) {
	l := b.paths[r.Path]
	if l == nil {
		l = &latest{}
		b.paths[r.Path] = l
	}
	if l.any.Pos == 0 || before(l.any, r) {
		l.any = r
	}
	if r.Origin != "" && r.Origin == b.origin && (l.own.Pos == 0 || before(l.own, r)) {
		l.own = r
	}
}

func (b *buffer) size() int { return len(b.list) + len(b.paths) }

// rows returns what is kept, by position, and each path in the order of its commits.
func (b *buffer) rows() []store.ChangeRow {
	rows := b.list
	for _, l := range b.paths {
		rows = append(rows, l.any)
		if l.own.Pos != 0 && (l.own.XID != l.any.XID || l.own.Pos != l.any.Pos) {
			rows = append(rows, l.own)
		}
	}
	slices.SortFunc(rows, byPos)
	inOrder(rows)
	return rows
}

// inOrder puts the rows of hubmesh processes for one path, which stand by position, into the order of their versions:
// at the places that they have. Nothing is moved but where the sequence of the positions was.
func inOrder(rows []store.ChangeRow) {
	highest := make(map[node.Path]int64, len(rows))
	var moved map[node.Path][]int // the places of paths that are not in order
	for _, r := range rows {
		if r.Origin == "" {
			continue
		}
		if r.Version < highest[r.Path] {
			if moved == nil {
				moved = map[node.Path][]int{}
			}
			moved[r.Path] = nil
		}
		highest[r.Path] = max(highest[r.Path], r.Version)
	}
	if moved == nil {
		return
	}
	for i, r := range rows {
		if places, ok := moved[r.Path]; ok && r.Origin != "" {
			moved[r.Path] = append(places, i)
		}
	}
	for _, places := range moved {
		sorted := make([]store.ChangeRow, len(places))
		for i, at := range places {
			sorted[i] = rows[at]
		}
		slices.SortFunc(sorted, func(a, b store.ChangeRow) int { return cmp.Compare(a.Version, b.Version) })
		for i, at := range places {
			rows[at] = sorted[i]
		}
	}
}
