package memtable

import (
	"errors"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

// ErrAway is what every call of a table that is away ends with.
var ErrAway = errors.New("memtable: the membership table is away")

// trip is how long a call of the table takes, and awayFor how long one that it does not answer.
const (
	trip    = 200 * time.Microsecond
	awayFor = 2 * time.Second
)

// Table is a membership table in memory. All methods are safe for concurrent use.
type Table struct {
	mu      sync.Mutex
	base    time.Time
	rows    *membership.Rows
	away    bool
	clients map[*Client]func() // what each calls when the rows have changed
}

// New returns an empty table.
func New() *Table {
	return &Table{base: time.Now(), rows: membership.NewRows(), clients: map[*Client]func(){}}
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

// Client is the table as one silo uses it. do runs something on the silo's turn.
type Client struct {
	t  *Table
	do func(func())
}

var _ membership.Table = (*Client)(nil)

// Client returns the table for one silo. do runs something on the silo's turn; changed is called when the rows
// have changed. Close it with the silo.
func (t *Table) Client(do func(func()), changed func()) *Client {
	c := &Client{t, do}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clients[c] = changed
	return c
}

// Close ends a silo's use of the table: calls that are under way are never told.
func (c *Client) Close() {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	delete(c.t.clients, c)
}

// run runs a transaction and then done on the turn.
func (c *Client) run(f func(rows *membership.Rows, now time.Duration), done func(error)) {
	time.AfterFunc(trip, func() {
		t := c.t
		t.mu.Lock()
		if _, here := t.clients[c]; !here {
			t.mu.Unlock()
			return // its silo is gone
		}
		if t.away {
			t.mu.Unlock()
			time.AfterFunc(awayFor, func() { c.do(func() { done(ErrAway) }) })
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
func (c *Client) Read(done func([]membership.Row, error)) {
	var out []membership.Row
	c.run(func(r *membership.Rows, now time.Duration) { out = r.Read(now) }, func(err error) { done(out, err) })
}

// Join implements membership.Table.
func (c *Client) Join(m membership.Member, stale []membership.Epoch, done func(*membership.View, error)) {
	var v *membership.View
	c.run(func(r *membership.Rows, now time.Duration) { v = r.Join(now, m, stale) }, func(err error) { done(v, err) })
}

// Beat implements membership.Table.
func (c *Client) Beat(self membership.Epoch, done func(membership.Key, error)) {
	var k membership.Key
	c.run(func(r *membership.Rows, now time.Duration) { k = r.Beat(now, self) }, func(err error) { done(k, err) })
}

// View implements membership.Table.
func (c *Client) View(done func(*membership.View, error)) {
	var v *membership.View
	c.run(func(r *membership.Rows, _ time.Duration) { v = r.View() }, func(err error) { done(v, err) })
}

// Vote implements membership.Table.
func (c *Client) Vote(target membership.Member, voter membership.Epoch, done func(error)) {
	c.run(func(r *membership.Rows, now time.Duration) { r.Vote(now, target, voter) }, done)
}

// Leave implements membership.Table.
func (c *Client) Leave(self membership.Epoch, done func(*membership.View, error)) {
	var v *membership.View
	c.run(func(r *membership.Rows, _ time.Duration) {
		r.Leave(self)
		v = r.View()
	}, func(err error) { done(v, err) })
}

// Gone implements membership.Table.
func (c *Client) Gone(self membership.Epoch, done func(error)) {
	c.run(func(r *membership.Rows, _ time.Duration) { r.Gone(self) }, done)
}
