package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// issue 5, decision 3
func TestThreeServersOnOneDatabaseAreOneMesh(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	all := w.start("a", "b", "c")
	a, b, c := all[0], all[1], all[2]
	a.create("acme", "acme/x")
	written := a.read("acme/x")
	read := b.read("acme/x")
	if read.Version != written.Version {
		t.Fatalf("version %d was written, %d read", written.Version, read.Version)
	}
	for _, p := range []*silo{b, c} {
		x := p.why("acme/x")
		if x.Cluster.Owner == nil || x.Cluster.Owner.Silo != "a" || x.Cluster.OwnerReport == nil || !strings.EqualFold(x.Cluster.OwnerReport.RunLevel, "started") ||
			!slices.Contains(x.Cluster.Answered, "a") || len(x.Cluster.Missing) > 0 || len(x.Bounds) == 0 {
			t.Errorf("%s says %+v", p.name, x)
		}
	}
	s, err := c.status()
	if err != nil {
		t.Fatal(err)
	}
	if s.Answered != 3 || s.Totals.Slots.Owned != s.Totals.Slots.Total || s.Totals.Claims.ProcessesLanded != s.Totals.Claims.Processes || s.Totals.Claims.Granted == 0 {
		t.Errorf("%+v", s)
	}
	for _, one := range s.Silos {
		if !one.Status.Process.Feed.Live {
			t.Errorf("%s has no live feed", one.Silo)
		}
	}
	for _, line := range []string{`hubmesh_cluster_members{state="up"} 3`, `hubmesh_cluster_claims{state="process-pending"} 0`, `hubmesh_feed_live 1`,
		`hubmesh_cluster_peer_connected{silo="a"} 1`, `hubmesh_cluster_refusals_total{reason="no-entry"} 0`, `hubmesh_cluster_repairs_total{repair="claims-made-again"} 0`} {
		if text := b.metrics(); !strings.Contains(text, line+"\n") {
			t.Errorf("no %s in:\n%s", line, text)
		}
	}
	for i, p := range all {
		p.create(fmt.Sprint("acme/by-", i))
	}
	for _, p := range all {
		for i := range all {
			p.read(fmt.Sprint("acme/by-", i))
		}
	}
}
