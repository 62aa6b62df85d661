package sqlite

import (
	"context"
	"io/fs"
)

// Pragma runs a pragma on the connection that writes, and returns its answer. The caller lets nobody
// else write meanwhile.
func (s *Store) Pragma(text string) (answer string, err error) {
	err = s.writer.conn.QueryRowContext(context.Background(), "pragma "+text).Scan(&answer)
	if noRows(err) {
		err = nil
	}
	return answer, err
}

// MigrateWith runs the migrations in files.
func (s *Store) MigrateWith(ctx context.Context, files fs.FS) error { return s.migrateFrom(ctx, files) }

// Plan returns how SQLite finds the candidates of a query.
func (s *Store) Plan(ctx context.Context, where string, args ...any) (string, error) {
	return s.explain(ctx, "select "+lightColumns+" from nodes where "+where+" order by key", args...)
}

// PlanOfChildren returns how SQLite lists the children of acme.
func (s *Store) PlanOfChildren(ctx context.Context) (string, error) {
	return s.explain(ctx, childQuery(nodeColumns), append(childArgs("acme", ""), false)...)
}

func (s *Store) explain(ctx context.Context, text string, args ...any) (string, error) {
	rows, err := s.pool.QueryContext(ctx, "explain query plan "+text, args...)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var plan string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			return "", err
		}
		plan += detail + "\n"
	}
	return plan, rows.Err()
}

// WhereOf is how bounds are written.
var WhereOf = whereOf
