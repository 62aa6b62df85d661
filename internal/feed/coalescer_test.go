package feed_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// heard keeps what a subscriber was told, with the time since the bubble began.
type heard struct {
	mu    sync.Mutex
	began time.Time
	got   []string
}

func newHeard() *heard { return &heard{began: time.Now()} }

func (h *heard) add(i feed.Invalidation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i.Reset {
		h.got = append(h.got, "reset")
		return
	}
	h.got = append(h.got, fmt.Sprintf("%v %s %s v%d %s", time.Since(h.began), i.Kind, i.Path, i.Version, i.NodeType))
}

func (h *heard) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	if diff := cmp.Diff(want, h.got); diff != "" {
		t.Error(diff)
	}
}

// rows is what compatibility reads find: one park or fault a path.
type rows struct {
	mu     sync.Mutex
	nodes  map[node.Path]node.Node
	fails  bool
	parked map[node.Path]chan struct{}
	reads  [][]node.Path
	deaf   bool // to the end of its context
	busy   map[node.Path]int
	most   int // reads of one path at a time
}

func newRows(nodes ...node.Node) *rows {
	r := &rows{nodes: map[node.Path]node.Node{}, parked: map[node.Path]chan struct{}{}, busy: map[node.Path]int{}}
	for _, n := range nodes {
		r.nodes[n.Path] = n
	}
	return r
}

func doc(path node.Path, version int64) node.Node {
	return node.Node{Path: path, MainNode: path, Version: version, NodeType: "Doc"}
}

func (r *rows) park(path node.Path) (release func()) {
	c := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parked[path] = c
	return func() { close(c) }
}

func (r *rows) read(ctx context.Context, paths []node.Path) ([]node.Node, error) {
	r.mu.Lock()
	r.reads = append(r.reads, paths)
	var waits []chan struct{}
	for _, p := range paths {
		r.busy[p]++
		r.most = max(r.most, r.busy[p])
		if c := r.parked[p]; c != nil {
			waits = append(waits, c)
		}
	}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		for _, p := range paths {
			r.busy[p]--
		}
		r.mu.Unlock()
	}()
	for _, c := range waits {
		if r.deaf {
			<-c
			continue
		}
		select {
		case <-c:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails {
		return nil, errors.New("broken")
	}
	var found []node.Node
	for _, p := range paths {
		if n, ok := r.nodes[p]; ok {
			found = append(found, n)
		}
	}
	return found, nil
}

func (r *rows) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.reads)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// relayed runs a test in a bubble with a relay over rows and one subscriber.
func relayed(t *testing.T, r *rows, test func(*testing.T, *feed.Relay, *heard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		relay := feed.NewRelay(r.read, quiet())
		defer relay.Close()
		h := newHeard()
		relay.Invalidations("test", h.add)
		test(t, relay, h)
	})
}

func bare(path node.Path) feed.Invalidation {
	return feed.Invalidation{Path: path, Kind: store.Updated}
}

func hinted(path node.Path, version int64) feed.Invalidation {
	return feed.Invalidation{Path: path, Kind: store.Updated, Version: version, NodeType: "Doc"}
}

// after lets virtual time pass.
func after(d time.Duration) { <-time.After(d) }

// CF-8, CF-9, CF-11
func TestASelfContainedNotificationIsToldOnArrivalAndAnyOtherAfterARead(t *testing.T) {
	t.Parallel()
	n := doc("p", 3)
	for name, c := range map[string]struct {
		i      feed.Invalidation
		direct bool
	}{
		"a version":     {feed.Invalidation{Path: "p", Kind: store.Updated, Version: 3}, true},
		"a type":        {feed.Invalidation{Path: "p", Kind: store.Updated, NodeType: "Doc"}, true},
		"a node":        {feed.Invalidation{Path: "p", Kind: store.Created, Node: &n}, true},
		"a deletion":    {feed.Invalidation{Path: "p", Kind: store.Deleted}, true},
		"only the path": {bare("p"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRows(n)
			relayed(t, r, func(t *testing.T, relay *feed.Relay, h *heard) {
				relay.Notify(c.i)
				if c.direct {
					h.want(t, fmt.Sprintf("0s %s p v%d %s", c.i.Kind, c.i.Version, c.i.NodeType))
				} else {
					h.want(t)
				}
				after(time.Second)
				if !c.direct {
					h.want(t, "50ms updated p v3 Doc")
				}
				if (r.count() == 0) != c.direct {
					t.Errorf("%d reads", r.count())
				}
			})
		})
	}
}

// CF-12, CF-18
func TestAPathIsReadAfterFiftyMillisecondsOfQuietAndToldAsItsLastNotificationWas(t *testing.T) {
	t.Parallel()
	r := newRows(doc("p", 7))
	relayed(t, r, func(t *testing.T, relay *feed.Relay, h *heard) {
		relay.Notify(bare("p"))
		after(49 * time.Millisecond)
		relay.Notify(feed.Invalidation{Path: "p", Kind: store.Created})
		after(49 * time.Millisecond)
		h.want(t)
		after(time.Millisecond)
		h.want(t, "99ms created p v7 Doc")
	})
}

// CF-16, fault 34
func TestTwoHundredBareNotificationsAreOneRead(t *testing.T) {
	t.Parallel()
	r := newRows(doc("p", 200))
	relayed(t, r, func(t *testing.T, relay *feed.Relay, h *heard) {
		reconciled := newHeard()
		reconcile := feed.NewCoalescer(r.read, reconciled.add) // as a hub does for its own node
		defer reconcile.Close()
		for range 200 {
			relay.Notify(bare("p"))
			reconcile.Notify(bare("p"))
			after(time.Millisecond)
		}
		after(time.Second)
		h.want(t, "249ms updated p v200 Doc")
		reconciled.want(t, "249ms updated p v200 Doc")
		if r.count() != 2 {
			t.Errorf("%d reads of relay and reconcile together", r.count())
		}
	})
}

// CF-13
func TestAHubsReconcileUsesTheSameCoalescerAndTheSameWindow(t *testing.T) {
	t.Parallel()
	if feed.Window != 50*time.Millisecond || feed.ReadBound != 5*time.Second {
		t.Error(feed.Window, feed.ReadBound)
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHeard()
		c := feed.NewCoalescer(newRows(doc("p", 2)).read, h.add)
		c.Notify(bare("p"))
		c.Notify(bare("p"))
		after(feed.Window)
		h.want(t, "50ms updated p v2 Doc")
		c.Notify(bare("p"))
		c.Notify(hinted("p", 3)) // known: nothing is read
		after(time.Second)
		h.want(t, "50ms updated p v2 Doc")
		c.Close()
		c.Notify(bare("p"))
	})
}

// CF-15
func TestABurstThatEndsSelfContainedReadsNothing(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]feed.Invalidation{
		"in a hinted update": hinted("p", 9), "in a deletion": {Path: "p", Kind: store.Deleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRows(doc("p", 9))
			relayed(t, r, func(t *testing.T, relay *feed.Relay, h *heard) {
				for range 10 {
					relay.Notify(bare("p"))
				}
				relay.Notify(last)
				after(10 * time.Second)
				if r.count() != 0 {
					t.Errorf("%d reads", r.count())
				}
			})
		})
	}
}

// CF-14
func TestReadsOfOnePathNeverOverlapAndPathsAreIndependent(t *testing.T) {
	t.Parallel()
	r := newRows(doc("p", 1), doc("q", 1))
	r.deaf = true
	relayed(t, r, func(t *testing.T, relay *feed.Relay, h *heard) {
		release := r.park("p")
		relay.Notify(bare("p"))
		after(100 * time.Millisecond)
		relay.Notify(bare("q"))
		after(100 * time.Millisecond)
		h.want(t, "150ms updated q v1 Doc")
		relay.Notify(bare("p"))
		after(time.Second)
		release()
		after(time.Second)
		h.want(t, "150ms updated q v1 Doc", "1.2s updated p v1 Doc")
		if r.most != 1 {
			t.Errorf("%d reads of one path at a time", r.most)
		}
	})
}

// CF-17
func TestAReadThatFailsOrIsSilentTellsThePathAlone(t *testing.T) {
	t.Parallel()
	t.Run("a fault", func(t *testing.T) {
		t.Parallel()
		r := newRows(doc("p", 1))
		r.fails = true
		relayed(t, r, func(t *testing.T, relay *feed.Relay, h *heard) {
			relay.Notify(bare("p"))
			after(time.Second)
			h.want(t, "50ms updated p v0 ")
			r.fails = false
			relay.Notify(bare("p")) // and it goes on
			after(time.Second)
			h.want(t, "50ms updated p v0 ", "1.05s updated p v1 Doc")
		})
	})
	t.Run("silence for five seconds", func(t *testing.T) {
		t.Parallel()
		r := newRows(doc("p", 1))
		relayed(t, r, func(t *testing.T, relay *feed.Relay, h *heard) {
			r.park("p")
			relay.Notify(bare("p"))
			after(5049 * time.Millisecond)
			h.want(t)
			after(time.Millisecond)
			h.want(t, "5.05s updated p v0 ")
		})
	})
}

// CF-19
func TestAReadThatFindsNoNodeTellsNothing(t *testing.T) {
	t.Parallel()
	r := newRows()
	relayed(t, r, func(t *testing.T, relay *feed.Relay, h *heard) {
		relay.Notify(bare("p"))
		after(10 * time.Second)
		h.want(t)
		if r.count() != 1 {
			t.Error(r.count())
		}
	})
}

// CF-20, CF-21
func TestALaterNotificationSilencesTheReadUnderWay(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]func(*rows, func()){
		"its result":        func(_ *rows, release func()) { release() },
		"its fallback":      func(r *rows, release func()) { r.mu.Lock(); r.fails = true; r.mu.Unlock(); release() },
		"its lapse as well": func(*rows, func()) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRows(doc("p", 1))
			r.deaf = name == "its result"
			relayed(t, r, func(t *testing.T, relay *feed.Relay, h *heard) {
				release := r.park("p")
				relay.Notify(bare("p"))
				after(100 * time.Millisecond) // the read is under way
				relay.Notify(hinted("p", 5))
				synctest.Wait()
				r.mu.Lock()
				if r.busy["p"] != 0 && !r.deaf {
					t.Error("it is still under way, for nobody")
				}
				r.mu.Unlock()
				result(r, release)
				after(10 * time.Second)
				h.want(t, "100ms updated p v5 Doc")
			})
		})
	}
	t.Run("also for a change that this process publishes", func(t *testing.T) {
		t.Parallel()
		r := newRows(doc("p", 1))
		relayed(t, r, func(t *testing.T, relay *feed.Relay, h *heard) {
			release := r.park("p")
			relay.Notify(bare("p"))
			after(100 * time.Millisecond)
			relay.Publish(store.Change{Path: "p", Kind: store.Updated, Version: 6, Node: doc("p", 6)})
			release()
			after(10 * time.Second)
			h.want(t, "100ms updated p v6 Doc")
		})
	})
}

// CF-22
func TestAnIdlePathHoldsNoState(t *testing.T) {
	t.Parallel()
	r := newRows(doc("p", 1))
	relayed(t, r, func(t *testing.T, relay *feed.Relay, h *heard) {
		groups := func() int { synctest.Wait(); return relay.Stats().Coalescer.Groups }
		for i := range 1000 {
			relay.Notify(bare(node.Path(fmt.Sprint("p", i))))
		}
		r.park("p")
		relay.Notify(bare("p")) // its read takes as long as it may
		after(5049 * time.Millisecond)
		if groups() != 1001 {
			t.Errorf("%d groups at 5.049 s", groups())
		}
		after(time.Millisecond)
		if groups() != 0 {
			t.Errorf("%d groups at 5.05 s", groups())
		}
		// 1001 paths that were due in one instant are a few reads.
		if r.count() > 5 {
			t.Errorf("%d reads", r.count())
		}
	})
}

// CF-23
func TestHitsCloserThanTheWindowPostponeTheReadForAsLongAsTheyCome(t *testing.T) {
	t.Parallel()
	r := newRows(doc("p", 1))
	relayed(t, r, func(t *testing.T, relay *feed.Relay, h *heard) {
		for range 1000 {
			relay.Notify(bare("p"))
			after(49 * time.Millisecond)
		}
		h.want(t)
		relay.Notify(hinted("q", 2)) // what is self-contained is not held up
		h.want(t, "49s updated q v2 Doc")
		relay.Notify(bare("p"))
		after(50 * time.Millisecond)
		h.want(t, "49s updated q v2 Doc", "49.05s updated p v1 Doc")
	})
}

// CF-8, CF-10, CF-25, bad input: a payload that names no node
func TestAPayloadOfAnyAgeIsUnderstood(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]feed.Invalidation{
		`acme/doc`:          {Path: "acme/doc", Kind: store.Updated},
		`{"path":"acme/a"}`: {Path: "acme/a", Kind: store.Updated},
		`{"path":"/acme/a/","op":"INSERT","node_type":"Doc","version":4}`: {Path: "acme/a", Kind: store.Created, NodeType: "Doc", Version: 4},
		`{"path":"acme/a","op":"UPDATE","node_type":null,"version":4}`:    {Path: "acme/a", Kind: store.Updated, Version: 4},
		`{"path":"acme/a","op":"DELETE","node_type":"Doc","version":0}`:   {Path: "acme/a", Kind: store.Deleted, NodeType: "Doc"},
		`{"path":"acme/a","op":"VACUUM","entity":{"private":[1,2]}}`:      {Path: "acme/a", Kind: store.Updated},
	} {
		got, err := feed.ParsePayload(payload)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(payload, err, diff)
		}
	}
	for _, payload := range []string{"", "{", `{"path":7}`, `{}`, "a//b", "a\x00b", `{"path":"../x"}`} {
		var bad *feed.PayloadError
		if _, err := feed.ParsePayload(payload); !errors.As(err, &bad) {
			t.Errorf("%q: %v", payload, err)
		}
	}
}

func FuzzParsePayload(f *testing.F) {
	for _, seed := range []string{"", "acme/doc", `{"path":"acme/a","op":"INSERT","node_type":"Doc","version":4}`, `{"path":"a","version":-1}`, "{", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		i, err := feed.ParsePayload(payload)
		if err != nil {
			return
		}
		if _, err := node.ParsePath(string(i.Path)); err != nil || i.Version < 0 || !slices.Contains([]store.ChangeKind{store.Created, store.Updated, store.Deleted}, i.Kind) {
			t.Errorf("%q: %+v", payload, i)
		}
	})
}
