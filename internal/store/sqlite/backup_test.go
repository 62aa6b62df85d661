package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/sqlite"
)

func TestABackupIsOneStateOfTheStoreWhileWritesGoOn(t *testing.T) {
	t.Parallel()
	s := open(t, sqlite.Options{})
	provision(t, s, "acme")
	commit(t, s, create("acme/x", 1), create("acme/y", 1))
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for version := int64(2); ; version++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := s.Commit(t.Context(), []store.Write{update("acme/x", version), update("acme/y", version)}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	dir := t.TempDir()
	for i := range 5 {
		file := filepath.Join(dir, fmt.Sprintf("copy %d ' \".db", i))
		if err := s.Backup(t.Context(), file); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		c := open(t, sqlite.Options{File: file})
		nodes, err := c.ReadMany(t.Context(), []node.Path{"acme/x", "acme/y"})
		if err != nil || len(nodes) != 2 || nodes[0].Version != nodes[1].Version {
			t.Errorf("%v, %v", nodes, err)
		}
		infos, err := c.Versions(t.Context(), "acme/x", store.VersionPage{Limit: 1000})
		if err != nil || int64(len(infos)) != nodes[0].Version && len(infos) < 1000 {
			t.Errorf("%d versions of %d, %v", len(infos), nodes[0].Version, err)
		}
		if err := c.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	writer.Wait()
}

func TestABackupReplacesNothingAndLeavesNothingWhenItFails(t *testing.T) {
	t.Parallel()
	s := open(t, sqlite.Options{})
	dir := t.TempDir()
	file := filepath.Join(dir, "copy.db")
	write(t, file, []byte("mine"))
	if err := s.Backup(t.Context(), file); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("got %v", err)
	}
	if err := s.Backup(t.Context(), filepath.Join(dir, "nowhere", "copy.db")); err == nil {
		t.Error("a folder that is not there is accepted")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}
