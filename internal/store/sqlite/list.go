package sqlite

import (
	"context"
	"iter"
	"unicode/utf8"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/tables"
)

// childKeys is a table expression that jumps from child to child of a path, whatever is below them:
// two looks into the index a child. Its parameters: ?1 the first key that may be one, ?2 the bound
// behind the last, ?3 the prefix of all, ?4 the place of the segment in the key, in characters from 1.
// Its column is the child's segment.
const childKeys = `with recursive child(segment) as (
  select ` + segmentOf + ` from nodes n where n.key = (select key from nodes where key >= ?1 and key < ?2 order by key limit 1)
  union all
  select ` + segmentOf + ` from child join nodes n
    on n.key = (select m.key from nodes m where m.key >= ?3 || child.segment || char(2) and m.key < ?2 order by m.key limit 1))`

// segmentOf is the segment in the first key at or below a child.
const segmentOf = `substr(n.key, ?4, case instr(substr(n.key, ?4), char(1)) when 0 then length(n.key) else instr(substr(n.key, ?4), char(1)) - 1 end)`

// childArgs are the parameters of childKeys for the children of path whose segments come after one.
func childArgs(path node.Path, after string) []any {
	prefix, to := tables.Below(path)
	from := prefix
	if after != "" {
		from = prefix + after + "\x02"
	}
	return []any{from, to, prefix, utf8.RuneCountInString(prefix) + 1}
}

// childQuery lists children with their nodes. ?5 tells that satellites count as children, too.
func childQuery(rowColumns string) string {
	return childKeys + `
  select segment,
    exists (select 1 from nodes d where d.key > ?3 || segment || char(1) and d.key < ?3 || segment || char(2) and (d.main is null or ?5)),
    n.id is not null, ` + rowColumns + `
  from child left join nodes n on n.key = ?3 || segment`
}

// Children returns the direct children of path; see [store.Store].
func (s *Store) Children(ctx context.Context, path node.Path, page store.Page) ([]store.Entry, error) {
	if err := s.reading(ctx); err != nil {
		return nil, err
	}
	// Below a satellite everything is one, and asking there means wanting them.
	_, _, inside := path.Satellite()
	text := s.reads.childrenLight
	if !page.NoContent {
		text = s.reads.children
	}
	entries, err := func() ([]store.Entry, error) {
		rows, err := text.QueryContext(ctx, append(childArgs(path, page.After), inside)...)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		var entries []store.Entry
		var r childRow
		for len(entries) < page.Size() && rows.Next() {
			if err := r.scan(rows.Scan); err != nil {
				return nil, err
			}
			if entry, main := r.entry(path); main || page.Satellites || inside {
				entries = append(entries, entry)
			}
		}
		return entries, rows.Err()
	}()
	return entries, s.readFault(ctx, "list children of "+string(path), err)
}

// childRow receives one row of childQuery.
type childRow struct {
	row
	segment             string
	hasChildren, exists bool
}

func (r *childRow) scan(from func(...any) error) error {
	return r.row.scan(func(columns ...any) error {
		// Without a node its columns are null.
		dest := append([]any{&r.segment, &r.hasChildren, &r.exists}, columns...)
		for i, d := range dest[3:] {
			if text, ok := d.(*string); ok {
				dest[3+i] = &nullText{text}
			}
		}
		return from(dest...)
	})
}

// nullText scans null as the empty text.
type nullText struct{ into *string }

func (t *nullText) Scan(value any) error {
	*t.into, _ = value.(string)
	return nil
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

func (s *Store) keysBelow(ctx context.Context, from, to string, limit int) ([]string, error) {
	if err := s.reading(ctx); err != nil {
		return nil, err
	}
	rows, err := s.reads.keysBelow.QueryContext(ctx, from, to, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var keys []string
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, rows.Err()
}
