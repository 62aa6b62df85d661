package activity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/mirror"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// pace is the least time between two writes of one activity's progress.
const pace = 250 * time.Millisecond

// Nodes writes activities.
type Nodes interface {
	Create(ctx context.Context, n node.Node) (node.Node, error)
	Patch(ctx context.Context, path node.Path, patch []byte, cond nodehub.Condition) (node.Node, error)
	Select(ctx context.Context, q query.Query) ([]node.Node, error)
}

// Mirrors watches activities for requests.
type Mirrors interface {
	Watch(ctx context.Context, path node.Path, since int64) (*mirror.Watch, error)
}

// Runner runs activities of one process. It is safe for concurrent use.
type Runner struct {
	mesh    *hub.Mesh
	nodes   Nodes
	mirrors Mirrors
	log     *slog.Logger
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup

	mu      sync.Mutex
	stopped bool
	running map[node.Path]*runs
}

// runs is an activity of this process that has not finished.
type runs struct {
	progress *Progress
	cancel   context.CancelFunc
	finished chan struct{}
}

// NewRunner returns a runner. Stop it before its mesh closes.
func NewRunner(m *hub.Mesh, nodes Nodes, mirrors Mirrors, log *slog.Logger) *Runner {
	r := &Runner{mesh: m, nodes: nodes, mirrors: mirrors, log: log, running: map[node.Path]*runs{}}
	r.ctx, r.cancel = context.WithCancel(message.WithIdentity(m.Context(), message.SystemIdentity()))
	return r
}

// Stop cancels what runs and waits until it has finished, or until ctx ends.
func (r *Runner) Stop(ctx context.Context) {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.cancel()
	done := make(chan struct{})
	go func() { r.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Start creates the activity's node below owner and runs work on a goroutine of its own, as whoever
// ctx carries. It returns once the node is there. The work's context ends when the activity is
// cancelled or the process stops.
func (r *Runner) Start(ctx context.Context, owner node.Path, title string, work func(ctx context.Context, p *Progress) error) (node.Path, error) {
	who := message.IdentityFrom(ctx)
	id, err := uuid.NewV7()
	if err != nil {
		return "", err
	}
	path := node.Path(string(owner) + "/_Activity/" + id.String())
	p := &Progress{runner: r, path: path, dirty: make(chan struct{}, 1), content: Content{Type: node.TypeActivity, Title: title, Status: Running, Started: node.Stamp(time.Now())}}
	text, err := json.Marshal(p.content)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	if r.stopped {
		r.mu.Unlock()
		return "", &message.Disposing{Address: "mesh/" + r.mesh.ID()}
	}
	r.work.Add(1)
	r.mu.Unlock()
	system := message.WithIdentity(ctx, message.SystemIdentity())
	if _, err := r.nodes.Create(system, node.Node{Path: path, NodeType: node.TypeActivity, Name: title, Content: node.RawContent(string(text))}); err != nil {
		r.work.Done()
		return "", err
	}
	run, cancel := context.WithCancel(message.WithIdentity(r.ctx, who))
	finished := make(chan struct{})
	r.mu.Lock()
	r.running[path] = &runs{progress: p, cancel: cancel, finished: finished}
	r.mu.Unlock()
	go func() {
		defer r.work.Done()
		defer cancel()
		r.run(run, cancel, p, work)
		r.mu.Lock()
		delete(r.running, path)
		r.mu.Unlock()
		close(finished)
	}()
	return path, nil
}

// Wait returns when an activity of this process has finished, or when ctx ends.
func (r *Runner) Wait(ctx context.Context, path node.Path) {
	if a := r.find(path); a != nil {
		select {
		case <-a.finished:
		case <-ctx.Done():
		}
	}
}

// Cancel cancels an activity of this process, and says why in it.
func (r *Runner) Cancel(path node.Path, why string) {
	if a := r.find(path); a != nil {
		a.progress.Fail("", why)
		a.cancel()
	}
}

// Finished returns a channel that is closed when an activity of this process has finished; nil where none runs.
func (r *Runner) Finished(path node.Path) <-chan struct{} {
	if a := r.find(path); a != nil {
		return a.finished
	}
	return nil
}

// find returns an activity that runs in this process, or nil.
func (r *Runner) find(path node.Path) *runs {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[path]
}

// run runs the work beside its writer and the watch for requests, and finishes it on every way out.
func (r *Runner) run(ctx context.Context, cancel context.CancelFunc, p *Progress, work func(context.Context, *Progress) error) {
	var beside sync.WaitGroup
	stop, stopped := context.WithCancel(context.WithoutCancel(r.ctx))
	beside.Go(func() { p.write(stop) })
	beside.Go(func() { r.follow(stop, p, cancel) })
	err := guarded(ctx, p, work)
	stopped()
	beside.Wait()
	p.finish(err, ctx.Err() != nil)
	if err := p.flush(context.WithoutCancel(r.ctx)); err != nil {
		r.log.Error("an activity's end was not written", "address", string(p.path), "error", err)
	}
}

func guarded(ctx context.Context, p *Progress, work func(context.Context, *Progress) error) (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("the work panicked: %v", x)
		}
	}()
	return work(ctx, p)
}

// follow cancels the work when its node asks for it.
func (r *Runner) follow(ctx context.Context, p *Progress, cancel context.CancelFunc) {
	w, err := r.mirrors.Watch(r.ctx, p.path, 0)
	if err != nil {
		if ctx.Err() != nil || r.ctx.Err() != nil {
			return // it has ended, or everything is about to
		}
		r.log.Warn("an activity can not be cancelled", "address", string(p.path), "error", err)
		return
	}
	defer w.Close()
	for {
		f, err := w.Next(ctx)
		if err != nil {
			return
		}
		if f.Kind == mirror.Deleted || requested(f) == Cancelled {
			cancel()
		}
	}
}

// requested is the status that a frame asks for, if it says one.
func requested(f mirror.Frame) Status {
	var c struct {
		RequestedStatus Status `json:"requestedStatus"`
		Content         struct {
			RequestedStatus Status `json:"requestedStatus"`
		} `json:"content"`
	}
	switch f.Kind {
	case mirror.Full:
		_ = f.Node.Content.Decode(&c) // no request in a content of another shape
		return c.RequestedStatus
	case mirror.Patch:
		_ = f.Patch.Decode(&c)
		return c.Content.RequestedStatus
	}
	return ""
}

// Recover drives activities that an earlier process left Running to Failed: those that were not changed for
// a time, which is 0 where no other process can be running them. One that moves while it is looked at is left alone.
func (r *Runner) Recover(ctx context.Context, idle time.Duration) error {
	q, err := query.Parse("nodeType:" + node.TypeActivity + " scope:subtree content.status:Running")
	if err != nil {
		return err
	}
	nodes, err := r.nodes.Select(ctx, q)
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range nodes {
		var c Content
		if n.Content.Decode(&c) != nil || c.Status != Running || time.Since(n.ModifiedAt) < idle || r.find(n.Path) != nil {
			continue
		}
		now := node.Stamp(time.Now())
		patch, err := json.Marshal(map[string]any{"content": map[string]any{"status": Failed, "message": "the process ended while it ran", "ended": now}})
		if err == nil {
			_, err = r.nodes.Patch(ctx, n.Path, patch, nodehub.Condition{Version: n.Version})
		}
		if errors.As(err, new(*store.ConflictError)) || errors.As(err, new(*store.NotFoundError)) {
			continue // somebody has moved it, or removed it: it is not left behind
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
