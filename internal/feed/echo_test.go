package feed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/feed/feedtest/txlog"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// telling is a model of a process that writes and reads: its commits, their late publication, what the others
// commit, its reader, and what a cache is told.
type telling struct {
	*model
	echoes  echoes
	naive   bool   // without the machine
	clock   uint64 // when the read that is under way began
	version int64
	order   map[node.Path][]int64 // committed versions
	publish map[node.Path][]int64 // committed here, not published yet
	told    map[node.Path]int64
	fresh   map[node.Path]int64 // what the cache read when it was told that everything may have changed
}

func newTelling(limit int) *telling {
	return &telling{model: newModel(designed(), limit), echoes: echoes{following: true}, order: map[node.Path][]int64{}, publish: map[node.Path][]int64{}, told: map[node.Path]int64{}, fresh: map[node.Path]int64{}}
}

func (w *telling) commit(origin string, path node.Path) {
	w.version++
	commit(w.log, origin, txlog.Change{Path: path, Kind: store.Updated, Version: w.version})
	w.order[path] = append(w.order[path], w.version)
	if origin == "own" {
		w.publish[path] = append(w.publish[path], w.version)
	}
}

func (w *telling) tell(path node.Path, version int64) {
	if version < w.told[path] {
		w.fail("%s is told %d after %d", path, version, w.told[path])
	}
	w.told[path] = version
}

func (w *telling) publishNext(path node.Path) {
	if len(w.publish[path]) == 0 {
		return
	}
	v := w.publish[path][0]
	w.publish[path] = w.publish[path][1:]
	if tell, _ := w.echoes.published(path, v); tell || w.naive {
		w.tell(path, v)
	}
}

// hand makes the effects of the reader, as the feed and the relay do.
func (w *telling) hand(effects []readerEffect) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case read, start, verify:
			w.clock = w.echoes.clock
		case reset:
			w.echoes.restarted(w.clock, false, w.now)
			for path, versions := range w.order { // the cache reads anew
				w.fresh[path] = versions[len(versions)-1]
			}
		case deliver:
			w.rows(e.rows)
		}
	}
	w.do(effects)
}

func (w *telling) rows(rows []store.ChangeRow) {
	brought := map[node.Path][]int64{}
	for _, r := range rows {
		if r.Origin == "own" {
			brought[r.Path] = append(brought[r.Path], r.Version)
		}
	}
	w.echoes.seen(w.clock, brought)
	w.echoes.expire(w.now)
	for _, r := range rows {
		if r.Origin == "own" {
			w.echoes.echo(r.Path, r.Version, w.now)
		} else if w.echoes.other(r) || w.naive {
			w.tell(r.Path, r.Version)
		}
	}
}

func (w *telling) answer() {
	event := w.pending
	w.pending = nil
	if event == nil {
		event = woken{}
	}
	w.hand(w.reader.step(event))
}

// play makes a random history and returns what is wrong with what the cache was told.
func play(seed uint64, naive bool) string {
	paths := []node.Path{"a", "b"}
	random := rand.New(rand.NewPCG(seed, 2))
	w := newTelling([]int{1, 2, 3, 1000}[random.IntN(4)])
	w.naive = naive
	for w.pending != nil {
		w.answer()
	}
	if random.IntN(2) == 0 { // the time after the start, in which less is sure, is over
		w.now = w.now.Add(2 * longestEarly)
	}
	restarts := 0
	for range 120 {
		path := paths[random.IntN(len(paths))]
		switch random.IntN(10) {
		case 0, 1:
			w.commit("own", path)
		case 2:
			w.commit("other", path)
		case 3, 4, 5:
			w.publishNext(path)
		case 6:
			if random.IntN(20) == 0 {
				w.hand(w.reader.step(overrun{})) // whatever is under way, the feed starts anew
				restarts++
			}
		default:
			w.answer()
		}
	}
	for _, path := range paths {
		for len(w.publish[path]) > 0 {
			w.publishNext(path)
		}
	}
	for range 200 {
		w.answer()
	}
	for _, path := range paths {
		versions := w.order[path]
		if len(versions) > 0 && max(w.told[path], w.fresh[path]) != versions[len(versions)-1] {
			w.fail("%s is at %d, told was %d", path, versions[len(versions)-1], w.told[path])
		}
	}
	if w.echoes.count != 0 || len(w.echoes.pending) != 0 || len(w.echoes.early) != 0 && restarts == 0 {
		w.fail("%d, %v, %v are left", w.echoes.count, w.echoes.pending, w.echoes.early)
	}
	return w.fault
}

func TestACacheIsToldOfAPathInTheOrderOfItsCommitsWhoeverMadeThem(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		if fault := play(seed, false); fault != "" {
			t.Fatalf("seed %d: %s", seed, fault)
		}
	}
	t.Run("and would not be if everything were told as it comes", func(t *testing.T) {
		for seed := range uint64(100) {
			if play(seed, true) != "" {
				return
			}
		}
		t.Error("the model did not notice")
	})
}

func TestAnOwnChangeThatTheFeedBeganBehindHoldsUpNobody(t *testing.T) {
	t.Parallel()
	e := echoes{following: true}
	e.published("a", 5)
	e.seen(e.clock, nil) // a read that began after it brought no echo: there is none
	if !e.other(store.ChangeRow{Path: "a", Version: 6}) || e.count != 0 {
		t.Error("a later change of another process is not told")
	}
}

func TestMoreUnreadChangesOfItsOwnThanItKeepsHaveEverythingReadAnew(t *testing.T) {
	t.Parallel()
	e := echoes{following: true}
	for i := range mostPending + 1 {
		_, overrun := e.published(node.Path(fmt.Sprint("p", i)), 1)
		if overrun != (i == mostPending) {
			t.Fatal(i)
		}
	}
	if e.count != 1 {
		t.Error(e.count)
	}
}

func TestARowThatIsNeverPublishedIsForgotten(t *testing.T) {
	t.Parallel()
	e := echoes{following: true}
	now := time.Unix(100, 0)
	e.echo("a", 1, now)
	e.echo("a", 2, now.Add(time.Minute))
	e.expire(now.Add(time.Minute + 1))
	if !slices.Equal([]int64{2}, []int64{e.early["a"][0].version}) || len(e.early["a"]) != 1 {
		t.Error(e.early)
	}
	e.expire(now.Add(3 * time.Minute))
	if len(e.early) != 0 {
		t.Error(e.early)
	}
}

func TestWithoutChangeRowsNothingIsKept(t *testing.T) {
	t.Parallel()
	var e echoes
	for v := range int64(10) {
		if tell, overrun := e.published("a", v); !tell || overrun {
			t.Fatal(v)
		}
	}
	if e.count != 0 {
		t.Error(e.count)
	}
}

// data §2, issue 4: the next life of a version that was lost is told
func TestAVersionThatWasToldAndLostHoldsBackNoneThatIsPublishedAfterIt(t *testing.T) {
	for _, lost := range []bool{true, false} {
		var e echoes
		e.following = true
		now := time.Now()
		e.restarted(0, false, now)
		e.other(store.ChangeRow{Path: "p", Version: 4, Origin: "other"})
		e.restarted(0, lost, now)
		if tell, _ := e.published("p", 2); tell != lost { // the control: nothing was lost, and something newer was told
			t.Errorf("lost %v: told %v", lost, tell)
		}
	}
}
