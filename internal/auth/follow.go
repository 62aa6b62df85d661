package auth

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Credential is what a request was let in with: a token or a session.
type Credential struct {
	keeper  *keeper
	secret  string
	id      string
	expires time.Time // zero: never
	asKnown bool      // it was let in by what was known of it last
}

// followed is the end of one credential, for everything that is open with it. It needs no goroutine: a
// revocation closes it, and a timer does when the credential expires.
type followed struct {
	users int // guarded by the keeper
	over  chan struct{}
	once  sync.Once
	timer *time.Timer // nil where the credential does not expire
}

func (f *followed) end() {
	f.once.Do(func() { close(f.over) })
	if f.timer != nil {
		f.timer.Stop()
	}
}

// Follow returns a channel that is closed as soon as the credential is revoked, logged out or expired.
// Call release when it is not needed any more; what is remembered is bounded by the callers that have
// not. A credential that is not good by now is refused as a check refuses it: *[UnauthenticatedError],
// or *[UnavailableError] when that can not be told. It is safe for concurrent use.
func (c *Credential) Follow(ctx context.Context) (over <-chan struct{}, release func(), err error) {
	f := c.keeper.follow(c.id, c.expires)
	release = sync.OnceFunc(func() { c.keeper.unfollow(c.id, f) })
	// Followed first, checked second: a revocation since the request was let in is seen by one of the two.
	if _, known := c.keeper.known(c.secret); !known {
		_, err := c.keeper.check(ctx, c.secret)
		if _, was := c.keeper.lastKnown(c.secret); c.asKnown && was && errors.As(err, new(*UnavailableError)) {
			err = nil
		}
		if err != nil {
			release()
			return nil, nil, err
		}
	}
	return f.over, release, nil
}

func (k *keeper) follow(id string, expires time.Time) *followed {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.followed[id]
	if f == nil {
		f = &followed{over: make(chan struct{})}
		if !expires.IsZero() {
			f.timer = time.AfterFunc(time.Until(expires), f.expire)
		}
		if k.followed == nil {
			k.followed = map[string]*followed{}
		}
		k.followed[id] = f
	}
	f.users++
	return f
}

// expire is end, from the timer itself.
func (f *followed) expire() { f.once.Do(func() { close(f.over) }) }

func (k *keeper) unfollow(id string, f *followed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f.users--; f.users > 0 {
		return
	}
	if f.timer != nil {
		f.timer.Stop()
	}
	if k.followed[id] == f {
		delete(k.followed, id)
	}
}
