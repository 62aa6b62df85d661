package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/hubmesh/hubmesh/internal/store"
)

const (
	hintCorrupt    = "the file is damaged or is not a database of this program; keep it, and restore a backup into an empty data folder"
	hintEmpty      = "what was in the database is gone, as by a copy that was cut short: restore a backup into an empty data folder; only if nothing was ever in it, remove the file and what is beside it under its name"
	hintFull       = "free some space; writes go on by themselves then, and nothing that was acknowledged is lost"
	hintPermission = "the user that runs this program needs to read and write the data folder and the files in it"
	hintLocked     = "another program holds the database, such as a shell or a backup tool; end it"
	hintNewer      = "use the newer program, or another data folder"
	hintDisk       = "the disk does not keep what is written; look at the system's log"
	hintPath       = "name another data folder, or put right what stands in its way"
	hintFault      = "this is a fault of the program; please report it"
)

// unavailable makes the fault of an operation a *store.UnavailableError.
func unavailable(op string, err error) error {
	var known *store.UnavailableError
	if errors.As(err, &known) {
		return &store.UnavailableError{Kind: known.Kind, Op: op, Hint: known.Hint, Transient: known.Transient, Err: known.Err}
	}
	u := &store.UnavailableError{Op: op, Hint: hintFault, Err: err}
	var fault *sqlite.Error
	var path *fs.PathError
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		u.Kind, u.Hint, u.Transient = store.UnavailableFull, hintFull, true
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		u.Kind, u.Hint = store.UnavailablePermission, hintPermission
	case errors.As(err, &fault):
		classify(u, fault.Code())
	case errors.As(err, &path):
		u.Hint = hintPath
	}
	return u
}

// classify goes by the result code of SQLite.
func classify(u *store.UnavailableError, code int) {
	switch code & 0xff {
	case sqlite3.SQLITE_FULL:
		u.Kind, u.Hint, u.Transient = store.UnavailableFull, hintFull, true
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		u.Kind, u.Hint, u.Transient = store.UnavailableLocked, hintLocked, true
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT:
		u.Kind, u.Hint = store.UnavailableCorrupt, hintCorrupt
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_AUTH:
		u.Kind, u.Hint = store.UnavailablePermission, hintPermission
	case sqlite3.SQLITE_IOERR:
		u.Hint, u.Transient = hintDisk, true
		if code == sqlite3.SQLITE_IOERR_SHMSIZE { // the index of the log cannot grow
			u.Kind, u.Hint = store.UnavailableFull, hintFull
		}
	case sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT:
		u.Hint, u.Transient = "try again", true
	}
}

// concernsRow tells whether an error of a statement is about its row: SQLite has undone that
// statement alone, and the transaction goes on.
func concernsRow(err error) bool {
	var fault *sqlite.Error
	var later *laterError
	if errors.As(err, &later) || !errors.As(err, &fault) {
		return false
	}
	switch fault.Code() & 0xff {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE:
		return true
	}
	return false
}

// readFault makes the error of a read typed.
func (s *Store) readFault(ctx context.Context, op string, err error) error {
	switch {
	case err == nil:
		return nil
	case s.closed.Load():
		return store.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return unavailable(op, err)
}

func noRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }
