package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Record is what is kept of a token or a session. The secret itself is not.
type Record struct {
	ID        string    `json:"id"`
	Hash      string    `json:"hash"` // SHA-256 of the secret, hexadecimal
	Subject   string    `json:"subject"`
	Name      string    `json:"name,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	Expires   time.Time `json:"expires,omitzero"` // zero: never
	Revoked   bool      `json:"revoked,omitempty"`
}

// Buckets of the store's side table.
const (
	bucketTokens   = "tokens"
	bucketUse      = "token-use" // id → when last used; apart, so that a stamp never undoes a revocation
	bucketSessions = "sessions"
)

// A record is trusted for cacheFor without another look into the store, so that a revocation by another
// process is seen soon; one by this process is seen at once. When cacheSize records are cached the
// cache is emptied.
const (
	cacheFor  = 30 * time.Second
	cacheSize = 10_000
)

// keeper checks secrets of one kind against their records.
type keeper struct {
	what   string // for people
	prefix string
	bucket string
	blobs  store.Blobs
	bounds *budget.Table

	mu    sync.Mutex
	cache map[digest]cached
	// epoch counts the revocations: a record that was read before one is not cached after it.
	epoch uint64
	// followed are the credentials that streams are open with, by the id of their record.
	followed map[string]*followed
}

type cached struct {
	record Record
	until  time.Time
}

// add stores a new secret's record and returns the secret.
func (k *keeper) add(ctx context.Context, r Record) (string, Record, error) {
	secret := newSecret(k.prefix)
	d := digestOf(secret)
	r.ID, r.Hash = d.id(), d.String()
	text, err := json.Marshal(r)
	if err != nil {
		return "", Record{}, err
	}
	if err := k.blobs.Put(ctx, k.bucket, r.ID, text); err != nil {
		return "", Record{}, fmt.Errorf("keeping the %s: %w", k.what, err)
	}
	return secret, r, nil
}

// known answers from the cache alone.
func (k *keeper) known(secret string) (Record, bool) {
	d := digestOf(secret)
	k.mu.Lock()
	defer k.mu.Unlock()
	c, ok := k.cache[d]
	if !ok || !time.Now().Before(c.until) {
		return Record{}, false
	}
	return c.record, !c.record.expired()
}

// lastKnown is the record as it was when it could last be looked up, of a credential whose end has not been heard of.
func (k *keeper) lastKnown(secret string) (Record, bool) {
	d := digestOf(secret)
	k.mu.Lock()
	defer k.mu.Unlock()
	c, ok := k.cache[d]
	return c.record, ok && !c.record.expired()
}

// forget drops a credential that was found not to be good.
func (k *keeper) forget(d digest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.cache, d)
}

// check answers from the store: the record, *[UnauthenticatedError] or *[UnavailableError].
func (k *keeper) check(ctx context.Context, secret string) (Record, error) {
	if !wellFormed(k.prefix, secret) {
		return Record{}, &UnauthenticatedError{Reason: fmt.Sprintf("this is no %s: it is mistyped or cut", k.what)}
	}
	d := digestOf(secret)
	k.mu.Lock()
	epoch := k.epoch
	k.mu.Unlock()

	ctx, cancel := k.bounds.Context(ctx, budget.TokenCheck, "check a "+k.what)
	defer cancel()
	r, err := k.read(ctx, d.id())
	var absent *store.NotFoundError
	if errors.As(err, &absent) || err == nil && (r.Revoked || r.expired()) {
		k.forget(d)
	}
	switch {
	case errors.As(err, &absent):
		return Record{}, &UnauthenticatedError{Reason: fmt.Sprintf("this %s is not known", k.what)}
	case err != nil:
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return Record{}, &UnavailableError{What: k.what, Err: err}
	case !d.equals(r.Hash):
		return Record{}, &UnauthenticatedError{Reason: fmt.Sprintf("this %s is not known", k.what)}
	case r.Revoked:
		return Record{}, &UnauthenticatedError{Reason: fmt.Sprintf("this %s was revoked", k.what)}
	case r.expired():
		return Record{}, &UnauthenticatedError{Reason: fmt.Sprintf("this %s has expired", k.what)}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.epoch == epoch {
		if k.cache == nil || len(k.cache) >= cacheSize {
			k.cache = map[digest]cached{}
		}
		k.cache[d] = cached{record: r, until: time.Now().Add(cacheFor)}
	}
	return r, nil
}

func (k *keeper) read(ctx context.Context, id string) (Record, error) {
	text, err := k.blobs.Get(ctx, k.bucket, id)
	if err != nil {
		return Record{}, err
	}
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return Record{}, fmt.Errorf("the record of %s %s is broken: %w", k.what, id, err)
	}
	return r, nil
}

// end makes a credential count for nothing from now on, after its record has changed: it is dropped from
// the cache, alone, and what is open with it ends.
func (k *keeper) end(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.epoch++
	for d := range k.cache {
		if d.id() == id {
			delete(k.cache, d)
		}
	}
	if f := k.followed[id]; f != nil {
		delete(k.followed, id)
		f.end()
	}
}

func (r Record) expired() bool { return !r.Expires.IsZero() && !time.Now().Before(r.Expires) }
