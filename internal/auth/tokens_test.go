package auth

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
)

func issue(t *testing.T, s *Service, subject string) (token, id string) {
	t.Helper()
	token, id, err := s.Tokens.Issue(t.Context(), subject, "laptop")
	if err != nil {
		t.Fatal(err)
	}
	return token, id
}

// edge §2.6
func TestATokenSpeaksAsItsSubjectUntilItIsRevoked(t *testing.T) {
	s, _ := service(t)
	defer s.Close()
	token, id := issue(t, s, "bob")
	if !strings.HasPrefix(token, "hm_") || len(token) != 52 {
		t.Fatalf("a token of the form %q", token)
	}
	r, err := s.Tokens.Check(t.Context(), token)
	if err != nil || r.Subject != "bob" || r.Name != "laptop" {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := s.Tokens.Revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	var bad *UnauthenticatedError
	if _, err := s.Tokens.Check(t.Context(), token); !errors.As(err, &bad) || !strings.Contains(bad.Reason, "revoked") {
		t.Fatalf("after the revocation, with the cache warm: %v", err)
	}
	var absent *NotFoundError
	if err := s.Tokens.Revoke(t.Context(), "000000000000"); !errors.As(err, &absent) {
		t.Fatalf("revoking nothing: %v", err)
	}
}

// edge §2.6
func TestARevocationDuringACheckIsNotCoveredByTheCache(t *testing.T) {
	s, b := service(t)
	defer s.Close()
	token, id := issue(t, s, "bob")
	// Parked after the read of the good record: the revocation happens now.
	reads := 0
	b.obstruct(func(ctx context.Context, op, bucket string) error {
		if op == "get" && bucket == bucketTokens {
			if reads++; reads == 1 {
				old, err := s.Tokens.read(ctx, id) // what the parked check has read
				if err != nil || old.Revoked {
					t.Errorf("%+v, %v", old, err)
				}
				return s.Tokens.Revoke(ctx, id)
			}
		}
		return nil
	})
	if _, err := s.Tokens.Check(t.Context(), token); err == nil {
		t.Fatal("the check that overlapped read the revoked record and let it pass")
	}
	if _, known := s.Tokens.known(token); known {
		t.Fatal("the token is cached as good")
	}
}

// edge invariant 29
func TestTheRawTokenIsNeverStored(t *testing.T) {
	s, b := service(t)
	token, _ := issue(t, s, "bob")
	if _, err := s.Tokens.Check(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	code, err := s.Sessions.NewCode("bob", "")
	if err != nil {
		t.Fatal(err)
	}
	cookie, err := s.Sessions.Login(t.Context(), code, false)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	random := func(secret string) string { return secret[len(secret)-20 : len(secret)-suffixLength] }
	for bucket, records := range b.buckets {
		for key, text := range records {
			for _, secret := range []string{token, cookie.Value, code} {
				if strings.Contains(key+string(text), random(secret)) {
					t.Errorf("%s/%s holds a secret: %s", bucket, key, text)
				}
			}
		}
	}
}

// edge invariant 28
func TestABurstOfChecksStampsTheLastUseOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := service(t)
		token, _ := issue(t, s, "bob")
		release := make(chan struct{})
		b.obstruct(func(_ context.Context, op, bucket string) error {
			if op == "put" && bucket == bucketUse {
				<-release
			}
			return nil
		})
		burst := func() {
			var callers sync.WaitGroup
			for range 50 {
				callers.Go(func() {
					if _, err := s.Tokens.Check(t.Context(), token); err != nil {
						t.Error(err)
					}
				})
			}
			callers.Wait() // nobody waits for the parked stamp
		}
		burst()
		close(release)
		<-time.After(stampEvery - time.Second)
		burst()
		synctest.Wait()
		if n := b.count(bucketUse); n != 1 {
			t.Fatalf("%d stamps within five minutes", n)
		}
		<-time.After(2 * time.Second)
		burst()
		s.Close()
		if n := b.count(bucketUse); n != 2 {
			t.Fatalf("%d stamps after five minutes, want 2", n)
		}
		list, err := s.Tokens.List(t.Context())
		if err != nil || len(list) != 1 || list[0].LastUsed.IsZero() {
			t.Fatalf("%+v, %v", list, err)
		}
	})
}

// edge §2.6
func TestAStampDoesNotUndoARevocation(t *testing.T) {
	s, b := service(t)
	token, id := issue(t, s, "bob")
	parked, release := make(chan struct{}), make(chan struct{})
	b.obstruct(func(_ context.Context, op, bucket string) error {
		if op == "put" && bucket == bucketUse {
			close(parked)
			<-release
		}
		return nil
	})
	if _, err := s.Tokens.Check(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	<-parked
	if err := s.Tokens.Revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	close(release)
	s.Close()
	if _, err := s.Tokens.Check(t.Context(), token); err == nil {
		t.Fatal("the token is good again")
	}
}

// edge invariant 27
func TestACheckThatStallsIsUnavailableAndNotARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := service(t)
		token, _ := issue(t, s, "bob")
		b.obstruct(func(ctx context.Context, _, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		})
		began := time.Now()
		_, err := s.Tokens.Check(t.Context(), token)
		var away *UnavailableError
		if !errors.As(err, &away) || time.Since(began) != 8*time.Second {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
		if away.ProblemCode() != "unavailable" || away.RetryAfter() != 5*time.Second {
			t.Fatalf("%s, %v", away.ProblemCode(), away.RetryAfter())
		}
		b.obstruct(nil)
		if _, err := s.Tokens.Check(t.Context(), token); err != nil {
			t.Fatalf("control: with the store back: %v", err)
		}
		s.Close()
	})
}

// edge §2.6
func TestACachedTokenIsCheckedAgainAfterHalfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := service(t)
		token, _ := issue(t, s, "bob")
		reads := 0
		b.obstruct(func(_ context.Context, op, bucket string) error {
			if op == "get" && bucket == bucketTokens {
				reads++
			}
			return nil
		})
		for _, pause := range []time.Duration{0, 0, cacheFor - 1, 1} {
			<-time.After(pause)
			if _, err := s.Tokens.Check(t.Context(), token); err != nil {
				t.Fatal(err)
			}
		}
		if reads != 2 {
			t.Fatalf("%d reads, want the first and one after %v", reads, cacheFor)
		}
		s.Close()
	})
}

// edge §2.6
func TestAMistypedTokenIsRefusedWithoutALookIntoTheStore(t *testing.T) {
	s, b := service(t)
	token, _ := issue(t, s, "bob")
	b.obstruct(func(context.Context, string, string) error { t.Error("the store was asked"); return nil })
	swapped := []byte(token)
	swapped[10], swapped[11] = swapped[11], swapped[10]
	if swapped[10] == swapped[11] {
		swapped[10] ^= 1
	}
	for _, bad := range []string{"", "hm_", token[:51], token + "A", string(swapped), "hms_" + token[3:], strings.ToUpper(token)} {
		var err *UnauthenticatedError
		if _, got := s.Tokens.Check(t.Context(), bad); !errors.As(got, &err) {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

// edge §2.6
func TestNoTokenSpeaksAsTheMeshItself(t *testing.T) {
	s, _ := service(t)
	for _, subject := range []string{"system-security", "Public", "anonymous", "", "mesh/1"} {
		var bad *access.SubjectError
		if _, _, err := s.Tokens.Issue(t.Context(), subject, ""); !errors.As(err, &bad) {
			t.Errorf("%q: %v", subject, err)
		}
		if _, err := s.Sessions.NewCode(subject, ""); !errors.As(err, &bad) {
			t.Errorf("a login code for %q: %v", subject, err)
		}
	}
}

func FuzzASecretHasOneForm(f *testing.F) {
	f.Add(newSecret(tokenPrefix))
	f.Add("hm_")
	f.Fuzz(func(t *testing.T, text string) {
		if !wellFormed(tokenPrefix, text) {
			return
		}
		body := text[:len(text)-suffixLength]
		if body+checksum(body) != text {
			t.Fatalf("%q is well formed with another checksum", text)
		}
	})
}

// bad input: a name of a token that no record can hold
func TestATokenHasANameThatCanBeListed(t *testing.T) {
	s, b := service(t)
	defer s.Close()
	for _, name := range []string{strings.Repeat("x", MaxNameBytes+1), strings.Repeat("x", 100_000), "\xff", "two\nlines", "\x1b[31m"} {
		var bad *NameError
		if token, _, err := s.Tokens.Issue(t.Context(), "bob", name); !errors.As(err, &bad) || token != "" {
			t.Errorf("%.20q: %q %v", name, token, err)
		}
	}
	if got := len(b.buckets[bucketTokens]); got != 0 {
		t.Errorf("%d records were made", got)
	}
	for _, name := range []string{"", "laptop of Bob", strings.Repeat("x", MaxNameBytes)} { // the control
		if _, _, err := s.Tokens.Issue(t.Context(), "bob", name); err != nil {
			t.Errorf("%.20q: %v", name, err)
		}
	}
}
