package hubmesh

import (
	"context"
	"encoding/json"

	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/lifecycle"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Embedded are what silos of one process share, as one of them uses it. Whoever starts the silos owns it, and can
// so disturb each of them as the world disturbs a process of its own.
type Embedded struct {
	// Name is this silo's among the others; one that comes back keeps it.
	Name string
	// Store holds the nodes. It tells this silo of every commit, its own before the commit returns. It is closed
	// with the mesh.
	Store store.Store
	// Content is the folder of content files, the same for all.
	Content string
	// Join connects the silo to the network of all.
	Join func(self transport.Peer, h transport.Handler) (transport.Transport, error)
	// Table returns the membership table as this silo uses it; see memtable.Table.Client.
	Table func(do func(func()), changed func()) membership.ClosingTable
	// Dead is closed when the silo was killed: it then goes without a word to the others.
	Dead <-chan struct{}
}

// openEmbedded makes this mesh a silo beside others of its process.
func (m *Mesh) openEmbedded(o Options) (err error) {
	e := o.Embedded
	s := newSilo(o.Logger, membership.Member{Name: e.Name, Addr: e.Name})
	s.dead = e.Dead
	if s.net, err = e.Join(transport.Peer{Name: s.me.Name, Addr: s.me.Addr}, s); err != nil {
		return &ClusterError{Reason: err.Error(), Err: err}
	}
	m.silo = s
	return nil
}

func (s *silo) isDead() bool {
	select {
	case <-s.dead:
		return true
	default:
		return false
	}
}

// Report is what this silo tells of itself, as in the answer of /api/cluster.
func (m *Mesh) Report() (text json.RawMessage) {
	m.silo.router.Do(func(*cluster.Silo) { text = m.silo.router.Report() })
	return text
}

// Serves tells whether this silo has a hub at an address that answers.
func (m *Mesh) Serves(address string) bool {
	h := m.hubs.Find(address)
	return h != nil && h.Level() == lifecycle.Started
}

// Waiting names what keeps this silo from being ready.
func (m *Mesh) Waiting(ctx context.Context) []string { return readiness{m}.Waiting(ctx) }
