package demo

import (
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/memtable"
)

// table is the membership table as one silo uses it, through its gate.
type table struct {
	*memtable.Client
	g *gate
}

var _ membership.ClosingTable = table{}

// open returns the table for a silo behind a gate.
func open(t *memtable.Table, g *gate, do func(func()), changed func()) table {
	return table{t.Client(func(f func()) { g.run(func() { do(f) }) }, func() { g.run(changed) }), g}
}

// Read implements membership.Table.
func (t table) Read(done func([]membership.Row, error)) { t.g.run(func() { t.Client.Read(done) }) }

// Join implements membership.Table.
func (t table) Join(m membership.Member, stale []membership.Epoch, done func(*membership.View, error)) {
	t.g.run(func() { t.Client.Join(m, stale, done) })
}

// Beat implements membership.Table.
func (t table) Beat(self membership.Epoch, done func(membership.Key, error)) {
	t.g.run(func() { t.Client.Beat(self, done) })
}

// View implements membership.Table.
func (t table) View(done func(*membership.View, error)) { t.g.run(func() { t.Client.View(done) }) }

// Vote implements membership.Table.
func (t table) Vote(target membership.Member, voter membership.Epoch, done func(error)) {
	t.g.run(func() { t.Client.Vote(target, voter, done) })
}

// Leave implements membership.Table.
func (t table) Leave(self membership.Epoch, done func(*membership.View, error)) {
	t.g.run(func() { t.Client.Leave(self, done) })
}

// Gone implements membership.Table.
func (t table) Gone(self membership.Epoch, done func(error)) {
	t.g.run(func() { t.Client.Gone(self, done) })
}
