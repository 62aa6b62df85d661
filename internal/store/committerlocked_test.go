package store_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// locking is a store in which something else holds a row.
type locking struct {
	*parking
	held node.Path
}

func (l *locking) Commit(ctx context.Context, batch []store.Write) ([]store.Result, error) {
	l.mu.Lock()
	held := l.held
	l.mu.Unlock()
	results := make([]store.Result, len(batch))
	var open []store.Write
	var at []int
	for i, w := range batch {
		if w.Node.Path == held {
			results[i].Err = &store.LockedError{Path: held, Err: &store.UnavailableError{Op: "commit", Transient: true, Err: errors.New("held")}}
			continue
		}
		open, at = append(open, w), append(at, i)
	}
	made, err := l.parking.Commit(ctx, open)
	for j, i := range at {
		if err == nil {
			results[i] = made[j]
		}
	}
	return results, err
}

func (l *locking) hold(path node.Path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = path
}

// architecture.md decision 9
func TestARowThatSomethingElseHoldsWaitsAloneAndItsPathKeepsItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &locking{parking: newParking(t), held: "acme/held"}
		c := store.NewCommitter(l, store.CommitterOptions{})
		defer c.Close()
		held, next := make(chan error, 1), make(chan error, 1)
		submit := func(w store.Write, to chan error) {
			go func() {
				_, err := c.Submit(context.Background(), w)
				to <- err
			}()
		}
		submit(creating("held"), held)
		synctest.Wait()
		w := creating("held")
		w.Op, w.Expected, w.Node.Version = store.OpUpdate, 1, 2
		submit(w, next)
		if _, err := c.Submit(context.Background(), creating("other")); err != nil {
			t.Fatal(err)
		}
		if len(held) != 0 || len(next) != 0 || c.Stats().Locked+c.Stats().Waiting == 0 {
			t.Errorf("%+v", c.Stats())
		}
		<-time.After(5 * time.Second)
		l.hold("")
		if err := <-held; err != nil {
			t.Error(err)
		}
		if err := <-next; err != nil {
			t.Error(err)
		}
	})
}

func TestARowThatSomethingElseKeepsIsAnsweredAsThatAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &locking{parking: newParking(t), held: "acme/held"}
		c := store.NewCommitter(l, store.CommitterOptions{})
		begin := time.Now()
		_, err := c.Submit(context.Background(), creating("held"))
		var away *store.UnavailableError
		if took := time.Since(begin); !errors.As(err, &away) || !away.Transient || took < 10*time.Second || took > 11*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		// Closing does not wait for it.
		ended := make(chan error, 1)
		go func() {
			_, err := c.Submit(context.Background(), creating("held"))
			ended <- err
		}()
		synctest.Wait()
		begin = time.Now()
		c.Close()
		if err := <-ended; !errors.As(err, new(*store.LockedError)) || time.Since(begin) > time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
	})
}

// Bulk rows go on beside one that is held.
func TestABulkGoesOnBesideARowThatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &locking{parking: newParking(t), held: "acme/1"}
		c := store.NewCommitter(l, store.CommitterOptions{BulkRows: 2})
		defer c.Close()
		var writes []store.Write
		for i := range 6 {
			writes = append(writes, creating(i))
		}
		results, err := c.SubmitBulk(context.Background(), writes)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			if held := errors.As(r.Err, new(*store.LockedError)); held != (i == 1) || r.Err != nil && !held {
				t.Errorf("%d: %v", i, r.Err)
			}
		}
	})
}
