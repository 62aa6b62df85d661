package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/store"
)

// unreachable is a store whose server is away until it comes back.
type unreachable struct {
	back    time.Time
	heedsIt bool // whether it ends its tries when it is asked to
	lost    bool // the answer of what was sent was lost
}

func (u *unreachable) Commit(ctx context.Context, batch []store.Write) ([]store.Result, error) {
	until := time.Now().Add(10 * time.Second)
	if asked := store.TriedUntil(ctx); u.heedsIt && asked.Before(until) {
		until = asked
	}
	results := make([]store.Result, len(batch))
	if u.back.After(until) {
		<-time.After(time.Until(until))
		away := &store.UnavailableError{Op: "commit", Transient: true, Err: errors.New("cannot connect")}
		if !u.lost {
			return nil, away
		}
		for i, w := range batch {
			results[i].Err = &store.OutcomeUnknownError{Path: w.Node.Path, Err: away}
		}
		return results, nil
	}
	<-time.After(time.Until(u.back))
	return results, nil
}

// decision 9, issue 5: a write is tried for 10 s, the wait for its batch included
func TestAWriteIsTriedForTenSecondsWhileTheStoreIsAwayHoweverLongItHasWaitedForItsBatch(t *testing.T) {
	tried := func(u *unreachable, bulk bool) (took []time.Duration, errs []error) {
		synctest.Test(t, func(t *testing.T) {
			c := store.NewCommitter(u, store.CommitterOptions{Lanes: 2})
			began := time.Now()
			if u.back.IsZero() {
				u.back = began.Add(time.Hour)
			}
			took, errs = make([]time.Duration, 8), make([]error, 8)
			done := make(chan struct{})
			for i := range took {
				go func() {
					<-time.After(time.Duration(i) * time.Second)
					at := time.Now()
					if bulk {
						_, errs[i] = c.SubmitBulk(context.Background(), []store.Write{creating(fmt.Sprint("n", i))})
					} else {
						_, errs[i] = c.Submit(context.Background(), creating(fmt.Sprint("n", i/2))) // two each wait for one another, too
					}
					took[i] = time.Since(at)
					done <- struct{}{}
				}()
			}
			for range took {
				<-done
			}
			c.Close()
		})
		return took, errs
	}
	for _, bulk := range []bool{false, true} {
		took, errs := tried(&unreachable{heedsIt: true}, bulk)
		for i, d := range took {
			if !errors.As(errs[i], new(*store.UnavailableError)) || d < 10*time.Second || d > 10*time.Second+100*time.Millisecond {
				t.Errorf("bulk %v: write %d after %v: %v", bulk, i, d, errs[i])
			}
		}
	}
	took, _ := tried(&unreachable{}, false) // the control: each batch has ten seconds of its own
	if took[7] < 12*time.Second {
		t.Errorf("the control took %v", took)
	}
	took, errs := tried(&unreachable{heedsIt: true, lost: true}, false)
	for i, d := range took { // what may have been made is made no more
		if !errors.As(errs[i], new(*store.OutcomeUnknownError)) || d > 11*time.Second {
			t.Errorf("lost: write %d after %v: %v", i, d, errs[i])
		}
	}
}

// decision 9: what came last is still tried when the store is back
func TestAWriteThatSharedItsBatchWithOneThatWasGivenUpIsStillMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &unreachable{heedsIt: true, back: time.Now().Add(12 * time.Second)}
		c := store.NewCommitter(u, store.CommitterOptions{})
		defer c.Close()
		answers := make([]chan error, 3)
		for i := range answers {
			answers[i] = make(chan error, 1)
			go func() {
				_, err := c.Submit(context.Background(), creating(fmt.Sprint("n", i)))
				answers[i] <- err
			}()
			<-time.After(3 * time.Second)
		}
		for i, want := range []bool{false, true, true} {
			if err := <-answers[i]; (err == nil) != want {
				t.Errorf("write %d: %v", i, err)
			}
		}
		if s := c.Stats(); s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}
