package hubmesh

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
)

// accounts tells the guard of the last Admin who can sign in.
type accounts struct {
	m *Mesh

	mu     sync.Mutex
	inside int    // changes of this process that have entered
	leave  func() // what the first of them has entered by
}

// enterBound is how long a change by which somebody stops being Admin waits for other processes, and for what they have
// committed.
const enterBound = 3 * time.Second

var errEnter = errors.New("other processes did not answer in time")

// Enter implements access.Accounts: one process at a time, with all its changes. The index calls it for one at a time.
func (a *accounts) Enter(ctx context.Context) (leave func(), err error) {
	bound, cancel := context.WithTimeoutCause(ctx, enterBound, errEnter)
	defer cancel()
	if err := a.enter(bound); err != nil {
		return nil, a.failure(err)
	}
	if err := a.m.told(bound); err != nil {
		a.left()
		return nil, a.failure(err)
	}
	return sync.OnceFunc(a.left), nil
}

func (a *accounts) failure(err error) error {
	return &message.Failure{Type: message.ShuttingDown, Reason: message.ReasonStarting, RetryAfter: time.Second,
		Message: "this process has not been told yet who else is Admin; nothing was written, try again", Cause: err}
}

func (a *accounts) enter(ctx context.Context) error {
	s, ok := a.m.store.(*postgres.Store)
	a.mu.Lock()
	defer a.mu.Unlock()
	if ok && a.inside == 0 {
		leave, err := s.Alone(ctx)
		if err != nil {
			return err
		}
		a.leave = leave
	}
	a.inside++
	return nil
}

func (a *accounts) left() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inside--; a.inside == 0 && a.leave != nil {
		a.leave()
		a.leave = nil
	}
}

// CanSignIn implements access.Accounts. The first Admin always can: each start gives it a link.
func (a *accounts) CanSignIn(ctx context.Context, subjects []access.Subject) (can []access.Subject, err error) {
	holders, err := a.m.auth.Holders(ctx)
	for _, s := range subjects {
		if s == adminSubject || holders[string(s)] {
			can = append(can, s)
		}
	}
	return can, err
}
