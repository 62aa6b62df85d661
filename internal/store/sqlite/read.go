package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/tables"
)

// reads are the statements of the pool.
type reads struct {
	node, nodes, prefix, tombstone *sql.Stmt
	children, childrenLight        *sql.Stmt
	keysBelow                      *sql.Stmt
	versions, past                 *sql.Stmt
	blob, blobs                    *sql.Stmt
}

// infoColumns are what a line of the history is made of.
const infoColumns = "version, kind, modified_at, modified_by, created_at, created_by, name"

func (r *reads) prepare(ctx context.Context, pool *sql.DB) (err error) {
	for _, s := range []struct {
		into **sql.Stmt
		text string
	}{
		{&r.node, "select " + columns + " from nodes where key = ?"},
		{&r.nodes, "select " + columns + " from nodes where key in (select value from json_each(?))"},
		{&r.prefix, "select " + columns + " from nodes where key in (select value from json_each(?)) order by length(key) desc limit 1"},
		{&r.tombstone, "select version from tombstones where key = ?"},
		{&r.children, childQuery(nodeColumns)},
		{&r.childrenLight, childQuery(nodeLightColumns)},
		{&r.keysBelow, "select key from nodes where key > ? and key < ? order by key limit ?"},
		{&r.versions, "select " + infoColumns + " from history where key = ?1 and version < ?2 union all " +
			"select " + infoColumns + " from nodes where key = ?1 and version < ?2 order by version desc limit ?3"},
		{&r.past, "select " + columns + " from nodes where key = ?1 and version = ?2 union all " +
			"select " + columns + " from history where key = ?1 and version = ?2 and kind <> 3"},
		{&r.blob, "select value from blobs where bucket = ? and key = ?"},
		{&r.blobs, "select key, value from blobs where bucket = ?"},
	} {
		if *s.into, err = pool.PrepareContext(ctx, s.text); err != nil {
			return fmt.Errorf("%w in: %s", err, s.text)
		}
	}
	return nil
}

// reading tells whether a read may begin.
func (s *Store) reading(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}

// Read returns the node at path; see [store.Store].
func (s *Store) Read(ctx context.Context, path node.Path) (node.Node, error) {
	if err := s.reading(ctx); err != nil {
		return node.Node{}, err
	}
	var r row
	err := r.scan(s.reads.node.QueryRowContext(ctx, tables.Key(path)).Scan)
	if noRows(err) {
		return node.Node{}, s.notFound(ctx, path, 0)
	}
	return r.node, s.readFault(ctx, "read "+string(path), err)
}

// notFound returns the error for path with its last version.
func (s *Store) notFound(ctx context.Context, path node.Path, version int64) error {
	last, _, err := integerOf(ctx, s.reads.tombstone, tables.Key(path))
	if err != nil {
		return s.readFault(ctx, "read "+string(path), err)
	}
	return &store.NotFoundError{Path: path, LastVersion: last, Version: version}
}

func integerOf(ctx context.Context, statement *sql.Stmt, args ...any) (value int64, ok bool, err error) {
	err = statement.QueryRowContext(ctx, args...).Scan(&value)
	if noRows(err) {
		return 0, false, nil
	}
	return value, err == nil, err
}

// keyList is a JSON list for json_each.
func keyList(paths []node.Path) string {
	keys := make([]string, len(paths))
	for i, path := range paths {
		keys[i] = tables.Key(path)
	}
	list, _ := json.Marshal(keys) // of texts: cannot fail
	return string(list)
}

// ReadMany returns the nodes that exist; see [store.Store].
func (s *Store) ReadMany(ctx context.Context, paths []node.Path) ([]node.Node, error) {
	if err := s.reading(ctx); err != nil || len(paths) == 0 {
		return nil, err
	}
	found := make(map[node.Path]node.Node, len(paths))
	err := func() error {
		rows, err := s.reads.nodes.QueryContext(ctx, keyList(paths)) // one statement is one state of the store
		if err != nil {
			return err
		}
		defer rows.Close()
		var r row
		for rows.Next() {
			if err := r.scan(rows.Scan); err != nil {
				return err
			}
			found[r.node.Path] = r.node
		}
		return rows.Err()
	}()
	if err != nil {
		return nil, s.readFault(ctx, "read many nodes", err)
	}
	nodes := make([]node.Node, 0, len(found))
	for _, path := range paths {
		if n, exists := found[path]; exists {
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

// Prefix returns the deepest existing node at or above path; see [store.Store].
func (s *Store) Prefix(ctx context.Context, path node.Path) (node.Node, error) {
	if err := s.reading(ctx); err != nil {
		return node.Node{}, err
	}
	candidates := append([]node.Path{path}, slices.Collect(path.Ancestors())...)
	var r row
	err := r.scan(s.reads.prefix.QueryRowContext(ctx, keyList(candidates)).Scan)
	if noRows(err) {
		return node.Node{}, s.notFound(ctx, path, 0)
	}
	return r.node, s.readFault(ctx, "resolve "+string(path), err)
}

// Versions lists the history of path; see [store.Store].
func (s *Store) Versions(ctx context.Context, path node.Path, page store.VersionPage) ([]store.VersionInfo, error) {
	if err := s.reading(ctx); err != nil {
		return nil, err
	}
	before := page.Before
	if before <= 0 {
		before = 1<<63 - 1
	}
	infos, err := func() ([]store.VersionInfo, error) {
		rows, err := s.reads.versions.QueryContext(ctx, tables.Key(path), before, page.Size())
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		var infos []store.VersionInfo
		for rows.Next() {
			var n node.Node
			var kind, modified, created any
			if err := rows.Scan(&n.Version, &kind, &modified, &n.ModifiedBy, &created, &n.CreatedBy, &n.Name); err != nil {
				return nil, err
			}
			n.ModifiedAt, n.CreatedAt = timeOf(modified), timeOf(created)
			infos = append(infos, store.InfoOf(n, store.ChangeKind(number(kind))))
		}
		return infos, rows.Err()
	}()
	return infos, s.readFault(ctx, "list versions of "+string(path), err)
}

// At returns the node as it was at version; see [store.Store].
func (s *Store) At(ctx context.Context, path node.Path, version int64) (node.Node, error) {
	if err := s.reading(ctx); err != nil {
		return node.Node{}, err
	}
	var r row
	err := r.scan(s.reads.past.QueryRowContext(ctx, tables.Key(path), version).Scan)
	if noRows(err) {
		return node.Node{}, s.notFound(ctx, path, version)
	}
	return r.node, s.readFault(ctx, "read a version of "+string(path), err)
}
