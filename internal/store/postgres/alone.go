package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// AloneLock is the key of the advisory lock of [Store.Alone] ("huba").
const AloneLock = 0x68756261

const (
	// aloneText takes it, in a transaction that may then be idle for as long as a commit may last.
	aloneText = "select set_config('idle_in_transaction_session_timeout', '60s', true), pg_advisory_xact_lock($1)"
	// aloneEnd bounds the end of the transaction; what is lost then ends with its connection.
	aloneEnd = 5 * time.Second
)

var errAloneEnd = errors.New("the database did not take the end of the transaction in time")

// Alone returns once no other process of the database is between Alone and leave, or with what ctx or the database
// says. It is for a decision about several rows that a commit of one row can not check. A transaction's lock also
// holds through a pooler. Where the connection is lost, so is the lock.
func (s *Store) Alone(ctx context.Context) (leave func(), err error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	fail := func(err error) (func(), error) {
		s.running.Done()
		return nil, s.readFault(ctx, "wait for other processes", err)
	}
	tx, err := s.writes.BeginTx(ctx, pgx.TxOptions{})
	if err != nil {
		return fail(err)
	}
	end := func() {
		bound, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), aloneEnd, errAloneEnd)
		defer cancel()
		_ = tx.Rollback(bound) // it has written nothing
	}
	if _, err := tx.Exec(ctx, aloneText, int64(AloneLock)); err != nil {
		end()
		return fail(err)
	}
	return func() {
		end()
		s.running.Done()
	}, nil
}
