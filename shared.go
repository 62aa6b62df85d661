package hubmesh

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/auth"
	"github.com/hubmesh/hubmesh/internal/budget"
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
	// activityIdle: a running activity tells its progress far more often.
	activityIdle = 5 * time.Minute
	// foreignFrom and foreignTo bound the pause before a row that another process has changed is read again.
	foreignFrom = 50 * time.Millisecond
	foreignTo   = time.Second
	// feedEvery is how often it is looked at whether what others commit is still heard of.
	feedEvery = 500 * time.Millisecond
)

// shared follows a database that several processes write.
type shared struct {
	store *postgres.Store
	relay *feed.Relay
	feed  *feed.Feed
	log   *slog.Logger

	queue atomic.Uint64 // bits of the used part of the notification queue; NaN: not known

	index    *postgres.TextIndex
	searched atomic.Pointer[postgres.SearchState] // as it was seen last; nil: not known

	recoverWork func(context.Context) error // ends activities whose process is gone

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	stop   []func()
}

// activityIdle is how long an activity that says it runs may stay unchanged before its process counts as gone.
func (m *Mesh) activityIdle() time.Duration {
	if m.isShared {
		return activityIdle
	}
	return 0
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
	f := &shared{store: s, log: m.log, relay: feed.NewRelay(s.ReadMany, m.log), index: s.TextIndex()}
	f.queue.Store(math.Float64bits(math.NaN()))
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.recoverWork = func(ctx context.Context) error { return m.work.Recover(AsSystem(ctx), activityIdle) }
	m.shared = f
	f.stop = append(f.stop, f.relay.Invalidations("mesh", m.invalidated))
	if s.Pooled() {
		m.log.Warn("a transaction pooler is between this process and PostgreSQL: nothing can be listened to through it, so changes of other processes are looked for four times a second; give a direct connection to have them at once")
	}
	f.feed = feed.Open(feed.SourceOf(s), f.relay, m.log)
	f.stop = append(f.stop, s.Subscribe(func(c store.Change) {
		f.relay.Publish(c)
		f.feed.Committed()
	}))
	f.search()
	f.work.Go(f.keep)
	f.work.Go(func() { f.doubt(m.mirrors.Undetermined) })
}

// current tells whether what this process holds may be answered from: it has been told of late what others commit.
func (m *Mesh) current() bool {
	f := m.shared
	return f == nil || f.feed.Current()
}

// doubt says once that what others commit has not been heard of for too long, and calls lost; and that it is again.
func (f *shared) doubt(lost func()) {
	look := time.NewTicker(feedEvery)
	defer look.Stop()
	for current := true; ; {
		select {
		case <-f.ctx.Done():
			return
		case <-look.C:
		}
		now := f.feed.Current()
		switch {
		case current && !now:
			f.log.Warn("what other processes commit could not be read for too long: until it can, permissions are undetermined, and requests are answered 503", "behind", f.feed.Behind())
			lost()
		case now && !current:
			f.log.Info("what other processes commit is read again")
		}
		current = now
	}
}

// told returns once everything that was committed before the call counts here. Without a database that others write it
// does at once.
func (m *Mesh) told(ctx context.Context) error {
	f := m.shared
	if f == nil {
		return nil
	}
	if err := f.feed.Sync(ctx); err != nil {
		return err
	}
	return f.relay.Told(ctx)
}

// hears is what a silo does when another one tells it of a commit; nil where every commit is told before its writer is
// answered. It waits only where something of the nodes is held.
func (m *Mesh) hears() func(context.Context, []Path) error {
	if _, ok := m.store.(*postgres.Store); !ok {
		return nil
	}
	return func(ctx context.Context, paths []Path) error {
		for _, p := range paths {
			if m.holds(p) {
				return m.told(ctx)
			}
		}
		if len(paths) == 0 {
			return m.told(ctx)
		}
		return nil
	}
}

// holds tells whether this process may answer from something that it holds of a node: its hub, one that starts with a
// row that has been read, permissions and collections.
func (m *Mesh) holds(p Path) bool {
	_, starts := m.router.InFlight(string(p)) // before the hub is looked up, which takes its place
	_, assignment := p.Scope()
	return starts || assignment || m.service.Follows(p)
}

// tell has the other silos take note of a commit past the hubs of nodes, before it is acknowledged. It returns those
// that may still answer as before.
func (m *Mesh) tell() func(context.Context, []Path) []string {
	if m.silo == nil {
		return nil
	}
	if _, ok := m.store.(*postgres.Store); !ok {
		return nil
	}
	return func(ctx context.Context, paths []Path) (untold []string) {
		bound := m.hubs.Bounds().Own(budget.Tell)
		ctx, cancel := m.hubs.Bounds().Context(ctx, budget.Tell, "tell the other silos")
		defer cancel()
		for _, u := range m.silo.router.Tell(ctx, paths, bound-budget.Margin(bound)) {
			untold = append(untold, fmt.Sprintf("%s: %s (bound '%s', %v)", u.Silo, u.Why, budget.Tell, bound))
		}
		return untold
	}
}

// close ends what follows the database; the store is closed after it.
func (f *shared) close() {
	f.cancel()
	for i := len(f.stop) - 1; i >= 0; i-- {
		f.stop[i]()
	}
	f.feed.Close()
	f.index.Close()
	f.relay.Close()
	f.work.Wait()
}

// rest waits for a pause, and tells whether it was not cut off by the end of the mesh.
func (f *shared) rest(pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-f.ctx.Done():
		return false
	}
}

// keep prunes the change rows and watches the notification queue and the text index.
func (f *shared) keep() {
	prune, queue, abandoned := time.NewTicker(pruneEvery), time.NewTicker(queueEvery), time.NewTicker(activityIdle/5)
	defer prune.Stop()
	defer queue.Stop()
	defer abandoned.Stop()
	f.lookAtQueue()
	f.lookAtSearch()
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
			f.lookAtSearch()
		case <-abandoned.C:
			if err := f.recoverWork(f.ctx); err != nil && f.ctx.Err() == nil {
				f.log.Warn("activities of processes that are gone were not ended; it is tried again", "error", err)
			}
		}
	}
}

func (f *shared) lookAtQueue() {
	used, oldest, err := f.store.Queue(f.ctx)
	if err != nil {
		used = math.NaN() // what keeps the server from answering is told elsewhere
	}
	if f.queue.Store(math.Float64bits(used)); err != nil || used < queueWarn {
		return
	}
	args := []any{"used", used}
	for _, b := range oldest[:min(1, len(oldest))] {
		args = append(args, "pid", b.PID, "application", b.Application, "state", b.State, "open", b.Open)
	}
	f.log.Warn("the notification queue of the database fills up: a listener with an open transaction keeps it; end that connection with pg_terminate_backend", args...)
}

// queueUsed is the used part of the notification queue as it was seen last; NaN where it is not known.
func (f *shared) queueUsed() float64 { return math.Float64frombits(f.queue.Load()) }

// announced are the records of credentials, whose end every process is told of.
type announced struct {
	store.Blobs
	s   *postgres.Store
	log *slog.Logger
}

func (b announced) Put(ctx context.Context, bucket, key string, value []byte) error {
	err := b.Blobs.Put(ctx, bucket, key, value)
	return b.tell(ctx, bucket, key, err)
}

func (b announced) Delete(ctx context.Context, bucket, key string) error {
	err := b.Blobs.Delete(ctx, bucket, key)
	return b.tell(ctx, bucket, key, err)
}

func (b announced) tell(ctx context.Context, bucket, key string, err error) error {
	if err != nil || !auth.Ends(bucket) {
		return err
	}
	if err := b.s.Announce(ctx, bucket, key); err != nil {
		b.log.Warn("the other processes were not told of the end of a credential; they find out within half a minute", "error", err)
	}
	return nil
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
	if i.NodeType == postgres.RecordType {
		bucket, id, _ := strings.Cut(strings.TrimPrefix(string(i.Path), "~"), "/")
		m.auth.End(bucket, id)
		return
	}
	c := store.Change{Kind: i.Kind, Path: i.Path, Version: i.Version, At: i.At,
		Node: node.Node{Path: i.Path, MainNode: i.Path.Main(), NodeType: i.NodeType, Version: i.Version}}
	if i.Node != nil {
		c.Node = *i.Node
		m.changed(c)
		return
	}
	_, assignment := i.Path.Scope()
	needed := assignment || m.service.Needs(i.Path)
	if i.Kind == store.Deleted || !needed && !m.service.Follows(i.Path) && !m.mirrors.Follows(i.Path) {
		m.forget(c)
		return
	}
	n, err := m.readForeign(i.Path, needed)
	var missing *store.NotFoundError
	switch {
	case errors.As(err, &missing):
		m.vanished(c, missing.LastVersion)
	case err != nil:
		// Whoever uses the node reads its row: the next ones are not kept waiting.
		m.forget(c)
		m.service.Refresh(c.Path)
	default:
		c.Node, c.Version = n, n.Version
		m.changed(c)
	}
}

// vanished takes note that a row is gone of which a change was told. Its deletion is told as well, but not always
// later: somebody may have moved the sequence of the positions.
func (m *Mesh) vanished(c store.Change, last int64) {
	c.Kind, c.Version = store.Deleted, max(c.Version, last)
	m.access.Apply(access.Change{Path: c.Path, Deleted: true})
	m.resolver.Evict(c.Path)
	m.router.Changed(c.Path)
	m.service.Changed(c)
	m.service.Refresh(c.Path)
	m.mirrors.Elsewhere(c)
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

// readForeign reads a row. One that this process decides with is read until the database answers, whatever it says
// meanwhile: the change is told once, and what comes after it waits. So what is held is not current any more before
// long, and permissions are undetermined.
func (m *Mesh) readForeign(path node.Path, needed bool) (node.Node, error) {
	for pause, said := foreignFrom, false; ; pause = min(2*pause, foreignTo) {
		ctx, cancel := m.hubs.Bounds().Context(m.shared.ctx, budget.ForeignRead, "read '"+string(path)+"', which another process has changed")
		n, err := m.store.Read(ctx, path)
		cancel()
		if err == nil || errors.As(err, new(*store.NotFoundError)) || !needed || m.shared.ctx.Err() != nil {
			return n, err
		}
		if away := (*store.UnavailableError)(nil); !said && (!errors.As(err, &away) || !away.Transient) {
			said = true
			m.log.Error("a row that permissions or files depend on was changed by another process and can not be read; it is tried again, and permissions are undetermined meanwhile", "path", string(path), "error", err)
		}
		if !m.shared.rest(pause) {
			return n, err
		}
	}
}

// reset has everything looked up anew: changes may have been missed. Permissions come first: nothing new is shown by
// grants that may be old.
func (m *Mesh) reset(cause string) {
	m.log.Info("changes of other processes may have been missed; everything is looked up anew", "reason", cause)
	if !m.insistently(m.loadAccess) {
		return
	}
	m.resolver.Clear()
	m.insistently(m.service.Reset)
	m.mirrors.Reset()
}

// insistently looks something up until the database answers; false when the mesh goes down.
func (m *Mesh) insistently(look func(context.Context) error) bool {
	for pause := foreignFrom; ; pause = min(2*pause, foreignTo) {
		err := look(m.shared.ctx)
		if err == nil || m.shared.ctx.Err() != nil {
			return err == nil
		}
		if pause == foreignFrom {
			m.log.Warn("looking everything up anew failed; it is tried again until the database answers, and permissions are undetermined meanwhile", "error", err)
		}
		m.shared.rest(pause)
	}
}
