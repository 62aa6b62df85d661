package postgres

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/tables"
)

// fetchRows is how many contents are fetched at a time for the nodes of a result.
const fetchRows = 256

// Select returns the nodes that q matches; see [store.Store]. The server narrows by place and type, and by the text
// index where there is a term that it can be asked for; the matcher decides. Candidates come with their contents only where the matcher looks into them; else these
// are fetched for the result. All of it sees one state of the store.
func (s *Store) Select(ctx context.Context, q query.Query) ([]node.Node, error) {
	var nodes []node.Node
	err := s.reading(ctx, func() error {
		return pgx.BeginTxFunc(ctx, s.reads, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
			nodes, err = s.selectIn(ctx, tx, q)
			return err
		})
	})
	if _, ofQuery := err.(*store.ScanLimitError); ofQuery {
		return nil, err
	}
	return nodes, s.readFault(ctx, "query", err)
}

func (s *Store) selectIn(ctx context.Context, tx pgx.Tx, q query.Query) ([]node.Node, error) {
	bounds := q.Bounds()
	candidates := candidatesOf(ctx, tx, bounds, !q.NeedsContent())
	paths, known, err := s.found(ctx, tx, bounds)
	if err != nil {
		return nil, err
	}
	if known {
		candidates = these(ctx, tx, paths)
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

// candidatesOf yields the nodes within the bounds in path order.
func candidatesOf(ctx context.Context, tx pgx.Tx, bounds query.Bounds, light bool) iter.Seq2[node.Node, error] {
	return func(yield func(node.Node, error) bool) {
		where, args := whereOf(bounds)
		rows, err := tx.Query(ctx, "select "+columns("n", light)+" from mesh_nodes n where "+where+" order by n.key", args...)
		if err != nil {
			yield(node.Node{}, err)
			return
		}
		yieldRows(rows, yield)
	}
}

// yieldRows yields the nodes of rows, and tells whether more are asked for.
func yieldRows(rows pgx.Rows, yield func(node.Node, error) bool) bool {
	defer rows.Close()
	for rows.Next() {
		var r row
		if err := r.scan(rows); err != nil {
			yield(node.Node{}, err)
			return false
		}
		if !yield(r.node, nil) {
			return false
		}
	}
	if err := rows.Err(); err != nil {
		yield(node.Node{}, err)
		return false
	}
	return true
}

// fetchContents fills in the contents of nodes.
func fetchContents(ctx context.Context, tx pgx.Tx, nodes []node.Node) error {
	index := make(map[string]int, len(nodes))
	paths := make([]string, len(nodes))
	for i, n := range nodes {
		index[string(n.Path)], paths[i] = i, string(n.Path)
	}
	rows, err := tx.Query(ctx, "select path, content from mesh_nodes where path = any($1::text[]) and content is not null", paths)
	if err != nil {
		return err
	}
	var path, content string
	_, err = pgx.ForEachRow(rows, []any{&path, &content}, func() error {
		nodes[index[path]].Content = node.RawContent(content)
		return nil
	})
	return err
}

// whereOf writes the bounds as a condition on mesh_nodes n.
func whereOf(b query.Bounds) (string, []any) {
	var w conditions
	w.bound(b)
	return w.text(), w.args
}

// bound writes the bounds.
func (w *conditions) bound(b query.Bounds) {
	w.place(b)
	if b.MainOnly {
		w.and("n.main_node = n.path")
	}
	if b.Types != nil {
		w.and("n.node_type = any(" + w.arg(b.Types) + "::text[])")
	}
	if b.Prefixes != nil {
		var any []string
		for _, prefix := range b.Prefixes {
			key := tables.Key(node.Path(prefix))
			any = append(any, "n.key >= "+w.arg(key)+" and n.key < "+w.arg(key+"\U0010ffff"))
		}
		w.and("(" + strings.Join(any, " or ") + ")")
	}
}

// text is all terms as one condition.
func (w *conditions) text() string {
	if len(w.terms) == 0 {
		return "true"
	}
	return strings.Join(w.terms, " and ")
}

// conditions collects terms and the values of their parameters.
type conditions struct {
	terms []string
	args  []any
}

func (w *conditions) and(term string) { w.terms = append(w.terms, term) }

func (w *conditions) arg(value any) string {
	w.args = append(w.args, value)
	return fmt.Sprintf("$%d", len(w.args))
}

// place writes where the candidates stand.
func (w *conditions) place(b query.Bounds) {
	var any []string
	if len(b.Paths) > 0 {
		list := w.arg(texts(b.Paths))
		any = append(any, "n.path = any("+list+"::text[])")
		if b.MainToo {
			any = append(any, "n.main_node <> n.path and n.main_node = any("+list+"::text[])")
		}
	}
	for _, base := range b.Parents {
		any = append(any, "n.key in ("+w.children(base)+")")
		if b.MainToo {
			from, to := mainRange(base)
			any = append(any, fmt.Sprintf("n.main_node <> n.path and n.main_node > %s and n.main_node < %s and strpos(substr(n.main_node, %d), '/') = 0",
				w.arg(from), w.arg(to), len([]rune(from))+1))
		}
	}
	for _, base := range b.Below {
		if base == "" {
			return // everything
		}
		from, to := tables.Below(base)
		any = append(any, "n.key > "+w.arg(from)+" and n.key < "+w.arg(to))
		if b.MainToo {
			from, to := mainRange(base)
			any = append(any, "n.main_node <> n.path and n.main_node > "+w.arg(from)+" and n.main_node < "+w.arg(to))
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

// mainRange is the range of the paths below a path, in the order of main_node.
func mainRange(base node.Path) (from, to string) {
	if base == "" {
		return "", "\x7f"
	}
	return string(base) + "/", string(base) + "0" // "0" follows "/"
}

// children writes a query for the keys of the children of base that may have a node.
func (w *conditions) children(base node.Path) string {
	text := childKeys + " select $3 || segment from child where segment is not null"
	for i, value := range childArgs(base, "") {
		text = strings.ReplaceAll(text, fmt.Sprintf("$%d", i+1), "@"+w.arg(value)[1:]+"@")
	}
	for i := range w.args {
		text = strings.ReplaceAll(text, fmt.Sprintf("@%d@", i+1), fmt.Sprintf("$%d", i+1))
	}
	return text
}
