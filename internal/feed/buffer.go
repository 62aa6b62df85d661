package feed

import (
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
	if r.Pos > l.any.Pos {
		l.any = r
	}
	if r.Origin != "" && r.Origin == b.origin && r.Pos > l.own.Pos {
		l.own = r
	}
}

func (b *buffer) size() int { return len(b.list) + len(b.paths) }

// rows returns what is kept, by position.
func (b *buffer) rows() []store.ChangeRow {
	rows := b.list
	for _, l := range b.paths {
		rows = append(rows, l.any)
		if l.own.Pos != 0 && l.own.Pos != l.any.Pos {
			rows = append(rows, l.own)
		}
	}
	slices.SortFunc(rows, byPos)
	return rows
}
