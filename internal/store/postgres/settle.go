package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// settleText waits for the synchronous standbys, where there are any: what is committed after a row waits for that
// row, too.
const settleText = "select pg_logical_emit_message(true, 'hubmesh', '') where current_setting('synchronous_standby_names') <> ''"

var (
	errSettle = errors.New("postgres: a synchronous standby has not confirmed within 10 s what is committed already")
	// errUnreplicated is a commit that somebody has kept from waiting for the synchronous standbys.
	errUnreplicated = errors.New("postgres: the wait for the synchronous standby was cancelled")
)

// Settle waits for the synchronous standbys of the server; see [store.Store].
func (s *Store) Settle(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.running.Done()
	ctx, cancel := context.WithTimeoutCause(ctx, commitBound, errSettle)
	defer cancel()
	if err := roomy(ctx, s.writes, func() error { return replicate(ctx, s.writes) }); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return unavailable("settle", err)
	}
	return nil
}

// replicate returns once the synchronous standbys have all that is committed.
func replicate(ctx context.Context, pool *pgxpool.Pool) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, settleText); err != nil {
		return err
	}
	return replicated(conn)
}

// unreplicatedKey marks a connection whose commit was not waited for.
const unreplicatedKey = "hubmesh: unreplicated"

// unreplicated takes a notice of the server. A cancelled wait for a synchronous standby is a warning beside a commit
// that is answered as if it had been waited for; its text depends on the server's language, its place does not.
func unreplicated(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" {
		conn.CustomData()[unreplicatedKey] = true
	}
}

// replicated tells of the commits since it was called last whether each was waited for: errUnreplicated otherwise.
func replicated(conn *pgxpool.Conn) error {
	marks := conn.Conn().PgConn().CustomData()
	if marks[unreplicatedKey] == nil {
		return nil
	}
	delete(marks, unreplicatedKey)
	return errUnreplicated
}
