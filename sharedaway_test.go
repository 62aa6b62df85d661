package hubmesh_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh"
)

// issue 5, docs/postgres.md: while the server is away a write is tried for 10 s
func TestWhileTheDatabaseIsAwayEveryWriteIsAnsweredWithinTheBoundOfItsTries(t *testing.T) {
	t.Parallel()
	s, url := database(t)
	a, ctx := share(t, url)
	if err := a.Grant(hubmesh.AsSystem(t.Context()), "", "admin", "Admin"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Create(ctx, "acme", "Space", nil); err != nil {
		t.Fatal(err)
	}
	const nodes = 8
	for i := range nodes {
		if _, err := a.Create(ctx, fmt.Sprint("acme/n", i), "", map[string]any{}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Get(ctx, fmt.Sprint("acme/n", i)); err != nil {
			t.Fatal(err)
		}
	}
	s.Kill()
	took := make(chan time.Duration, 2*nodes)
	for i := range nodes {
		for range 2 { // more than there are lanes, and two of each node
			go func() {
				<-time.After(time.Duration(i) * 400 * time.Millisecond) // so that they come one after the other
				began := time.Now()
				if n, err := a.Patch(ctx, fmt.Sprint("acme/n", i), map[string]any{"name": "n"}, hubmesh.Condition{}); err == nil {
					t.Errorf("version %d was written without a database", n.Version)
				}
				took <- time.Since(began)
			}()
		}
	}
	for range 2 * nodes {
		if d := <-took; d > 13*time.Second { // ten seconds, and what a busy machine adds
			t.Errorf("a write was answered after %v", d)
		}
	}
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
}
