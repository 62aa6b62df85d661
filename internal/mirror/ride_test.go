package mirror

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// C28
// fault 19
func TestAnOwnerThatIsAwayForAMomentEndsNoListingAndNoResult(t *testing.T) {
	for what, failure := range map[string]error{
		"refused":                     &message.Failure{Type: message.ShuttingDown, TargetUnserved: true},
		"lapsed":                      &budget.Lapse{},
		"permissions not yet decided": &access.UndeterminedError{},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.write("acme/a", 1, `{}`)
				q, err := query.Parse("namespace:acme")
				if err != nil {
					t.Fatal(err)
				}
				l, err := w.hub.Listing(t.Context(), "acme", store.Page{})
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				r, err := w.hub.Result(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				if _, err := l.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := r.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
				asked, away := 0, time.Now().Add(20*time.Second)
				w.fails = func() error {
					asked++
					if time.Now().Before(away) {
						return failure
					}
					return nil
				}
				w.write("acme/b", 1, `{}`)
				if list, err := l.Next(t.Context()); err != nil || len(list) != 2 {
					t.Fatal(list, err)
				}
				if asked > 12 {
					t.Errorf("an owner that was away for 20 s was asked %d times", asked)
				}
				away = time.Now().Add(time.Second)
				if rows, err := r.Next(t.Context()); err != nil || len(rows) != 2 {
					t.Fatal(rows, err)
				}
			})
		})
	}
}

// C28
func TestAListingThatNeverOpenedFailsAsAReadDoesAndAFinalAnswerEndsAnOpenOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l, err := w.hub.Listing(t.Context(), "acme", store.Page{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		w.fails = func() error { return &message.Failure{Type: message.ShuttingDown} }
		if _, err := l.Next(t.Context()); !message.IsTransient(err) {
			t.Fatalf("got %v", err)
		}
		w.fails = nil
		l.mark()
		if _, err := l.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.fails = func() error { return &store.NotFoundError{Path: "acme"} }
		l.mark()
		if _, err := l.Next(t.Context()); !errors.As(err, new(*store.NotFoundError)) {
			t.Fatalf("got %v", err)
		}
	})
}

// AC-R1
func TestWhileItIsNotKnownWhoMayReadAWatchTellsNothingAndDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.write("acme/a", 1, `{}`)
		watch, err := w.hub.Watch(t.Context(), "acme/a", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Close()
		next(t, watch)
		w.mu.Lock()
		w.verdict = access.Undetermined
		w.mu.Unlock()
		w.write("acme/a", 2, `{"x":1}`)
		got := make(chan Frame)
		go func() { got <- next(t, watch) }()
		<-time.After(time.Minute)
		select {
		case f := <-got:
			t.Fatalf("told %+v", f)
		default:
		}
		w.mu.Lock()
		w.verdict = access.Granted
		w.mu.Unlock()
		if f := <-got; f.Version != 2 {
			t.Fatalf("told %+v", f)
		}
	})
}
