package feed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/feed/feedtest"
	"github.com/hubmesh/hubmesh/internal/feed/feedtest/txlog"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// process is one that shares a server: its relay, its feed, a cache of versions and what was logged.
type process struct {
	name    string
	server  *feedtest.Server
	relay   *feed.Relay
	feed    *feed.Feed
	logs    *lines
	mu      sync.Mutex
	cache   map[node.Path]int64
	seen    []string // paths and versions, as told
	logical []string
	resets  int
}

type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

const listens = "PostgreSQL LISTEN started on mesh_node_changes"

func start(s *feedtest.Server, name string, change ...func(*feed.Source)) *process {
	p := &process{name: name, server: s, logs: &lines{}, cache: map[node.Path]int64{}}
	source := s.Source(name)
	for _, c := range change {
		c(&source)
	}
	log := slog.New(slog.NewTextHandler(p.logs, nil))
	p.relay = feed.NewRelay(source.Read, log)
	p.relay.Invalidations("cache", func(i feed.Invalidation) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if i.Reset {
			p.resets++
			clear(p.cache)
			return
		}
		p.seen = append(p.seen, fmt.Sprintf("%s@%d", i.Path, i.Version))
		p.cache[i.Path] = i.Version
		if i.Kind == store.Deleted {
			delete(p.cache, i.Path)
		}
	})
	p.relay.Changes(func(c store.Change) { p.logical = append(p.logical, fmt.Sprintf("%s@%d", c.Path, c.Version)) })
	p.feed = feed.Open(source, p.relay, log)
	return p
}

// run starts processes on one server, waits until they are live, and ends them after the test.
func run(t *testing.T, names []string, test func(*testing.T, *feedtest.Server, []*process), change ...func(*feed.Source)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := feedtest.NewServer()
		var all []*process
		for _, name := range names {
			p := start(s, name, change...)
			defer p.relay.Close()
			defer p.feed.Close()
			<-p.feed.Live()
			all = append(all, p)
		}
		synctest.Wait()
		test(t, s, all)
	})
}

// write commits as the store of the process does.
func (p *process) write(path node.Path, version int64) {
	p.server.Commit(p.name, txlog.Change{Path: path, Kind: store.Updated, Version: version, NodeType: "Doc"})
	p.relay.Publish(published(path, version))
	p.feed.Committed()
}

func (p *process) at(path node.Path) int64 {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cache[path]
}

func (p *process) sawAll(t *testing.T, want []string) {
	t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	got := slices.Clone(p.seen)
	slices.Sort(got)
	want = slices.Clone(want)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", p.name, diff)
	}
}

// CF-3
func TestOneCommitSeenByThreeProcessesIsOneLogicalDeliveryInItsPublisher(t *testing.T) {
	t.Parallel()
	run(t, []string{"a", "b", "c"}, func(t *testing.T, _ *feedtest.Server, all []*process) {
		for v := range int64(20) {
			all[0].write("p", v+1)
			after(10 * time.Millisecond)
		}
		after(5 * time.Second)
		for i, p := range all {
			if n := len(p.logical); n != map[bool]int{true: 20}[i == 0] {
				t.Errorf("%s: %d logical deliveries", p.name, n)
			}
			if len(p.seen) != 20 || p.at("p") != 20 {
				t.Errorf("%s was told %v", p.name, p.seen)
			}
		}
	})
}

// CF-7
func TestTwoProcessesAgreeWithoutARequestBetweenThem(t *testing.T) {
	t.Parallel()
	run(t, []string{"a", "b"}, func(t *testing.T, _ *feedtest.Server, all []*process) {
		a, b := all[0], all[1]
		b.write("p", 7)
		synctest.Wait()
		began := time.Now()
		a.write("p", 8)
		if b.at("p") != 8 || !time.Now().Equal(began) {
			t.Errorf("after %v b is at v%d", time.Since(began), b.at("p"))
		}
		a.server.Commit("", txlog.Change{Path: "p", Kind: store.Deleted, Version: 8}, txlog.Change{Path: "p", Kind: store.Created, Version: 1})
		a.server.Announce(`{"path":"p"}`) // a program that is not ours counts from the start
		if a.at("p") != 1 || b.at("p") != 1 {
			t.Error("the recreated node is not seen")
		}
	})
	t.Run("and answer for ever what they had before, without the relay", func(t *testing.T) {
		run(t, []string{"a", "b"}, func(t *testing.T, _ *feedtest.Server, all []*process) {
			all[1].write("p", 7)
			all[1].feed.Close()
			all[0].write("p", 8)
			after(time.Hour)
			if v := all[1].at("p"); v != 7 {
				t.Errorf("v%d", v)
			}
		})
	})
}

// CF-24, storage §6, fault 26, fault 28
func TestAListenerThatIsKilledAgainAndAgainLosesNothingAndHidesNothing(t *testing.T) {
	t.Parallel()
	run(t, []string{"a", "b"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		a, b := all[0], all[1]
		var want []string
		for v := range int64(300) {
			if v%10 == 3 {
				s.TerminateListeners()
			}
			if v%25 == 3 {
				s.Terminate()
			}
			path := node.Path(fmt.Sprint("p", v%7))
			a.write(path, v+1)
			want = append(want, fmt.Sprintf("%s@%d", path, v+1))
			after(7 * time.Millisecond)
		}
		after(3 * time.Second)
		a.sawAll(t, want)
		b.sawAll(t, want)
		if stats := b.feed.Stats(); stats.Gaps != 36 || stats.Listens != 37 || stats.Reconnects != 12 || stats.Resets != 0 {
			t.Errorf("%+v", stats)
		}
		if n := b.logs.count(listens); n != 37 {
			t.Errorf("%d log lines", n)
		}
	})
}

// storage §6
func TestTheLogLineComesAfterTheReadThatFollowsListen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := feedtest.NewServer()
		gate := make(chan struct{})
		s.OnCall(func(ctx context.Context, _, operation string) error {
			if operation == feedtest.Start {
				select {
				case <-gate:
				case <-ctx.Done():
				}
			}
			return ctx.Err()
		})
		p := start(s, "a")
		defer p.relay.Close()
		defer p.feed.Close()
		after(2 * time.Second)
		if s.Calls(feedtest.Listen) != 1 || p.logs.count(listens) != 0 || p.feed.Stats().Live {
			t.Error("it is said to listen before it has read")
		}
		close(gate)
		synctest.Wait()
		if p.logs.count(listens) != 1 || !p.feed.Stats().Live {
			t.Error("it is not said to listen")
		}
	})
}

// storage §6
func TestAListenerCutOffByAProxyThatSwallowsPacketsIsNoticedWithinSevenSeconds(t *testing.T) {
	t.Parallel()
	run(t, []string{"a"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		after(time.Minute) // pings come back
		synctest.Wait()
		if stats := all[0].feed.Stats(); stats.Gaps != 0 || stats.Pings != 20 {
			t.Errorf("%+v", stats)
		}
		s.Swallow(true)
		after(7 * time.Second)
		synctest.Wait()
		if stats := all[0].feed.Stats(); stats.Gaps != 1 {
			t.Errorf("%+v", stats)
		}
		s.Swallow(false)
		after(time.Second)
		if stats := all[0].feed.Stats(); !stats.Live || stats.Listens < 2 {
			t.Errorf("%+v", stats)
		}
	})
}

// fault 32
func TestWithListenBlockedForGoodTheFeedGoesOnByPolling(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*feed.Source){
		"refused": func(s *feed.Source) {
			s.Listen = func(context.Context) (feed.Listener, error) { return nil, errors.New("refused") }
		},
		"never answered": func(s *feed.Source) {
			s.Listen = func(ctx context.Context) (feed.Listener, error) { <-ctx.Done(); return nil, ctx.Err() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := feedtest.NewServer()
				a, b := start(s, "a"), start(s, "b", change)
				for _, p := range []*process{a, b} {
					defer p.relay.Close()
					defer p.feed.Close()
				}
				after(10 * time.Second)
				for v := range int64(20) {
					a.write("p", v+1)
					after(time.Second)
					if b.at("p") != v+1 {
						t.Fatalf("v%d after a poll's interval, not v%d", b.at("p"), v+1)
					}
				}
				if stats := b.feed.Stats(); stats.Live || stats.Relay.Lag > time.Second {
					t.Errorf("%+v", stats)
				}
			})
		})
	}
}

func TestBehindAPoolerTheFeedPollsAndIsLiveAfterItsFirstRead(t *testing.T) {
	t.Parallel()
	pooled := func(s *feed.Source) { s.Listen, s.Poll = nil, 250*time.Millisecond }
	run(t, []string{"a", "b"}, func(t *testing.T, _ *feedtest.Server, all []*process) {
		all[0].write("p", 1)
		after(250 * time.Millisecond)
		if all[1].at("p") != 1 {
			t.Error("not seen")
		}
	}, pooled)
}

// storage §6
func TestADeadNotifierDelaysTheOthersByNoMoreThanAPoll(t *testing.T) {
	t.Parallel()
	run(t, []string{"a", "b"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		s.OnCall(func(_ context.Context, _, operation string) error {
			if operation == feedtest.Notify {
				return errors.New("no")
			}
			return nil
		})
		all[0].write("p", 1)
		after(time.Second)
		if all[1].at("p") != 1 || all[0].logs.count("can not be woken") != 1 {
			t.Error("not seen, or not said")
		}
	})
}

// storage §2
func TestALongTransactionDelaysItsOwnRowsOnly(t *testing.T) {
	t.Parallel()
	run(t, []string{"a", "b"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		long := s.Log.Begin()
		long.Write("a", txlog.Change{Path: "long", Kind: store.Updated, Version: 1})
		for v := range int64(50) {
			all[0].write("p", v+1)
			if all[1].at("p") != v+1 {
				t.Fatal("it is held up")
			}
			after(100 * time.Millisecond)
		}
		long.Commit()
		after(time.Second)
		if all[1].at("long") != 1 {
			t.Error("its rows are missed")
		}
	})
}

func TestACrashOfTheServerLosesNothingEvenWhereItHandsIdsOutAgain(t *testing.T) {
	t.Parallel()
	run(t, []string{"a", "b"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		var want []string
		for v := range int64(20) {
			s.Log.Burn(5) // ids that nothing durable carries
			after(2 * time.Second)
			s.Stop()
			after(time.Duration(v) * 100 * time.Millisecond)
			s.Start()
			all[0].write("p", v+1)
			want = append(want, fmt.Sprintf("p@%d", v+1))
			after(3 * time.Second)
		}
		for _, p := range all {
			p.sawAll(t, want)
			if stats := p.feed.Stats(); stats.Resets != 0 || stats.Reconnects != 20 {
				t.Errorf("%+v", stats)
			}
		}
	})
}

func TestAFailoverThatLostCommitsIsAResetAndNotSilence(t *testing.T) {
	t.Parallel()
	run(t, []string{"a", "b"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		for v := range int64(10) {
			all[0].write("p", v+1)
			after(10 * time.Millisecond)
		}
		s.Stop()
		s.Log.Failover(3)
		s.Standby(true) // not promoted yet
		s.Start()
		after(5 * time.Second)
		before := all[1].resets
		s.Standby(false)
		after(5 * time.Second)
		for _, p := range all {
			if p.resets != before+1 || p.feed.Stats().Resets != 1 {
				t.Errorf("%s: %d resets", p.name, p.resets)
			}
		}
		all[0].write("p", 8)
		if all[1].at("p") != 8 {
			t.Error("it does not go on")
		}
	})
}

// storage §6
func TestAnOwnCommitWhoseAnswerWasLostIsToldWhenItsRowIsRead(t *testing.T) {
	t.Parallel()
	unsure := map[int64]bool{2: true}
	change := func(s *feed.Source) {
		s.Unsure = func(_ node.Path, version int64) bool {
			defer delete(unsure, version)
			return unsure[version]
		}
	}
	run(t, []string{"a"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		a := all[0]
		a.write("p", 1)
		s.Commit("a", txlog.Change{Path: "p", Kind: store.Updated, Version: 2, NodeType: "Doc"})
		after(time.Second)
		a.write("p", 3)
		after(time.Second)
		a.sawAll(t, []string{"p@1", "p@2", "p@3"})
		if stats := a.relay.Stats(); stats.Unsure != 1 || stats.Echoes != 2 || stats.Pending != 0 {
			t.Errorf("%+v", stats)
		}
	}, change)
}

func TestAnEmptiedTableIsAReset(t *testing.T) {
	t.Parallel()
	run(t, []string{"a"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		before := all[0].resets
		s.Commit("", txlog.Change{})
		s.Announce("")
		synctest.Wait()
		if all[0].resets != before+1 {
			t.Error(all[0].resets)
		}
	})
}

// CF-16: over the listener, of a table without the trigger that writes change rows.
func TestTheTableOfAnotherProgramIsFollowedByItsPayloads(t *testing.T) {
	t.Parallel()
	bareTable := func(s *feed.Source) {
		s.Bare = true
		s.Read = func(context.Context, []node.Path) ([]node.Node, error) { return []node.Node{doc("p", 9)}, nil }
	}
	run(t, []string{"a"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		for range 200 {
			s.Announce(`{"path":"p"}`)
		}
		s.Announce("{")
		after(time.Second)
		all[0].sawAll(t, []string{"p@9"})
		s.Announce(`{"path":"p","op":"DELETE"}`)
		all[0].sawAll(t, []string{"p@9", "p@0"})
		stats := all[0].feed.Stats()
		if stats.Relay.Coalescer.Reads != 1 || stats.BadPayloads != 1 || all[0].logs.count("is skipped") != 1 {
			t.Errorf("%+v", stats)
		}
	}, bareTable)
}

func TestSyncReturnsWhenWhatWasCommittedBeforeHasBeenRead(t *testing.T) {
	t.Parallel()
	run(t, []string{"a"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		s.Commit("", txlog.Change{Path: "p", Kind: store.Updated, Version: 4}) // nobody was told
		if err := all[0].feed.Sync(t.Context()); err != nil || all[0].at("p") != 4 {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.Stop()
		if err := all[0].feed.Sync(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestAnIdleFeedIsCheap(t *testing.T) {
	t.Parallel()
	run(t, []string{"a"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		before := s.Calls(feedtest.Read)
		after(time.Hour)
		synctest.Wait()
		if n := s.Calls(feedtest.Read) - before; n != 3600 {
			t.Errorf("%d reads an hour", n)
		}
		if stats := all[0].feed.Stats(); stats.Reconnects != 0 || stats.Relay.Coalescer.Groups != 0 {
			t.Errorf("%+v", stats)
		}
	})
}

func TestAServerThatAPoolerChangesIsNoticedWithinTenSeconds(t *testing.T) {
	t.Parallel()
	pooled := func(s *feed.Source) { s.Listen, s.Poll = nil, 250*time.Millisecond }
	run(t, []string{"a"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		all[0].write("p", 1)
		after(time.Minute)
		s.Log.Failover(1) // and no connection breaks
		after(11 * time.Second)
		if n := all[0].feed.Stats().Resets; n != 1 {
			t.Errorf("%d resets", n)
		}
	}, pooled)
}

// parked parks the first call of an operation by a process; wait until it is there, then release it.
func parked(s *feedtest.Server, process, operation string) (there <-chan struct{}, release func()) {
	arrived, gate := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.OnCall(func(_ context.Context, origin, what string) error {
		if origin == process && what == operation {
			once.Do(func() { close(arrived); <-gate })
		}
		return nil
	})
	return arrived, func() { close(gate) }
}

func TestAWakeUpDuringAReadIsNotLeftToThePoll(t *testing.T) {
	t.Parallel()
	run(t, []string{"a", "b"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		there, release := parked(s, "b", feedtest.Answer)
		all[0].write("p", 1)
		<-there // its snapshot has been taken
		all[0].write("p", 2)
		after(100 * time.Millisecond)
		release()
		if all[1].at("p") != 2 {
			t.Error("the second write is left to the poll")
		}
	})
}

func TestACommitWhileAWakeUpIsSentIsNotLeftToThePoll(t *testing.T) {
	t.Parallel()
	run(t, []string{"a", "b"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		after(500 * time.Millisecond) // far from the poll
		var once sync.Once
		there, gate := make(chan struct{}), make(chan struct{})
		s.OnNotified(func() { once.Do(func() { close(there); <-gate }) })
		all[0].write("p", 1)
		<-there // the others have been woken, and it does not know yet
		synctest.Wait()
		all[0].write("p", 2)
		synctest.Wait()
		close(gate)
		after(5 * time.Millisecond)
		if all[1].at("p") != 2 {
			t.Error("the second write is left to the poll")
		}
	})
}

// CF-20: a change row overtakes as well.
func TestAChangeRowSilencesTheReadUnderWay(t *testing.T) {
	t.Parallel()
	run(t, []string{"a"}, func(t *testing.T, s *feedtest.Server, all []*process) {
		there, release := parked(s, "a", feedtest.ReadNode)
		all[0].relay.Notify(bare("p"))
		<-there
		s.Commit("b", txlog.Change{Path: "p", Kind: store.Updated, Version: 5, NodeType: "Doc"})
		all[0].feed.Wake()
		synctest.Wait()
		release()
		after(10 * time.Second)
		all[0].sawAll(t, []string{"p@5"})
	})
}
