package nodehub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/message"
)

// by is the context of a subject's write.
func by(ctx context.Context, subject string) context.Context {
	return message.WithIdentity(ctx, &message.Identity{Subject: subject})
}

// wantOverloaded checks that a refusal says that only time or places were lacking.
func wantOverloaded(t *testing.T, err error) {
	t.Helper()
	var f *message.Failure
	if !errors.As(err, &f) || f.Type != message.ShuttingDown || f.Reason != message.ReasonOverloaded || f.RetryAfter <= 0 || errors.As(err, new(*SchemaError)) {
		t.Errorf("%v", err)
	}
}

func quiet() *slots { return newSlots(slog.New(slog.DiscardHandler)) }

// bad input: a check whose end was not foreseen
// Nothing is known of the content then: that is no refusal of it.
func TestACheckThatDoesNotEndIsNotWaitedForAndIsWorthAnotherTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := quiet()
		end := make(chan struct{})
		for i := range s.places.size {
			go func() {
				wantOverloaded(t, s.run(by(t.Context(), fmt.Sprint("mal", i)), "mal/T", func(context.Context) error { <-end; return nil }))
			}()
		}
		synctest.Wait()
		<-time.After(schemaWait) // virtual time
		synctest.Wait()
		if n := s.stuck.Load(); n != int64(s.places.size) {
			t.Errorf("%d are counted as stuck", n)
		}
		// Every place is taken: the next is refused as worth another try, or leaves with its caller.
		nothing := func(context.Context) error { return nil }
		wantOverloaded(t, s.run(t.Context(), "shop/Order", nothing))
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.run(gone, "shop/Order", nothing); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		close(end)
		synctest.Wait()
		if n := s.stuck.Load(); n != 0 || s.places.used() != 0 {
			t.Fatalf("%d stuck, %d places taken", n, s.places.used())
		}
		if err := s.run(t.Context(), "shop/Order", func(context.Context) error { panic("a fault") }); !errors.As(err, new(*SchemaError)) {
			t.Fatalf("%v", err)
		}
	})
}

// fault: a machine that is so busy that a check does not end in its time
// The check itself ends at its time, too, and gives its place back.
func TestACheckThatLacksTimeIsWorthAnotherTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := quiet()
		wantOverloaded(t, s.run(t.Context(), "shop/Order", func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		synctest.Wait()
		if n := s.places.used(); n != 0 {
			t.Errorf("%d places taken", n)
		}
	})
}

// bad input: one subject whose contents take all the time there is
func TestOneSubjectNeverHoldsMoreThanHalfOfThePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := quiet()
		end := make(chan struct{})
		for range 3 * s.places.size {
			go s.run(by(t.Context(), "mal"), "mal/T", func(context.Context) error { <-end; return nil }) //nolint:errcheck // the outcome is not asked
		}
		synctest.Wait()
		if n := s.places.used(); n != s.places.size/2 {
			t.Errorf("%d of %d places are taken", n, s.places.size)
		}
		start := time.Now()
		if err := s.run(by(t.Context(), "ann"), "shop/Order", func(context.Context) error { return nil }); err != nil || time.Since(start) > 0 {
			t.Errorf("another subject after %s: %v", time.Since(start), err)
		}
		close(end)
		synctest.Wait()
		if n := s.places.used(); n != 0 || len(s.places.taken) != 0 || len(s.places.waitings) != 0 || len(s.places.turns) != 0 || s.places.waiting != 0 {
			t.Errorf("what is left: %+v", s.places)
		}
	})
}

// invariant: who waits for a place to check is served round robin by subject
func TestThoseWhoWaitAreServedInTurnsBySubject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFairPlaces(2, "callers wait")
		for _, subject := range []string{"x", "y"} {
			if err := p.enter(t.Context(), subject); err != nil {
				t.Fatal(err)
			}
		}
		var mu sync.Mutex
		var order []string
		wait := func(subject string) {
			go func() {
				if err := p.enter(t.Context(), subject); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, subject)
				mu.Unlock()
				p.leave(subject)
			}()
			synctest.Wait()
		}
		for range 4 {
			wait("mal")
		}
		wait("ann")
		wait("bob")
		p.leave("x")
		synctest.Wait()
		if want := []string{"mal", "ann", "bob", "mal", "mal", "mal"}; !slices.Equal(order, want) {
			t.Errorf("%v", order)
		}
		p.leave("y")
	})
}

// bad input: more writes than can ever be checked
func TestTooManyWhoWaitAreRefusedAtOnceAsOverloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFairPlaces(2, "callers wait")
		ctx, cancel := context.WithCancel(t.Context())
		if err := p.enter(ctx, "mal"); err != nil {
			t.Fatal(err)
		}
		for i := range maxSubjectWaits {
			go func() {
				if err := p.enter(ctx, "mal"); !errors.Is(err, context.Canceled) {
					t.Errorf("%d: %v", i, err)
				}
			}()
		}
		synctest.Wait()
		wantOverloaded(t, p.enter(ctx, "mal"))
		if err := p.enter(ctx, "ann"); err != nil {
			t.Errorf("another subject: %v", err)
		}
		cancel()
		synctest.Wait()
		if p.waiting != 0 || len(p.turns) != 0 {
			t.Errorf("%d wait", p.waiting)
		}
		if err := p.enter(ctx, "bob"); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}
