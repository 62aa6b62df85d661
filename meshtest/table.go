package meshtest

import (
	"errors"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

// ErrTableAway is what every call of a table that is away ends with.
var ErrTableAway = errors.New("meshtest: the membership table is away")

// tableTrip is how long a call of the table takes, and tableAway how long one that it does not answer.
const (
	tableTrip = 200 * time.Microsecond
	tableAway = 2 * time.Second
)

// Table is a membership table in memory. All methods are safe for concurrent use.
type Table struct {
	mu      sync.Mutex
	base    time.Time
	rows    *membership.Rows
	away    bool
	clients map[*tableClient]func() // what each calls when the rows have changed
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{base: time.Now(), rows: membership.NewRows(), clients: map[*tableClient]func(){}}
}

// SetAway makes the table answer nothing, or answer again.
func (t *Table) SetAway(away bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.away = away
}

// View is the members as the table has them.
func (t *Table) View() *membership.View {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows.View()
}

// Remove takes a member out, as votes of the others would.
func (t *Table) Remove(e membership.Epoch) {
	t.mu.Lock()
	t.rows.Gone(e)
	notify := t.listeners()
	t.mu.Unlock()
	for _, f := range notify {
		f()
	}
}

func (t *Table) listeners() []func() {
	out := make([]func(), 0, len(t.clients))
	for _, f := range t.clients {
		out = append(out, f)
	}
	return out
}

// tableClient is the table as one silo uses it. do runs something on the silo's turn.
type tableClient struct {
	t  *Table
	do func(func())
}

var _ membership.Table = (*tableClient)(nil)

// client returns the table for one silo; changed is called when the rows have.
func (t *Table) client(do func(func()), changed func()) *tableClient {
	c := &tableClient{t, do}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clients[c] = changed
	return c
}

func (t *Table) drop(c *tableClient) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.clients, c)
}

// run runs a transaction and then done on the turn.
func (c *tableClient) run(f func(rows *membership.Rows, now time.Duration), done func(error)) {
	time.AfterFunc(tableTrip, func() {
		t := c.t
		t.mu.Lock()
		if _, here := t.clients[c]; !here {
			t.mu.Unlock()
			return // its silo is gone
		}
		if t.away {
			t.mu.Unlock()
			time.AfterFunc(tableAway, func() { c.do(func() { done(ErrTableAway) }) })
			return
		}
		before := t.rows.Key()
		f(t.rows, time.Since(t.base))
		var notify []func()
		if t.rows.Key() != before {
			notify = t.listeners()
		}
		t.mu.Unlock()
		for _, n := range notify {
			n()
		}
		c.do(func() { done(nil) })
	})
}

// Read implements membership.Table.
func (c *tableClient) Read(done func([]membership.Row, error)) {
	var out []membership.Row
	c.run(func(r *membership.Rows, now time.Duration) { out = r.Read(now) }, func(err error) { done(out, err) })
}

// Join implements membership.Table.
func (c *tableClient) Join(m membership.Member, stale []membership.Epoch, done func(*membership.View, error)) {
	var v *membership.View
	c.run(func(r *membership.Rows, now time.Duration) { v = r.Join(now, m, stale) }, func(err error) { done(v, err) })
}

// Beat implements membership.Table.
func (c *tableClient) Beat(self membership.Epoch, done func(membership.Key, error)) {
	var k membership.Key
	c.run(func(r *membership.Rows, now time.Duration) { k = r.Beat(now, self) }, func(err error) { done(k, err) })
}

// View implements membership.Table.
func (c *tableClient) View(done func(*membership.View, error)) {
	var v *membership.View
	c.run(func(r *membership.Rows, _ time.Duration) { v = r.View() }, func(err error) { done(v, err) })
}

// Vote implements membership.Table.
func (c *tableClient) Vote(target membership.Member, voter membership.Epoch, done func(error)) {
	c.run(func(r *membership.Rows, now time.Duration) { r.Vote(now, target, voter) }, done)
}

// Leave implements membership.Table.
func (c *tableClient) Leave(self membership.Epoch, done func(*membership.View, error)) {
	var v *membership.View
	c.run(func(r *membership.Rows, _ time.Duration) {
		r.Leave(self)
		v = r.View()
	}, func(err error) { done(v, err) })
}

// Gone implements membership.Table.
func (c *tableClient) Gone(self membership.Epoch, done func(error)) {
	c.run(func(r *membership.Rows, _ time.Duration) { r.Gone(self) }, done)
}
