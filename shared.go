package hubmesh

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
)

// What a process does for a database that several processes share.
const (
	pruneEvery = 30 * time.Second // old change rows are removed
	queueEvery = 10 * time.Second // the server's notification queue is looked at
	queueWarn  = 0.25             // of it: then the one that keeps it is named
	pooledPoll = 250 * time.Millisecond
	// foreignFrom and foreignTo bound the pause before a row that another process has changed is read again.
	foreignFrom = 50 * time.Millisecond
	foreignTo   = 5 * time.Second
)

// shared follows a database that several processes write.
type shared struct {
	store *postgres.Store
	relay *feed.Relay
	feed  *feed.Feed
	log   *slog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	stop   []func()
}

// follow connects the mesh to what is committed. It comes before the first write.
func (m *Mesh) follow() {
	m.stopFeed = append(m.stopFeed, m.access.Subscribe(m.mirrors.Permissions))
	if s, ok := m.store.(*postgres.Store); ok {
		m.followShared(s)
	} else {
		m.stopFeed = append(m.stopFeed, m.store.Subscribe(m.changed))
	}
}

// followShared connects the mesh to what this and other processes commit.
func (m *Mesh) followShared(s *postgres.Store) {
	f := &shared{store: s, log: m.log, relay: feed.NewRelay(s.ReadMany, m.log)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	m.shared = f
	f.stop = append(f.stop, f.relay.Invalidations("mesh", m.invalidated))
	source := feed.Source{Origin: s.Origin(), Connect: f.connect, Notify: s.Notify, Unsure: s.Unsure, Read: s.ReadMany, Listen: f.listen}
	if s.Pooled() {
		source.Listen, source.Poll = nil, pooledPoll
		m.log.Warn("a transaction pooler is between this process and PostgreSQL: nothing can be listened to through it, so changes of other processes are looked for four times a second; give a direct connection to have them at once")
	}
	f.feed = feed.Open(source, f.relay, m.log)
	f.stop = append(f.stop, s.Subscribe(func(c store.Change) {
		f.relay.Publish(c)
		f.feed.Committed()
	}))
	f.work.Go(f.keep)
}

// close ends what follows the database; the store is closed after it.
func (f *shared) close() {
	f.cancel()
	for i := len(f.stop) - 1; i >= 0; i-- {
		f.stop[i]()
	}
	f.feed.Close()
	f.relay.Close()
	f.work.Wait()
}

// keep prunes the change rows and watches the notification queue.
func (f *shared) keep() {
	prune, queue := time.NewTicker(pruneEvery), time.NewTicker(queueEvery)
	defer prune.Stop()
	defer queue.Stop()
	for {
		select {
		case <-f.ctx.Done():
			return
		case <-prune.C:
			if removed, err := f.store.Prune(f.ctx); err != nil && f.ctx.Err() == nil {
				f.log.Warn("old change rows were not removed; it is tried again", "error", err)
			} else if removed > 0 {
				f.log.Debug("old change rows were removed", "rows", removed)
			}
		case <-queue.C:
			f.lookAtQueue()
		}
	}
}

func (f *shared) lookAtQueue() {
	used, oldest, err := f.store.Queue(f.ctx)
	if err != nil || used < queueWarn {
		return // what keeps the server from answering is told elsewhere
	}
	args := []any{"used", used}
	for _, b := range oldest[:min(1, len(oldest))] {
		args = append(args, "pid", b.PID, "application", b.Application, "state", b.State, "open", b.Open)
	}
	f.log.Warn("the notification queue of the database fills up: a listener with an open transaction keeps it; end that connection with pg_terminate_backend", args...)
}

// connection is a reader of the change rows as the feed uses it.
type connection struct{ *postgres.Changes }

func (f *shared) connect(ctx context.Context) (feed.Connection, error) {
	c, err := f.store.Changes(ctx)
	if err != nil {
		return nil, err
	}
	return connection{c}, nil
}

func (c connection) Verify(ctx context.Context, last []store.ChangeRow) (feed.Server, error) {
	v, err := c.Changes.Verify(ctx, last)
	return feed.Server(v), err
}

// listener hears wake-ups as the feed uses it.
type listener struct{ *postgres.Listener }

func (f *shared) listen(ctx context.Context) (feed.Listener, error) {
	l, err := f.store.Listen(ctx)
	if err != nil {
		return nil, err
	}
	return listener{l}, nil
}

func (l listener) Wait(ctx context.Context) (feed.Notification, error) {
	payload, own, err := l.Listener.Wait(ctx)
	return feed.Notification{Payload: payload, Own: own}, err
}

// invalidated takes what was committed, here or elsewhere, to everything that holds something of it.
func (m *Mesh) invalidated(i feed.Invalidation) {
	switch {
	case i.Reset:
		m.reset(i.Cause)
	case i.Own:
		m.changed(store.Change{Kind: i.Kind, Path: i.Path, Node: *i.Node, Version: i.Version, At: i.At, Origin: i.Origin})
	default:
		m.foreign(i)
	}
}

// foreign takes a change by another process. Its row is read only where something here needs it.
func (m *Mesh) foreign(i feed.Invalidation) {
	c := store.Change{Kind: i.Kind, Path: i.Path, Version: i.Version, At: i.At,
		Node: node.Node{Path: i.Path, MainNode: i.Path.Main(), NodeType: i.NodeType, Version: i.Version}}
	if i.Node != nil {
		c.Node = *i.Node
		m.changed(c)
		return
	}
	_, assignment := i.Path.Scope()
	if i.Kind != store.Deleted && (assignment || m.service.Follows(i.Path) || m.mirrors.Follows(i.Path)) {
		n, err := m.readForeign(i.Path)
		switch {
		case errors.As(err, new(*store.NotFoundError)):
			return // deleted since: that comes as a change of its own
		case err != nil:
			return // the mesh is going down
		}
		c.Node, c.Version = n, n.Version
		m.changed(c)
		return
	}
	m.forget(c)
}

// forget drops what is kept of a path whose row nobody here needs.
func (m *Mesh) forget(c store.Change) {
	if c.Kind == store.Deleted {
		m.changed(c)
		return
	}
	if c.Kind != store.Updated {
		m.resolver.Evict(c.Path)
	}
	m.router.Changed(c.Path)
	m.service.Forget(c)
	m.content.Changed(c)
	m.mirrors.Elsewhere(c)
}

// readForeign reads a row, again and again until the database answers: the change is told once.
func (m *Mesh) readForeign(path node.Path) (node.Node, error) {
	for pause := foreignFrom; ; pause = min(2*pause, foreignTo) {
		n, err := m.store.Read(m.shared.ctx, path)
		if err == nil || errors.As(err, new(*store.NotFoundError)) {
			return n, err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-m.shared.ctx.Done():
			t.Stop()
			return n, err
		}
	}
}

// reset has everything looked up anew: changes may have been missed.
func (m *Mesh) reset(cause string) {
	m.log.Info("changes of other processes may have been missed; everything is looked up anew", "reason", cause)
	m.resolver.Clear()
	for pause := foreignFrom; ; pause = min(2*pause, foreignTo) {
		err := m.service.Reset(m.shared.ctx)
		if err == nil {
			err = m.loadAccess(m.shared.ctx)
		}
		if err == nil || m.shared.ctx.Err() != nil {
			break
		}
		m.log.Warn("looking everything up anew failed; it is tried again", "error", err)
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-m.shared.ctx.Done():
			t.Stop()
		}
	}
	m.mirrors.Reset()
}
