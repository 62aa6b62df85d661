package auth

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// in returns the credential that a request is let in with.
func in(t *testing.T, s *Service, r *http.Request) *Credential {
	t.Helper()
	_, c, err := s.Authenticate(r)
	if err != nil || c == nil {
		t.Fatalf("%v, %v", c, err)
	}
	return c
}

func follow(t *testing.T, c *Credential) (over <-chan struct{}, release func()) {
	t.Helper()
	over, release, err := c.Follow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return over, release
}

func isOver(over <-chan struct{}) bool {
	select {
	case <-over:
		return true
	default:
		return false
	}
}

// AC-R1
// A revocation reaches everything that is open with the token before it is acknowledged, and nothing
// that is open with another one.
func TestARevocationEndsWhatIsOpenWithTheTokenAndNothingElse(t *testing.T) {
	s, _ := service(t)
	defer s.Close()
	token, id := issue(t, s, "bob")
	other, _ := issue(t, s, "eve")
	first, let1 := follow(t, in(t, s, request("192.0.2.1:1", "Authorization", "Bearer "+token)))
	second, let2 := follow(t, in(t, s, request("192.0.2.1:1", "Authorization", "Bearer "+token)))
	others, let3 := follow(t, in(t, s, request("192.0.2.1:1", "Authorization", "Bearer "+other)))
	if isOver(first) || isOver(second) {
		t.Fatal("over before the revocation")
	}
	if err := s.Tokens.Revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if !isOver(first) || !isOver(second) || isOver(others) {
		t.Fatalf("over: %v, %v; another's: %v", isOver(first), isOver(second), isOver(others))
	}
	if _, known := s.Tokens.known(other); !known {
		t.Fatal("the revocation of one token emptied the cache of all")
	}
	for _, let := range []func(){let1, let2, let3, let3} {
		let()
	}
	if n := len(s.Tokens.followed); n != 0 {
		t.Fatalf("%d credentials are still remembered", n)
	}
}

// AC-R1
// What is revoked between the check of a request and the opening of its stream is refused there.
func TestACredentialThatEndedBeforeItWasFollowedIsRefused(t *testing.T) {
	s, _ := service(t)
	defer s.Close()
	token, id := issue(t, s, "bob")
	c := in(t, s, request("192.0.2.1:1", "Authorization", "Bearer "+token))
	if err := s.Tokens.Revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	var bad *UnauthenticatedError
	if _, _, err := c.Follow(t.Context()); !errors.As(err, &bad) {
		t.Fatal(err)
	}
	if n := len(s.Tokens.followed); n != 0 {
		t.Fatalf("%d credentials are remembered", n)
	}
}

// AC-R1
// The revocation happens inside the check that follows the registration: the channel says so.
func TestARevocationWhileACredentialIsBeingFollowedIsNotMissed(t *testing.T) {
	s, b := service(t)
	defer s.Close()
	token, id := issue(t, s, "bob")
	c := in(t, s, request("192.0.2.1:1", "Authorization", "Bearer "+token))
	s.Tokens.end(id) // out of the cache, so that the check goes to the store
	reads := 0
	b.obstruct(func(ctx context.Context, op, bucket string) error {
		if op == "get" && bucket == bucketTokens {
			if reads++; reads == 1 {
				return s.Tokens.Revoke(ctx, id)
			}
		}
		return nil
	})
	if over, _, err := c.Follow(t.Context()); err == nil && !isOver(over) {
		t.Fatal("the revocation was missed")
	}
}

// AC-R1
// A logout ends what is open in the session, and the end of a session's time does, on the second.
func TestASessionEndsWhatIsOpenInItByLogoutAndByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := service(t)
		defer s.Close()
		signIn := func() *http.Request {
			code, err := s.Sessions.NewCode("bob", "")
			if err != nil {
				t.Fatal(err)
			}
			cookie, err := s.Login(request("192.0.2.1:1"), code)
			if err != nil {
				t.Fatal(err)
			}
			return request("192.0.2.1:1", "Cookie", cookieName+"="+cookie.Value)
		}
		out, stays := signIn(), signIn()
		left, let1 := follow(t, in(t, s, out))
		kept, let2 := follow(t, in(t, s, stays))
		defer let1()
		defer let2()
		if _, err := s.Logout(out); err != nil {
			t.Fatal(err)
		}
		if !isOver(left) || isOver(kept) {
			t.Fatalf("over: %v; another session's: %v", isOver(left), isOver(kept))
		}
		before := time.Now()
		<-kept
		if took := time.Since(before); took < sessionFor-time.Second || took > sessionFor {
			t.Fatalf("it ended after %v", took)
		}
	})
}
