package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Where the server has no room for one more connection, whoever needs one waits for one of those that its pool has, for
// roomPatience, and looks after roomPause at first and every roomLook then.
const (
	roomPatience = 5 * time.Second
	roomPause    = 20 * time.Millisecond
	roomLook     = 100 * time.Millisecond
)

// noRoom tells whether the server took no further connection: it has said nothing of what was asked, and the connections
// that there are go on.
func noRoom(err error) bool {
	var fault *pgconn.PgError
	return errors.As(err, &fault) && fault.Code == "53300"
}

// roomy makes a call that takes one connection of a pool.
func roomy(ctx context.Context, pool *pgxpool.Pool, call func() error) error {
	began := time.Now()
	for pause := roomPause; ; pause = min(2*pause, roomLook) {
		err := call()
		if !noRoom(err) || pool.Stat().TotalConns() == 0 || time.Since(began) > roomPatience {
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
	}
}
