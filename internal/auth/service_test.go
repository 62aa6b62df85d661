package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/message"
)

func request(from string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/api/whoami", nil)
	r.RemoteAddr = from
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// CR-2
func TestARequestWithoutACredentialIsAnonymousAndNeverNobody(t *testing.T) {
	s, _ := service(t)
	id, _, err := s.Authenticate(request("192.0.2.1:1000"))
	if err != nil || id.Subject != message.SubjectAnonymous {
		t.Fatalf("%+v, %v", id, err)
	}
}

func TestTheBearerTokenSaysWhoCalls(t *testing.T) {
	s, _ := service(t)
	defer s.Close()
	token, _ := issue(t, s, "bob")
	for _, header := range []string{"Bearer " + token, "bearer " + token, "Bearer  " + token + " "} {
		id, _, err := s.Authenticate(request("192.0.2.1:1000", "Authorization", header))
		if err != nil || id.Subject != "bob" || !id.Token {
			t.Errorf("%q: %+v, %v", header, id, err)
		}
	}
	for _, header := range []string{token, "Basic " + token, "Bearer", "Bearer "} {
		var bad *UnauthenticatedError
		if _, _, err := s.Authenticate(request("192.0.2.1:1000", "Authorization", header)); !errors.As(err, &bad) {
			t.Errorf("%q: %v", header, err)
		}
	}
}

func TestALoginCodeWorksOnceAndOpensASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := service(t)
		code, err := s.Sessions.NewCode("bob", "Bob")
		if err != nil {
			t.Fatal(err)
		}
		cookie, err := s.Login(request("192.0.2.1:1000"), code)
		if err != nil {
			t.Fatal(err)
		}
		if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.MaxAge != 30*24*3600 || cookie.Secure {
			t.Fatalf("the cookie: %v", cookie)
		}
		with := func() *http.Request { return request("192.0.2.1:1000", "Cookie", cookieName+"="+cookie.Value) }
		id, _, err := s.Authenticate(with())
		if err != nil || id.Subject != "bob" || id.Name != "Bob" || id.Token {
			t.Fatalf("%+v, %v", id, err)
		}
		var bad *UnauthenticatedError
		if _, err := s.Login(request("192.0.2.1:1000"), code); !errors.As(err, &bad) {
			t.Fatalf("the second use of a code: %v", err)
		}
		<-time.After(sessionFor + time.Second)
		if id, _, err = s.Authenticate(with()); err != nil || !id.IsAnonymous() {
			t.Fatalf("after a month: %+v, %v", id, err)
		}
	})
}

func TestALoginCodeIsForgottenAfterTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := service(t)
		old, _ := s.Sessions.NewCode("bob", "")
		<-time.After(codeFor)
		var bad *UnauthenticatedError
		if _, err := s.Login(request("192.0.2.1:1000"), old); !errors.As(err, &bad) {
			t.Fatalf("an old code: %v", err)
		}
	})
}

func TestALoginThatCouldNotBeKeptLeavesTheCodeUsable(t *testing.T) {
	s, b := service(t)
	code, _ := s.Sessions.NewCode("bob", "")
	full := errors.New("the disk is full")
	b.obstruct(func(_ context.Context, op, _ string) error { return map[string]error{"put": full}[op] })
	var away *UnavailableError
	if _, err := s.Login(request("192.0.2.1:1000"), code); !errors.As(err, &away) || !errors.Is(err, full) {
		t.Fatalf("with a full disk: %v", err)
	}
	b.obstruct(nil)
	if _, err := s.Login(request("192.0.2.1:1000"), code); err != nil {
		t.Fatalf("afterwards: %v", err)
	}
}

func TestALogoutEndsTheSessionOnTheServer(t *testing.T) {
	s, _ := service(t)
	code, _ := s.Sessions.NewCode("bob", "")
	cookie, err := s.Login(request("192.0.2.1:1000"), code)
	if err != nil {
		t.Fatal(err)
	}
	with := request("192.0.2.1:1000", "Cookie", cookieName+"="+cookie.Value)
	if id, _, _ := s.Authenticate(with); id.IsAnonymous() {
		t.Fatal("control: the session does not work")
	}
	gone, err := s.Logout(with)
	if err != nil || gone.MaxAge >= 0 {
		t.Fatalf("%v, %v", gone, err)
	}
	if id, _, err := s.Authenticate(with); err != nil || !id.IsAnonymous() {
		t.Fatalf("the old cookie still speaks as %+v, %v", id, err)
	}
}

func TestExpiredSessionsAreSweptAtTheNextLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := service(t)
		login := func() {
			code, _ := s.Sessions.NewCode("bob", "")
			if _, err := s.Login(request("192.0.2.1:1000"), code); err != nil {
				t.Fatal(err)
			}
		}
		login()
		<-time.After(sessionFor + time.Second)
		login()
		if n := len(b.buckets[bucketSessions]); n != 1 {
			t.Fatalf("%d sessions kept, want the new one", n)
		}
	})
}

func TestFailedAttemptsOfOnePlaceAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := service(t)
		defer s.Close()
		token, _ := issue(t, s, "bob")
		wrong := func(from string) error {
			_, _, err := s.Authenticate(request(from, "Authorization", "Bearer "+newSecret(tokenPrefix)))
			return err
		}
		if _, _, err := s.Authenticate(request("192.0.2.1:1", "Authorization", "Bearer "+token)); err != nil {
			t.Fatal(err)
		}
		for range failBurst {
			var bad *UnauthenticatedError
			if err := wrong("192.0.2.1:1"); !errors.As(err, &bad) {
				t.Fatal(err)
			}
		}
		var limited *RateLimitedError
		if err := wrong("192.0.2.1:2"); !errors.As(err, &limited) || limited.RetryAfter() <= 0 || limited.RetryAfter() > failEvery {
			t.Fatalf("the attempt after the burst, from another port: %v", err)
		}
		if _, err := s.Login(request("192.0.2.1:3"), "code"); !errors.As(err, &limited) {
			t.Fatalf("a login from there: %v", err)
		}
		if _, _, err := s.Authenticate(request("192.0.2.1:4", "Authorization", "Bearer "+token)); err != nil {
			t.Fatalf("a token that is known to be good is locked out: %v", err)
		}
		if err := wrong("192.0.2.2:1"); errors.As(err, &limited) {
			t.Fatalf("another place is limited too: %v", err)
		}
		<-time.After(failEvery)
		if err := wrong("192.0.2.1:1"); errors.As(err, &limited) {
			t.Fatalf("after a while: %v", err)
		}
		if err := wrong("192.0.2.1:1"); !errors.As(err, &limited) {
			t.Fatalf("one more: %v", err)
		}
	})
}

// edge §2.6
// Others behind the same address have used up its attempts: a token that was never seen before, and a
// login code, are let in all the same, and what fails there is still limited.
func TestAGoodCredentialIsLetInFromAPlaceWhereOthersFail(t *testing.T) {
	s, _ := service(t)
	defer s.Close()
	token, _ := issue(t, s, "bob")
	code, err := s.Sessions.NewCode("bob", "")
	if err != nil {
		t.Fatal(err)
	}
	wrong := func() error {
		_, _, err := s.Authenticate(request("192.0.2.1:1", "Authorization", "Bearer "+newSecret(tokenPrefix)))
		return err
	}
	for range failBurst + 1 {
		err = wrong()
	}
	var limited *RateLimitedError
	if !errors.As(err, &limited) {
		t.Fatalf("control: the place is not limited: %v", err)
	}
	if id, _, err := s.Authenticate(request("192.0.2.1:2", "Authorization", "Bearer "+token)); err != nil || id.Subject != "bob" {
		t.Fatalf("a good token: %v, %v", id, err)
	}
	if _, err := s.Login(request("192.0.2.1:3"), code); err != nil {
		t.Fatalf("a good login code: %v", err)
	}
	if err := wrong(); !errors.As(err, &limited) {
		t.Fatalf("a bad one afterwards: %v", err)
	}
}

func TestAnOldCookieIsAVisitorAndNoAttack(t *testing.T) {
	s, _ := service(t)
	for range 3 * failBurst {
		id, _, err := s.Authenticate(request("192.0.2.1:1", "Cookie", cookieName+"="+newSecret(sessionPrefix)))
		if err != nil || !id.IsAnonymous() {
			t.Fatalf("%+v, %v", id, err)
		}
	}
	if _, _, err := s.Authenticate(request("192.0.2.1:1", "Cookie", cookieName+"=garbage")); err != nil {
		t.Fatal(err)
	}
}

func TestPlacesAreRememberedWithinABound(t *testing.T) {
	var f failures
	first := placeOf("10.0.0.1:1")
	for range failBurst {
		f.add(first)
	}
	if f.wait(first) == 0 {
		t.Fatal("control: the first place is not limited")
	}
	for i := range failPlaces {
		f.add(placeOf(fmt.Sprintf("198.%d.%d.%d:1", i/65536, i/256%256, i%256)))
	}
	if f.wait(first) != 0 || len(f.places) != failPlaces || f.recent.Len() != failPlaces {
		t.Fatalf("%d places are remembered", len(f.places))
	}
}

func TestHostsOfOneNetworkAreOnePlace(t *testing.T) {
	for _, pair := range [][2]string{
		{"[2001:db8::1]:1", "[2001:db8::ffff:2]:2"}, {"192.0.2.1:1", "[::ffff:192.0.2.1]:2"}, {"@", ""},
	} {
		if placeOf(pair[0]) != placeOf(pair[1]) {
			t.Errorf("%s and %s are two places", pair[0], pair[1])
		}
	}
	if placeOf("[2001:db8::1]:1") == placeOf("[2001:db8:0:1::1]:1") || placeOf("192.0.2.1:1") == placeOf("192.0.2.2:1") {
		t.Error("two networks are one place")
	}
}
