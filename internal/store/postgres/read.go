package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// infoColumns are what a line of the history is made of.
const infoColumns = "version, kind, modified_at, modified_by, created_at, created_by, name"

var (
	readText     = "select " + columns("n", false) + " from mesh_nodes n where n.path = $1"
	readManyText = "select " + columns("n", false) + " from mesh_nodes n where n.path = any($1::text[])"
	prefixText   = readManyText + " order by length(n.path) desc limit 1"
	pastText     = "select " + columns("n", false) + " from mesh_nodes n where n.path = $1 and n.version = $2 union all " +
		"select " + columns("h", false) + " from mesh_node_history h where h.path = $1 and h.version = $2 and h.kind <> 3"
	versionsText = "select " + infoColumns + " from mesh_nodes where path = $1 and version < $2 union all " +
		"select " + infoColumns + " from mesh_node_history where path = $1 and version < $2 order by version desc limit $3"
)

// readTries bounds how often a read is made whose connection was lost, and readPause is the first pause
// between two.
const (
	readTries = 4
	readPause = 20 * time.Millisecond
)

// reading makes a read, again where its connection was lost before the answer came, or where there was none for it.
func (s *Store) reading(ctx context.Context, read func() error) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.running.Done()
	once := func() error { return roomy(ctx, s.reads, read) }
	err := once()
	for try, pause := 1, readPause; try < readTries && (connectionLost(err) || noRoom(err)); try, pause = try+1, 4*pause {
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
		err = once()
	}
	return err
}

// one reads one row; *store.NotFoundError where there is none.
func (s *Store) one(ctx context.Context, op string, path node.Path, version int64, text string, args ...any) (node.Node, error) {
	var r row
	var missing error
	err := s.reading(ctx, func() error {
		missing = nil // of an attempt whose connection was lost after it
		err := r.scan(s.reads.QueryRow(ctx, text, args...))
		if noRows(err) {
			var last int64
			err = s.reads.QueryRow(ctx, "select coalesce((select version from mesh_tombstones where path = $1), 0)", string(path)).Scan(&last)
			missing = &store.NotFoundError{Path: path, LastVersion: last, Version: version}
		}
		return err
	})
	if err == nil && missing != nil {
		return node.Node{}, missing
	}
	return r.node, s.readFault(ctx, op, err)
}

// Read returns the node at path; see [store.Store].
func (s *Store) Read(ctx context.Context, path node.Path) (node.Node, error) {
	return s.one(ctx, "read "+string(path), path, 0, readText, string(path))
}

// Prefix returns the deepest existing node at or above path; see [store.Store].
func (s *Store) Prefix(ctx context.Context, path node.Path) (node.Node, error) {
	candidates := append([]node.Path{path}, slices.Collect(path.Ancestors())...)
	return s.one(ctx, "resolve "+string(path), path, 0, prefixText, texts(candidates))
}

// At returns the node as it was at version; see [store.Store].
func (s *Store) At(ctx context.Context, path node.Path, version int64) (node.Node, error) {
	return s.one(ctx, "read a version of "+string(path), path, version, pastText, string(path), version)
}

func texts(paths []node.Path) []string {
	list := make([]string, len(paths))
	for i, p := range paths {
		list[i] = string(p)
	}
	return list
}

// ReadMany returns the nodes that exist; see [store.Store].
func (s *Store) ReadMany(ctx context.Context, paths []node.Path) ([]node.Node, error) {
	var found map[node.Path]node.Node
	err := s.reading(ctx, func() (err error) {
		if len(paths) > 0 {
			found, err = s.readMany(ctx, s.reads, paths) // one statement is one state of the store
		}
		return err
	})
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

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, text string, args ...any) (pgx.Rows, error)
}

func (s *Store) readMany(ctx context.Context, from querier, paths []node.Path) (map[node.Path]node.Node, error) {
	rows, err := from.Query(ctx, readManyText, texts(paths))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := make(map[node.Path]node.Node, len(paths))
	var r row
	for rows.Next() {
		if err := r.scan(rows); err != nil {
			return nil, err
		}
		found[r.node.Path] = r.node
	}
	return found, rows.Err()
}

// Versions lists the history of path; see [store.Store].
func (s *Store) Versions(ctx context.Context, path node.Path, page store.VersionPage) ([]store.VersionInfo, error) {
	before := page.Before
	if before <= 0 {
		before = 1<<63 - 1
	}
	var infos []store.VersionInfo
	err := s.reading(ctx, func() error {
		rows, err := s.reads.Query(ctx, versionsText, string(path), before, page.Size())
		if err != nil {
			return err
		}
		infos, err = pgx.CollectRows(rows, func(rows pgx.CollectableRow) (store.VersionInfo, error) {
			var n node.Node
			var kind int16
			var modified, created *time.Time
			err := rows.Scan(&n.Version, &kind, &modified, &n.ModifiedBy, &created, &n.CreatedBy, &n.Name)
			n.ModifiedAt, n.CreatedAt = timeOf(modified), timeOf(created)
			return store.InfoOf(n, store.ChangeKind(kind)), err
		})
		return err
	})
	return infos, s.readFault(ctx, "list versions of "+string(path), err)
}
