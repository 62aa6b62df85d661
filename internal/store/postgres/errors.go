package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hubmesh/hubmesh/internal/store"
)

const (
	hintServer     = "the database server does not answer; look whether it runs and can be reached. What was acknowledged is safe, and the program goes on by itself when it is back"
	hintAuth       = "the server refuses this user or password; put the connection URL right"
	hintRefused    = "the server lets this user not in from here; look at the user and at sslmode in the connection URL, and at the server's pg_hba.conf"
	hintTLS        = "the connection can not be encrypted as sslmode in the connection URL asks for; put that or the server's certificate right"
	hintDatabase   = "the database does not exist; create it, or name another one in the connection URL"
	hintReadOnly   = "this server is a standby or is read-only; name the primary in the connection URL"
	hintVersion    = "use PostgreSQL 14 or newer"
	hintNewer      = "use the newer program, or another database"
	hintOtherwise  = "use the program that made it, or a new database"
	hintFull       = "free some space on the server; writes go on by themselves then, and nothing that was acknowledged is lost"
	hintPermission = "the user of the connection URL needs to own the tables, or the right to create them in the schema"
	hintCorrupt    = "the server reports damaged data; keep it, and restore a backup into an empty database"
	hintBusy       = "the server is overloaded or a lock is held; try again"
	hintLocked     = "something else holds the row, such as a transaction of another program; end that, and try again"
	hintFault      = "this is a fault of the program; please report it"
	hintURL        = "give a URL such as postgres://user:password@host:5432/database"
)

// codeRefused is the SQLSTATE of mesh_refuse.
const codeRefused = "HM001"

// Errors of the server that end one statement and say nothing of others.
const (
	codeCanceled    = "57014"
	codeLockTimeout = "55P03"
)

// unavailable makes the fault of an operation a *store.UnavailableError.
func unavailable(op string, err error) error {
	var known *store.UnavailableError
	if errors.As(err, &known) {
		return &store.UnavailableError{Kind: known.Kind, Op: op, Hint: known.Hint, Transient: known.Transient, Err: known.Err}
	}
	u := &store.UnavailableError{Op: op, Hint: hintServer, Transient: true, Err: redact(err)}
	var fault *pgconn.PgError
	switch {
	case errors.As(err, &fault):
		classify(u, fault)
	case errors.Is(err, pgconn.ErrReadOnlyConnection), errors.Is(err, pgconn.ErrStandbyConnection):
		u.Hint = hintReadOnly // a failover may be under way; what else was tried does not matter
	case noEncryption(err):
		u.Hint, u.Transient = hintTLS, false
	}
	if scan := (pgx.ScanArgError{}); errors.As(err, &scan) {
		u.Hint, u.Transient = "a row holds what this program can not read; put it right with SQL", false
	}
	return u
}

// noEncryption tells whether a connection failed for want of a TLS that the URL asks for.
func noEncryption(err error) bool {
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) && (errors.As(err, new(*tls.CertificateVerificationError)) || strings.Contains(connect.Unwrap().Error(), "refused TLS"))
}

// classify goes by the SQLSTATE of the server.
func classify(u *store.UnavailableError, fault *pgconn.PgError) {
	u.Transient = false
	switch code := fault.Code; {
	case code == "28P01":
		u.Kind, u.Hint = store.UnavailablePermission, hintAuth
	case code == "28000":
		u.Kind, u.Hint = store.UnavailablePermission, hintRefused
	case code == "3D000":
		u.Hint = hintDatabase
	case code == "25006":
		u.Hint, u.Transient = hintReadOnly, true // a failover may be under way
	case code == "42501":
		u.Kind, u.Hint = store.UnavailablePermission, hintPermission
	case code == "53100":
		u.Kind, u.Hint, u.Transient = store.UnavailableFull, hintFull, true
	case strings.HasPrefix(code, "XX001"), strings.HasPrefix(code, "XX002"):
		u.Kind, u.Hint = store.UnavailableCorrupt, hintCorrupt
	case strings.HasPrefix(code, "53"), strings.HasPrefix(code, "55"), strings.HasPrefix(code, "40"), code == codeCanceled:
		u.Hint, u.Transient = hintBusy, true
	case strings.HasPrefix(code, "57"), strings.HasPrefix(code, "08"), strings.HasPrefix(code, "58"):
		u.Hint, u.Transient = hintServer, true
	default:
		u.Hint = hintFault
	}
}

// redact keeps the connection URL, with its password, out of what is logged and answered.
func redact(err error) error {
	var connect *pgconn.ConnectError
	var parse *pgconn.ParseConfigError
	switch {
	case errors.As(err, &parse):
		return errors.New("the connection URL is not valid")
	case errors.As(err, &connect):
		// Each address and each kind of encryption that was tried has a line.
		return errors.New("cannot connect: " + strings.Join(strings.Fields(connect.Unwrap().Error()), " "))
	}
	return err
}

// answered tells whether the server itself ended the transaction: then nothing of it was committed. Any
// other error leaves that open.
func answered(err error) bool {
	var fault *pgconn.PgError
	if !errors.As(err, &fault) {
		return false
	}
	// The server's shutdown and a lost connection may come after the commit.
	return !strings.HasPrefix(fault.Code, "57P") && !strings.HasPrefix(fault.Code, "08")
}

// concernsRow tells whether the server refused the batch for the sake of one of its rows.
func concernsRow(err error) bool {
	var fault *pgconn.PgError
	if !errors.As(err, &fault) {
		return false
	}
	return strings.HasPrefix(fault.Code, "22") || strings.HasPrefix(fault.Code, "23") || fault.Code == "54000"
}

// again tells whether the same statement may succeed at once: a deadlock, a version that was overtaken.
func again(err error) bool {
	var fault *pgconn.PgError
	return errors.As(err, &fault) && (fault.Code == "40P01" || fault.Code == "40001" || fault.Code == codeRefused)
}

// versionTaken tells whether what a row was is to be kept under a version that an earlier life of the path had.
func versionTaken(err error) bool {
	var fault *pgconn.PgError
	return errors.As(err, &fault) && fault.Code == "23505" && fault.ConstraintName == "mesh_node_history_pkey"
}

// lockedOut tells whether a statement has waited for a lock as long as it may.
func lockedOut(err error) bool {
	var fault *pgconn.PgError
	return errors.As(err, &fault) && fault.Code == codeLockTimeout
}

func noRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// readFault makes the error of a read typed.
func (s *Store) readFault(ctx context.Context, op string, err error) error {
	switch {
	case err == nil:
		return nil
	case s.closing.Load():
		return store.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return unavailable(op, err)
}
