package pgtable

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

const (
	// callBound is how long one call may take, connecting included: less than what makes a heartbeat old.
	callBound = 2 * time.Second
	// waiting bounds the calls that wait; a silo has few under way at a time.
	waiting = 64
	// graceFor is how long every heartbeat counts as fresh after nobody could have made one.
	graceFor = membership.Fresh
	// relistenFrom and relistenTo bound the pause before the listener connects anew.
	relistenFrom = 20 * time.Millisecond
	relistenTo   = time.Second
	// channel wakes those who read views.
	channel = "mesh_view"
)

var (
	errCall   = errors.New("pgtable: the database did not answer within 2 s")
	errBusy   = errors.New("pgtable: too many calls wait for the database")
	errClosed = errors.New("pgtable: closed")
)

// Options of a table.
type Options struct {
	URL string
	// Do runs something on the silo's turn.
	Do func(func())
	// Changed is called, on no particular goroutine, when the members may have changed.
	Changed func()
	Log     *slog.Logger // nil discards
}

// Table is the membership table as one silo uses it. Its methods may be called by any goroutine.
type Table struct {
	options Options
	config  *pgx.ConnConfig

	calls chan func(ctx context.Context)
	stop  context.Context
	end   context.CancelFunc
	work  sync.WaitGroup

	// Of the goroutine that makes the calls.
	conn     *pgx.Conn
	timeline int64
	calm     time.Time // heartbeats are judged from then on
}

var _ membership.Table = (*Table)(nil)

// New starts a table. It does not connect before the first call. Close it after the silo that uses it.
func New(o Options) (*Table, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	config, err := pgx.ParseConfig(o.URL)
	if err != nil {
		return nil, errors.New("pgtable: the connection URL is not valid")
	}
	for name, value := range map[string]string{
		"application_name": "hubmesh members",
		// A silo that freezes in the middle of a transaction must not keep the others from theirs.
		"idle_in_transaction_session_timeout": "1000", "lock_timeout": "1500", "statement_timeout": "2000",
	} {
		config.RuntimeParams[name] = value
	}
	t := &Table{options: o, config: config, calls: make(chan func(context.Context), waiting)}
	t.stop, t.end = context.WithCancel(context.Background())
	t.work.Go(t.run)
	t.work.Go(t.listen)
	return t, nil
}

// Close ends the table. Calls that wait are answered with an error, unless the turn is gone.
func (t *Table) Close() {
	t.end()
	t.work.Wait()
}

// run makes the calls, one after the other.
func (t *Table) run() {
	defer t.disconnect()
	for {
		select {
		case f := <-t.calls:
			ctx, cancel := context.WithTimeoutCause(t.stop, callBound, errCall)
			f(ctx)
			cancel()
		case <-t.stop.Done():
			for {
				select {
				case f := <-t.calls:
					f(t.stop)
				default:
					return
				}
			}
		}
	}
}

// call has a transaction made, and then done on the turn.
func (t *Table) call(f func(ctx context.Context, tx pgx.Tx) error, done func(error)) {
	tell := func(err error) { t.options.Do(func() { done(err) }) }
	task := func(ctx context.Context) {
		err := t.transact(ctx, f)
		if err != nil {
			t.disconnect()
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
		}
		tell(err)
	}
	select {
	case <-t.stop.Done():
		go tell(errClosed) // on the turn, which is not before the call has returned
	case t.calls <- task:
	default:
		go tell(errBusy)
	}
}

func (t *Table) transact(ctx context.Context, f func(ctx context.Context, tx pgx.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.conn == nil {
		conn, err := pgx.ConnectConfig(ctx, t.config)
		if err != nil {
			return err
		}
		t.conn, t.calm = conn, time.Now().Add(graceFor)
	}
	// Whoever has waited for the lock of the view sees what was changed meanwhile, whatever the database's default is.
	return pgx.BeginTxFunc(ctx, t.conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error { return f(ctx, tx) })
}

func (t *Table) disconnect() {
	if t.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, errCall)
	defer cancel()
	_ = t.conn.Close(ctx) // of what is left behind
	t.conn = nil
}

// grace tells whether every heartbeat counts as fresh.
func (t *Table) grace() bool { return time.Now().Before(t.calm) }

// seen notes the server's timeline.
func (t *Table) seen(timeline int64) {
	if t.timeline != 0 && timeline != t.timeline {
		t.options.Log.Warn("the database has been failed over", "timeline", timeline, "before", t.timeline)
		t.calm = time.Now().Add(graceFor)
	}
	t.timeline = timeline
}

// listen calls Changed at each notification, and once the connection stands: what changed before is seen then.
func (t *Table) listen() {
	pause := relistenFrom
	for t.stop.Err() == nil {
		began := time.Now()
		err := t.hear()
		if t.stop.Err() != nil {
			return
		}
		if time.Since(began) > relistenTo {
			pause = relistenFrom
		}
		t.options.Log.Debug("the listener of the membership connects anew", "error", err)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-t.stop.Done():
			timer.Stop()
			return
		}
		pause = min(2*pause, relistenTo)
	}
}

func (t *Table) hear() error {
	conn, err := pgx.ConnectConfig(t.stop, t.config)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, errCall)
		defer cancel()
		_ = conn.Close(ctx) // of what is left behind
	}()
	if _, err := conn.Exec(t.stop, "listen "+channel); err != nil {
		return err
	}
	for {
		t.options.Changed()
		if _, err := conn.WaitForNotification(t.stop); err != nil {
			return err
		}
	}
}
