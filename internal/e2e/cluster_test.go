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
	for i, p := range all {
		p.create(fmt.Sprint("acme/by-", i))
	}
	for _, p := range all {
		for i := range all {
			p.read(fmt.Sprint("acme/by-", i))
		}
	}
}
