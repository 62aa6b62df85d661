package e2e_test

import (
	"errors"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/client"
)

// issue 5: SIGSTOP of the owner of a node that is deleted; data §1.4
func TestADeletionThroughOneSiloIsNotUndoneByAFrozenOwnerAndWaitsNoLongerThanItsBound(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	all := w.start("a", "b", "c")
	a, b := all[0], all[1]
	nodes := paths(3)
	b.owned(nodes)
	for i, path := range nodes {
		if i == 0 { // the control: the owner is awake
			began := time.Now()
			if got, err := a.client().Delete(t.Context(), path, false, client.If{}); err != nil || len(got.Untold) > 0 || time.Since(began) > time.Second {
				t.Errorf("after %v: %+v %v", time.Since(began), got, err)
			}
		} else {
			b.signal(syscall.SIGSTOP)
			began := time.Now()
			got, err := a.client().Delete(t.Context(), path, false, client.If{})
			took := time.Since(began)
			b.signal(syscall.SIGCONT)
			if err != nil || len(got.Untold) > 0 || took > 4*time.Second { // it is put out before the bound
				t.Errorf("after %v: %+v %v", took, got, err)
			}
			t.Logf("acknowledged after %v", took)
		}
		for range 20 {
			var e *client.Error
			n, err := b.client().Get(t.Context(), path)
			if err == nil {
				t.Fatalf("%s was deleted, and b answers version %d", path, n.Version)
			}
			if !errors.As(err, &e) || e.Status != http.StatusNotFound && !transient(err) {
				t.Fatal(err)
			}
		}
		b.ready()
		b.sees("a", "b", "c")
		for _, again := range nodes[i+1:] {
			b.read(again)
		}
	}
}
