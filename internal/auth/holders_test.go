package auth

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// session signs a subject in and returns the session's secret.
func session(t *testing.T, s *Service, subject string) string {
	t.Helper()
	code, err := s.Sessions.NewCode(subject, subject)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Sessions.Login(t.Context(), code, false)
	if err != nil {
		t.Fatal(err)
	}
	return c.Value
}

func holders(t *testing.T, s *Service) []string {
	t.Helper()
	list, err := s.Holders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(list))
}

// edge §2.3
// Who can sign in is who has a good token or session: not one that was revoked, or is over.
func TestHoldersAreThoseWithAGoodTokenOrSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := service(t)
		defer s.Close()
		issue(t, s, "bob")
		_, id := issue(t, s, "eve")
		session(t, s, "sam")
		if got := holders(t, s); !slices.Equal(got, []string{"bob", "eve", "sam"}) {
			t.Fatal(got)
		}
		if err := s.Tokens.Revoke(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		<-time.After(sessionFor)
		if got := holders(t, s); !slices.Equal(got, []string{"bob"}) {
			t.Fatal(got)
		}
	})
}

// AC-R1
// The end of everything of a subject ends what is open, and nothing of another subject.
func TestTheEndOfEverythingOfASubjectIsOfThatSubjectAlone(t *testing.T) {
	s, _ := service(t)
	defer s.Close()
	token, _ := issue(t, s, "bob")
	over, release := follow(t, in(t, s, request("192.0.2.1:1", "Authorization", "Bearer "+token)))
	defer release()
	other, _ := issue(t, s, "eve")
	sessions := map[string]string{"bob": session(t, s, "bob"), "eve": session(t, s, "eve")}
	if err := s.EndAll(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tokens.Check(t.Context(), token); err == nil || !isOver(over) {
		t.Errorf("the token: %v, over %v", err, isOver(over))
	}
	if _, err := s.Sessions.Check(t.Context(), sessions["bob"]); err == nil {
		t.Error("the session is good")
	}
	if got := holders(t, s); !slices.Equal(got, []string{"eve"}) {
		t.Error(got)
	}
	if _, err := s.Tokens.Check(t.Context(), other); err != nil {
		t.Error(err)
	}
	if _, err := s.Sessions.Check(t.Context(), sessions["eve"]); err != nil {
		t.Error(err)
	}
}
