package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/store"
)

// stampEvery is how often the last use of a token is written at most (edge.md §2.6).
const stampEvery = 5 * time.Minute

// Token is what may be shown of a token.
type Token struct {
	ID        string    `json:"id"`
	Subject   string    `json:"subject"`
	Name      string    `json:"name,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	LastUsed  time.Time `json:"lastUsed,omitzero"`
	Revoked   bool      `json:"revoked,omitempty"`
}

// Tokens issues, checks and revokes API tokens.
type Tokens struct {
	keeper
	log *slog.Logger

	stamping sync.WaitGroup
	stampMu  sync.Mutex
	stamped  map[string]time.Time // token id → last written, or being written now
	closed   bool
}

// NewTokens returns the tokens kept in blobs.
func NewTokens(blobs store.Blobs, bounds *budget.Table, log *slog.Logger) *Tokens {
	return &Tokens{
		keeper:  keeper{what: "token", prefix: tokenPrefix, bucket: bucketTokens, blobs: blobs, bounds: bounds},
		log:     log,
		stamped: map[string]time.Time{},
	}
}

// Issue makes a token that speaks as subject and returns it, this once, with its id. Errors:
// *access.SubjectError for a reserved or unusable subject, *[NameError] for a name that is none, or what the store answers.
func (t *Tokens) Issue(ctx context.Context, subject, name string) (token, id string, err error) {
	if err := checkName(name); err != nil {
		return "", "", err
	}
	s, err := access.ParseSubject(subject)
	if err != nil {
		return "", "", err
	}
	secret, r, err := t.add(ctx, Record{Subject: string(s), Name: name, CreatedAt: now()})
	return secret, r.ID, err
}

// MaxNameBytes bounds the name of a token.
const MaxNameBytes = 200

func checkName(name string) error {
	switch {
	case len(name) > MaxNameBytes:
		return &NameError{Reason: fmt.Sprintf("it has %d bytes; %d are allowed", len(name), MaxNameBytes)}
	case !utf8.ValidString(name):
		return &NameError{Reason: "it is not valid UTF-8"}
	case strings.ContainsFunc(name, unicode.IsControl):
		return &NameError{Reason: "it holds a control character"}
	}
	return nil
}

// now is the time as it is stored.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// Check returns the record of a good token, else *[UnauthenticatedError] or *[UnavailableError].
func (t *Tokens) Check(ctx context.Context, token string) (Record, error) {
	r, ok := t.known(token)
	if !ok {
		var err error
		if r, err = t.check(ctx, token); err != nil {
			return Record{}, err
		}
	}
	t.stamp(r.ID)
	return r, nil
}

// stamp writes the time of use, beside the request, unless that was done lately.
func (t *Tokens) stamp(id string) {
	at := time.Now()
	t.stampMu.Lock()
	defer t.stampMu.Unlock()
	if last, ok := t.stamped[id]; t.closed || ok && at.Sub(last) < stampEvery {
		return
	}
	if len(t.stamped) >= cacheSize {
		t.stamped = map[string]time.Time{}
	}
	t.stamped[id] = at
	t.stamping.Go(func() {
		ctx, cancel := t.bounds.Context(context.Background(), budget.Commit, "stamp a token")
		defer cancel()
		if err := t.blobs.Put(ctx, bucketUse, id, []byte(at.UTC().Format(time.RFC3339))); err != nil {
			t.log.Warn("the last use of a token was not written", "token_id", id, "error", err)
		}
	})
}

// List returns every token, newest first.
func (t *Tokens) List(ctx context.Context) ([]Token, error) {
	used := map[string]time.Time{}
	uses, err := t.blobs.List(ctx, bucketUse)
	if err != nil {
		return nil, err
	}
	tokens, err := t.blobs.List(ctx, bucketTokens)
	if err != nil {
		return nil, err
	}
	for id, text := range uses {
		if at, err := time.Parse(time.RFC3339, string(text)); err == nil {
			used[id] = at
		}
	}
	var list []Token
	for id, text := range tokens {
		var r Record
		if err := json.Unmarshal(text, &r); err != nil {
			t.log.Warn("the record of a token is broken", "token_id", id, "error", err)
			continue
		}
		list = append(list, Token{ID: r.ID, Subject: r.Subject, Name: r.Name, CreatedAt: r.CreatedAt, LastUsed: used[id], Revoked: r.Revoked})
	}
	sort.Slice(list, func(i, j int) bool { return list[i].CreatedAt.After(list[j].CreatedAt) })
	return list, nil
}

// Revoke ends a token for good, and what is open with it; *[NotFoundError] when there is none with the id. Revoking twice is fine.
func (t *Tokens) Revoke(ctx context.Context, id string) error {
	r, err := t.read(ctx, id)
	var absent *store.NotFoundError
	if errors.As(err, &absent) {
		return &NotFoundError{ID: id}
	}
	if err != nil {
		return err
	}
	r.Revoked = true
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	err = t.blobs.Put(ctx, bucketTokens, id, text)
	t.end(id) // also after a failure, whose outcome may be unknown: one that is still good is let in again
	return err
}

// Close stops stamping and waits for what is being written.
func (t *Tokens) Close() {
	t.stampMu.Lock()
	t.closed = true
	t.stampMu.Unlock()
	t.stamping.Wait()
}
