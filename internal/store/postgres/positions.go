package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/store"
)

// Positions keeps where consumers of the change rows are, beside these.
type Positions struct{ s *Store }

// Positions returns where consumers are.
func (s *Store) Positions() Positions { return Positions{s} }

// Take gives holder the lease of a consumer, or renews it, and returns where the consumer is; false
// while somebody else holds it. A lease of 0 gives it back. The position is the zero one for a new consumer,
// and where the server has been failed over since it was stored: what it stood for may be gone.
func (p Positions) Take(ctx context.Context, name, holder string, lease time.Duration) (at store.Position, held bool, err error) {
	s := p.s
	if err := s.begin(ctx); err != nil {
		return at, false, err
	}
	defer s.running.Done()
	if lease <= 0 {
		_, err := s.exec(ctx, "update mesh_consumers set holder = '', held_until = '-infinity' where name = $1 and holder = $2", name, holder)
		return at, false, s.readFault(ctx, "give a consumer back", err)
	}
	var open []uint64
	err = s.writing(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `insert into mesh_consumers as c (name, holder, held_until) values ($1, $2, clock_timestamp() + $3::interval)
on conflict (name) do update set holder = excluded.holder, held_until = excluded.held_until
where c.holder in ('', excluded.holder) or c.held_until < clock_timestamp()
returning case when c.timeline = mesh_timeline() then c.xid else '0'::xid8 end, case when c.timeline = mesh_timeline() then c.pos else 0 end,
  case when c.timeline = mesh_timeline() then c.open else '{}' end`, name, holder, lease).Scan(&at.XID, &at.Pos, &open)
	})
	if noRows(err) {
		return store.Position{}, false, nil
	}
	at.Open = open
	return at, err == nil, s.readFault(ctx, "take a consumer", err)
}

// Move stores where a consumer is, durably; [store.ErrLeaseLost] where its lease is somebody else's.
func (p Positions) Move(ctx context.Context, name, holder string, to store.Position) error {
	s := p.s
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.running.Done()
	open := to.Open
	if open == nil {
		open = []uint64{}
	}
	tag, err := s.exec(ctx, `update mesh_consumers set xid = $3::xid8, pos = $4, open = $5::xid8[], timeline = mesh_timeline(), moved_at = clock_timestamp()
where name = $1 and holder = $2`, name, holder, to.XID, to.Pos, open)
	if err == nil && tag.RowsAffected() == 0 {
		return store.ErrLeaseLost
	}
	return s.readFault(ctx, "move a consumer", err)
}
