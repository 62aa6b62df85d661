package membership_test

import (
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/membership/tabletest"
)

// rows is the model behind the interface, on a clock that the test moves.
type rows struct {
	*membership.Rows
	now   time.Duration
	beats map[membership.Epoch]time.Duration
}

func (r *rows) Client(*testing.T) membership.Table { return client{r} }

// Age lets everybody else beat later.
func (r *rows) Age(_ *testing.T, e membership.Epoch, by time.Duration) {
	r.now += by
	for _, row := range r.Rows.Read(r.now) {
		if _, old := r.beats[row.Epoch]; row.Epoch != e && !old {
			r.Rows.Beat(r.now, row.Epoch)
		}
	}
	r.beats[e] = r.now
}

type client struct{ r *rows }

func (c client) Read(done func([]membership.Row, error)) { done(c.r.Rows.Read(c.r.now), nil) }
func (c client) View(done func(*membership.View, error)) { done(c.r.Rows.View(), nil) }
func (c client) Join(m membership.Member, stale []membership.Epoch, done func(*membership.View, error)) {
	done(c.r.Rows.Join(c.r.now, m, stale), nil)
}
func (c client) Beat(e membership.Epoch, done func(membership.Key, error)) {
	done(c.r.Rows.Beat(c.r.now, e), nil)
}
func (c client) Vote(target membership.Member, voter membership.Epoch, done func(error)) {
	c.r.Rows.Vote(c.r.now, target, voter)
	done(nil)
}
func (c client) Leave(e membership.Epoch, done func(*membership.View, error)) {
	c.r.Rows.Leave(e)
	done(c.r.Rows.View(), nil)
}
func (c client) Gone(e membership.Epoch, done func(error)) {
	c.r.Rows.Gone(e)
	done(nil)
}

// protocol.md §2
func TestTheTableInMemoryKeepsItsRules(t *testing.T) {
	tabletest.Run(t, func(*testing.T) tabletest.World {
		return &rows{Rows: membership.NewRows(), beats: map[membership.Epoch]time.Duration{}}
	})
}
