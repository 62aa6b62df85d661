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

// token checks an API token within the limit on failures. One that is cached as good is not attempted but
// known, so that a place where somebody else guesses does not lock out those who know.
func (s *Service) token(r *http.Request, token string) (*message.Identity, *Credential, error) {
	from := placeOf(r.RemoteAddr)
	if _, known := s.Tokens.known(token); !known {
		if wait := s.failed.wait(from); wait > 0 {
			return nil, nil, &RateLimitedError{Wait: wait}
		}
	}
	record, err := s.Tokens.Check(r.Context(), token)
	if err != nil {
		var bad *UnauthenticatedError
		if errors.As(err, &bad) {
			s.failed.add(from)
		}
		return nil, nil, err
	}
	return &message.Identity{Subject: record.Subject, Name: record.Name, Token: true}, credential(&s.Tokens.keeper, token, record), nil
}

func credential(k *keeper, secret string, r Record) *Credential {
	return &Credential{keeper: k, secret: secret, id: r.ID, expires: r.Expires}
}

// bearer cuts the token out of an Authorization header; the scheme is case-insensitive.
func bearer(header string) (string, bool) {
	scheme, token, ok := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

// Login exchanges a login code for a cookie, within the limit on failures of where the request is from.
func (s *Service) Login(r *http.Request, code string) (*http.Cookie, error) {
	from := placeOf(r.RemoteAddr)
	if wait := s.failed.wait(from); wait > 0 {
		return nil, &RateLimitedError{Wait: wait}
	}
	c, err := s.Sessions.Login(r.Context(), code, r.TLS != nil)
	var bad *UnauthenticatedError
	if errors.As(err, &bad) {
		s.failed.add(from)
	}
	return c, err
}

// Logout ends the session of a request and returns the cookie that makes the browser forget it.
func (s *Service) Logout(r *http.Request) (*http.Cookie, error) {
	return s.Sessions.Logout(r.Context(), r)
}
