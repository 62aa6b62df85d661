package feed

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hubmesh/hubmesh/internal/feed/feedtest/txlog"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

func change(path node.Path, version int64) txlog.Change {
	return txlog.Change{Path: path, Kind: store.Updated, Version: version, NodeType: "Doc"}
}

func commit(l *txlog.Log, origin string, changes ...txlog.Change) {
	tx := l.Begin()
	for _, c := range changes {
		if !tx.Write(origin, c) {
			panic("locked")
		}
	}
	tx.Commit()
}

// started is a model whose feed runs, with some rows read.
func running(t *testing.T, limit int) *model {
	t.Helper()
	m := newModel(designed(), limit)
	commit(m.log, "other", change("first", 1))
	m.drain()
	for v := range int64(5) {
		commit(m.log, "other", change("a", v+1))
		m.answer()
		m.drain()
	}
	if len(m.got) != 5 || len(m.resets) != 1 || m.reader.state != readerIdle {
		t.Fatalf("%v %v %v", m.got, m.resets, m.reader.state)
	}
	return m
}

func (m *model) drain() {
	for m.pending != nil {
		m.answer()
	}
}

func (m *model) reconnect() {
	m.pending = nil
	m.do(m.reader.step(failed{m.now}))
	m.drain()
}

func (m *model) want(t *testing.T, resets ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{causeStarted}, resets...), m.resets); diff != "" || m.fault != "" {
		t.Error(diff, m.fault)
	}
}

// storage §6, fault 38
func TestAReconnectIsVerifiedBeforeAnythingIsRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happens func(*model)
		resets  []string
	}{
		"to the same server, nothing is reset":                    {func(m *model) { commit(m.log, "other", change("a", 9)) }, nil},
		"after a crash, nothing is reset":                         {func(m *model) { m.log.Burn(20); m.log.Crash() }, nil},
		"after a promotion that lost nothing, the timeline tells": {func(m *model) { m.log.Failover(0) }, []string{causeTimeline}},
		"after a promotion that lost rows":                        {func(m *model) { m.log.Failover(2) }, []string{causeTimeline}},
		"to a restored database":                                  {func(m *model) { m.log.Restore() }, []string{causeServer}},
		"after ten minutes":                                       {func(m *model) { m.now = m.now.Add(longestAway) }, []string{causeAway}},
		"after less than ten minutes":                             {func(m *model) { m.now = m.now.Add(longestAway - time.Second) }, nil},
		"that pruned what had been read":                          {func(m *model) { m.log.Prune(m.reader.pos.XID + 1) }, nil},
		"that pruned what had not been read": {func(m *model) {
			commit(m.log, "other", change("b", 1))
			commit(m.log, "other", change("b", 2))
			m.log.Prune(m.reader.pos.XID + 3)
		}, []string{causePruned}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := running(t, 100)
			c.happens(m)
			m.reconnect()
			m.want(t, c.resets...)
			commit(m.log, "other", change("c", 1)) // and it goes on
			m.answer()
			m.drain()
			if m.latest["c"] == 0 {
				t.Error("nothing is read any more")
			}
		})
	}
}

// storage §6
func TestRowsThatAreGoneAreNoticedAlsoWhereTheTimelineSaysNothing(t *testing.T) {
	t.Parallel()
	m := running(t, 100)
	last := m.reader.last
	m.pending = nil
	m.do(m.reader.step(failed{m.now}))
	m.answer() // connected; the verification is under way
	s := serverOf(m.log, last)
	s.Found--
	m.pending = nil
	m.do(m.reader.step(verified{s, m.now}))
	m.drain()
	m.want(t, causeLost)
}

// storage §6: of the rows below the mark only the others are asked again, so that one that was pruned does
// not hide one that is lost.
func TestAPrunedRowDoesNotHideALostOne(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		m := running(t, 100)
		last := m.reader.last
		m.pending = nil
		m.do(m.reader.step(failed{m.now}))
		m.answer()
		below := last[2].XID
		kept := 0
		for _, r := range last {
			if r.XID >= below {
				kept++
			}
		}
		s := serverOf(m.log, last)
		s.PrunedBefore, s.Found = below, len(last)-1
		effects := m.reader.step(verified{s, m.now})
		again, ok := effects[0].(verify)
		if !ok || len(again.last) != kept || kept == len(last) {
			t.Fatalf("%+v", effects)
		}
		s.Found = kept
		if lost {
			s.Found--
		}
		_, restarts := m.reader.step(verified{s, m.now})[0].(start)
		if restarts != lost {
			t.Errorf("lost %v, restarts %v", lost, restarts)
		}
	}
}

func TestAStandbyIsNotReadFrom(t *testing.T) {
	t.Parallel()
	r := newReader("own")
	r.step(opened{})
	if diff := cmp.Diff([]readerEffect{standby{}, connect{}}, r.step(verified{store.Verification{Standby: true}, time.Time{}})); diff != "" {
		t.Error(diff)
	}
}

// storage §6
func TestAnIdleFeedIsNotResetByThePruningOfWhatItHasSeen(t *testing.T) {
	t.Parallel()
	m := running(t, 100)
	for range 50 {
		m.log.Burn(100)
		m.answer() // a poll
		m.drain()
		m.log.Prune(math.MaxInt64)
		m.answer()
		m.drain()
	}
	m.want(t)
}

// storage §6
func TestAReadThatIsTooFarBehindIsAReset(t *testing.T) {
	t.Parallel()
	m := running(t, 2)
	m.reader.most = 6
	for i := range 9 {
		commit(m.log, "other", change(node.Path("p"+string(rune('0'+i))), 1))
	}
	m.answer()
	m.drain()
	m.want(t, causeBehind)
	if m.latest["p0"] != 0 {
		t.Error("part of it was told")
	}
}

// storage §6
func TestManyRowsOfFewPathsAreNotTooManyAndTheLastOneIsTold(t *testing.T) {
	t.Parallel()
	m := running(t, 2)
	m.reader.most = 6
	for v := range int64(40) {
		commit(m.log, "other", change("a", 10+v), change("b", v+1))
	}
	before := len(m.got)
	m.answer()
	m.drain()
	m.want(t)
	if len(m.got) != before+2 {
		t.Errorf("%d told", len(m.got)-before)
	}
}

// storage §6
func TestAnErrorBetweenTwoPagesTakesThePositionBackToWhereTheReadBegan(t *testing.T) {
	t.Parallel()
	m := running(t, 2)
	for v := range int64(9) {
		commit(m.log, "other", change("a", 10+v), change("b", v+1))
	}
	before := m.reader.pos
	m.answer() // wake
	m.answer() // the first page of several
	if cmp.Equal(m.reader.pos, before) {
		t.Error("the position does not move")
	}
	m.reader.step(failed{m.now})
	if diff := cmp.Diff(before, m.reader.pos); diff != "" {
		t.Error(diff)
	}
	m.reconnect()
	m.want(t)
	if m.settle() != "" || m.latest["b"] == 0 {
		t.Error(m.fault)
	}
}

// storage §6
func TestAWakeUpDuringAReadIsAnotherRead(t *testing.T) {
	t.Parallel()
	m := running(t, 100)
	m.answer() // a wake-up: a read is under way, whose snapshot has been taken
	commit(m.log, "other", change("late", 1))
	m.do(m.reader.step(woken{}))
	m.drain()
	if m.latest["late"] == 0 {
		t.Error("the second wake-up was lost")
	}
}

// fault 28
func TestWhoWaitsIsToldAfterAReadThatBeganLater(t *testing.T) {
	t.Parallel()
	r := newReader("own")
	at := time.Unix(1, 0)
	r.step(opened{at})
	r.step(verified{store.Verification{}, at})
	r.step(started{store.ChangePage{}, at})
	r.step(woken{})
	r.step(woken{[]uint64{5}}) // while that read runs
	told := func(effects []readerEffect) bool {
		return slices.ContainsFunc(effects, func(e readerEffect) bool {
			s, ok := e.(synced)
			return ok && slices.Equal(s.tokens, []uint64{5})
		})
	}
	if told(r.step(arrived{store.ChangePage{}, at})) {
		t.Error("told after a read that had begun before")
	}
	r.step(failed{at}) // and a fault does not lose who waits
	r.step(opened{at})
	r.step(verified{store.Verification{}, at})
	if !told(r.step(arrived{store.ChangePage{}, at})) {
		t.Error("not told")
	}
}

func TestBehindAPoolerTheServerIsVerifiedEveryTenSeconds(t *testing.T) {
	t.Parallel()
	m := running(t, 100)
	m.reader.reverify = reverifyAfter
	m.log.Failover(1) // and no connection breaks
	for range 12 {
		m.now = m.now.Add(time.Second)
		m.answer()
		m.drain()
	}
	m.want(t, causeTimeline)
}

func TestAnotherServerBehindAnOpenConnectionIsNoticedByThePage(t *testing.T) {
	t.Parallel()
	m := running(t, 100)
	m.log.Restore()
	m.answer()
	m.drain()
	m.want(t, causeServer)
}

func TestAResetThatFailsIsMadeAfterTheReconnect(t *testing.T) {
	t.Parallel()
	m := running(t, 100)
	m.do(m.reader.step(overrun{}))
	m.reconnect() // instead of the answer
	m.want(t, causeOverrun)
}

// A consumer is handed every row, and a position after each portion from which it could go on.
func TestAWholeReadIsHandedOverInPortions(t *testing.T) {
	t.Parallel()
	l := txlog.New()
	r := newReader("own")
	r.whole, r.limit, r.most = true, 3, 5
	r.resume(store.Position{XID: 1})
	for v := range int64(20) {
		commit(l, "own", change("a", v+1))
	}
	got := 0
	effects := r.step(opened{})
	for len(effects) > 0 {
		var next []readerEffect
		for _, e := range effects {
			switch e := e.(type) {
			case verify:
				next = r.step(verified{serverOf(l, nil), time.Time{}})
			case read:
				next = r.step(arrived{l.Read(e.from, e.limit), time.Time{}})
			case deliver:
				got += len(e.rows)
				if left := len(l.Read(e.to, 100).Rows); left != 20-got {
					t.Errorf("after %d, %d are left", got, left)
				}
			default:
				t.Errorf("%T", e)
			}
		}
		effects = next
	}
	if got != 20 {
		t.Errorf("%d", got)
	}
}

func TestAStoredPositionRestsWhereNothingCanComeBefore(t *testing.T) {
	t.Parallel()
	p := store.Position{XID: 5, Pos: 7}
	rest := resting(p, store.Snapshot{Min: 90, Max: 90})
	if floorOf(rest) != 90 || floorOf(p) != 5 || floorOf(store.Position{XID: 5, Open: []uint64{3, 4}}) != 3 {
		t.Errorf("%+v", rest)
	}
	if diff := cmp.Diff(p, resting(p, store.Snapshot{Min: 5, Max: 90})); diff != "" {
		t.Error(diff)
	}
}
