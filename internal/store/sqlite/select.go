package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/tables"
)

// fetchRows is how many contents are fetched at a time for candidates that need one.
const fetchRows = 256

// Select returns the nodes that q matches; see [store.Store]. SQLite narrows by place and type, the
// matcher decides. Candidates come without their contents: those are fetched for the ones that the
// matcher looks into, or else for the result. All of it sees one state of the store.
func (s *Store) Select(ctx context.Context, q query.Query) ([]node.Node, error) {
	if err := s.reading(ctx); err != nil {
		return nil, err
	}
	nodes, err := s.selectIn(ctx, q)
	if _, ofQuery := err.(*store.ScanLimitError); ofQuery {
		return nil, err
	}
	return nodes, s.readFault(ctx, "query", err)
}

func (s *Store) selectIn(ctx context.Context, q query.Query) ([]node.Node, error) {
	tx, err := s.pool.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // it has only read
	candidates := candidatesOf(ctx, tx, q.Bounds())
	if q.NeedsContent() {
		candidates = withContents(ctx, tx, candidates)
	}
	nodes, err := store.Collect(q, candidates, s.options.ScanRows, s.options.ScanBytes)
	if err != nil || q.NeedsContent() || !q.ReturnsContent() {
		return nodes, err
	}
	size := 0
	for at := 0; at < len(nodes); at += fetchRows {
		part := nodes[at:min(at+fetchRows, len(nodes))]
		if err := fetchContents(ctx, tx, part); err != nil {
			return nil, err
		}
		for _, n := range part {
			size += n.Content.Len()
		}
		if size > s.options.ScanBytes {
			return nil, &store.ScanLimitError{Bytes: s.options.ScanBytes}
		}
	}
	return nodes, nil
}

// candidatesOf yields the nodes within the bounds in path order, without their contents.
func candidatesOf(ctx context.Context, tx *sql.Tx, bounds query.Bounds) iter.Seq2[node.Node, error] {
	return func(yield func(node.Node, error) bool) {
		where, args := whereOf(bounds)
		rows, err := tx.QueryContext(ctx, "select "+lightColumns+" from nodes where "+where+" order by key", args...)
		if err != nil {
			yield(node.Node{}, err)
			return
		}
		defer rows.Close()
		var r row
		for rows.Next() {
			if err := r.scan(rows.Scan); err != nil {
				yield(node.Node{}, err)
				return
			}
			if !yield(r.node, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(node.Node{}, err)
		}
	}
}

// withContents fills in the contents, some rows at a time.
func withContents(ctx context.Context, tx *sql.Tx, candidates iter.Seq2[node.Node, error]) iter.Seq2[node.Node, error] {
	return func(yield func(node.Node, error) bool) {
		var part []node.Node
		// A query that stops early is content with few: begin small.
		size := 16
		flush := func() bool {
			if err := fetchContents(ctx, tx, part); err != nil {
				yield(node.Node{}, err)
				return false
			}
			for _, n := range part {
				if !yield(n, nil) {
					return false
				}
			}
			part, size = part[:0], min(2*size, fetchRows)
			return true
		}
		for n, err := range candidates {
			if err != nil {
				yield(node.Node{}, err)
				return
			}
			if part = append(part, n); len(part) >= size && !flush() {
				return
			}
		}
		flush()
	}
}

// fetchContents fills in the contents of nodes.
func fetchContents(ctx context.Context, tx *sql.Tx, nodes []node.Node) error {
	index := make(map[string]int, len(nodes))
	paths := make([]node.Path, len(nodes))
	for i, n := range nodes {
		index[tables.Key(n.Path)], paths[i] = i, n.Path
	}
	rows, err := tx.QueryContext(ctx, "select key, content from nodes where key in (select value from json_each(?)) and content is not null", keyList(paths))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var key, content string
		if err := rows.Scan(&key, &content); err != nil {
			return err
		}
		nodes[index[key]].Content = node.RawContent(content)
	}
	return rows.Err()
}

// whereOf writes the bounds as a condition on nodes.
func whereOf(b query.Bounds) (string, []any) {
	var w conditions
	w.place(b)
	if b.MainOnly {
		w.and("main is null")
	}
	if b.Types != nil {
		list, _ := json.Marshal(b.Types) // of texts: cannot fail
		if len(b.Types) == 1 {
			w.and("node_type = " + w.arg(b.Types[0]))
		} else {
			w.and("node_type in (select value from json_each(" + w.arg(string(list)) + "))")
		}
	}
	if b.Prefixes != nil {
		var any []string
		for _, prefix := range b.Prefixes {
			key := tables.Key(node.Path(prefix))
			any = append(any, "key >= "+w.arg(key)+" and key < "+w.arg(key+"\U0010ffff"))
		}
		w.and("(" + strings.Join(any, " or ") + ")")
	}
	if len(w.terms) == 0 {
		return "true", nil
	}
	return strings.Join(w.terms, " and "), w.args
}

// conditions collects terms and the values of their parameters.
type conditions struct {
	terms []string
	args  []any
}

func (w *conditions) and(term string) { w.terms = append(w.terms, term) }

func (w *conditions) arg(value any) string {
	w.args = append(w.args, value)
	return fmt.Sprintf("?%d", len(w.args))
}

// place writes where the candidates stand.
func (w *conditions) place(b query.Bounds) {
	var any []string
	if len(b.Paths) > 0 {
		list := w.arg(keyList(b.Paths))
		any = append(any, "key in (select value from json_each("+list+"))")
		if b.MainToo {
			any = append(any, "main is not null and main in (select value from json_each("+list+"))")
		}
	}
	for _, base := range b.Parents {
		any = append(any, "key in ("+w.children(base)+")")
		if b.MainToo {
			from, to := tables.Below(base)
			any = append(any, fmt.Sprintf("main is not null and main > %s and main < %s and instr(substr(main, %d), char(1)) = 0",
				w.arg(from), w.arg(to), len([]rune(from))+1))
		}
	}
	for _, base := range b.Below {
		if base == "" {
			return // everything
		}
		from, to := tables.Below(base)
		first, last := w.arg(from), w.arg(to)
		any = append(any, "key > "+first+" and key < "+last)
		if b.MainToo {
			any = append(any, "main is not null and main > "+first+" and main < "+last)
		}
	}
	switch len(any) {
	case 0:
		w.and("false")
	case 1:
		w.and(any[0])
	default:
		w.and("(" + strings.Join(any, " or ") + ")")
	}
}

// children writes a query for the keys of the children of base that may have a node.
func (w *conditions) children(base node.Path) string {
	text := childKeys + " select ?3 || segment from child"
	for i, value := range childArgs(base, "") {
		text = strings.ReplaceAll(text, fmt.Sprintf("?%d", i+1), "$"+w.arg(value)[1:]+"$")
	}
	for i := range w.args {
		text = strings.ReplaceAll(text, fmt.Sprintf("$%d$", i+1), fmt.Sprintf("?%d", i+1))
	}
	return text
}
