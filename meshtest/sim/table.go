package sim

import (
	"errors"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

const tableName = "table" // the table's server, in cuts

// table is the server of the membership rows and of the nodes' rows.
type table struct {
	w        *world
	rows     *membership.Rows
	down     int
	deaf     int                      // notifications are lost
	versions map[string]int64         // of nodes
	written  map[string]time.Duration // when the version before the newest was overtaken
	types    map[string]string        // of nodes that were created anew with another type
	retyped  map[string]time.Duration // when
	history  []replica
	failed   bool              // a failover has happened
	cuts     map[[2]string]int // one way, between a process and the server
}

// replica is the table as it was.
type replica struct {
	at   time.Duration
	rows *membership.Rows
}

func newTable(w *world) *table {
	return &table{w: w, rows: membership.NewRows(), versions: map[string]int64{}, written: map[string]time.Duration{}, types: map[string]string{}, retyped: map[string]time.Duration{}, cuts: map[[2]string]int{}}
}

// write commits the next version of a node.
func (t *table) write(addr string) {
	t.versions[addr]++
	t.written[addr] = t.w.now
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

// changed tells the listeners, most of them.
func (t *table) changed() {
	t.history = append(t.history, replica{t.w.now, t.rows.Copy()})
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
			t.rows.FailOver(h.rows)
			t.history = t.history[:i+1]
			break
		}
	}
	t.failed = true
}

// client is the table as one process sees it.
type client struct {
	t *table
	p *process
}

var _ membership.Table = client{}

// after runs a transaction, and tells the listeners where it has changed the rows.
func (c client) after(f func(rows *membership.Rows), done func(error)) {
	c.t.do(c.p, func() {
		before := c.t.rows.Key()
		f(c.t.rows)
		if c.t.rows.Key() != before {
			c.t.changed()
		}
	}, done)
}

func (c client) Read(done func([]membership.Row, error)) {
	var out []membership.Row
	c.after(func(t *membership.Rows) { out = t.Read(c.t.w.now) }, func(err error) { done(out, err) })
}

func (c client) Join(m membership.Member, stale []membership.Epoch, done func(*membership.View, error)) {
	var v *membership.View
	c.after(func(t *membership.Rows) { v = t.Join(c.t.w.now, m, stale) }, func(err error) { done(v, err) })
}

func (c client) Beat(self membership.Epoch, done func(membership.Key, error)) {
	var k membership.Key
	c.after(func(t *membership.Rows) { k = t.Beat(c.t.w.now, self) }, func(err error) { done(k, err) })
}

func (c client) View(done func(*membership.View, error)) {
	var v *membership.View
	c.after(func(t *membership.Rows) { v = t.View() }, func(err error) { done(v, err) })
}

func (c client) Vote(target membership.Member, voter membership.Epoch, done func(error)) {
	c.after(func(t *membership.Rows) { t.Vote(c.t.w.now, target, voter) }, done)
}

func (c client) Leave(self membership.Epoch, done func(*membership.View, error)) {
	var v *membership.View
	c.after(func(t *membership.Rows) {
		t.Leave(self)
		v = t.View()
	}, func(err error) { done(v, err) })
}

func (c client) Gone(self membership.Epoch, done func(error)) {
	c.after(func(t *membership.Rows) { t.Gone(self) }, done)
}
