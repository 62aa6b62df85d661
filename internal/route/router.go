package route

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/lifecycle"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// maxWaiting bounds the deliveries that wait for one activation; more are refused.
const maxWaiting = 512

// maxReread is how often the row of a node that is written all the time is read again before its hub is
// started and told to refresh.
const maxReread = 3

// processTypes are the first segments of addresses that no node has: who serves them is not found in
// the store (messaging.md §1.1).
var processTypes = map[string]bool{
	"mesh": true, "app": true, "ui": true, "signalr": true, "kernel": true, "mcp": true, "nb": true, "articles": true, "portal": true,
	"activity": true, "persistence": true, "le": true, "client": true, "cache": true, "import": true, "sync": true,
}

// IsProcessAddress tells whether an address is a process hub's and not a node's.
func IsProcessAddress(first string) bool { return processTypes[first] }

// Rows reads the row of a node; a store does.
type Rows interface {
	Read(ctx context.Context, path node.Path) (node.Node, error)
	Prefix(ctx context.Context, path node.Path) (node.Node, error)
}

// Starter starts hubs of nodes.
type Starter interface {
	// StartNode starts the hub of a node whose row has just been read, with the deliveries that wait.
	StartNode(n node.Node, first []*hub.Delivery) (*hub.Hub, error)
	// Refresh makes a hub that has been started read its row again.
	Refresh(path node.Path)
}

// Router is the router of one mesh. It is safe for concurrent use.
type Router struct {
	mesh    *hub.Mesh
	rows    Rows
	starter Starter
	ended   func(path string, reg uint64) // an activation ended without a hub; nil where nobody wants to know
	handles func(nodeType string) bool    // nil: this process handles every type

	mu       sync.Mutex
	inflight map[string]*activation
	stands   map[*hub.Hub]uint64 // the grants on which the node hubs of a silo stand
}

// activation is one start of a node hub that has not published its hub yet.
type activation struct {
	began   int64
	waiting []*hub.Delivery
	dirty   bool   // the row changed after it may have been read
	reg     uint64 // the grant on which the hub will stand; 0 where none is needed
	revoked bool   // that grant has been lost: no hub may start on it
}

// New returns the router of a mesh. Install it with [hub.Mesh.SetRouter].
func New(m *hub.Mesh, rows Rows, starter Starter) *Router {
	return &Router{mesh: m, rows: rows, starter: starter, inflight: map[string]*activation{}, stands: map[*hub.Hub]uint64{}}
}

var _ hub.Router = (*Router)(nil)
var _ hub.Activations = (*Router)(nil)

// Route implements hub.Router. It never blocks on the store.
func (r *Router) Route(d *hub.Delivery) {
	to := d.Target()
	path, err := node.ParsePath(to.Path())
	if err != nil || processTypes[to.Type()] {
		r.refuse(d, to.String())
		return
	}
	r.mu.Lock()
	if h := r.mesh.Find(string(path)); h != nil {
		r.mu.Unlock()
		r.mesh.Deliver(h, d)
		return
	}
	a := r.inflight[string(path)]
	if a != nil {
		full := len(a.waiting) >= maxWaiting
		if !full {
			a.waiting = append(a.waiting, d)
		}
		r.mu.Unlock()
		if full {
			r.mesh.Refuse(d, r.overloaded(string(path)))
		}
		return
	}
	a = &activation{began: r.mesh.Clock().Now(), waiting: []*hub.Delivery{d}}
	r.inflight[string(path)] = a
	r.mu.Unlock()
	r.mesh.Go(func() { r.activate(path, a) })
}

// begin starts the hub of a node that this silo was granted, with the deliveries that wait for it.
func (r *Router) begin(addr string, reg uint64, first []*hub.Delivery) {
	path := node.Path(addr)
	r.mu.Lock()
	if a := r.inflight[addr]; a != nil { // of a grant that was lost: it goes on with this one
		a.reg, a.revoked = reg, false
		a.waiting = append(a.waiting, first...)
		r.mu.Unlock()
		return
	}
	a := &activation{began: r.mesh.Clock().Now(), waiting: first, reg: reg}
	r.inflight[addr] = a
	r.mu.Unlock()
	r.mesh.Go(func() { r.activate(path, a) })
}

// revoke keeps a hub that is about to start from it: the grant of the node has been lost.
func (r *Router) revoke(addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.inflight[addr]; a != nil {
		a.revoked = true
	}
}

func (r *Router) revokeAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.inflight {
		a.revoked = true
	}
}

// gone forgets a node hub that has ended, and returns the grant on which it stood.
func (r *Router) gone(h *hub.Hub) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	reg := r.stands[h]
	delete(r.stands, h)
	return reg
}

// take posts a delivery to a node hub that runs or starts here. Unsent says that it does neither, or is
// on its way down. tell, where it is not nil, is to be called once its caller holds no lock and is not on the
// turn: to tell a sender that its delivery was refused may take both.
func (r *Router) take(addr string, d *hub.Delivery) (x Disposition, tell func()) {
	r.mu.Lock()
	if h := r.mesh.Find(addr); h != nil {
		r.mu.Unlock()
		tell, taken := r.mesh.Queue(h, d)
		if !taken {
			return Unsent, nil
		}
		return Answered, tell
	}
	defer r.mu.Unlock()
	a := r.inflight[addr]
	switch {
	case a == nil:
		return Unsent, nil
	case len(a.waiting) >= maxWaiting:
		return Answered, func() { r.mesh.Refuse(d, r.overloaded(addr)) }
	}
	a.waiting = append(a.waiting, d)
	return Answered, nil
}

func (r *Router) overloaded(path string) *message.Failure {
	return &message.Failure{Type: message.ShuttingDown, Reason: message.ReasonOverloaded, AnsweredBy: r.name(), Target: path,
		Message: fmt.Sprintf("%d messages already wait for '%s' to start; nothing was queued, try again later", maxWaiting, path)}
}

// misplaced is the failure of a node that was placed here before its row said that it is of a type which this
// process does not handle: it was created, or created anew, meanwhile. The next attempt finds another silo.
func (r *Router) misplaced(row node.Node) *message.Failure {
	return &message.Failure{Type: message.ShuttingDown, Reason: message.ReasonNoSilo, AnsweredBy: r.name(), Target: string(row.Path), RetryAfter: retryHint,
		Message: fmt.Sprintf("'%s' is of type '%s' by now, which this silo does not handle; nothing was queued, try again", row.Path, row.NodeType)}
}

func (r *Router) over(path node.Path, reg uint64) {
	if r.ended != nil {
		r.ended(string(path), reg)
	}
}

// lost is the failure of what waited for a hub whose grant was lost before it had started.
func (r *Router) lost(path node.Path) *message.Failure {
	return &message.Failure{Type: message.ShuttingDown, Reason: message.ReasonStopping, AnsweredBy: r.name(), Target: string(path), RetryAfter: retryHint,
		Message: fmt.Sprintf("'%s' is served elsewhere by now; nothing was queued, try again", path)}
}

// refuse answers for an address that nobody in this mesh serves and that no node has.
func (r *Router) refuse(d *hub.Delivery, to string) {
	r.mesh.Refuse(d, &message.Failure{Type: message.ShuttingDown, Target: to, AnsweredBy: r.name(), Reason: message.ReasonNoEntry, TargetUnserved: true,
		Message: fmt.Sprintf("Directed delivery to pod hub '%s' was refused: no silo in this cluster is currently serving that hub; nothing was queued", to)})
}

func (r *Router) name() string { return "mesh/" + r.mesh.ID() }

// activate reads the row of a node and starts its hub, once for everybody who waits.
func (r *Router) activate(path node.Path, a *activation) {
	ctx, cancel := r.mesh.Bounds().Context(r.mesh.Context(), budget.Resolve, "resolve "+string(path))
	defer cancel()
	for {
		row, err := r.readRow(ctx, path, a)
		if err != nil {
			// The ancestor is only for the text: its absence must not hide the verdict.
			f := r.verdict(ctx, path, err)
			r.mu.Lock()
			r.giveUp(path, a, f)
			return
		}
		switch {
		case a.revoked:
			r.giveUp(path, a, r.lost(path))
			return
		case r.handles != nil && !r.handles(row.NodeType):
			r.giveUp(path, a, r.misplaced(row))
			return
		}
		waiting, reg := a.waiting, a.reg
		h, err := r.starter.StartNode(row, waiting)
		var exists *hub.ExistsError
		if errors.As(err, &exists) && h.Level() >= lifecycle.Quiescing && reg != 0 {
			// One that stood on an earlier grant is still on its way down; this one's is to start after it.
			r.mu.Unlock()
			select {
			case <-h.Done():
				continue
			case <-ctx.Done():
				r.mu.Lock()
				r.giveUp(path, a, r.lost(path))
				return
			}
		}
		dirty := a.dirty
		delete(r.inflight, string(path))
		if h != nil && reg != 0 {
			r.stands[h] = reg
		}
		r.mu.Unlock()
		switch {
		case exists != nil:
			for _, d := range waiting {
				r.mesh.Deliver(h, d)
			}
		case err != nil:
			f := message.Classify(err)
			for _, d := range waiting {
				r.mesh.Refuse(d, f)
			}
			r.over(path, reg)
		case dirty:
			r.starter.Refresh(path)
		}
		return
	}
}

// giveUp ends an activation without a hub. r.mu is held, and is not any more when it returns.
func (r *Router) giveUp(path node.Path, a *activation, f *message.Failure) {
	waiting, reg := a.waiting, a.reg
	delete(r.inflight, string(path))
	r.mu.Unlock()
	for _, d := range waiting {
		r.mesh.Refuse(d, f)
	}
	r.over(path, reg)
}

// readRow reads the row of a node and returns with the router locked, unless it fails. A row that changed
// since it may have been read is read again: a hub that starts with the old one could answer with it
// before it is told to refresh.
func (r *Router) readRow(ctx context.Context, path node.Path, a *activation) (node.Node, error) {
	for attempt := 0; ; attempt++ {
		row, err := r.rows.Read(message.WithIdentity(ctx, message.SystemIdentity()), path)
		if err != nil {
			return node.Node{}, err
		}
		r.mu.Lock()
		if !a.dirty || attempt == maxReread {
			return row, nil
		}
		a.dirty = false
		r.mu.Unlock()
	}
}

// verdict turns a failed row read into the answer for those who wait (messaging.md §1.11, §1.12).
func (r *Router) verdict(ctx context.Context, path node.Path, err error) *message.Failure {
	var missing *store.NotFoundError
	if errors.As(err, &missing) {
		text := fmt.Sprintf("No node found at '%s'", path)
		if n, err := r.rows.Prefix(ctx, path); err == nil {
			text += fmt.Sprintf("; the nearest ancestor is '%s'", n.Path)
		}
		return &message.Failure{Type: message.NotFound, Target: string(path), AnsweredBy: r.name(), Reason: message.ReasonNoEntry, Message: text, Cause: err}
	}
	var lapse *budget.Lapse
	if errors.As(context.Cause(ctx), &lapse) {
		return &message.Failure{Type: message.ShuttingDown, Target: string(path), AnsweredBy: r.name(), Reason: message.ReasonUnavailable,
			Message: fmt.Sprintf("'%s' was not resolved: %v", path, lapse), Cause: lapse}
	}
	var away *store.UnavailableError
	if errors.As(err, &away) || errors.Is(err, store.ErrClosed) {
		return &message.Failure{Type: message.ShuttingDown, Target: string(path), AnsweredBy: r.name(), Reason: message.ReasonUnavailable,
			Message: fmt.Sprintf("'%s' was not resolved: %v", path, err), Cause: err}
	}
	return &message.Failure{Type: message.Failed, Target: string(path), AnsweredBy: r.name(), Reason: message.ReasonUnavailable,
		Message: fmt.Sprintf("'%s' was not resolved: %v", path, err), Cause: err}
}

// InFlight implements hub.Activations.
func (r *Router) InFlight(path string) (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.inflight[strings.Trim(path, "/")]
	if a == nil {
		return 0, false
	}
	return time.Duration(r.mesh.Clock().Now() - a.began), true
}

// Changed notes a committed change. Call it for every change, before the hub at the path is looked up:
// an activation that is under way may have read the row before the change.
func (r *Router) Changed(path node.Path) {
	r.mu.Lock()
	if a := r.inflight[string(path)]; a != nil {
		a.dirty = true
	}
	r.mu.Unlock()
}
