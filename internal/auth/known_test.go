package auth

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var errAway = errors.New("the store is away")

// late lets the time pass for which a record is trusted.
func late() { <-time.After(cacheFor) }

// CR-2, issue 5: what was known is known no longer than until its end is heard of
func TestACredentialIsKnownAsItWasWhileItsRecordCanNotBeLookedUpAndNoLongerOnceItHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := service(t)
		defer s.Close()
		away := false
		b.obstruct(func(_ context.Context, op, _ string) error {
			if away {
				return errAway
			}
			return nil
		})
		token, id := issue(t, s, "bob")
		unseen, _ := issue(t, s, "eve")
		r := request("192.0.2.1:1", "Authorization", "Bearer "+token)
		in(t, s, r)
		synctest.Wait() // until its use is written
		asKnown := func(want bool, what string) *Credential {
			t.Helper()
			who, c, err := s.AsKnown(r)
			if known := err == nil && who.Subject == "bob" && c != nil; known != want || err != nil && !errors.As(err, new(*UnavailableError)) {
				t.Errorf("%s: %v %v", what, who, err)
			}
			return c
		}
		away = true
		late()
		if _, _, err := s.Authenticate(r); !errors.As(err, new(*UnavailableError)) { // the control
			t.Errorf("it is good without a look at its record: %v", err)
		}
		c := asKnown(true, "a token that was good")
		over, release, err := c.Follow(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		for what, secret := range map[string]string{"a token that was not seen": unseen, "none": "", "one of nobody's": "hm_x"} {
			if _, _, err := s.AsKnown(request("192.0.2.1:1", "Authorization", "Bearer "+secret)); !errors.As(err, new(*UnavailableError)) {
				t.Errorf("%s: %v", what, err)
			}
		}
		s.End(bucketTokens, id) // another process says that its record has changed
		asKnown(false, "a token whose end was told")
		if !isOver(over) {
			t.Error("what was open with it goes on")
		}

		away = false
		in(t, s, r)
		asKnown(true, "a token that is good again")
		if err := b.Delete(t.Context(), bucketTokens, id); err != nil { // nobody says so
			t.Fatal(err)
		}
		late()
		if _, _, err := s.Authenticate(r); !errors.As(err, new(*UnauthenticatedError)) {
			t.Errorf("a token whose record is gone: %v", err)
		}
		away = true
		asKnown(false, "a token that was seen not to be good any more")
	})
}
