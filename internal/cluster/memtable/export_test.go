package memtable

import (
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

// Pass lets time pass for everybody but those whose heartbeat is to grow old.
func (t *Table) Pass(d time.Duration, old map[membership.Epoch]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.base = t.base.Add(-d)
	now := time.Since(t.base)
	for _, row := range t.rows.Read(now) {
		if !old[row.Epoch] {
			t.rows.Beat(now, row.Epoch)
		}
	}
}
