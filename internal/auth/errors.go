package auth

import (
	"errors"
	"fmt"
	"time"

	"github.com/hubmesh/hubmesh/internal/store"
)

// UnauthenticatedError says that the credential of a request is not, or no longer, good.
type UnauthenticatedError struct{ Reason string }

func (e *UnauthenticatedError) Error() string { return e.Reason }

// ProblemCode is the code in the table of errors.
func (e *UnauthenticatedError) ProblemCode() string { return "unauthenticated" }

// UnavailableError says that a credential could not be checked. It may be good: keep it and try again.
type UnavailableError struct {
	What string // "token" or "session"
	Err  error
}

// retryUnavailable is how long a caller waits before a check is worth another try (edge.md §1.2).
const retryUnavailable = 5 * time.Second

func (e *UnavailableError) Error() string {
	// Whoever asks is not signed in yet: what the store says of its server is for the log.
	if away := (*store.UnavailableError)(nil); errors.As(e.Err, &away) {
		return fmt.Sprintf("the %s could not be checked (the store does not answer); keep it and try again", e.What)
	}
	return fmt.Sprintf("the %s could not be checked (%v); keep it and try again", e.What, e.Err)
}
func (e *UnavailableError) Unwrap() error { return e.Err }

// ProblemCode is the code in the table of errors.
func (e *UnavailableError) ProblemCode() string { return "unavailable" }

// RetryAfter is how long to wait.
func (e *UnavailableError) RetryAfter() time.Duration { return retryUnavailable }

// RateLimitedError says that too many attempts from one place failed.
type RateLimitedError struct{ Wait time.Duration }

func (e *RateLimitedError) Error() string {
	return "too many attempts with a credential that is not good; wait, then check the credential"
}

// ProblemCode is the code in the table of errors.
func (e *RateLimitedError) ProblemCode() string { return "rate_limited" }

// RetryAfter is how long to wait.
func (e *RateLimitedError) RetryAfter() time.Duration { return e.Wait }

// NotFoundError says that there is no token with the id.
type NotFoundError struct{ ID string }

func (e *NotFoundError) Error() string { return fmt.Sprintf("there is no token with the id %q", e.ID) }

// ProblemCode is the code in the table of errors.
func (e *NotFoundError) ProblemCode() string { return "not_found" }

// NameError says why a text can not be the name of a token.
type NameError struct{ Reason string }

func (e *NameError) Error() string { return "the name of a token can not be this: " + e.Reason }

// ProblemCode is the code in the table of errors.
func (e *NameError) ProblemCode() string { return "bad_request" }
