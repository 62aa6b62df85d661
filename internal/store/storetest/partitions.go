package storetest

import (
	"errors"
	"slices"
	"testing"

	"github.com/hubmesh/hubmesh/internal/store"
)

func partition(t testing.TB, err error, reason string) {
	t.Helper()
	var p *store.PartitionError
	if !errors.As(err, &p) || p.Reason != reason {
		t.Errorf("got %v; want the reason %q", err, reason)
	}
}

// architecture.md decision 8, data invariants 44 and 45
func runPartitions(t *testing.T, open Factory) {
	list := func(b bench) (names []string) {
		all, err := b.Partitions(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		for _, p := range all {
			names = append(names, p.Name)
		}
		return names
	}
	t.Run("a write into a missing partition is refused and creates none", func(t *testing.T) {
		b := setup(t, open, Options{})
		for _, w := range []store.Write{create("missing", 1), create("missing/x", 1), update("missing/x", 1, 2), remove("missing/x", -1, 2)} {
			_, err := b.one(w)
			partition(t, err, store.ReasonMissing)
		}
		if got := list(b); !slices.Equal(got, []string{"acme", "other"}) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("provisioning is idempotent and keeps who did it first", func(t *testing.T) {
		b := setup(t, open, Options{})
		for range 2 {
			if err := b.EnsurePartition(t.Context(), "acme", "somebody"); err != nil {
				t.Fatal(err)
			}
		}
		all, err := b.Partitions(t.Context())
		if err != nil || len(all) != 2 || all[0].Name != "acme" || all[0].CreatedBy != "system" || all[0].CreatedAt.IsZero() || all[0].Deleting {
			t.Errorf("%+v, %v", all, err)
		}
	})
	t.Run("two names that differ in case only are refused", func(t *testing.T) {
		b := setup(t, open, Options{})
		partition(t, b.EnsurePartition(t.Context(), "ACME", ""), "differs in case only from 'acme'")
		_, err := b.one(create("Acme/x", 1))
		partition(t, err, "differs in case only from 'acme'")
	})
	t.Run("a name that no path can begin with is refused", func(t *testing.T) {
		b := setup(t, open, Options{})
		for _, name := range []string{"", "_Thread", "a/b", "ä", "a b", ".."} {
			partition(t, b.EnsurePartition(t.Context(), name, ""), store.ReasonInvalid)
		}
	})
	t.Run("the root assignments need no partition", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("_Access/admin")
		if err := b.EnsurePartition(t.Context(), "_Access", ""); err != nil {
			t.Error(err)
		}
		if got := list(b); !slices.Equal(got, []string{"acme", "other"}) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("a partition with a node in it is not removed", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x/_Access/Emma")
		partition(t, b.RemovePartition(t.Context(), "acme"), store.ReasonNotEmpty)
		b.create("other")
		partition(t, b.RemovePartition(t.Context(), "other"), store.ReasonNotEmpty)
		partition(t, b.RemovePartition(t.Context(), "missing"), store.ReasonMissing)
		partition(t, b.RemovePartition(t.Context(), "ACME"), store.ReasonMissing)
		b.create("acme/y")
	})
	t.Run("a partition that is being deleted takes deletes only", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x", "acme/y")
		partition(t, b.MarkPartition(t.Context(), "missing", true), store.ReasonMissing)
		if err := b.MarkPartition(t.Context(), "acme", true); err != nil {
			t.Fatal(err)
		}
		all, err := b.Partitions(t.Context())
		if err != nil || !all[0].Deleting || all[1].Deleting {
			t.Errorf("%+v, %v", all, err)
		}
		for _, w := range []store.Write{create("acme/z", 1), update("acme/x", 1, 2)} {
			_, err := b.one(w)
			partition(t, err, store.ReasonDeleting)
		}
		partition(t, b.EnsurePartition(t.Context(), "acme", ""), store.ReasonDeleting)
		b.commit(remove("acme/x", 1, 2))
		if err := b.MarkPartition(t.Context(), "acme", false); err != nil {
			t.Fatal(err)
		}
		b.create("acme/z")
	})
	t.Run("a removed partition refuses writes, forgets its history, and comes back with its counts", func(t *testing.T) {
		b := setup(t, open, Options{})
		if err := b.EnsurePartition(t.Context(), "acme2", ""); err != nil {
			t.Fatal(err)
		}
		b.create("acme", "acme/x", "acme2/x")
		b.commit(update("acme2/x", 1, 2))
		b.commit(remove("acme/x", 1, 2), remove("acme", 1, 2))
		if err := b.RemovePartition(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		if got := list(b); !slices.Equal(got, []string{"acme2", "other"}) {
			t.Errorf("got %q", got)
		}
		_, err := b.one(create("acme/x", 3))
		partition(t, err, store.ReasonMissing)
		if infos := b.versions("acme/x", store.VersionPage{}); len(infos) != 0 {
			t.Errorf("history: %v", infos)
		}
		if infos := b.versions("acme2/x", store.VersionPage{}); len(infos) != 2 {
			t.Errorf("history of the neighbour: %v", infos)
		}
		if err := b.EnsurePartition(t.Context(), "ACME", "again"); err != nil {
			t.Fatal(err)
		}
		if err := b.RemovePartition(t.Context(), "ACME"); err != nil {
			t.Fatal(err)
		}
		if err := b.EnsurePartition(t.Context(), "acme", "again"); err != nil {
			t.Fatal(err)
		}
		b.absent("acme/x", 2)
		_, err = b.one(create("acme/x", 2))
		conflict(t, err, 2)
		b.commit(create("acme/x", 3))
	})
}
