package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Bounds of the text index. A node beyond one is a candidate of every text query.
const (
	mostIndexed = 1 << 20 // bytes of a content that is read for it
	mostGrams   = 30_000  // of a node
	indexNodes  = 64      // in one transaction
	indexPage   = 5_000   // paths that a comparison takes at a time
	// indexRest is how long it rests at least between two rounds: what is written again meanwhile is indexed once. It
	// also rests as long as the last transaction took, so that whoever writes has the most of the server.
	indexRest    = time.Second
	indexTimeout = "30s"
	// GIN gathers new entries in a list that every query reads through, and takes them to their places when the list is
	// full: the longer the list, the less a node costs. It is long while there is much to index.
	indexMuch  = 2_000 // nodes
	listFew    = "4MB"
	listMuch   = "64MB"
	indexMakes = "256MB" // memory to make the index anew with
)

const (
	// fenceText holds the lease for the transaction, so that one process at a time writes the index. That its end is
	// not on disk when it is answered does no harm: the position behind it is stored by a later commit, which is.
	fenceText = `select set_config('synchronous_commit', 'off', true), set_config('statement_timeout', '` + indexTimeout + `', true), set_config('jit', 'off', true),
  set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), -- as the lanes
  set_config('gin_pending_list_limit', $2, true), set_config('work_mem', $2, true)
from (select from mesh_consumers where name = '` + SearchConsumer + `' and holder = $1 and held_until > clock_timestamp() for share) c`

	madeText   = "select form = $1 and tables = " + tablesText + ", " + tablesText + " from mesh_search_state"
	forgetText = "update mesh_consumers set xid = '0', pos = 0, open = '{}' where name = '" + SearchConsumer + "'"
	emptyText  = "select not exists (select from mesh_search)"
	unmakeText = "drop index if exists mesh_search_grams"
	makeText   = "create index if not exists mesh_search_grams on mesh_search using gin (grams pg_catalog.array_ops)"
	sweepText  = "select gin_clean_pending_list(c) from to_regclass('mesh_search_grams') c where c is not null"
	wholeText  = "update mesh_search_state set form = $1, tables = " + tablesText + " where " + tablesText + " = $2"

	toIndexText = `select n.path, n.version, coalesce(s.digest, ''), n.name, n.description, n.node_type,
  octet_length(n.content::text) > $2, case when octet_length(n.content::text) <= $2 then n.content end
from mesh_nodes n left join mesh_search s on s.path = n.path
where n.path = any($1::text[]) and (s.path is null or s.version <> n.version or s.form <> $3) order by n.path`
	sameText = `update mesh_search s set version = i.version, form = $3 from unnest($1::text[], $2::bigint[]) as i(path, version)
where s.path = i.path collate "C"`
	indexText = `insert into mesh_search (path, version, form, digest, grams) values ($1, $2, $3, $4, $5)
on conflict (path) do update set version = excluded.version, form = excluded.form, digest = excluded.digest, grams = excluded.grams`
	dropText = `delete from mesh_search s where s.path = any($1::text[]) and not exists (select from mesh_nodes n where n.path = s.path)`

	// The two comparisons take the paths behind one, up to another.
	nodesEndText  = `select path from mesh_nodes where path > $1 order by path offset $2 - 1 limit 1`
	indexEndText  = `select path from mesh_search where path > $1 order by path offset $2 - 1 limit 1`
	unindexedText = `select n.path from mesh_nodes n left join mesh_search s on s.path = n.path and s.path > $1 and s.path <= $2
where n.path > $1 and n.path <= $2 and (s.path is null or s.version <> n.version or s.form <> $3) order by n.path`
	orphansText = `delete from mesh_search s where s.path > $1 and s.path <= $2
  and not exists (select from mesh_nodes n where n.path = s.path)`
)

// TextIndex fills the text index, as the handler of the consumer [SearchConsumer]. What it is given is done when it
// returns; an error has it given again. One goroutine calls Apply.
type TextIndex struct {
	s    *Store
	conn *pgx.Conn
	took time.Duration // by the last transaction
	done time.Time     // when it ended
	list string        // how long the list of new entries may become

	indexed  atomic.Int64
	rebuilds atomic.Int64
}

// TextIndexStats counts since the start what this process did for the text index.
type TextIndexStats struct {
	Indexed  int64 // nodes
	Rebuilds int64 // comparisons of everything
}

// TextIndex returns what fills the text index.
func (s *Store) TextIndex() *TextIndex { return &TextIndex{s: s} }

// Stats returns the counts.
func (x *TextIndex) Stats() TextIndexStats {
	return TextIndexStats{Indexed: x.indexed.Load(), Rebuilds: x.rebuilds.Load()}
}

// Close closes its connection. Nothing runs any more.
func (x *TextIndex) Close() {
	if x.conn == nil {
		return
	}
	ctx, cancel := closing()
	defer cancel()
	_ = x.conn.Close(ctx) // of what is left behind
	x.conn = nil
}

// Prepare has an index that was made in another form, or of other tables, made anew by whoever takes the lease next,
// and not only at the next change. Text queries do not go by it until then.
func (x *TextIndex) Prepare(ctx context.Context) error {
	if err := x.s.begin(ctx); err != nil {
		return err
	}
	defer x.s.running.Done()
	_, err := x.s.exec(ctx, forgetText+" and held_until < clock_timestamp() and not (select form = $1 and tables = "+tablesText+" from mesh_search_state)", query.GramsForm)
	return x.s.readFault(ctx, "prepare the text index", err)
}

// Apply takes changes into the index; a reset has all of it compared with the nodes.
func (x *TextIndex) Apply(ctx context.Context, reset bool, rows []store.ChangeRow) error {
	if err := x.s.begin(ctx); err != nil {
		return err
	}
	defer x.s.running.Done()
	err := x.apply(ctx, reset, rows)
	if err == nil || ctx.Err() != nil {
		return err
	}
	x.Close() // the next try has a new connection
	if errors.Is(err, store.ErrLeaseLost) || errors.Is(err, errTables) {
		return err
	}
	return unavailable("fill the text index", err)
}

func (x *TextIndex) apply(ctx context.Context, reset bool, rows []store.ChangeRow) error {
	if err := x.rest(ctx, indexRest-time.Since(x.done)); err != nil {
		return err
	}
	if x.conn == nil {
		conn, err := x.s.connect(ctx, "search", map[string]string{isolation: readCommitted, "statement_timeout": indexTimeout, "lock_timeout": lockTimeout, "idle_in_transaction_session_timeout": idleTimeout})
		if err != nil {
			return err
		}
		x.conn = conn
	}
	var made bool
	var of int64
	if err := x.conn.QueryRow(ctx, madeText, query.GramsForm).Scan(&made, &of); err != nil {
		return err
	}
	seen := make(map[node.Path]struct{}, len(rows))
	paths := make([]string, 0, len(rows))
	for _, r := range rows {
		if reset = reset || r.Kind == 0; strings.HasPrefix(string(r.Path), "~") {
			continue // a record
		}
		if _, twice := seen[r.Path]; !twice {
			seen[r.Path] = struct{}{}
			paths = append(paths, string(r.Path))
		}
	}
	if reset || !made {
		return x.rebuild(ctx, of)
	}
	if len(paths) <= indexMuch {
		x.list = listFew
		return x.index(ctx, paths)
	}
	x.list = listMuch
	if err := x.index(ctx, paths); err != nil {
		return err
	}
	return x.alone(ctx, sweepText)
}

// alone makes a statement that may take long, in a transaction of its own. It does not hold the lease, which is renewed
// meanwhile: it changes nothing of what is in the index.
func (x *TextIndex) alone(ctx context.Context, text string) error {
	return pgx.BeginTxFunc(ctx, x.conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select set_config('statement_timeout', '0', true), set_config('maintenance_work_mem', $1, true)", indexMakes); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, text)
		return err
	})
}

// index takes nodes as they stand now.
func (x *TextIndex) index(ctx context.Context, paths []string) error {
	for len(paths) > 0 {
		page := paths[:min(indexNodes, len(paths))]
		paths = paths[len(page):]
		if err := x.fenced(ctx, func(tx pgx.Tx) error { return x.indexIn(ctx, tx, page) }); err != nil {
			return err
		}
		if len(paths) > 0 {
			if err := x.rest(ctx, x.took); err != nil {
				return err
			}
		}
	}
	return nil
}

// fenced makes a transaction in which no other process writes the index.
func (x *TextIndex) fenced(ctx context.Context, work func(pgx.Tx) error) error {
	begun := time.Now()
	err := pgx.BeginTxFunc(ctx, x.conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, fenceText, x.s.options.Origin, x.list)
		if err == nil && tag.RowsAffected() == 0 {
			err = store.ErrLeaseLost
		}
		if err != nil {
			return err
		}
		return work(tx)
	})
	x.done = time.Now()
	x.took = x.done.Sub(begun)
	return err
}

func (x *TextIndex) indexIn(ctx context.Context, tx pgx.Tx, paths []string) error {
	if _, err := tx.Exec(ctx, dropText, paths); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, toIndexText, paths, mostIndexed, query.GramsForm)
	if err != nil {
		return err
	}
	var work pgx.Batch
	var same []string
	var versions []int64
	var n node.Node
	var path string
	var content *string
	var before []byte
	var large *bool
	_, err = pgx.ForEachRow(rows, []any{&path, &n.Version, &before, &n.Name, &n.Description, &n.NodeType, &large, &content}, func() error {
		n.Path, n.Content = node.Path(path), node.Content{}
		if content != nil {
			n.Content = node.RawContent(*content)
		}
		grams, ok := query.Grams(&n, mostGrams)
		if large != nil && *large || !ok {
			grams = nil
		} else if grams == nil {
			grams = []int32{}
		}
		digest := digestOf(grams)
		if string(digest) == string(before) {
			same, versions = append(same, path), append(versions, n.Version)
			return nil
		}
		work.Queue(indexText, path, n.Version, query.GramsForm, digest, grams)
		return nil
	})
	if err != nil {
		return err
	}
	if len(same) > 0 {
		work.Queue(sameText, same, versions, query.GramsForm)
	}
	if work.Len() > 0 {
		err = tx.SendBatch(ctx, &work).Close()
	}
	x.indexed.Add(int64(work.Len()))
	return err
}

// digestOf tells grams apart, those of different forms, too.
func digestOf(grams []int32) []byte {
	text := make([]byte, 0, len(query.GramsForm)+1+4*len(grams))
	text = append(text, query.GramsForm...)
	if grams != nil {
		text = append(text, 0)
	}
	for _, g := range grams {
		text = binary.LittleEndian.AppendUint32(text, uint32(g))
	}
	sum := sha256.Sum256(text)
	return sum[:16]
}

// rebuild compares the index with the nodes of the tables of, and makes what is missing. Meanwhile text queries do not
// go by it.
func (x *TextIndex) rebuild(ctx context.Context, of int64) error {
	begun := time.Now()
	x.s.log.Info("the text index is compared with the nodes; until that is done text queries look at all of them")
	x.list = listMuch
	err := x.fenced(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, forgetText); err != nil {
			return err
		}
		var empty bool
		if err := tx.QueryRow(ctx, emptyText).Scan(&empty); err != nil || !empty {
			return err
		}
		_, err := tx.Exec(ctx, unmakeText) // it is made in a quarter of the time when the rows are there
		return err
	})
	if err != nil {
		return err
	}
	err = x.pages(ctx, indexEndText, func(from, to string) error {
		return x.fenced(ctx, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, orphansText, from, to); return err })
	})
	if err != nil {
		return err
	}
	err = x.pages(ctx, nodesEndText, func(from, to string) error {
		rows, err := x.conn.Query(ctx, unindexedText, from, to, query.GramsForm)
		if err != nil {
			return err
		}
		paths, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		return x.index(ctx, paths)
	})
	if err != nil {
		return err
	}
	for _, text := range []string{makeText, sweepText, "analyze mesh_search"} {
		if err := x.alone(ctx, text); err != nil {
			return err
		}
	}
	err = x.fenced(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, wholeText, query.GramsForm, of)
		if err == nil && tag.RowsAffected() == 0 {
			err = errTables
		}
		return err
	})
	if err == nil {
		x.rebuilds.Add(1)
		x.s.log.Info("the text index holds all nodes; text queries go by it", "took", time.Since(begun).Round(time.Millisecond))
	}
	return err
}

// pages calls do for all paths, some thousands at a time.
func (x *TextIndex) pages(ctx context.Context, endText string, do func(from, to string) error) error {
	for from := ""; ; {
		to := pathsEnd
		err := x.conn.QueryRow(ctx, endText, from, indexPage).Scan(&to)
		if err != nil && !noRows(err) {
			return err
		}
		if err := do(from, to); err != nil || to == pathsEnd {
			return err
		}
		if err := x.rest(ctx, x.took); err != nil {
			return err
		}
		from = to
	}
}

// pathsEnd is behind every path: their first segment is ASCII.
const pathsEnd = "\x7f"

// rest waits; an error is that of the context.
func (x *TextIndex) rest(ctx context.Context, d time.Duration) error {
	if d <= 0 || x.s.options.restless {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
