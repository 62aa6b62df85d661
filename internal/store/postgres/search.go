package postgres

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/tables"
)

// SearchConsumer is the name under which the consumer that fills the text index keeps its position. What it has not
// handled is what the index may not hold, and text queries look at that besides.
const SearchConsumer = "search"

const (
	// searchText tells where the text index is, if all of it was made in a form ($1) of the tables that there are, on
	// this server and in this history of it. Nothing was lost on the way unless rows were pruned: see indexed.
	searchText = `select c.xid, c.pos, c.open, m.pruned_before
from mesh_consumers c, mesh_search_state f, mesh_store m, pg_control_system() p
where c.name = '` + SearchConsumer + `' and c.xid > '0' and c.timeline = mesh_timeline() and f.form = $1
  and f.tables = ` + tablesText + ` and m.system_id = p.system_identifier`

	// restText are the change rows behind a position: as feedBehindText and feedOpenText.
	restText = `(select c.path, c.op, c.at from mesh_changes c where (c.xid, c.pos) > ($1::xid8, $2::bigint)
  union all select c.path, c.op, c.at from mesh_changes c where c.xid = any($3::xid8[])) r`

	// countText counts them, up to a bound, and tells whether one says that everything may have changed.
	countText = "select count(*), coalesce(bool_or(b.op = 'T'), false) from (select r.op from " + restText + " limit $4) b"
	// behindText is the age of the first of them.
	behindText = `select coalesce(extract(epoch from clock_timestamp() - min(r.at)), 0)::float8 from (
  (select c.at from mesh_changes c where (c.xid, c.pos) > ($1::xid8, $2::bigint) order by c.xid, c.pos limit 1)
  union all select c.at from mesh_changes c where c.xid = any($3::xid8[])) r`

	// bySearch has the planner come by the index, whatever it believes of the size of the tables.
	bySearch = "select set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)"
)

// candidatePage is how many candidates are fetched at first; it doubles up to fetchRows, as a limit may be reached soon.
const candidatePage = 32

// floorOf is the transaction below which a position has seen every row.
func floorOf(p store.Position) uint64 {
	switch {
	case len(p.Open) > 0:
		return slices.Min(p.Open)
	case p.Pos == math.MaxInt64:
		return p.XID + 1
	}
	return p.XID
}

// followed tells where the text index is, and whether it, with the change rows behind that, holds all nodes of the
// snapshot of tx.
func followed(ctx context.Context, tx pgx.Tx) (at store.Position, ok bool, err error) {
	var pruned uint64
	err = tx.QueryRow(ctx, searchText, query.GramsForm).Scan(&at.XID, &at.Pos, &at.Open, &pruned)
	if noRows(err) {
		return at, false, nil
	}
	return at, err == nil && pruned <= floorOf(at), err
}

// near tells whether the change rows behind a position can be looked at: they are no more than a query may look at, and
// say what has changed.
func (s *Store) near(ctx context.Context, tx pgx.Tx, at store.Position) (bool, error) {
	var rows int
	var everything bool
	err := tx.QueryRow(ctx, countText, at.XID, at.Pos, at.Open, s.options.ScanRows+1).Scan(&rows, &everything)
	return err == nil && rows <= s.options.ScanRows && !everything, err
}

// found returns the paths, in path order, of all nodes within the bounds that the text index does not rule out; ok is
// false where it does not say, or where they are more than a query may look at.
func (s *Store) found(ctx context.Context, tx pgx.Tx, bounds query.Bounds) (paths []node.Path, ok bool, err error) {
	grams := gramsOf(bounds.Texts)
	if len(grams) == 0 {
		return nil, false, nil
	}
	at, known, err := followed(ctx, tx)
	if err != nil || !known {
		return nil, false, err
	}
	if _, err := tx.Exec(ctx, bySearch); err != nil {
		return nil, false, err
	}
	if near, err := s.near(ctx, tx, at); err != nil || !near {
		return nil, false, err
	}
	text, args := foundText(bounds, grams, at, s.options.ScanRows+1)
	rows, err := tx.Query(ctx, text, args...)
	if err != nil {
		return nil, false, err
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(keys) > s.options.ScanRows {
		return nil, false, err
	}
	slices.Sort(keys)
	for _, key := range keys {
		paths = append(paths, tables.Path(key))
	}
	return paths, true, nil
}

// gramsOf are the grams that a candidate must have: of each list all those of one member. A list with a member that
// has none says nothing. All lists of one member become one.
func gramsOf(texts [][]string) (lists [][][]int32) {
	var every []int32
	for _, alternatives := range texts {
		var list [][]int32
		for _, term := range alternatives {
			list = append(list, query.TermGrams(term))
		}
		switch {
		case slices.ContainsFunc(list, func(grams []int32) bool { return len(grams) == 0 }):
		case len(list) == 1:
			every = append(every, list[0]...)
		default:
			lists = append(lists, list)
		}
	}
	if len(every) > 0 {
		slices.Sort(every)
		lists = append(lists, [][]int32{slices.Compact(every)})
	}
	return lists
}

// foundText writes the query for the keys of the candidates: those whose row in the index has the grams, those that
// are too much for it, and those that were changed behind its position.
func foundText(bounds query.Bounds, grams [][][]int32, at store.Position, limit int) (string, []any) {
	w := conditions{args: []any{at.XID, at.Pos, at.Open}}
	w.bound(bounds)
	var has []string
	for _, list := range grams {
		var any []string
		for _, one := range list {
			// The operator of the index; an extension may have brought another one of its name.
			any = append(any, "s.grams operator(pg_catalog.@>) "+w.arg(one)+"::int4[]")
		}
		has = append(has, "("+strings.Join(any, " or ")+")")
	}
	where := w.text()
	return "select n.key from mesh_search s join mesh_nodes n on n.path = s.path where " + strings.Join(has, " and ") + " and " + where +
		"\nunion select n.key from mesh_search s join mesh_nodes n on n.path = s.path where s.grams is null and " + where +
		"\nunion select n.key from " + restText + " join mesh_nodes n on n.path = r.path where " + where +
		"\nlimit " + w.arg(limit), w.args
}

// these yields nodes by their paths, which are in path order.
func these(ctx context.Context, tx pgx.Tx, paths []node.Path) iter.Seq2[node.Node, error] {
	return func(yield func(node.Node, error) bool) {
		size := candidatePage
		for len(paths) > 0 {
			page := paths[:min(size, len(paths))]
			paths, size = paths[len(page):], min(2*size, fetchRows)
			rows, err := tx.Query(ctx, "select "+columns("n", false)+" from mesh_nodes n where n.path = any($1::text[]) order by n.key", texts(page))
			if err != nil {
				yield(node.Node{}, err)
				return
			}
			if !yieldRows(rows, yield) {
				return
			}
		}
	}
}

// SearchState is how the text index stands.
type SearchState struct {
	Whole    bool          // text queries are answered by it
	Followed bool          // it is kept up: it holds what was written before
	Behind   time.Duration // since the oldest change that it may not hold was written; of one that is followed
}

// Search looks how the text index stands.
func (s *Store) Search(ctx context.Context) (state SearchState, err error) {
	err = s.reading(ctx, func() error {
		return pgx.BeginTxFunc(ctx, s.reads, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			at, known, err := followed(ctx, tx)
			if state = (SearchState{Followed: known}); err != nil || !known {
				return err
			}
			if _, err := tx.Exec(ctx, bySearch); err != nil {
				return err
			}
			if state.Whole, err = s.near(ctx, tx, at); err != nil {
				return err
			}
			var seconds float64
			err = tx.QueryRow(ctx, behindText, at.XID, at.Pos, at.Open).Scan(&seconds)
			state.Behind = time.Duration(max(0, seconds) * float64(time.Second))
			return err
		})
	})
	return state, s.readFault(ctx, "look at the text index", err)
}

// errTables says that the nodes are in other tables than at the beginning of a comparison.
var errTables = errors.New("postgres: the database was restored while its nodes were indexed")
