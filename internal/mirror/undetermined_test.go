package mirror

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// edge AC-R1: what nobody can decide any more is ended with that as the reason
func TestAWatchEndsAsUndeterminedWhenNothingIsHeardOfPermissions(t *testing.T) {
	for _, known := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.rows["acme/x"] = node.Node{Path: "acme/x", Version: 1}
			watch, err := w.hub.Watch(t.Context(), "acme/x", 0)
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Close()
			list, err := w.hub.Listing(t.Context(), "acme", store.Page{})
			if err != nil {
				t.Fatal(err)
			}
			defer list.Close()
			q, err := query.Parse("path:acme scope:subtree")
			if err != nil {
				t.Fatal(err)
			}
			result, err := w.hub.Result(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			defer result.Close()
			next := map[string]func() error{
				"node":    func() error { _, err := watch.Next(t.Context()); return err },
				"listing": func() error { _, err := list.Next(t.Context()); return err },
				"query":   func() error { _, err := result.Next(t.Context()); return err },
			}
			ends := map[string]chan error{}
			for name, f := range next {
				if err := f(); err != nil {
					t.Fatal(name, err)
				}
				end := make(chan error, 1)
				ends[name] = end
				go func() { end <- f() }()
			}
			<-time.After(time.Second)
			if !known {
				w.mu.Lock()
				w.verdict = access.Undetermined
				w.mu.Unlock()
			}
			w.hub.Undetermined()
			<-time.After(time.Second)
			for name, end := range ends {
				switch {
				case known && len(end) > 0:
					t.Errorf("%s: a reader whose permissions are known: %v", name, <-end)
				case !known && len(end) == 0:
					t.Errorf("%s: it goes on", name)
				case !known:
					if err := <-end; !errors.As(err, new(*access.UndeterminedError)) {
						t.Errorf("%s: %v", name, err)
					}
				}
			}
			w.hub.Close() // ends the others
			synctest.Wait()
		})
	}
}
