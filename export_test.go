package hubmesh

import (
	"context"
	"time"

	"github.com/hubmesh/hubmesh/internal/store/postgres"
)

// Deafen ends what takes the changes of other processes to this one's caches.
func (m *Mesh) Deafen() { m.shared.stop[0]() }

// Synced returns once everything that was committed before the call has been told here.
func (m *Mesh) Synced() error { return m.told(m.shared.ctx) }

// LookAtQueue looks at the notification queue as every ten seconds.
func (m *Mesh) LookAtQueue() { m.shared.lookAtQueue() }

// EndWork ends activities that have not moved for a time, as a start does.
func (m *Mesh) EndWork(ctx context.Context, idle time.Duration) error {
	return m.work.Recover(AsSystem(ctx), idle)
}

// AloneLock is the key of the lock under which one process at a time takes an Admin away.
const AloneLock = postgres.AloneLock

// IssueToken makes a token for a subject.
func (m *Mesh) IssueToken(ctx context.Context, subject string) error {
	_, _, err := m.auth.Tokens.Issue(ctx, subject, "test")
	return err
}

// NodeHubs counts the hubs of a node that a process runs.
func NodeHubs(m *Mesh, path string) int {
	if m.hubs.Find(path) == nil {
		return 0
	}
	return 1
}
