package feed_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/hubmesh/hubmesh/internal/feed"
)

// CF-1: what was queued before the call has had its effect after it
func TestWhoWaitsUntilEverybodyHasBeenToldWaitsForTheCallsThatAreRunning(t *testing.T) {
	t.Parallel()
	relayed(t, newRows(), func(t *testing.T, relay *feed.Relay, _ *heard) {
		let := make(chan struct{})
		var took []int64
		relay.Invalidations("slow", func(i feed.Invalidation) {
			<-let
			took = append(took, i.Version)
		})
		relay.Notify(hinted("p", 1))
		synctest.Wait()
		relay.Notify(hinted("q", 2))
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := relay.Told(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("it did not wait: %v", err)
		}
		told := make(chan error, 1)
		go func() { told <- relay.Told(t.Context()) }()
		synctest.Wait()
		if len(told) > 0 {
			t.Error("it returned while a call was running")
		}
		close(let)
		if err := <-told; err != nil || len(took) != 2 {
			t.Errorf("%v were told: %v", took, err)
		}
	})
}
