package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh/internal/store"
)

// freeText tells which of the rows that a batch touches nobody holds: nodes that it deletes, nodes that it updates,
// grounds and partitions of what it creates. What is not there is held by nobody.
const freeText = `select path from (select path from mesh_nodes where path = any($1::text[]) for update skip locked) d
union all select path from (select path from mesh_nodes where path = any($2::text[]) for no key update skip locked) u
union all select '=' || path from (select path from mesh_nodes where path = any($3::text[]) for key share skip locked) g
union all select '/' || name from (select name from mesh_partitions where name = any($4::text[]) for key share skip locked) p
union all select w.name || w.path from (select '', unnest($1::text[] || $2::text[]) union all select '=', unnest($3::text[])) as w(name, path)
  where not exists (select 1 from mesh_nodes n where n.path = w.path)
union all select '/' || w.name from unnest($4::text[]) as w(name) where not exists (select 1 from mesh_partitions n where n.name = w.name)`

// setAside takes the rows out of a batch that something else holds, and returns the others. Where none is seen to be
// held, as that of another program which is not committed yet, the batch is halved until it is found.
func (c *commit) setAside(ctx context.Context, open []int, err error) (left []int, _ error) {
	held, fault := c.held(ctx, open)
	if fault != nil {
		return open, fault
	}
	for _, i := range open {
		if held[i] || len(open) == 1 {
			c.results[i].Err = &store.LockedError{Path: c.batch[i].Node.Path, Err: &store.UnavailableError{Op: "commit", Hint: hintLocked, Transient: true, Err: err}}
		} else {
			left = append(left, i)
		}
	}
	if len(left) < len(open) {
		return left, nil
	}
	return nil, c.apart(ctx, open[:len(open)/2], open[len(open)/2:])
}

// held tells which of the open rows wait for a lock.
func (c *commit) held(ctx context.Context, open []int) (map[int]bool, error) {
	var deleted, updated, grounds, partitions []string
	needs := map[int][]string{}
	for _, i := range open {
		w := c.batch[i]
		path, partition := string(w.Node.Path), w.Node.Path.Partition()
		switch w.Op {
		case store.OpDelete:
			deleted, needs[i] = append(deleted, path), []string{path}
		case store.OpUpdate:
			updated, needs[i] = append(updated, path), []string{path}
		default:
			partitions, needs[i] = append(partitions, partition), []string{"/" + partition}
			if ground := string(w.Ground.Path); ground != "" {
				grounds, needs[i] = append(grounds, ground), append(needs[i], "="+ground)
			}
		}
	}
	var names []string
	err := c.s.ours(ctx, c.s.lanes, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, freeText, deleted, updated, grounds, partitions)
		if err == nil {
			names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	free := map[string]bool{}
	for _, name := range names {
		free[name] = true
	}
	held := map[int]bool{}
	for _, i := range open {
		for _, name := range needs[i] {
			held[i] = held[i] || !free[name]
		}
	}
	return held, nil
}
