package feed

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hubmesh/hubmesh/internal/feed/feedtest/txlog"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// positionRule is a way to keep a position: how it moves, and what a read behind it answers.
type positionRule struct {
	advance func(store.Position, store.ChangePage) store.Position
	read    func(*txlog.Log, store.Position, int) store.ChangePage
}

func designed() positionRule { return positionRule{advance, (*txlog.Log).Read} }

// model drives a reader over a log of transactions that a chooser makes, and keeps what it delivered.
type model struct {
	log    *txlog.Log
	reader *reader
	rule   positionRule
	now    time.Time
	open   []*txlog.Tx
	before map[int64]bool // rows that were there then

	// The page that is under way: its snapshot was taken before what follows.
	pending readerEvent

	got    map[int64]bool // positions delivered
	latest map[node.Path]int64
	resets []string
	fault  string
}

func newModel(rule positionRule, limit int) *model {
	m := &model{log: txlog.New(), reader: newReader("own"), rule: rule, now: time.Unix(1e9, 0), got: map[int64]bool{}, latest: map[node.Path]int64{}}
	m.reader.limit, m.reader.advance = limit, rule.advance
	m.do(m.reader.step(opened{m.now}))
	return m
}

func (m *model) do(effects []readerEffect) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case verify:
			m.pending = verified{serverOf(m.log, e.last), m.now}
		case start:
			m.pending = started{m.log.Start(), m.now}
			m.before = map[int64]bool{}
			for _, rows := range m.log.Committed() {
				for _, r := range rows {
					m.before[r.Pos] = true
				}
			}
		case read:
			m.pending = arrived{m.rule.read(m.log, e.from, e.limit), m.now}
		case deliver:
			m.deliver(e.rows)
		case reset:
			m.resets = append(m.resets, e.cause)
			clear(m.latest)
		case connect:
			m.pending = opened{m.now}
		}
	}
}

func serverOf(l *txlog.Log, last []store.ChangeRow) store.Verification {
	system, timeline, pruned := l.Identity()
	return store.Verification{SystemID: system, Timeline: timeline, PrunedBefore: pruned, Found: l.Found(last)}
}

func (m *model) deliver(rows []store.ChangeRow) {
	for _, r := range rows {
		switch {
		case m.got[r.Pos]:
			m.fail("twice: %+v", r)
		case m.before[r.Pos]:
			m.fail("was there before the start: %+v", r)
		case r.Pos < m.latest[r.Path]:
			m.fail("order of %s inverted: %d after %d", r.Path, r.Pos, m.latest[r.Path])
		}
		m.got[r.Pos] = true
		m.latest[r.Path] = r.Pos
	}
}

func (m *model) fail(format string, args ...any) {
	if m.fault == "" {
		m.fault = fmt.Sprintf(format, args...)
	}
}

// answer hands the reader what it waits for.
func (m *model) answer() {
	event := m.pending
	m.pending = nil
	if event == nil {
		event = woken{}
	}
	m.do(m.reader.step(event))
}

// act makes one thing happen.
func (m *model) act(choose func(int) int) {
	paths := []node.Path{"a", "b", "c", "d"}
	m.now = m.now.Add(time.Duration(choose(1000)) * time.Millisecond)
	switch choose(12) {
	case 0, 1, 2:
		tx := m.log.Begin()
		if choose(3) == 0 {
			tx.ID() // early
		}
		m.open = append(m.open, tx)
	case 3, 4, 5:
		if len(m.open) > 0 {
			origin := []string{"own", "other", ""}[choose(3)]
			m.open[choose(len(m.open))].Write(origin, txlog.Change{Path: paths[choose(len(paths))], Kind: store.Updated, Version: 1})
		}
	case 6, 7:
		if len(m.open) > 0 {
			i := choose(len(m.open))
			if choose(10) == 0 {
				m.open[i].Rollback()
			} else {
				m.open[i].Commit()
			}
			m.open = slices.Delete(m.open, i, i+1)
		}
	case 8:
		switch choose(8) {
		case 0:
			m.log.Burn(choose(5))
		case 1:
			m.log.Crash()
			m.open = nil
			m.pending = nil // the connection is gone, and what it would have answered
			m.do(m.reader.step(failed{m.now}))
		case 2:
			m.pending = nil
			m.do(m.reader.step(failed{m.now}))
		}
	default:
		m.answer()
	}
}

// settle ends every transaction, reads to the end and compares.
func (m *model) settle() string {
	for _, tx := range m.open {
		tx.Commit()
	}
	for range 10_000 {
		if m.pending == nil && m.reader.state == readerIdle {
			break
		}
		m.answer()
	}
	m.answer() // a read that begins now
	for m.pending != nil {
		m.answer()
	}
	for _, rows := range m.log.Committed() {
		for _, r := range rows {
			// Of a read that was cut, the last row of a path speaks for the earlier ones.
			covered := m.reader.limit < 1000 && m.latest[r.Path] > r.Pos
			if !m.got[r.Pos] && !m.before[r.Pos] && !covered {
				m.fail("missed: %+v", r)
			}
		}
	}
	return m.fault
}

// storage §2, fault 33
func TestThePositionMissesNothingRepeatsNothingAndKeepsAPathsOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		choose := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "choice") }
		m := newModel(designed(), []int{1, 2, 3, 5, 8, 1000}[choose(6)])
		for range rapid.IntRange(50, 300).Draw(rt, "steps") {
			m.act(choose)
		}
		if fault := m.settle(); fault != "" {
			rt.Fatal(fault)
		}
		if len(m.resets) != 1 {
			rt.Fatalf("resets: %q", m.resets)
		}
	})
}

// The controls of the test above: what sounds right and is not (storage.md §2). Each must be found out by
// the same model.
func TestOtherPositionsFailInTheSameModel(t *testing.T) {
	t.Parallel()
	behind := func(r store.ChangeRow, p store.Position) bool {
		return r.XID > p.XID || r.XID == p.XID && r.Pos > p.Pos
	}
	rules := map[string]positionRule{
		"the sequence number only": {
			func(p store.Position, page store.ChangePage) store.Position {
				for _, r := range page.Rows {
					p.Pos = max(p.Pos, r.Pos)
				}
				return p
			},
			func(l *txlog.Log, p store.Position, limit int) store.ChangePage {
				return l.Select(limit, never, func(r store.ChangeRow) bool { return r.Pos > p.Pos })
			},
		},
		"the highest id and position, without what was open": {
			func(p store.Position, page store.ChangePage) store.Position {
				next := advance(p, page)
				next.Open = nil
				return next
			}, (*txlog.Log).Read,
		},
		"the end of the snapshot": { // misses the ids that a crash hands out again
			func(p store.Position, page store.ChangePage) store.Position {
				next := advance(p, page)
				if !page.Cut && page.Snapshot.Max > 0 {
					next = store.Position{XID: page.Snapshot.Max - 1, Pos: math.MaxInt64, Open: page.Snapshot.Open}
				}
				return next
			}, (*txlog.Log).Read,
		},
		"rows between two horizons": { // each row once, but not in order: the reader must not be cut by the horizon
			func(p store.Position, page store.ChangePage) store.Position {
				next := advance(p, page)
				if !page.Cut {
					next = store.Position{XID: page.Snapshot.Min - 1, Pos: math.MaxInt64}
				}
				next.Open = nil
				return next
			},
			func(l *txlog.Log, p store.Position, limit int) store.ChangePage {
				horizon := l.Start().Snapshot.Min
				return l.Select(limit, never, func(r store.ChangeRow) bool { return behind(r, p) && r.XID < horizon })
			},
		},
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(3000) {
				random := rand.New(rand.NewPCG(seed, 1))
				m := newModel(rule, []int{1, 2, 3, 5, 8, 1000}[random.IntN(6)])
				for range 300 {
					m.act(random.IntN)
				}
				if fault := m.settle(); fault != "" {
					t.Logf("seed %d: %s", seed, fault)
					return
				}
			}
			t.Error("the model did not notice")
		})
	}
}

func never(store.ChangeRow) bool { return false }
