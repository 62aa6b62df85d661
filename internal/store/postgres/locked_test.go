package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
)

// issue 4: rows that another program keeps locked hold up no other write
func TestRowsThatAnotherProgramHoldsHoldUpTheirOwnWritesOnly(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, postgres.Options{URL: url})
	space(t, s, "acme", "other")
	must(t, s, create("acme", 1))
	for i := range 4 {
		must(t, s, create(fmt.Sprint("acme/held", i), 1))
	}
	must(t, s, create("acme/free", 1))
	c := store.NewCommitter(s, store.CommitterOptions{Lanes: postgres.Lanes})
	defer c.Close()
	l := lock(t, url, "select from mesh_nodes where path like 'acme/held_' for update")
	held := make(chan error, 4)
	for i := range 4 {
		go func() {
			_, err := c.Submit(context.Background(), update(fmt.Sprint("acme/held", i), 2))
			held <- err
		}()
	}
	l.parked(1)
	const bound = 2 * time.Second // of one write: lanePatience is 0.2 s, lockTimeout 5 s
	for v := int64(2); v < 42; v++ {
		begin := time.Now()
		if _, err := c.Submit(context.Background(), update("acme/free", v)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > bound {
			t.Errorf("a write waited %v for rows that it has nothing to do with", took)
		}
	}
	if len(held) != 0 {
		t.Error(<-held)
	}
	l.exec("rollback")
	for range 4 {
		if err := <-held; err != nil {
			t.Error(err)
		}
	}
}

// storage.md §4: a row fails alone
func TestABatchIsWrittenWithoutTheRowsThatSomethingElseHolds(t *testing.T) {
	t.Parallel()
	for what, hold := range map[string]string{
		"a row to update":        "select from mesh_nodes where path = 'acme/u' for update",
		"a row to delete":        "select from mesh_nodes where path = 'acme/d' for key share",
		"the ground of a create": "select from mesh_nodes where path = 'acme/g' for update",
		"the space of a create":  "select from mesh_partitions where name = 'side' for update",
		"a create of another":    `insert into mesh_nodes (path, folded, main_node, version) values ('other/new', E'other\x01new', 'other/new', 1)`,
		"another letter case":    `insert into mesh_nodes (path, folded, main_node, version) values ('other/NEW', E'other\x01new', 'other/NEW', 1)`,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			url := database(t)
			s := open(t, postgres.Options{URL: url})
			space(t, s, "acme", "other", "side")
			must(t, s, create("acme/u", 1), create("acme/d", 1), create("acme/g", 1), create("acme/free", 1))
			ground := create("acme/g/x", 1)
			ground.Ground = store.GroundOf(sample("acme/g", 1))
			batch := map[string]store.Write{
				"a row to update": update("acme/u", 2), "a row to delete": remove("acme/d", 2), "the ground of a create": ground,
				"the space of a create": create("side/x", 1), "a create of another": create("other/new", 1), "": update("acme/free", 2),
			}
			if what == "another letter case" {
				batch[what] = batch["a create of another"]
				delete(batch, "a create of another")
			}
			var names []string
			var writes []store.Write
			for name, w := range batch {
				names, writes = append(names, name), append(writes, w)
			}
			l := lock(t, url, hold)
			results, err := s.Commit(t.Context(), writes)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range results {
				if locked := errors.As(r.Err, new(*store.LockedError)); locked != (names[i] == what) || r.Err != nil && !locked {
					t.Errorf("%s: %v", names[i], r.Err)
				}
			}
			if err := s.Ready(t.Context()); err != nil {
				t.Error(err)
			}
			l.exec("rollback")
			must(t, s, batch[what])
		})
	}
}
