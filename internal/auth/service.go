package auth

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Service finds out who sent a request.
type Service struct {
	Tokens   *Tokens
	Sessions *Sessions
	failed   failures
}

// NewService returns a service whose records are kept in blobs. The token check of bounds is the longest
// that one request waits for an answer.
func NewService(blobs store.Blobs, bounds *budget.Table, log *slog.Logger) *Service {
	return &Service{Tokens: NewTokens(blobs, bounds, log), Sessions: NewSessions(blobs, bounds)}
}

// Close waits for what the service has started.
func (s *Service) Close() { s.Tokens.Close() }

// Authenticate returns who sent the request: the subject of its bearer token, else of its session
// cookie, else Anonymous (CR-2: never nothing), who has no credential. An error names what is wrong with the credential:
// *[UnauthenticatedError], *[UnavailableError] or *[RateLimitedError]. A session that is not good any
// more is an Anonymous visitor, as a browser sends an old cookie without meaning anything by it.
func (s *Service) Authenticate(r *http.Request) (*message.Identity, *Credential, error) {
	if header := r.Header.Get("Authorization"); header != "" {
		token, ok := bearer(header)
		if !ok {
			return nil, nil, &UnauthenticatedError{Reason: "the Authorization header is not of the form 'Bearer TOKEN'"}
		}
		return s.token(r, token)
	}
	have, err := r.Cookie(cookieName)
	if err != nil {
		return message.AnonymousIdentity(), nil, nil
	}
	record, err := s.Sessions.Check(r.Context(), have.Value)
	var bad *UnauthenticatedError
	switch {
	case errors.As(err, &bad):
		return message.AnonymousIdentity(), nil, nil
	case err != nil:
		return nil, nil, err
	}
	return &message.Identity{Subject: record.Subject, Name: record.Name}, credential(&s.Sessions.keeper, have.Value, record), nil
}

// token checks an API token and limits only what failures are answered: a good token is let in from a
// place, such as a proxy or an office, where others fail. Checking first costs an attacker's target
// little, as what is not of the form of a token is refused by its checksum, and anything else is one hash
// and one look-up by key within the bound of a token check: less than any request of a visitor costs,
// which nothing limits either. Guessing 256 random bits is hopeless at any rate.
func (s *Service) token(r *http.Request, token string) (*message.Identity, *Credential, error) {
	record, err := s.Tokens.Check(r.Context(), token)
	if err != nil {
		return nil, nil, s.failure(r, err)
	}
	return &message.Identity{Subject: record.Subject, Name: record.Name, Token: true}, credential(&s.Tokens.keeper, token, record), nil
}

// AsKnown is Authenticate by what was known of the credential when its record could last be looked up, for whoever is told
// what goes on while the store does not answer. An end that was heard of since counts. What was not known here, or is
// no credential, is answered *[UnavailableError].
func (s *Service) AsKnown(r *http.Request) (*message.Identity, *Credential, error) {
	k, secret, token := &s.Tokens.keeper, "", false
	if header := r.Header.Get("Authorization"); header != "" {
		secret, token = bearer(header)
	} else if have, err := r.Cookie(cookieName); err == nil {
		k, secret = &s.Sessions.keeper, have.Value
	}
	record, known := k.lastKnown(secret)
	if !known {
		return nil, nil, &UnavailableError{What: k.what, Err: errNotKnown}
	}
	c := credential(k, secret, record)
	c.asKnown = true
	return &message.Identity{Subject: record.Subject, Name: record.Name, Token: token}, c, nil
}

var errNotKnown = errors.New("the store does not answer, and it was not seen here before")

func credential(k *keeper, secret string, r Record) *Credential {
	return &Credential{keeper: k, secret: secret, id: r.ID, expires: r.Expires}
}

// bearer cuts the token out of an Authorization header; the scheme is case-insensitive.
func bearer(header string) (string, bool) {
	scheme, token, ok := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

// failure counts a failed attempt where the request is from, and answers it: with the reason within the
// limit on failures, with *[RateLimitedError] beyond. A check that could not be made is no attempt.
func (s *Service) failure(r *http.Request, err error) error {
	if !errors.As(err, new(*UnauthenticatedError)) {
		return err
	}
	from := placeOf(r.RemoteAddr)
	if wait := s.failed.wait(from); wait > 0 {
		return &RateLimitedError{Wait: wait}
	}
	s.failed.add(from)
	return err
}

// Login exchanges a login code for a cookie. Like a token, a good code is let in from a place where others
// fail; a code is looked for in this process's memory.
func (s *Service) Login(r *http.Request, code string) (*http.Cookie, error) {
	c, err := s.Sessions.Login(r.Context(), code, r.TLS != nil)
	if err != nil {
		return nil, s.failure(r, err)
	}
	return c, nil
}

// Logout ends the session of a request and returns the cookie that makes the browser forget it.
func (s *Service) Logout(r *http.Request) (*http.Cookie, error) {
	return s.Sessions.Logout(r.Context(), r)
}

// Ends tells whether the records of a bucket are credentials, whose end is [Service.End]'s.
func Ends(bucket string) bool { return bucket == bucketTokens || bucket == bucketSessions }

// End takes note that the record of a credential was changed by another process: it is looked up again, and
// what is open with it ends. A credential that is still good is let in again.
func (s *Service) End(bucket, id string) {
	switch bucket {
	case bucketTokens:
		s.Tokens.end(id)
	case bucketSessions:
		s.Sessions.end(id)
	}
}
