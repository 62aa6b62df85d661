package hubmesh

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/httpapi"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/web"
)

// Handler returns the mesh's HTTP handler: the API of docs/api.md and the page. It stops taking live
// streams when the mesh closes. version is the program's, for the OpenAPI document.
func (m *Mesh) Handler(version string) (*httpapi.Server, error) {
	page, err := fs.Sub(web.Files(), ".")
	if err != nil {
		return nil, err
	}
	return httpapi.New(httpapi.Config{
		Services: httpapi.Services{
			Nodes: nodesAPI{m}, Bulk: nodesAPI{m}, Tree: nodesAPI{m}, Renderer: m.render, Watcher: watchAPI{m}, Content: contentAPI{m}, Files: contentAPI{m},
			Importer: importAPI{m}, Inspector: inspectAPI{m}, Rights: inspectAPI{m}, Caller: callerAPI{m}, Sessions: m.auth, Tokens: m.auth.Tokens,
			TokenList: tokenAPI{m}, Readiness: readiness{m},
		},
		Limits: httpapi.Limits{Node: m.limits, BodyBytes: m.bodies, HeldBytes: m.held}, Bounds: m.hubs.Bounds(), Log: m.log, Page: page, Version: version, Registry: m.metrics(),
	})
}

// ServeOptions configure [Mesh.Serve].
type ServeOptions struct {
	Version string
	// Ready, when set, is called once the listener answers.
	Ready func(addr net.Addr)
	// Drain is how long after the end of ctx requests are still answered while /ready says no, so that what stands
	// in front sends them elsewhere; each answer then ends its connection.
	Drain time.Duration
}

// guestGrace is how long a server that takes no new connections keeps those on which a request may come, at most: who asks
// on one meanwhile is answered.
const guestGrace = 500 * time.Millisecond

// Listen listens on HOST:PORT for [Mesh.Serve], which ends such a listener under no request; one of net.Listen it closes with
// the connections that have been opened and not been accepted.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	return httpapi.Listen(ctx, address)
}

// Serve answers HTTP on l until ctx ends, drains, lets running requests finish, within a bound, and
// returns. It does not close the mesh.
func (m *Mesh) Serve(ctx context.Context, l net.Listener, o ServeOptions) error {
	handler, err := m.Handler(o.Version)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	var draining atomic.Bool
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if draining.Load() { // an idle connection that is closed later may be closed under a request
			w.Header().Set("Connection", "close")
		}
		handler.ServeHTTP(w, r)
	})
	var guests httpapi.Guests
	server := &http.Server{Handler: answer, ConnState: guests.State, ReadHeaderTimeout: m.hubs.Bounds().Own(budget.HTTPHeader), IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 256 << 10,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) }}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	if o.Ready != nil {
		o.Ready(l.Addr())
	}
	select {
	case err := <-served:
		handler.Close()
		return fmt.Errorf("serving HTTP: %w", err)
	case <-ctx.Done():
	}
	m.bootWork.stopping()
	draining.Store(true)
	if err := m.drain(o.Drain, served); err != nil {
		handler.Close()
		return fmt.Errorf("serving HTTP: %w", err)
	}
	httpapi.Shut(l)
	closing := l.Close()
	<-served // it takes nobody any more; those whom it has taken are answered
	handler.Close()
	if m.silo == nil || !m.silo.isDead() {
		guests.Gone(guestGrace, min(o.Drain, guestGrace))
	}
	bound, cancel := m.hubs.Bounds().Context(context.WithoutCancel(ctx), budget.HTTPShutdown, "http shutdown")
	defer cancel()
	err = server.Shutdown(bound)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	return errors.Join(closing, err)
}

// drain waits for a time, unless the server ends or this silo was killed.
func (m *Mesh) drain(d time.Duration, served <-chan error) error {
	if d <= 0 {
		return nil
	}
	var dead <-chan struct{}
	if m.silo != nil {
		dead = m.silo.dead
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-dead:
	case err := <-served:
		return err
	}
	return nil
}

// readiness tells what keeps the process from serving: work of the first start, and a store that does
// not take writes, such as on a full disk.
type readiness struct{ m *Mesh }

// Waiting names what is not settled.
func (r readiness) Waiting(ctx context.Context) []string {
	waiting := r.m.bootWork.Waiting(ctx)
	if r.m.silo != nil {
		waiting = append(waiting, r.m.silo.router.Waiting()...)
	}
	ctx, cancel := r.m.hubs.Bounds().Context(ctx, budget.StoreRead, "readiness of the store")
	defer cancel()
	if r.m.shared != nil {
		switch s := r.m.shared.feed.Stats(); {
		case s.Behind > feed.MostBehind:
			waiting = append(waiting, fmt.Sprintf("the change feed of the database: what other processes commit could not be read for %v", s.Behind.Round(time.Second)))
		case !s.Live:
			waiting = append(waiting, "the change feed of the database")
		}
	}
	if err := r.m.store.Ready(ctx); err != nil {
		reason := "store"
		var away *store.UnavailableError
		if errors.As(err, &away) {
			reason += ": " + away.Hint
		}
		waiting = append(waiting, reason)
	}
	return waiting
}

// bootWork is what must have settled before the process is ready: imports of the first start.
type bootWork struct {
	mu      sync.Mutex
	waiting map[string]int
	down    bool
}

// Waiting names what is not settled.
func (b *bootWork) Waiting(context.Context) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var names []string
	for name := range b.waiting {
		names = append(names, name)
	}
	if b.down {
		names = append(names, "stopping")
	}
	return names
}

func (b *bootWork) begin(name string) (done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = map[string]int{}
	}
	b.waiting[name]++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.waiting[name]--; b.waiting[name] == 0 {
			delete(b.waiting, name)
		}
	}
}

func (b *bootWork) stopping() {
	b.mu.Lock()
	b.down = true
	b.mu.Unlock()
}
