package auth

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/store"
)

const (
	cookieName = "hubmesh_session"
	sessionFor = 30 * 24 * time.Hour
	codeFor    = 10 * time.Minute
	// codeCount bounds the login codes that wait to be used; at the bound the oldest is dropped.
	codeCount = 1_000
)

// Sessions turns login codes into browser sessions. Codes live in this process's memory; sessions are
// kept, as the hash of their cookie.
type Sessions struct {
	keeper

	codesMu sync.Mutex
	codes   map[digest]code
}

type code struct {
	subject, name string
	expires       time.Time
}

// NewSessions returns the sessions kept in blobs.
func NewSessions(blobs store.Blobs, bounds *budget.Table) *Sessions {
	return &Sessions{
		keeper: keeper{what: "session", prefix: sessionPrefix, bucket: bucketSessions, blobs: blobs, bounds: bounds},
		codes:  map[digest]code{},
	}
}

// Check returns the record of a good session, else *[UnauthenticatedError] or *[UnavailableError].
func (s *Sessions) Check(ctx context.Context, secret string) (Record, error) {
	if r, ok := s.known(secret); ok {
		return r, nil
	}
	return s.check(ctx, secret)
}

// NewCode returns a login code for subject. It works once, within ten minutes, in this process.
func (s *Sessions) NewCode(subject, name string) (string, error) {
	who, err := access.ParseSubject(subject)
	if err != nil {
		return "", err
	}
	secret := newSecret(codePrefix)
	s.codesMu.Lock()
	defer s.codesMu.Unlock()
	var oldest digest
	var earliest time.Time
	for d, c := range s.codes {
		if !time.Now().Before(c.expires) {
			delete(s.codes, d)
		} else if earliest.IsZero() || c.expires.Before(earliest) {
			oldest, earliest = d, c.expires
		}
	}
	if len(s.codes) >= codeCount {
		delete(s.codes, oldest)
	}
	s.codes[digestOf(secret)] = code{subject: string(who), name: name, expires: time.Now().Add(codeFor)}
	return secret, nil
}

// take uses up a code.
func (s *Sessions) take(text string) (code, bool) {
	d := digestOf(text)
	s.codesMu.Lock()
	defer s.codesMu.Unlock()
	c, ok := s.codes[d]
	delete(s.codes, d)
	return c, ok && time.Now().Before(c.expires)
}

// giveBack lets a code be used again, when the session could not be kept.
func (s *Sessions) giveBack(text string, c code) {
	s.codesMu.Lock()
	defer s.codesMu.Unlock()
	s.codes[digestOf(text)] = c
}

// Login exchanges a code for the cookie of a new session: *[UnauthenticatedError] when the code is not
// known, was used, or is too old; *[UnavailableError] when the session could not be kept, and then the
// code still works. The cookie is marked Secure when secure says that the browser came over TLS.
func (s *Sessions) Login(ctx context.Context, text string, secure bool) (*http.Cookie, error) {
	c, ok := s.take(text)
	if !ok {
		return nil, &UnauthenticatedError{Reason: "this login link was used already, or is older than ten minutes; ask for a new one"}
	}
	s.sweep(ctx)
	created := now()
	secret, _, err := s.add(ctx, Record{Subject: c.subject, Name: c.name, CreatedAt: created, Expires: created.Add(sessionFor)})
	if err != nil {
		s.giveBack(text, c)
		return nil, &UnavailableError{What: "session", Err: err}
	}
	return cookie(secret, int(sessionFor/time.Second), secure), nil
}

// Logout ends the session of a request, if it has one, with what is open in it, and returns the cookie that makes the browser
// forget it.
func (s *Sessions) Logout(ctx context.Context, r *http.Request) (*http.Cookie, error) {
	gone := cookie("", -1, r.TLS != nil)
	have, err := r.Cookie(cookieName)
	if err != nil || !wellFormed(sessionPrefix, have.Value) {
		return gone, nil
	}
	id := digestOf(have.Value).id()
	err = s.blobs.Delete(ctx, s.bucket, id)
	s.end(id)
	if err != nil {
		return gone, &UnavailableError{What: "session", Err: err}
	}
	return gone, nil
}

// sweep removes sessions that have expired. It is called at each login, so the table stays in step with
// the logins of the last month; a fault only leaves the work to the next login.
func (s *Sessions) sweep(ctx context.Context) {
	var old []string
	all, err := s.blobs.List(ctx, s.bucket)
	if err != nil {
		return
	}
	for id, text := range all {
		var r Record
		if json.Unmarshal(text, &r) == nil && r.expired() {
			old = append(old, id)
		}
	}
	for _, id := range old {
		if s.blobs.Delete(ctx, s.bucket, id) != nil {
			return
		}
	}
}

// cookie is readable by the server alone and is not sent along from other sites, except when a person
// follows a link.
func cookie(value string, maxAge int, secure bool) *http.Cookie {
	return &http.Cookie{
		Name: cookieName, Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode,
	}
}
