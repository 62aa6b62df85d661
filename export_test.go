package hubmesh

import (
	"context"
	"time"

	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
)

// Deafen ends what takes the changes of other processes to this one's caches.
func (m *Mesh) Deafen() { m.shared.stop[0]() }

// Synced returns once everything that was committed before the call has been told here.
func (m *Mesh) Synced() error { return m.told(m.shared.ctx) }

// LookAtQueue looks at the notification queue as every ten seconds.
func (m *Mesh) LookAtQueue() { m.shared.lookAtQueue() }

// LookAtSearch looks how the text index stands, now.
func (m *Mesh) LookAtSearch() { m.shared.lookAtSearch() }

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

// Trust has the mesh decide with what it holds, however old that is.
func (m *Mesh) Trust() { m.access.DecideWhile(nil) }

// DeleteTold deletes a node and returns the silos that were not told in time.
func (m *Mesh) DeleteTold(ctx context.Context, path string) ([]string, error) {
	r, err := m.nodes.Delete(ctx, Path(path), true, Condition{})
	if err != nil {
		return nil, err
	}
	return r.Untold, nil
}

// Replace writes a node as an import does.
func (m *Mesh) Replace(ctx context.Context, path string, content Content) error {
	out, err := m.nodes.Import(ctx, []Node{{Path: Path(path), Content: content}})
	if err == nil {
		err = out[0].Err
	}
	return err
}

// At reads a node as it was.
func (m *Mesh) At(ctx context.Context, path string, version int64) (Node, error) {
	return m.nodes.At(ctx, Path(path), version)
}

// Children counts the children of a path.
func (m *Mesh) Children(ctx context.Context, path string) (int, error) {
	list, _, err := m.nodes.Children(ctx, Path(path), store.Page{})
	return len(list), err
}

// Reset has everything looked up anew; reading is called while the assignments are read.
func (m *Mesh) Reset(reading func()) {
	real := m.store
	defer func() { m.store = real }()
	m.store = parked{real, reading}
	m.reset("a test")
}

// parked is a store whose queries a test can watch.
type parked struct {
	store.Store
	onSelect func()
}

func (p parked) Select(ctx context.Context, q query.Query) ([]Node, error) {
	p.onSelect()
	return p.Store.Select(ctx, q)
}
