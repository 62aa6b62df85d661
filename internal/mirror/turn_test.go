package mirror

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// one is a turn that counts.
type one struct{ c chan struct{} }

func (o one) Begin(ctx context.Context) error {
	select {
	case o.c <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (o one) End() { <-o.c }

// fault 40, "a slow reader costs no queue"
func TestOfWatchesThatShareATurnOneAtATimeMakesAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.write("acme/a", 1, `{}`)
		turn := one{make(chan struct{}, 1)}
		watch, err := w.hub.Watch(t.Context(), "acme/a", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Close()
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
		watch.InTurn(turn)
		l.InTurn(turn)
		r.InTurn(turn)
		reads := 0
		w.fails = func() error { reads++; return nil }
		next(t, watch) // it is being written, slowly
		others := make(chan error, 2)
		go func() { _, err := l.Next(t.Context()); l.Done(); others <- err }()
		go func() { _, err := r.Next(t.Context()); r.Done(); others <- err }()
		synctest.Wait()
		if reads != 0 {
			t.Errorf("%d replacements were read while a frame was being written", reads)
		}
		watch.Done()
		for range 2 {
			if err := <-others; err != nil {
				t.Error(err)
			}
		}
		if reads != 2 || len(turn.c) != 0 {
			t.Errorf("%d reads; the turn is held: %d", reads, len(turn.c))
		}
		w.write("acme/a", 2, `{"x":1}`)
		if f := next(t, watch); f.Version != 2 {
			t.Errorf("%+v", f)
		}
		watch.Done()
	})
}
