package hubmesh

// Deafen ends what takes the changes of other processes to this one's caches.
func (m *Mesh) Deafen() { m.shared.stop[0]() }

// Synced returns once everything that was committed before the call has been told here.
func (m *Mesh) Synced() error { return m.shared.feed.Sync(m.shared.ctx) }

// NodeHubs counts the hubs of a node that a process runs.
func NodeHubs(m *Mesh, path string) int {
	if m.hubs.Find(path) == nil {
		return 0
	}
	return 1
}
