package feed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/feed/feedtest"
	"github.com/hubmesh/hubmesh/internal/feed/feedtest/txlog"
	"github.com/hubmesh/hubmesh/internal/store"
)

// effects is what handlers did, in whichever process.
type effects struct {
	mu     sync.Mutex
	done   []string // paths and versions, each time
	resets int
	fail   func(feed.Batch) error
	inside int
	most   int // handlers at a time
}

func (e *effects) handle(ctx context.Context, b feed.Batch) error {
	e.mu.Lock()
	e.inside++
	e.most = max(e.most, e.inside)
	fail := e.fail
	e.mu.Unlock()
	defer func() { e.mu.Lock(); e.inside--; e.mu.Unlock() }()
	if fail != nil {
		if err := fail(b); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if b.Reset {
		e.resets++
	}
	for _, r := range b.Rows {
		e.done = append(e.done, fmt.Sprintf("%s@%d", r.Path, r.Version))
	}
	return ctx.Err()
}

func (e *effects) failWith(fail func(feed.Batch) error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail = fail
}

func (e *effects) want(t *testing.T, resets int, want []string) {
	t.Helper()
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	if diff := cmp.Diff(want, e.done); diff != "" || e.resets != resets {
		t.Errorf("%d resets; %s", e.resets, diff)
	}
}

func versions(from, to int64) (all []string) {
	for v := from; v <= to; v++ {
		all = append(all, fmt.Sprintf("p@%d", v))
	}
	return all
}

// decision 7
func TestAConsumersEffectsAreCompleteWhicheverProcessDiesAndInWhicheverItRuns(t *testing.T) {
	t.Parallel()
	run(t, []string{"a", "b", "c"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		var e effects
		for _, p := range all {
			p.feed.Consumer("effects", s.Positions(), e.handle)
		}
		after(time.Second)
		e.want(t, 1, nil) // it is new: everything may have changed
		for v := range int64(30) {
			all[2].write("p", v+1)
			if v == 10 {
				all[0].feed.Close() // the publisher's peers end, one after the other
			}
			if v == 20 {
				all[1].feed.Close()
			}
			after(time.Second)
		}
		after(time.Minute)
		e.want(t, 1, versions(1, 30))
		if e.most != 1 {
			t.Errorf("%d handlers at a time", e.most)
		}
	})
}

func TestAHandlerThatFailsIsGivenTheSameAgainAndThePositionStays(t *testing.T) {
	t.Parallel()
	run(t, []string{"a"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		var e effects
		c := all[0].feed.Consumer("effects", s.Positions(), e.handle)
		after(time.Second)
		before := c.Stats().Position
		attempts := 0
		e.failWith(func(feed.Batch) error {
			switch attempts++; {
			case attempts == 3:
				panic("broken")
			case attempts < 6:
				return errors.New("not yet")
			}
			return nil
		})
		all[0].write("p", 1)
		after(time.Second)
		all[0].write("p", 2)
		if stats := c.Stats(); !cmp.Equal(stats.Position, before) || stats.Failures != 4 {
			t.Errorf("%+v", stats)
		}
		after(10 * time.Second)
		e.want(t, 1, versions(1, 2))
		if stats := c.Stats(); stats.Failures != 5 || stats.Rows != 2 {
			t.Errorf("%+v", stats)
		}
	})
}

func TestTheLeaseIsKeptWhileAHandlerWorksForLong(t *testing.T) {
	t.Parallel()
	run(t, []string{"a", "b"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		var e effects
		for _, p := range all {
			p.feed.Consumer("effects", s.Positions(), e.handle)
		}
		after(time.Second)
		e.failWith(func(feed.Batch) error { after(10 * time.Minute); return nil })
		all[0].write("p", 1)
		after(11 * time.Minute)
		e.want(t, 1, versions(1, 1))
		if e.most != 1 {
			t.Errorf("%d handlers at a time", e.most)
		}
	})
}

func TestAProcessThatCanNotRenewItsLeaseStopsItsHandlerBeforeAnotherGoesOn(t *testing.T) {
	t.Parallel()
	run(t, []string{"a", "b"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		var e effects
		var stopped, taken time.Time
		first := all[0].feed.Consumer("effects", s.Positions(), func(ctx context.Context, b feed.Batch) error {
			if b.Reset {
				return nil
			}
			<-ctx.Done()
			stopped = time.Now()
			return ctx.Err()
		})
		after(time.Second)
		all[1].feed.Consumer("effects", s.Positions(), func(ctx context.Context, b feed.Batch) error {
			taken = time.Now()
			return e.handle(ctx, b)
		})
		after(time.Second)
		all[1].write("p", 1)
		after(time.Second)
		s.OnCall(func(_ context.Context, origin, _ string) error {
			if origin == "a" {
				return feedtest.ErrGone // cut off
			}
			return nil
		})
		after(2 * time.Minute)
		e.want(t, 0, versions(1, 1))
		if stopped.IsZero() || !stopped.Before(taken) || first.Stats().Holding {
			t.Errorf("stopped at %v, taken at %v", stopped, taken)
		}
	})
}

func TestAConsumerGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	run(t, []string{"a"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		var e effects
		a := all[0]
		c := a.feed.Consumer("effects", s.Positions(), e.handle)
		after(time.Second)
		a.write("p", 1)
		long := s.Log.Begin()
		long.Write("a", txlog.Change{Path: "long", Kind: store.Updated, Version: 1})
		a.write("p", 2)
		after(time.Second)
		c.Close()
		long.Commit() // below the stored position, and open when it was stored
		a.write("p", 3)
		after(time.Hour)
		a.feed.Consumer("effects", s.Positions(), e.handle)
		after(time.Second)
		e.want(t, 1, append(versions(1, 2), "long@1", "p@3"))
	})
}

func TestAConsumerThatFoundNothingForLongIsNotResetByWhatWasPrunedMeanwhile(t *testing.T) {
	t.Parallel()
	run(t, []string{"a"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		var e effects
		c := all[0].feed.Consumer("effects", s.Positions(), e.handle)
		after(time.Second)
		all[0].write("p", 1)
		for range 60 {
			s.Log.Burn(1000)
			after(time.Minute)
		}
		c.Close()
		s.Log.Prune(100 + 58_000)
		all[0].write("p", 2)
		all[0].feed.Consumer("effects", s.Positions(), e.handle)
		after(time.Second)
		e.want(t, 1, versions(1, 2))
	})
}

func TestAConsumerThatFellBehindWhatIsKeptIsToldSo(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(*feedtest.Server){
		"pruned": func(s *feedtest.Server) { s.Log.Prune(1 << 40) },
		"a promoted server, while nobody held the lease": func(s *feedtest.Server) { s.Log.Failover(1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, []string{"a"}, func(t *testing.T, s *feedtest.Server, all []*process) {
				var e effects
				c := all[0].feed.Consumer("effects", s.Positions(), e.handle)
				after(time.Second)
				all[0].write("p", 1)
				after(time.Second)
				c.Close()
				all[0].write("p", 2)
				happens(s)
				all[0].feed.Consumer("effects", s.Positions(), e.handle)
				after(time.Second)
				all[0].write("p", 3)
				after(time.Second)
				e.want(t, 2, []string{"p@1", "p@3"})
			})
		})
	}
}

func TestAConsumerRidesOutCrashesAndCutConnections(t *testing.T) {
	t.Parallel()
	run(t, []string{"a", "b"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		var e effects
		for _, p := range all {
			p.feed.Consumer("effects", s.Positions(), e.handle)
		}
		after(time.Second)
		for v := range int64(100) {
			switch v % 20 {
			case 5:
				s.Terminate()
			case 10:
				s.Stop()
				after(3 * time.Second)
				s.Start()
			}
			all[v%2].write("p", v+1)
			after(200 * time.Millisecond)
		}
		after(time.Minute)
		synctest.Wait()
		e.mu.Lock()
		defer e.mu.Unlock()
		if got := slices.Compact(slices.Clone(e.done)); !slices.Equal(got, versions(1, 100)) || e.resets != 1 { // some may be twice
			t.Errorf("%d resets, %v", e.resets, e.done)
		}
	})
}

func TestAHandlerIsStoppedWhenItsLeaseIsSomebodyElses(t *testing.T) {
	t.Parallel()
	run(t, []string{"a"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		var cause error
		all[0].feed.Consumer("effects", s.Positions(), func(ctx context.Context, _ feed.Batch) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil // too late: the position is not its to move
		})
		after(time.Second)
		s.Give("effects", "somebody")
		after(10 * time.Second)
		synctest.Wait()
		if !errors.Is(cause, store.ErrLeaseLost) {
			t.Error(cause)
		}
	})
}

func TestAConsumerFarBehindIsGivenEachRow(t *testing.T) {
	t.Parallel()
	run(t, []string{"a"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		var e effects
		c := all[0].feed.Consumer("effects", s.Positions(), e.handle)
		after(time.Second)
		c.Close()
		var changes []txlog.Change
		for v := range int64(25_000) {
			changes = append(changes, txlog.Change{Path: "p", Kind: store.Updated, Version: v + 1})
		}
		s.Commit("b", changes...)
		all[0].feed.Consumer("effects", s.Positions(), e.handle)
		after(time.Second)
		e.want(t, 1, versions(1, 25_000))
	})
}
