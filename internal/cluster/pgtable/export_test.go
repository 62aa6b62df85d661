package pgtable

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Judge connects, and ends the time in which every heartbeat counts as fresh.
func (t *Table) Judge() error {
	done := make(chan error, 1)
	t.call(func(context.Context, pgx.Tx) error {
		t.calm = time.Time{}
		return nil
	}, func(err error) { done <- err })
	return <-done
}
