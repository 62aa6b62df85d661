package feed_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/memory"
)

func published(path node.Path, version int64) store.Change {
	return store.Change{Kind: store.Updated, Path: path, Version: version, Node: doc(path, version)}
}

// CF-1, CF-2
func TestOwnChangesReachBothChannelsAndThoseOfOthersTheCachesAlone(t *testing.T) {
	t.Parallel()
	relayed(t, newRows(), func(t *testing.T, relay *feed.Relay, h *heard) {
		var logical []int64
		relay.Changes(func(c store.Change) { logical = append(logical, c.Version) })
		relay.Publish(published("p", 1))
		relay.Notify(hinted("p", 2))
		relay.Publish(published("p", 3))
		h.want(t, "0s updated p v1 Doc", "0s updated p v3 Doc")
		if !slices.Equal(logical, []int64{1, 3}) {
			t.Error(logical)
		}
		relay.Notify(hinted("q", 2))
		h.want(t, "0s updated p v1 Doc", "0s updated p v3 Doc", "0s updated q v2 Doc")
	})
}

// CF-4
func TestPublishersAreSerialisedAndAllSubscribersAgreeOnTheOrder(t *testing.T) {
	t.Parallel()
	relayed(t, newRows(), func(t *testing.T, relay *feed.Relay, _ *heard) {
		var orders [3][]node.Path
		var inside [3]int
		for i := range 2 {
			relay.Invalidations("order", func(v feed.Invalidation) {
				if inside[i]++; inside[i] != 1 {
					t.Error("two calls at a time")
				}
				orders[i] = append(orders[i], v.Path)
				runtime.Gosched() // others get their chance
				inside[i]--
			})
		}
		relay.Changes(func(c store.Change) { orders[2] = append(orders[2], c.Path) })
		var writers sync.WaitGroup
		for w := range 8 {
			writers.Go(func() {
				for v := range 20 {
					relay.Publish(published(node.Path(fmt.Sprintf("w%d/%d", w, v)), 1))
				}
			})
		}
		writers.Wait()
		if len(orders[0]) != 160 {
			t.Errorf("%d told", len(orders[0]))
		}
		if cmp.Diff(orders[0], orders[1])+cmp.Diff(orders[0], orders[2]) != "" {
			t.Error("they do not agree")
		}
	})
}

// CF-5, data §2.2, data invariant 42
func TestASubscriberThatPanicsLosesItsOwnEventOnly(t *testing.T) {
	t.Parallel()
	relayed(t, newRows(), func(t *testing.T, relay *feed.Relay, h *heard) {
		got := newHeard()
		relay.Invalidations("broken", func(i feed.Invalidation) {
			if i.Version == 1 {
				panic("broken")
			}
			got.add(i)
		})
		relay.Publish(published("p", 1))
		relay.Publish(published("p", 2))
		relay.Notify(hinted("q", 1))
		relay.Notify(hinted("r", 2))
		h.want(t, "0s updated p v1 Doc", "0s updated p v2 Doc", "0s updated q v1 Doc", "0s updated r v2 Doc")
		got.want(t, "0s updated p v2 Doc", "0s updated r v2 Doc")
		if n := relay.Stats().Panics; n != 2 {
			t.Errorf("%d panics are counted", n)
		}
	})
}

// CF-6
func TestARelayKnowsNoBackendAndEndsWithItsMesh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{})
		defer s.Close()
		if err := s.EnsurePartition(t.Context(), "acme", "test"); err != nil {
			t.Fatal(err)
		}
		relay := feed.NewRelay(s.ReadMany, quiet())
		defer s.Subscribe(relay.Publish)()
		h := newHeard()
		cancel := relay.Invalidations("cache", h.add)
		write := func(version int64) {
			w := store.Write{Op: store.OpUpdate, Node: doc("acme/p", version), Expected: version - 1}
			if version == 1 {
				w.Op = store.OpCreate
			}
			if results, err := s.Commit(t.Context(), []store.Write{w}); err != nil || results[0].Err != nil {
				t.Fatal(err, results)
			}
		}
		write(1)
		relay.Notify(bare("acme/p")) // an event without an entity, from whatever feed
		after(time.Second)
		h.want(t, "0s created acme/p v1 Doc", "50ms updated acme/p v1 Doc")
		cancel()
		cancel()
		relay.Close()
		write(2)
		relay.Notify(bare("acme/p"))
		relay.Invalidations("late", h.add)()
		after(time.Second)
		h.want(t, "0s created acme/p v1 Doc", "50ms updated acme/p v1 Doc")
	})
}

func TestAWriterIsAnsweredAfterItsChangeWasTold(t *testing.T) {
	t.Parallel()
	relayed(t, newRows(), func(t *testing.T, relay *feed.Relay, _ *heard) {
		var got []int64
		relay.Invalidations("cache", func(i feed.Invalidation) {
			after(100 * time.Millisecond)
			got = append(got, i.Version)
		})
		relay.Notify(hinted("p", 1)) // its own goroutine is at work
		synctest.Wait()
		relay.Publish(published("p", 2))
		if !slices.Equal(got, []int64{1, 2}) {
			t.Error(got)
		}
	})
}

// storage §6
func TestASlowSubscriberIsAResetBehindAndNobodyElseIs(t *testing.T) {
	t.Parallel()
	relayed(t, newRows(), func(t *testing.T, relay *feed.Relay, h *heard) {
		gate := make(chan struct{})
		slow := map[bool]int{}
		stop := relay.Invalidations("slow", func(i feed.Invalidation) {
			<-gate
			slow[i.Reset]++
		})
		defer stop()
		for i := range 50_000 {
			relay.Notify(hinted(node.Path(fmt.Sprint("p", i)), 1))
			if i%1000 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		h.mu.Lock()
		if len(h.got) != 50_000 || slices.Contains(h.got, "reset") {
			t.Errorf("the other subscriber was told %d", len(h.got))
		}
		h.mu.Unlock()
		if stats := relay.Stats(); stats.Slow != 3 || stats.Queues["slow"] > 16_384 {
			t.Errorf("%+v", stats)
		}
		close(gate)
		synctest.Wait()
		if slow[true] != 1 || slow[false] > 16_385 {
			t.Error(slow)
		}
	})
}

func TestAStalledSubscriberHoldsUpWritesForASecondAndThenNoMore(t *testing.T) {
	t.Parallel()
	relayed(t, newRows(), func(t *testing.T, relay *feed.Relay, h *heard) {
		gate := make(chan struct{})
		var got []int64
		stop := relay.Invalidations("stalled", func(i feed.Invalidation) {
			<-gate
			got = append(got, i.Version)
		})
		defer stop()
		relay.Notify(hinted("p", 1))
		synctest.Wait()
		began := time.Now()
		for v := range int64(100) {
			relay.Publish(published("p", v+2))
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("100 writes took %v", took)
		}
		for i := range 20_000 { // and its queue stays bounded
			relay.Publish(published(node.Path(fmt.Sprint("q", i)), 7))
		}
		if n := relay.Stats().Queues["stalled"]; n > 16_384 {
			t.Errorf("%d wait", n)
		}
		close(gate)
		synctest.Wait()
		got = got[:1]
		relay.Publish(published("p", 102)) // it has caught up: told at once
		if !slices.Equal(got, []int64{1, 102}) {
			t.Error(got)
		}
	})
}

func TestAResetIsToldToEverybodyAndSilencesWhatWasToBeRead(t *testing.T) {
	t.Parallel()
	r := newRows(doc("p", 1))
	relayed(t, r, func(t *testing.T, relay *feed.Relay, h *heard) {
		release := r.park("p")
		relay.Notify(bare("p"))
		relay.Notify(bare("q"))
		after(60 * time.Millisecond)
		relay.Notify(bare("r"))
		relay.Notify(feed.Invalidation{Reset: true})
		release()
		after(10 * time.Second)
		h.want(t, "reset")
		if n := relay.Stats().Coalescer.Groups; n != 0 {
			t.Errorf("%d groups are left", n)
		}
		relay.Notify(bare("p"))
		after(time.Second)
		h.want(t, "reset", "10.11s updated p v1 Doc")
	})
}

func TestARelayWithoutAStoreTellsThePathAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		relay := feed.NewRelay(nil, quiet())
		defer relay.Close()
		h := newHeard()
		relay.Invalidations("cache", h.add)
		relay.Notify(bare("p"))
		after(time.Second)
		h.want(t, "50ms updated p v0 ")
	})
}

func TestCancelWaitsForARunningCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		relay := feed.NewRelay(func(context.Context, []node.Path) ([]node.Node, error) { return nil, nil }, quiet())
		defer relay.Close()
		over := false
		cancel := relay.Invalidations("cache", func(feed.Invalidation) {
			after(time.Second)
			over = true
		})
		relay.Notify(hinted("p", 1))
		synctest.Wait()
		relay.Notify(hinted("q", 1))
		cancel()
		if !over {
			t.Error("it did not wait")
		}
		over = false
		after(time.Minute)
		if over {
			t.Error("it was called after its end")
		}
	})
}
