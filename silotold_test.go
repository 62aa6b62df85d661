package hubmesh_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hubmesh/hubmesh"
	"github.com/hubmesh/hubmesh/internal/store"
)

// data §1.3, §1.4, issue 5: whoever acknowledges a deletion has told the owners first
func TestWhatIsDeletedOrReplacedThroughOneSiloIsNotAnsweredAsBeforeByAnotherOnceThatIsAcknowledged(t *testing.T) {
	_, url := database(t)
	a, ctx := startSilo(t, url, "a")
	b, _ := startSilo(t, url, "b")
	if err := a.Grant(hubmesh.AsSystem(t.Context()), "", "admin", "Admin"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a space", func() error { _, err := a.Create(ctx, "acme", "Space", map[string]any{}); return err })
	l, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	exec := func(text string) {
		t.Helper()
		if _, err := l.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	made := func(path string) {
		t.Helper()
		if _, err := a.Create(ctx, path, "", map[string]any{"v": "old"}); err != nil {
			t.Fatal(err)
		}
	}
	// served makes a node whose hub b runs.
	served := func(path string) {
		t.Helper()
		made(path)
		eventually(t, "b to serve "+path, func() error { _, err := b.Get(ctx, path); return err })
		if hubmesh.NodeHubs(b, path) != 1 {
			t.Fatalf("b does not run the hub of %s", path)
		}
	}
	gone := func(path string) error {
		if n, err := b.Get(ctx, path); !errors.As(err, new(*store.NotFoundError)) {
			return fmt.Errorf("b answers %s for %s: %v", n.Content.Text(), path, err)
		}
		return nil
	}
	remove := func(path string) (untold []string, err error) { return a.DeleteTold(ctx, path) }
	for name, c := range map[string]struct {
		make func()
		do   func() ([]string, error)
		now  func() error
	}{
		"a node": {func() { served("acme/x") }, func() ([]string, error) { return remove("acme/x") }, func() error { return gone("acme/x") }},
		"a node below the one that is deleted": {func() { made("acme/p"); served("acme/p/x") },
			func() ([]string, error) { return remove("acme/p") }, func() error { return gone("acme/p/x") }},
		"one of more nodes than are named": {func() {
			made("acme/q")
			var many []hubmesh.Node
			for i := range 300 {
				many = append(many, hubmesh.Node{Path: hubmesh.Path(fmt.Sprint("acme/q/n", i))})
			}
			if _, err := a.CreateMany(ctx, many); err != nil {
				t.Fatal(err)
			}
			served("acme/q/x")
		}, func() ([]string, error) { return remove("acme/q") }, func() error { return gone("acme/q/x") }},
		"a node that an import replaces": {func() { served("acme/i") },
			func() ([]string, error) {
				return nil, a.Replace(ctx, "acme/i", must(hubmesh.JSON(map[string]any{"v": "new"})))
			},
			func() error {
				if n, err := b.Get(ctx, "acme/i"); err != nil || n.Content.Text() != `{"v":"new"}` {
					return fmt.Errorf("b answers %s: %v", n.Content.Text(), err)
				}
				return nil
			}},
	} {
		t.Run(name, func(t *testing.T) {
			c.make()
			exec("begin; lock table mesh_store") // only what the feed reads: b hears nothing
			done := make(chan error, 1)
			go func() {
				untold, err := c.do()
				if err == nil && len(untold) > 0 {
					err = fmt.Errorf("not told: %v", untold)
				}
				done <- err
			}()
			select {
			case err := <-done:
				if err == nil {
					err = c.now()
				}
				t.Errorf("it was acknowledged before b could hear of it: %v", err)
				done <- nil
			case <-time.After(300 * time.Millisecond): // the fault itself
			}
			exec("rollback")
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if err := c.now(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("the control: nobody waits where no other silo holds anything of it", func(t *testing.T) {
		made("acme/y")
		if _, err := a.Get(ctx, "acme/y"); err != nil {
			t.Fatal(err)
		}
		exec("begin; lock table mesh_store")
		began := time.Now()
		if untold, err := remove("acme/y"); err != nil || len(untold) > 0 || time.Since(began) > time.Second {
			t.Errorf("after %v: %v %v", time.Since(began), untold, err)
		}
		exec("rollback")
	})
	t.Run("a silo that can not be told holds nothing up for longer than the bound, and is named with it", func(t *testing.T) {
		served("acme/z")
		exec("begin; lock table mesh_store")
		began := time.Now()
		untold, err := remove("acme/z")
		if took := time.Since(began); err != nil || len(untold) != 1 || !strings.HasPrefix(untold[0], "b: ") || !strings.Contains(untold[0], "bound 'tell'") || took < 2*time.Second || took > 5*time.Second {
			t.Errorf("after %v: %q %v", took, untold, err)
		}
		t.Log(untold)
		exec("rollback")
		eventually(t, "b to hear of it", func() error { return gone("acme/z") })
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
