package feed_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/feed/feedtest"
)

// issue 4, CF-7: what is held is answered from only while what others commit has its effect here
func TestAFeedIsCurrentOnlyWhileItsReadsHaveTheirEffect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lasts time.Duration // how long nothing is read
		want  bool          // whether it is current until then
	}{
		"nothing is read for long":                        {lasts: feed.MostBehind + time.Second},
		"the control: nothing is read for a little while": {lasts: feed.MostBehind - time.Second, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, []string{"a", "b"}, func(t *testing.T, s *feedtest.Server, all []*process) {
				b := all[1]
				after(time.Hour) // an idle feed stays current
				if !b.feed.Current() || !b.feed.Stats().Live {
					t.Fatalf("idle: %+v", b.feed.Stats())
				}
				var blocked atomic.Bool
				blocked.Store(true)
				s.OnCall(func(ctx context.Context, origin, operation string) error {
					if blocked.Load() && origin == "b" && operation == feedtest.Read {
						<-ctx.Done() // as behind a lock: the call ends with its bound
						return ctx.Err()
					}
					return nil
				})
				after(c.lasts)
				if stats := b.feed.Stats(); b.feed.Current() != c.want || stats.Live != c.want {
					t.Errorf("after %v it is current: %v, %+v", c.lasts, b.feed.Current(), stats)
				}
				if !all[0].feed.Current() {
					t.Error("so is a process that reads")
				}
				blocked.Store(false)
				after(feed.MostBehind + time.Second) // the running call ends, and the next one reads
				if !b.feed.Current() || !b.feed.Stats().Live || b.feed.Behind() > time.Second {
					t.Errorf("it reads again: %+v", b.feed.Stats())
				}
			})
		})
	}
}

// issue 4: a row that was read and not taken has no effect
func TestAFeedIsNotCurrentWhileASubscriberHasNotTakenWhatWasRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := feedtest.NewServer()
		a, b := start(s, "a"), start(s, "b")
		for _, p := range []*process{a, b} {
			defer p.relay.Close()
			defer p.feed.Close()
			<-p.feed.Live()
		}
		let := make(chan struct{})
		cancel := b.relay.Invalidations("slow", func(i feed.Invalidation) {
			if i.Path == "p" {
				<-let
			}
		})
		after(time.Minute)
		if !b.feed.Current() {
			t.Fatal("it is not current before")
		}
		a.write("p", 1)
		after(feed.MostBehind + time.Second)
		if reads := b.feed.Stats(); b.feed.Current() {
			t.Errorf("it takes itself for current: %+v", reads)
		}
		close(let)
		after(2 * time.Second)
		if !b.feed.Current() {
			t.Error("it has taken everything")
		}
		cancel() // with or without a mark in its queue
		after(time.Minute)
		if !b.feed.Current() {
			t.Error("a subscriber that has ended holds it up")
		}
	})
}
