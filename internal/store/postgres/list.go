package postgres

import (
	"context"
	"iter"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/tables"
)

// childKeys is a table expression that jumps from child to child of a path, whatever is below them:
// one look into the index a child. Its parameters: $1 the first key that may be one, $2 the bound behind the
// last, $3 the prefix of all, $4 the place of the segment in the key, in characters from 1. Its column is the
// child's segment.
const childKeys = `with recursive child(segment) as (
  (select split_part(substr(n.key, $4), E'\x01', 1) from mesh_nodes n where n.key >= $1 and n.key < $2 order by n.key limit 1)
  union all
  select (select split_part(substr(m.key, $4), E'\x01', 1) from mesh_nodes m
    where m.key >= $3 || child.segment || E'\x02' and m.key < $2 order by m.key limit 1)
  from child where child.segment is not null)`

// childArgs are the parameters of childKeys for the children of path whose segments come after one.
func childArgs(path node.Path, after string) []any {
	prefix, to := tables.Below(path)
	from := prefix
	if after != "" {
		from = prefix + after + "\x02"
	}
	return []any{from, to, prefix, utf8.RuneCountInString(prefix) + 1}
}

// childQuery lists children with their nodes. $5 tells that satellites count as children, too. The limit has the
// nodes looked up child by child, in the order of the children, whatever the server believes of the table.
func childQuery(light bool) string {
	return childKeys + `
select child.segment,
  exists (select 1 from mesh_nodes d where d.key > $3 || child.segment || E'\x01' and d.key < $3 || child.segment || E'\x02' and (d.main_node = d.path or $5)),
  n.path is not null, ` + blanks(columns("n", light)) + `
from child left join lateral (select * from mesh_nodes m where m.key = $3 || child.segment limit 1) n on true where child.segment is not null`
}

// Children returns the direct children of path; see [store.Store].
func (s *Store) Children(ctx context.Context, path node.Path, page store.Page) ([]store.Entry, error) {
	// Below a satellite everything is one, and asking there means wanting them.
	_, _, inside := path.Satellite()
	text := childrenText
	if page.NoContent {
		text = childrenLightText
	}
	var entries []store.Entry
	err := s.reading(ctx, func() error {
		entries = nil
		// A row limit would have to know what is left out; the cursor's rows come as they are read.
		rows, err := s.reads.Query(ctx, text, append(childArgs(path, page.After), inside)...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for len(entries) < page.Size() && rows.Next() {
			var r childRow
			if err := r.scan(rows); err != nil {
				return err
			}
			if entry, main := r.entry(path); main || page.Satellites || inside {
				entries = append(entries, entry)
			}
		}
		rows.Close()
		return rows.Err()
	})
	return entries, s.readFault(ctx, "list children of "+string(path), err)
}

var childrenText, childrenLightText = childQuery(false), childQuery(true)

// childRow receives one row of childQuery.
type childRow struct {
	row
	segment             string
	hasChildren, exists bool
}

func (r *childRow) scan(rows pgx.Row) error {
	return r.row.scan(rows, &r.segment, &r.hasChildren, &r.exists)
}

// entry returns the listing's entry, and whether it belongs to the main nodes.
func (r *childRow) entry(base node.Path) (entry store.Entry, main bool) {
	var n *node.Node
	if r.exists {
		n = new(r.node)
	}
	return tables.Entry(base, r.segment, n, r.hasChildren)
}

// Descendants yields the paths below path; see [store.Store].
func (s *Store) Descendants(ctx context.Context, path node.Path) iter.Seq2[node.Path, error] {
	return tables.Descendants(ctx, path, func(ctx context.Context, from, to string, limit int) ([]string, error) {
		keys, err := s.keysBelow(ctx, from, to, limit)
		return keys, s.readFault(ctx, "list what is below "+string(path), err)
	})
}

func (s *Store) keysBelow(ctx context.Context, from, to string, limit int) (keys []string, err error) {
	err = s.reading(ctx, func() error {
		rows, err := s.reads.Query(ctx, "select key from mesh_nodes where key > $1 and key < $2 order by key limit $3", from, to, limit)
		if err == nil {
			keys, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	return keys, err
}
