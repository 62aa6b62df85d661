package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

func (b bench) versions(path string, page store.VersionPage) []store.VersionInfo {
	b.t.Helper()
	infos, err := b.Versions(b.t.Context(), node.Path(path), page)
	if err != nil {
		b.t.Fatal(err)
	}
	return infos
}

func info(kind store.ChangeKind, name string, version int64) store.VersionInfo {
	return store.VersionInfo{Version: version, Kind: kind, At: stamp(version), By: fmt.Sprint("writer", version), Name: name}
}

// data §1.3.7, architecture.md decision 8: history is kept in the same transaction
func runHistory(t *testing.T, open Factory) {
	t.Run("every version is listed newest first, across a deletion", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x", "acme/x/y", "acme/x2")
		b.commit(update("acme/x", 1, 2))
		b.commit(update("acme/x", 2, 5))
		b.commit(remove("acme/x", 5, 6))
		want := []store.VersionInfo{
			info(store.Deleted, "x v5", 6), info(store.Updated, "x v5", 5), info(store.Updated, "x v2", 2), info(store.Created, "x v1", 1),
		}
		if diff := cmp.Diff(want, b.versions("acme/x", store.VersionPage{})); diff != "" {
			t.Errorf("after the deletion (-want +got):\n%s", diff)
		}
		b.commit(create("acme/x", 7))
		want = append([]store.VersionInfo{info(store.Created, "x v7", 7)}, want...)
		if diff := cmp.Diff(want, b.versions("acme/x", store.VersionPage{})); diff != "" {
			t.Errorf("after the re-creation (-want +got):\n%s", diff)
		}
		if infos := b.versions("acme/never", store.VersionPage{}); len(infos) != 0 {
			t.Errorf("a path that never had a node: %v", infos)
		}
	})
	t.Run("a node is read as it was at a version", func(t *testing.T) {
		b := setup(t, open, Options{})
		first := full("acme/x")
		b.commit(store.Write{Op: store.OpCreate, Node: first})
		b.commit(update("acme/x", 41, 42))
		b.commit(remove("acme/x", 42, 43))
		b.commit(create("acme/x", 44))
		second := simple("acme/x", 42)
		second.CreatedAt, second.CreatedBy = first.CreatedAt, first.CreatedBy
		for _, want := range []node.Node{first, second, simple("acme/x", 44)} {
			got, err := b.At(t.Context(), "acme/x", want.Version)
			if err != nil {
				t.Fatal(err)
			}
			same(t, want, got)
		}
		for _, version := range []int64{43, 40, 45, 0, -1} {
			_, err := b.At(t.Context(), "acme/x", version)
			var missing *store.NotFoundError
			if !errors.As(err, &missing) || missing.Version != version {
				t.Errorf("version %d: %v", version, err)
			}
		}
	})
	t.Run("a listing of versions comes in pages", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x")
		for version := int64(2); version <= 250; version++ {
			b.commit(update("acme/x", version-1, version))
		}
		var all []int64
		for page := (store.VersionPage{Limit: 60}); ; page.Before = all[len(all)-1] {
			infos := b.versions("acme/x", page)
			for _, i := range infos {
				all = append(all, i.Version)
			}
			if len(infos) < 60 {
				break
			}
		}
		if len(all) != 250 || all[0] != 250 || all[249] != 1 {
			t.Errorf("%d versions: %v", len(all), all)
		}
		if n := len(b.versions("acme/x", store.VersionPage{})); n != 100 {
			t.Errorf("without a limit there are %d", n)
		}
	})
	t.Run("old versions are pruned and the newest kept", func(t *testing.T) {
		b := setup(t, open, Options{History: 32})
		b.create("acme/x")
		for version := int64(2); version <= 200; version++ {
			b.commit(update("acme/x", version-1, version))
		}
		b.commit(remove("acme/x", 200, 201))
		infos := b.versions("acme/x", store.VersionPage{Limit: 1000})
		if len(infos) < 32 || len(infos) > 34 {
			t.Errorf("%d versions are kept", len(infos))
		}
		for i, v := range infos {
			if v.Version != 201-int64(i) {
				t.Errorf("version %d stands at %d", v.Version, i)
			}
		}
		if _, err := b.At(t.Context(), "acme/x", 1); err == nil {
			t.Error("a pruned version is still read")
		}
		if n, err := b.At(t.Context(), "acme/x", 190); err != nil || n.Version != 190 {
			t.Errorf("a kept version: %v", err)
		}
	})
	t.Run("pruning counts versions, not their numbers", func(t *testing.T) {
		b := setup(t, open, Options{History: 16})
		b.commit(create("acme/x", 1))
		b.commit(update("acme/x", 1, 1000), create("acme/y", 1))
		b.commit(update("acme/x", 1000, 2000))
		if infos := b.versions("acme/x", store.VersionPage{}); len(infos) != 3 {
			t.Errorf("%v", infos)
		}
	})
	t.Run("a write that fails leaves no trace", func(t *testing.T) {
		b := setup(t, open, Options{})
		b.create("acme/x")
		for _, w := range []store.Write{update("acme/x", 9, 10), update("acme/x", 1, 1), remove("acme/x", 9, 10), create("acme/x", 5), remove("acme/never", -1, 5)} {
			if _, err := b.one(w); err == nil {
				t.Fatal("it was accepted")
			}
		}
		if infos := b.versions("acme/x", store.VersionPage{}); len(infos) != 1 {
			t.Errorf("%v", infos)
		}
		if infos := b.versions("acme/never", store.VersionPage{}); len(infos) != 0 {
			t.Errorf("%v", infos)
		}
	})
}
