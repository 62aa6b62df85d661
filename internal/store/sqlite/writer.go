package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// writer is the one connection that writes, with its statements. Prepared statements of one row were
// as fast as statements of many rows (16,300 creates a second each, in transactions of 500), and a
// row that fails undoes itself alone.
type writer struct {
	pool       *sql.DB
	conn       *sql.Conn
	statements []*sql.Stmt // all of the following

	begin, commit, rollback               *sql.Stmt
	create, update, delete                *sql.Stmt
	current, byFolded, tombstone, restamp *sql.Stmt
	born, below                           *sql.Stmt
	bury, mark, prune                     *sql.Stmt
	putBlob, deleteBlob                   *sql.Stmt
}

func openWriter(ctx context.Context, file string) (*writer, error) {
	pool, err := openPool(file, 1, fmt.Sprintf("cache_size(-%d)", writerCacheKiB))
	if err != nil {
		return nil, err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		_ = pool.Close()
		return nil, err
	}
	return &writer{pool: pool, conn: conn}, nil
}

func (w *writer) prepare(ctx context.Context) (err error) {
	valueColumns := strings.TrimPrefix(columns, "key, ")
	var sets []string
	for i, column := range strings.Split(valueColumns, ", ") {
		if column != "created_at" && column != "created_by" {
			sets = append(sets, fmt.Sprintf("%s = ?%d", column, i+1))
		}
	}
	values := strings.Repeat("?, ", strings.Count(valueColumns, ",")+1)
	for _, s := range []struct {
		into **sql.Stmt
		text string
	}{
		{&w.begin, "begin immediate"},
		{&w.commit, "commit"},
		{&w.rollback, "rollback"},
		// ?1–?19 are the values, ?20 the key, ?21 the folded key
		{&w.create, "insert into nodes (" + valueColumns + ", key, folded) select " + values + "?, ? " +
			"where not exists (select 1 from tombstones where key = ?20 and version >= ?2) on conflict do nothing"},
		// ?1–?19 are the values, ?20 the key, ?21 the expected version. Creation stamps that are not the
		// stored ones make no match, so that the usual case needs no look at the row.
		{&w.update, "update nodes set " + strings.Join(sets, ", ") + " where key = ?20 and version = ?21 and (?22 is null or modified_at is ?22) and created_at is ?12 and created_by = ?13"},
		{&w.delete, "delete from nodes where key = ?1 and (?2 < 0 or version = ?2) and version < ?3 and (?4 is null or modified_at is ?4) returning " + columns},
		{&w.current, "select version from nodes where key = ?"},
		{&w.born, "select created_at from nodes where key = ?"},
		{&w.below, "select key from nodes where key > ? and key < ? order by key"},
		{&w.byFolded, "select key, version from nodes where folded = ?"},
		{&w.tombstone, "select version from tombstones where key = ?"},
		{&w.restamp, "select created_at, created_by from nodes where key = ? and version = ?"},
		{&w.bury, "insert into tombstones (key, version) values (?1, ?2) on conflict (key) do update set version = ?2"},
		{&w.mark, "insert into history (key, version, kind, name, modified_at, modified_by) values (?, ?, ?, ?, ?, ?)"},
		{&w.prune, "delete from history where key = ?1 and version <= (select version from history where key = ?1 order by version desc limit 1 offset ?2)"},
		{&w.putBlob, "insert into blobs (bucket, key, value) values (?1, ?2, ?3) on conflict (bucket, key) do update set value = ?3"},
		{&w.deleteBlob, "delete from blobs where bucket = ? and key = ?"},
	} {
		if *s.into, err = w.conn.PrepareContext(ctx, s.text); err != nil {
			return fmt.Errorf("%w in: %s", err, s.text)
		}
		w.statements = append(w.statements, *s.into)
	}
	return nil
}

// exec runs a statement and returns the number of rows it changed.
func exec(statement *sql.Stmt, args ...any) (int64, error) {
	result, err := statement.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// transaction runs fn in a transaction, which is durable when it returns nil. The caller is the one
// writer. Once begun it is not cancelled.
func (w *writer) transaction(fn func() error) error {
	if _, err := exec(w.begin); err != nil {
		return err
	}
	err := fn()
	if err == nil {
		_, err = exec(w.commit)
	}
	if err != nil {
		_, _ = exec(w.rollback) // SQLite may have rolled back by itself; then this is refused
	}
	return err
}

// integer reads one number; ok is false where there is no row.
func integer(statement *sql.Stmt, args ...any) (value int64, ok bool, err error) {
	err = statement.QueryRowContext(context.Background(), args...).Scan(&value)
	if noRows(err) {
		return 0, false, nil
	}
	return value, err == nil, err
}

// close ends the connection. database/sql does not close statements of a sql.Conn with it, and one that
// is left would keep the file open.
func (w *writer) close() error {
	var errs []error
	for _, statement := range w.statements {
		errs = append(errs, statement.Close())
	}
	return errors.Join(append(errs, w.conn.Close(), w.pool.Close())...)
}
