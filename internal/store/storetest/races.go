package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// race runs fn on n goroutines that start together, and waits.
func race(n int, fn func(i int)) {
	var start, done sync.WaitGroup
	start.Add(1)
	for i := range n {
		done.Go(func() {
			start.Wait()
			fn(i)
		})
	}
	start.Done()
	done.Wait()
}

func runRaces(t *testing.T, open Factory) {
	const racers = 16
	outcomes := func(t *testing.T, b bench, write func(i int) store.Write) (won int, lost []error) {
		results := make([]store.Result, racers)
		race(racers, func(i int) {
			got, err := b.Commit(t.Context(), []store.Write{write(i)})
			if err != nil {
				t.Error(err)
				return
			}
			results[i] = got[0]
		})
		for _, r := range results {
			if r.Err == nil {
				won++
			} else {
				lost = append(lost, r.Err)
			}
		}
		return won, lost
	}
	// data §2.1: DeleteIfExists is atomic
	t.Run("of several deletes one wins and the others find nothing", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x")
		won, lost := outcomes(t, b, func(int) store.Write { return remove("acme/x", -1, 2) })
		if won != 1 {
			t.Errorf("%d won", won)
		}
		for _, err := range lost {
			var missing *store.NotFoundError
			if !errors.As(err, &missing) || missing.LastVersion != 2 {
				t.Errorf("a loser got %v", err)
			}
		}
	})
	t.Run("of several creates one wins", func(t *testing.T) {
		b := setup(t, open, Options{})
		won, lost := outcomes(t, b, func(i int) store.Write { return create([]string{"acme/x", "acme/X"}[i%2], 1) })
		if won != 1 {
			t.Errorf("%d won", won)
		}
		for _, err := range lost {
			var exists *store.ExistsError
			if !errors.As(err, &exists) {
				t.Errorf("a loser got %v", err)
			}
		}
	})
	// architecture.md decision 3: a write commits only with the expected version
	t.Run("of several updates of one version one wins", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x")
		for version := int64(1); version < 10; version++ {
			won, lost := outcomes(t, b, func(int) store.Write { return update("acme/x", version, version+1) })
			if won != 1 {
				t.Errorf("%d won", won)
			}
			for _, err := range lost {
				conflict(t, err, version+1)
			}
		}
	})
	t.Run("a read never sees half a batch", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x", "acme/y")
		stop := make(chan struct{})
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					nodes, err := b.ReadMany(t.Context(), []node.Path{"acme/x", "acme/y"})
					if err != nil || len(nodes) != 2 || nodes[0].Version != nodes[1].Version {
						t.Errorf("%v, %v", nodes, err)
						return
					}
				}
			})
		}
		for version := int64(1); version < 60; version++ {
			b.commit(update("acme/x", version, version+1), update("acme/y", version, version+1))
		}
		close(stop)
		readers.Wait()
	})
	t.Run("a read that begins after a commit has returned sees it", func(t *testing.T) {
		b := setup(t, open, Options{})
		race(8, func(i int) {
			path := fmt.Sprint("acme/n", i)
			for version := int64(1); version <= 20; version++ {
				w := update(path, version-1, version)
				if version == 1 {
					w = create(path, 1)
				}
				results, err := b.Commit(t.Context(), []store.Write{w})
				if err != nil || results[0].Err != nil {
					t.Errorf("%v, %v", results, err)
					return
				}
				if n, err := b.Read(t.Context(), node.Path(path)); err != nil || n.Version != version {
					t.Errorf("version %d: read %d, %v", version, n.Version, err)
					return
				}
			}
		})
	})
}
