package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

const tableName = "table" // the table's server, in cuts

// table is the server of the membership rows and of the nodes' rows.
type table struct {
	w    *world
	down int
	deaf int // notifications are lost
	rows map[string]row
	key  membership.Key
	// votes by target and voter
	votes    map[[2]membership.Epoch]time.Duration
	versions map[string]int64 // of nodes
	history  []snapshot
	failed   bool              // a failover has happened
	cuts     map[[2]string]int // one way, between a process and the server
	voted    int
	votedOut int // while alive
}

type row struct {
	membership.Member
	beat time.Duration
}

type snapshot struct {
	at   time.Duration
	rows map[string]row
	n    uint64
}

func newTable(w *world) *table {
	return &table{w: w, rows: map[string]row{}, key: membership.Key{Timeline: 1}, votes: map[[2]membership.Epoch]time.Duration{}, versions: map[string]int64{}, cuts: map[[2]string]int{}}
}

func (t *table) cut(from, to string) bool { return t.cuts[[2]string{from, to}] > 0 }

// setCut cuts or heals one way between two processes, or between one and the table.
func (w *world) setCut(a, b string, on bool) {
	switch {
	case a == tableName || b == tableName:
		k := [2]string{a, b}
		if on {
			w.table.cuts[k]++
		} else {
			w.table.cuts[k]--
		}
	case on:
		w.net.Cut(a, b)
	default:
		w.net.Heal(a, b)
	}
}

const (
	fresh     = 4 * time.Second
	voteValid = 5 * time.Second
)

var errTable = errors.New("the table's server does not answer")

// do runs f at the server for a process. The answer may be lost after it has run.
func (t *table) do(p *process, f func(), done func(error)) {
	w, over := t.w, false
	end := func(err error) {
		if !over {
			over = true
			done(err)
		}
	}
	w.after(2*time.Second, p, func() { end(errTable) })
	if t.cut(p.name, tableName) {
		return
	}
	trip := func() time.Duration { return between(w.tableRand, 100*time.Microsecond, 900*time.Microsecond) }
	w.after(trip(), nil, func() {
		if t.down > 0 || p.dead {
			return
		}
		f()
		if t.cut(tableName, p.name) {
			return
		}
		w.after(trip(), p, func() { end(nil) })
	})
}

func (t *table) names() []string {
	out := make([]string, 0, len(t.rows))
	for n := range t.rows {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

func (t *table) view() *membership.View {
	var members []membership.Member
	for _, n := range t.names() {
		members = append(members, t.rows[n].Member)
	}
	v, err := membership.NewView(t.key, members)
	if err != nil {
		panic(err)
	}
	return v
}

// changed raises the key and tells the listeners, most of them.
func (t *table) changed() {
	t.key.Number++
	rows := map[string]row{}
	for n, r := range t.rows {
		rows[n] = r
	}
	t.history = append(t.history, snapshot{t.w.now, rows, t.key.Number})
	r := t.w.tableRand
	for _, n := range t.w.names {
		p := t.w.current[n]
		if p == nil || p.dead || t.cut(tableName, n) || t.deaf > 0 {
			continue
		}
		if r.IntN(20) == 0 {
			continue // its listener was reconnecting
		}
		d := between(r, 300*time.Microsecond, 3*time.Millisecond)
		if r.IntN(8) == 0 {
			d = between(r, 5*time.Millisecond, 400*time.Millisecond)
		}
		t.w.after(d, p, p.silo.Member.Refresh)
	}
}

// failover loses what was written within lag, and begins a new timeline.
func (t *table) failover(lag time.Duration) {
	for i := len(t.history) - 1; i >= 0; i-- {
		if h := t.history[i]; h.at <= t.w.now-lag {
			t.rows = map[string]row{}
			for n, r := range h.rows {
				t.rows[n] = r
			}
			t.key.Number = h.n
			t.history = t.history[:i+1]
			break
		}
	}
	t.key.Timeline++
	t.failed = true
}

// client is the table as one process sees it.
type client struct {
	t *table
	p *process
}

var _ membership.Table = client{}

func (c client) Read(done func([]membership.Row, error)) {
	var out []membership.Row
	c.t.do(c.p, func() {
		for _, n := range c.t.names() {
			r := c.t.rows[n]
			out = append(out, membership.Row{Member: r.Member, Fresh: c.t.w.now-r.beat < fresh})
		}
	}, func(err error) { done(out, err) })
}

func (c client) Join(m membership.Member, stale []membership.Epoch, done func(*membership.View, error)) {
	var v *membership.View
	c.t.do(c.p, func() {
		for n, r := range c.t.rows {
			if slices.Contains(stale, r.Epoch) && c.t.w.now-r.beat >= fresh {
				delete(c.t.rows, n)
			}
		}
		c.t.rows[m.Name] = row{m, c.t.w.now}
		c.t.changed()
		v = c.t.view()
	}, func(err error) { done(v, err) })
}

func (c client) Beat(self membership.Epoch, done func(membership.Key, error)) {
	var k membership.Key
	c.t.do(c.p, func() {
		if r, ok := c.t.rows[c.p.name]; ok && r.Epoch == self {
			r.beat = c.t.w.now
			c.t.rows[c.p.name] = r
		}
		k = c.t.key
	}, func(err error) { done(k, err) })
}

func (c client) View(done func(*membership.View, error)) {
	var v *membership.View
	c.t.do(c.p, func() { v = c.t.view() }, func(err error) { done(v, err) })
}

func (c client) Vote(target membership.Member, voter membership.Epoch, done func(error)) {
	c.t.do(c.p, func() { c.t.vote(target, c.p.name, voter) }, done)
}

// vote counts a vote; min(2, other members with a fresh heartbeat) of them, at least one, suffice.
func (t *table) vote(target membership.Member, name string, voter membership.Epoch) {
	mine, ok := t.rows[name]
	theirs, there := t.rows[target.Name]
	if !ok || mine.Epoch != voter || !there || theirs.Epoch != target.Epoch {
		return
	}
	t.votes[[2]membership.Epoch{target.Epoch, voter}] = t.w.now
	votes, others := 0, 0
	for n, r := range t.rows {
		if n == target.Name {
			continue
		}
		if at, ok := t.votes[[2]membership.Epoch{target.Epoch, r.Epoch}]; ok && t.w.now-at < voteValid {
			votes++
		}
		if t.w.now-r.beat < fresh {
			others++
		}
	}
	if votes >= membership.Needed(others) {
		delete(t.rows, target.Name)
		t.voted++
		if p := t.w.current[target.Name]; p != nil && !p.dead {
			t.votedOut++
		}
		t.changed()
	}
}

func (c client) Leave(self membership.Epoch, done func(*membership.View, error)) {
	var v *membership.View
	c.t.do(c.p, func() {
		if r, ok := c.t.rows[c.p.name]; ok && r.Epoch == self {
			r.Leaving = true
			c.t.rows[c.p.name] = r
			c.t.changed()
		}
		v = c.t.view()
	}, func(err error) { done(v, err) })
}

func (c client) Gone(self membership.Epoch, done func(error)) {
	c.t.do(c.p, func() {
		if r, ok := c.t.rows[c.p.name]; ok && r.Epoch == self {
			delete(c.t.rows, c.p.name)
			c.t.changed()
		}
	}, done)
}
