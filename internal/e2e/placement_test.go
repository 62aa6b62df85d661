package e2e_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/client"
)

// decision 1, decision 3
func TestASiloServesOnlyTheNodeTypesThatItLists(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	a := w.start("a")[0]
	b := w.begin("b", "--node-types", "Space,User")
	if err := b.up(); err != nil {
		t.Fatalf("%v:\n%s", err, b.log)
	}
	b.ready()
	b.sees("a", "b")
	a.create("acme", "acme/x", "other", "other/y")
	b.read("acme/x") // nobody has asked for it before
	b.read("other")
	for path, owner := range map[string]string{"acme/x": "a", "other": "b"} {
		if x := a.why(path); x.Cluster.Owner == nil || x.Cluster.Owner.Silo != owner {
			t.Errorf("%s is with %+v, want %s", path, x.Cluster.Owner, owner)
		}
	}
	if text := b.metrics(); !strings.Contains(text, `hubmesh_cluster_placements_total{what="by-type"} `) || strings.Contains(text, `hubmesh_cluster_placements_total{what="by-type"} 0`) {
		t.Errorf("no placement in:\n%s", text)
	}
	a.kill()
	wait(t, "b to be alone", func() error {
		s, err := b.status()
		if err == nil && len(s.Silos) != 1 {
			err = errors.New("there are others")
		}
		return err
	})
	b.read("other") // what it handles is served on
	begin := time.Now()
	_, err := b.client().Get(t.Context(), "other/y")
	var p *client.Error
	if !errors.As(err, &p) || p.Status != http.StatusServiceUnavailable || !strings.Contains(err.Error(), "no silo handles") {
		t.Errorf("%v", err)
	}
	if took := time.Since(begin); took > ride { // it is not asked again
		t.Errorf("refused after %v", took)
	}
	w.start2("c")
	if n := b.read("other/y"); n.Path != "other/y" {
		t.Errorf("%+v", n)
	}
}
