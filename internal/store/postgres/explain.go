package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/tables"
)

// sight is what was seen of a path whose write did not happen.
type sight struct {
	holder    node.Path // the node whose folded path is the same; "" where there is none
	version   int64     // of the holder
	modified  time.Time // it
	tombstone int64
	partition store.Partition
	stands    bool      // the ground of a create does
	below     node.Path // what stands below a delete that is to be empty; "" where nothing does
}

// explain gives each row that was not written its error, and returns those that nothing visible stands in
// the way of: what did has gone meanwhile, so they are written again. The last time they are conflicts.
func (c *commit) explain(ctx context.Context, open []int, last bool) (again []int, err error) {
	var failed []int
	for _, i := range open {
		if c.kinds[i] == 0 {
			failed = append(failed, i)
		}
	}
	if len(failed) == 0 {
		return nil, nil
	}
	sights, err := c.look(ctx, failed)
	if err != nil {
		return failed, err
	}
	durable := false
	for _, i := range failed {
		w, seen := c.batch[i], sights[c.batch[i].Node.Path]
		if c.unsure {
			n, ours, err := c.recognise(ctx, w, seen)
			if err == nil && ours && !durable {
				// It is seen although a synchronous standby may not have it: what stopped its commit's wait for that
				// one answered nobody. What is committed after it waits for both.
				err = replicate(ctx, c.s.lanes)
				durable = err == nil
			}
			if err != nil {
				return failed, err
			}
			if ours {
				c.settle(i, n)
				continue
			}
		}
		switch err := seen.verdict(w); {
		case err != nil:
			c.results[i].Err = err
		case last:
			c.results[i].Err = &store.ConflictError{Path: w.Node.Path, Expected: w.Expected, Actual: max(seen.version, seen.tombstone)}
		default:
			again = append(again, i)
		}
	}
	return again, nil
}

// look reads what stands at the paths of some rows.
func (c *commit) look(ctx context.Context, failed []int) (map[node.Path]sight, error) {
	var paths, folded, partitions []string
	var around part
	for _, i := range failed {
		around.add(i, c.batch[i])
		p := c.batch[i].Node.Path
		paths, folded, partitions = append(paths, string(p)), append(folded, tables.Key(node.Path(p.Fold()))), append(partitions, node.Fold(p.Partition()))
	}
	// On a connection that writes: it is the primary's, and not behind what was just committed.
	rows, err := c.s.lanes.Query(ctx, explainText, paths, folded, partitions, around.lists.ground, around.lists.born, around.lists.low, around.lists.high, around.spare)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	sights := map[node.Path]sight{}
	for rows.Next() {
		var path, holder, below string
		var s sight
		var modified *time.Time
		if err := rows.Scan(&path, &holder, &s.version, &modified, &s.tombstone, &s.partition.Name, &s.partition.Deleting, &s.stands, &below); err != nil {
			return nil, err
		}
		s.holder, s.below, s.modified = node.Path(holder), node.Path(below), timeOf(modified)
		sights[node.Path(path)] = s
	}
	return sights, rows.Err()
}

// verdict is why the write could not happen; nil when nothing seen is in its way.
func (s sight) verdict(w store.Write) error {
	n := w.Node
	if err := store.AdmitWrite(s.partition, s.partition.Name != "", n.Path.Partition(), w.Op); err != nil {
		return err
	}
	here := s.holder == n.Path
	switch {
	case w.Op == store.OpCreate && here:
		return &store.ExistsError{Path: n.Path, Version: s.version}
	case w.Op == store.OpCreate && s.holder != "":
		return &store.ExistsError{Path: n.Path, Version: s.version, Other: s.holder}
	case w.Op == store.OpCreate && !s.stands:
		return store.Groundless(w)
	case w.Op == store.OpCreate:
		if n.Version <= s.tombstone {
			return &store.ConflictError{Path: n.Path, Actual: s.tombstone}
		}
	case !here && w.Op == store.OpDelete:
		return &store.NotFoundError{Path: n.Path, LastVersion: s.tombstone}
	case !here:
		return &store.ConflictError{Path: n.Path, Expected: w.Expected}
	default:
		anything := w.Op == store.OpDelete && w.Expected < 0
		another := !w.ExpectedAt.IsZero() && !s.modified.Equal(w.ExpectedAt.Truncate(time.Microsecond))
		if !anything && s.version != w.Expected || another || n.Version <= s.version {
			return &store.ConflictError{Path: n.Path, Expected: w.Expected, Actual: s.version}
		}
		if s.below != "" {
			return &store.NotEmptyError{Path: n.Path, Below: s.below}
		}
	}
	return nil
}

// recognise tells whether a write whose answer was lost has happened, and returns its node: its version
// stands there, now or in the history, and is what was to be written.
func (c *commit) recognise(ctx context.Context, w store.Write, seen sight) (node.Node, bool, error) {
	n := w.Node
	if w.Op == store.OpDelete {
		return c.recogniseDeletion(ctx, w)
	}
	if seen.holder == n.Path && seen.version < n.Version || seen.holder != n.Path && seen.tombstone < n.Version {
		return node.Node{}, false, nil // that version never was
	}
	var r row
	err := r.scan(c.s.lanes.QueryRow(ctx, pastText, string(n.Path), n.Version))
	if noRows(err) {
		return node.Node{}, false, nil
	}
	got := r.node
	ours := err == nil && got.SameAs(n) && got.ModifiedAt.Equal(n.ModifiedAt) && got.ModifiedBy == n.ModifiedBy
	return got, ours, err
}

func (c *commit) recogniseDeletion(ctx context.Context, w store.Write) (node.Node, bool, error) {
	var by string
	n := w.Node
	err := c.s.lanes.QueryRow(ctx, "select modified_by from mesh_node_history where path = $1 and version = $2 and kind = 3 and modified_at is not distinct from $3",
		string(n.Path), n.Version, stampOf(n.ModifiedAt)).Scan(&by)
	if err != nil || by != n.ModifiedBy {
		if noRows(err) {
			err = nil
		}
		return node.Node{}, false, err
	}
	var r row
	err = r.scan(c.s.lanes.QueryRow(ctx, "select "+columns("h", false)+" from mesh_node_history h where path = $1 and version < $2 and kind <> 3 order by version desc limit 1",
		string(n.Path), n.Version))
	if err != nil && errors.Is(err, context.Canceled) {
		return node.Node{}, false, err
	}
	return r.node, err == nil, err
}
