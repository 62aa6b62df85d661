package pgtable

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

// ErrNoRow answers a vote of somebody who has no row himself.
var ErrNoRow = errors.New("pgtable: the voter is not a member any more")

const viewText = `select mesh_timeline(), v.number, m.name, m.epoch, m.addr, m.leaving, m.node_types, m.beat_at > clock_timestamp() - $1::interval
from mesh_view v left join mesh_members m on true order by m.name`

// rows reads the key and the members: one statement, one state.
func (t *Table) rows(ctx context.Context, tx pgx.Tx) (key membership.Key, rows []membership.Row, err error) {
	found, err := tx.Query(ctx, viewText, membership.Fresh)
	if err != nil {
		return key, nil, err
	}
	defer found.Close()
	var timeline, number int64
	for found.Next() {
		var name, addr *string
		var epoch *int64
		var leaving, fresh *bool
		var types []string
		if err := found.Scan(&timeline, &number, &name, &epoch, &addr, &leaving, &types, &fresh); err != nil {
			return key, nil, err
		}
		if name == nil {
			continue // nobody is there
		}
		rows = append(rows, membership.Row{
			Member: membership.Member{Name: *name, Epoch: membership.Epoch(uint64(*epoch)), Addr: *addr, Leaving: *leaving, Types: types}, Fresh: *fresh,
		})
	}
	if err := found.Err(); err != nil {
		return key, nil, err
	}
	t.seen(timeline)
	if t.grace() {
		for i := range rows {
			rows[i].Fresh = true
		}
	}
	return membership.Key{Timeline: uint64(timeline), Number: uint64(number)}, rows, nil
}

func (t *Table) view(ctx context.Context, tx pgx.Tx) (*membership.View, error) {
	key, rows, err := t.rows(ctx, tx)
	if err != nil {
		return nil, err
	}
	members := make([]membership.Member, len(rows))
	for i, r := range rows {
		members[i] = r.Member
	}
	return membership.NewView(key, members)
}

// lock takes the row that orders the changes of members.
func lock(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "select from mesh_view for update")
	return err
}

// raise raises the number and wakes the listeners.
func raise(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "with u as (update mesh_view set number = number + 1) select pg_notify('"+channel+"', '')")
	return err
}

// Read implements membership.Table.
func (t *Table) Read(done func([]membership.Row, error)) {
	var rows []membership.Row
	t.call(func(ctx context.Context, tx pgx.Tx) (err error) {
		_, rows, err = t.rows(ctx, tx)
		return err
	}, func(err error) { done(rows, err) })
}

// View implements membership.Table.
func (t *Table) View(done func(*membership.View, error)) {
	var v *membership.View
	t.call(func(ctx context.Context, tx pgx.Tx) (err error) {
		v, err = t.view(ctx, tx)
		return err
	}, func(err error) { done(v, err) })
}

// Join implements membership.Table.
func (t *Table) Join(m membership.Member, stale []membership.Epoch, done func(*membership.View, error)) {
	var v *membership.View
	t.call(func(ctx context.Context, tx pgx.Tx) (err error) {
		if err := lock(ctx, tx); err != nil {
			return err
		}
		old := make([]int64, len(stale))
		for i, e := range stale {
			old[i] = int64(e)
		}
		if t.grace() {
			old = nil // nobody is stale now
		}
		if _, err := tx.Exec(ctx, "delete from mesh_members where name = $1 or addr = $2 or epoch = any($3::bigint[]) and beat_at <= clock_timestamp() - $4::interval",
			m.Name, m.Addr, old, membership.Fresh); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "insert into mesh_members (name, epoch, addr, node_types) values ($1, $2, $3, $4)", m.Name, int64(m.Epoch), m.Addr, m.Types); err != nil {
			return err
		}
		if err := raise(ctx, tx); err != nil {
			return err
		}
		v, err = t.view(ctx, tx)
		return err
	}, func(err error) { done(v, err) })
}

// Beat implements membership.Table.
func (t *Table) Beat(self membership.Epoch, done func(membership.Key, error)) {
	var key membership.Key
	t.call(func(ctx context.Context, tx pgx.Tx) error {
		var timeline, number int64
		err := tx.QueryRow(ctx, "with u as (update mesh_members set beat_at = clock_timestamp() where epoch = $1) select mesh_timeline(), number from mesh_view", int64(self)).
			Scan(&timeline, &number)
		if err == nil {
			t.seen(timeline)
			key = membership.Key{Timeline: uint64(timeline), Number: uint64(number)}
		}
		return err
	}, func(err error) { done(key, err) })
}

const voteText = `select
  exists (select 1 from mesh_members where epoch = $2),
  exists (select 1 from mesh_members where epoch = $1 and name = $3),
  (select count(*) from mesh_votes v join mesh_members m on m.epoch = v.voter where v.target = $1 and m.name <> $3 and v.at > clock_timestamp() - $4::interval),
  (select count(*) from mesh_members m where m.name <> $3 and ($6 or m.beat_at > clock_timestamp() - $5::interval))`

// Vote implements membership.Table. The votes are counted and the member removed in one transaction, so
// that two silos cannot put each other out.
func (t *Table) Vote(target membership.Member, voter membership.Epoch, done func(error)) {
	t.call(func(ctx context.Context, tx pgx.Tx) error {
		if err := lock(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into mesh_votes (target, voter) select $1::bigint, $2::bigint
where exists (select 1 from mesh_members where epoch = $2::bigint) and exists (select 1 from mesh_members where epoch = $1::bigint)
on conflict (target, voter) do update set at = clock_timestamp()`, int64(target.Epoch), int64(voter)); err != nil {
			return err
		}
		var mine, there bool
		var votes, others int
		err := tx.QueryRow(ctx, voteText, int64(target.Epoch), int64(voter), target.Name, membership.VoteFor, membership.Fresh, t.grace()).
			Scan(&mine, &there, &votes, &others)
		switch {
		case err != nil:
			return err
		case !mine:
			return ErrNoRow
		case !there || votes < membership.Needed(others):
			// Whoever votes next waits for this one, and need not wait for the disk: a vote that a crash of the
			// server takes away is cast again.
			_, err := tx.Exec(ctx, "set local synchronous_commit = off")
			return err
		}
		if _, err := tx.Exec(ctx, "delete from mesh_members where epoch = $1", int64(target.Epoch)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "delete from mesh_votes where target = $1 or at < clock_timestamp() - $2::interval", int64(target.Epoch), time.Minute); err != nil {
			return err
		}
		return raise(ctx, tx)
	}, done)
}

// Leave implements membership.Table.
func (t *Table) Leave(self membership.Epoch, done func(*membership.View, error)) {
	var v *membership.View
	t.call(func(ctx context.Context, tx pgx.Tx) (err error) {
		if err := t.change(ctx, tx, "update mesh_members set leaving = true where epoch = $1 and not leaving", self); err != nil {
			return err
		}
		v, err = t.view(ctx, tx)
		return err
	}, func(err error) { done(v, err) })
}

// Gone implements membership.Table.
func (t *Table) Gone(self membership.Epoch, done func(error)) {
	t.call(func(ctx context.Context, tx pgx.Tx) error {
		return t.change(ctx, tx, "delete from mesh_members where epoch = $1", self)
	}, done)
}

// change changes one member, and raises the number where that was a change.
func (t *Table) change(ctx context.Context, tx pgx.Tx, text string, self membership.Epoch) error {
	if err := lock(ctx, tx); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, text, int64(self))
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	return raise(ctx, tx)
}
