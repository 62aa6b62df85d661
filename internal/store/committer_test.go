package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/memory"
)

// parking is a store whose commits stop until they are let go.
type parking struct {
	store.Committing
	mu      sync.Mutex
	batches [][]store.Write
	park    chan struct{} // nil: commits run through
	fail    func(batch []store.Write) error
}

func (p *parking) Commit(ctx context.Context, batch []store.Write) ([]store.Result, error) {
	p.mu.Lock()
	p.batches = append(p.batches, batch)
	park := p.park
	p.mu.Unlock()
	if park != nil {
		<-park
	}
	if p.fail != nil {
		if err := p.fail(batch); err != nil {
			return nil, err
		}
	}
	return p.Committing.Commit(ctx, batch)
}

func (p *parking) sizes() (sizes []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.batches {
		sizes = append(sizes, len(b))
	}
	return sizes
}

func newParking(t *testing.T) *parking {
	t.Helper()
	s := memory.New(memory.Options{})
	if err := s.EnsurePartition(t.Context(), "acme", ""); err != nil {
		t.Fatal(err)
	}
	return &parking{Committing: s}
}

func creating(name any) store.Write {
	path := node.Path(fmt.Sprint("acme/", name))
	return store.Write{Op: store.OpCreate, Node: node.Node{Path: path, MainNode: path, Version: 1}}
}

// architecture.md decision 9
func TestQueuedWritesOfManyCallersShareACommitAndAreAnsweredAfterIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParking(t)
		p.park = make(chan struct{})
		c := store.NewCommitter(p, store.CommitterOptions{})
		var answered int
		var mu sync.Mutex
		var callers sync.WaitGroup
		submit := func(name any) {
			callers.Go(func() {
				if _, err := c.Submit(t.Context(), creating(name)); err != nil {
					t.Errorf("%v: %v", name, err)
				}
				mu.Lock()
				answered++
				mu.Unlock()
			})
		}
		submit("first")
		synctest.Wait()
		for i := range 200 {
			submit(i)
		}
		synctest.Wait()
		if answered != 0 {
			t.Errorf("%d are answered before any commit", answered)
		}
		p.park <- struct{}{}
		synctest.Wait()
		if answered != 1 {
			t.Errorf("%d are answered after the first commit", answered)
		}
		close(p.park)
		callers.Wait()
		if got := fmt.Sprint(p.sizes()); got != "[1 128 72]" {
			t.Errorf("batches of %s", got)
		}
		c.Close()
	})
}

func TestAWaiterThatLeavesDoesNotCancelTheCommitAndIsToldThatTheOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParking(t)
		p.park = make(chan struct{})
		c := store.NewCommitter(p, store.CommitterOptions{})
		ctx, leave := context.WithCancelCause(t.Context())
		why := errors.New("the caller's budget lapsed")
		var callers sync.WaitGroup
		callers.Go(func() {
			_, err := c.Submit(ctx, creating("single"))
			var unknown *store.OutcomeUnknownError
			if !errors.As(err, &unknown) || unknown.Path != "acme/single" || !errors.Is(err, why) {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait() // being committed
		callers.Go(func() {
			results, err := c.SubmitBulk(ctx, []store.Write{creating("b1"), creating("b2")})
			var unknown *store.OutcomeUnknownError
			if !errors.Is(err, why) || len(results) != 2 || !errors.As(results[1].Err, &unknown) {
				t.Errorf("got %v, %v", results, err)
			}
		})
		synctest.Wait() // queued
		leave(why)
		callers.Wait()
		close(p.park)
		c.Close()
		for _, name := range []string{"single", "b1", "b2"} {
			if _, err := p.Committing.(store.Store).Read(t.Context(), node.Path("acme/"+name)); err != nil {
				t.Errorf("%s was not committed: %v", name, err)
			}
		}
		if _, err := c.Submit(ctx, creating("late")); !errors.Is(err, context.Canceled) {
			t.Errorf("a write of an ended context: %v", err)
		}
	})
}

func TestARowThatConflictsFailsAloneInItsBatch(t *testing.T) {
	t.Parallel()
	p := newParking(t)
	c := store.NewCommitter(p, store.CommitterOptions{})
	defer c.Close()
	if _, err := c.Submit(t.Context(), creating("x")); err != nil {
		t.Fatal(err)
	}
	result, err := c.Submit(t.Context(), creating("x"))
	var exists *store.ExistsError
	if !errors.As(err, &exists) || !errors.Is(result.Err, err) {
		t.Errorf("got %v, %v", result, err)
	}
	results, err := c.SubmitBulk(t.Context(), []store.Write{creating("y"), creating("x"), creating("z")})
	if err != nil || results[0].Err != nil || !errors.As(results[1].Err, &exists) || results[2].Err != nil {
		t.Errorf("got %v, %v", results, err)
	}
}

// storage.md §4: on an error of class 22 or 23, run the rows one by one
func TestABatchThatFailsForTheSakeOfARowIsCommittedRowByRow(t *testing.T) {
	t.Parallel()
	p := newParking(t)
	p.fail = func(batch []store.Write) error {
		for _, w := range batch {
			if w.Node.Name == "poison" {
				return &store.RowError{Err: errors.New("text that the store cannot keep")}
			}
		}
		return nil
	}
	c := store.NewCommitter(p, store.CommitterOptions{})
	defer c.Close()
	poison := creating("bad")
	poison.Node.Name = "poison"
	results, err := c.SubmitBulk(t.Context(), []store.Write{creating(1), poison, creating(2)})
	var row *store.RowError
	if err != nil || results[0].Err != nil || !errors.As(results[1].Err, &row) || results[2].Err != nil {
		t.Errorf("got %v, %v", results, err)
	}
	if got := fmt.Sprint(p.sizes()); got != "[3 1 1 1]" {
		t.Errorf("batches of %s", got)
	}
}

func TestAFaultOfTheStoreReachesEveryWaiterOnce(t *testing.T) {
	t.Parallel()
	p := newParking(t)
	full := &store.UnavailableError{Kind: store.UnavailableFull, Op: "commit", Err: errors.New("disk full")}
	fault := error(full)
	p.fail = func([]store.Write) error { return fault }
	c := store.NewCommitter(p, store.CommitterOptions{BulkRows: 2})
	defer c.Close()
	if _, err := c.Submit(t.Context(), creating("x")); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	results, err := c.SubmitBulk(t.Context(), []store.Write{creating(1), creating(2), creating(3)})
	if !errors.Is(err, full) || len(results) != 3 || !errors.Is(results[2].Err, full) {
		t.Errorf("got %v, %v", results, err)
	}
	if got := fmt.Sprint(p.sizes()); got != "[1 2]" {
		t.Errorf("batches of %s", got)
	}
	fault = nil
	if _, err := c.Submit(t.Context(), creating("x")); err != nil {
		t.Errorf("after the fault: %v", err)
	}
}

func TestAPanicInTheStoreIsAnErrorAndTheCommitterGoesOn(t *testing.T) {
	t.Parallel()
	p := newParking(t)
	broken := true
	p.fail = func([]store.Write) error {
		if broken {
			panic("broken")
		}
		return nil
	}
	c := store.NewCommitter(p, store.CommitterOptions{})
	defer c.Close()
	var unavailable *store.UnavailableError
	if _, err := c.Submit(t.Context(), creating("x")); !errors.As(err, &unavailable) {
		t.Errorf("got %v", err)
	}
	broken = false
	if _, err := c.Submit(t.Context(), creating("x")); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestAFullQueueRefusesAndQueuesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParking(t)
		p.park = make(chan struct{})
		c := store.NewCommitter(p, store.CommitterOptions{QueueRows: 4})
		var callers sync.WaitGroup
		for i := range 5 { // one is being committed, four wait
			callers.Go(func() {
				if _, err := c.Submit(t.Context(), creating(i)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		if _, err := c.Submit(t.Context(), creating("more")); !errors.Is(err, store.ErrOverloaded) {
			t.Errorf("got %v", err)
		}
		if _, err := c.SubmitBulk(t.Context(), []store.Write{creating("bulk")}); !errors.Is(err, store.ErrOverloaded) {
			t.Errorf("got %v", err)
		}
		if stats := c.Stats(); stats.Refused != 2 || stats.Waiting != 4 {
			t.Errorf("%+v", stats)
		}
		close(p.park)
		callers.Wait()
		c.Close()
		if got := fmt.Sprint(p.sizes()); got != "[1 4]" {
			t.Errorf("batches of %s", got)
		}
	})
}

func TestClosingCommitsWhatIsQueuedAndRefusesTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParking(t)
		p.park = make(chan struct{})
		c := store.NewCommitter(p, store.CommitterOptions{Lanes: 2})
		var callers sync.WaitGroup
		for version := int64(1); version <= 3; version++ {
			w := creating("x")
			if w.Node.Version = version; version > 1 {
				w.Op, w.Expected = store.OpUpdate, version-1
			}
			callers.Go(func() {
				if _, err := c.Submit(t.Context(), w); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		callers.Go(c.Close)
		synctest.Wait()
		if _, err := c.Submit(t.Context(), creating("late")); !errors.Is(err, store.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if got := fmt.Sprint(p.sizes()); got != "[1]" {
			t.Errorf("two lanes commit one path at a time: %s", got)
		}
		close(p.park)
		callers.Wait()
		if n, err := p.Committing.(store.Store).Read(t.Context(), "acme/x"); err != nil || n.Version != 3 {
			t.Errorf("version %d, %v", n.Version, err)
		}
	})
}

func TestTwoLanesCommitAtTheSameTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newParking(t)
		p.park = make(chan struct{})
		c := store.NewCommitter(p, store.CommitterOptions{Lanes: 2})
		var callers sync.WaitGroup
		for i := range 3 {
			callers.Go(func() {
				if _, err := c.Submit(t.Context(), creating(i)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		if got := fmt.Sprint(p.sizes()); got != "[1 1]" {
			t.Errorf("batches of %s", got)
		}
		close(p.park)
		callers.Wait()
		c.Close()
	})
}
