package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/sqlite"
)

// issue: a full disk. The real thing, where the tests may mount one.
func TestADiskThatRunsFullLosesNothingThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	dir := ownDisk(t, "4m")
	file := filepath.Join(dir, "mesh.db")
	s := open(t, sqlite.Options{File: file})
	provision(t, s, "acme")
	acknowledged := fillUp(t, s)
	checkAll(t, s, acknowledged)
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT, "size=32m"); err != nil {
		t.Fatal(err)
	}
	more := create("acme/more", 1)
	commit(t, s, more)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, sqlite.Options{File: file})
	checkAll(t, s, append(acknowledged, more))
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// issue: a full disk. What was kept for it lets nodes be deleted until there is room; while there is
// none the store is not ready and takes nothing else, and then everything goes on.
func TestOnAFullDiskNodesCanBeDeletedUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	dir := ownDisk(t, "8m")
	file := filepath.Join(dir, "mesh.db")
	s := open(t, sqlite.Options{File: file, Log: quiet()})
	provision(t, s, "acme")
	if err := s.Blobs().Put(t.Context(), "b", "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	acknowledged := fillUp(t, s)
	// What else the disk holds leaves nothing over: not a byte more than what was kept.
	filler := filepath.Join(dir, "fill")
	fillDisk(t, filler)
	kind(t, s.Ready(t.Context()), store.UnavailableFull)

	half := len(acknowledged) / 2
	for i, w := range acknowledged[:half] {
		results, err := s.Commit(t.Context(), []store.Write{{Op: store.OpDelete, Node: node.Node{Path: w.Node.Path, Version: 2}, Expected: 1}, create(fmt.Sprint("acme/beside", i), 1)})
		if err != nil || results[0].Err != nil {
			t.Fatalf("delete %d of %d: %v %+v", i, half, err, results)
		}
		if results[1].Err != nil {
			kind(t, results[1].Err, store.UnavailableFull)
		} else {
			acknowledged = append(acknowledged, create(fmt.Sprint("acme/beside", i), 1))
		}
	}
	if err := s.Blobs().Delete(t.Context(), "b", "k"); err != nil {
		t.Error(err)
	}
	if err := s.MarkPartition(t.Context(), "acme", false); err != nil {
		t.Error(err)
	}
	checkAll(t, s, acknowledged[half:])

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT, "size=32m"); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("with room again: %v", err)
	}
	more := create("acme/more", 1)
	commit(t, s, more)
	checkAll(t, s, append(acknowledged[half:], more))
	if info, err := os.Stat(file + ".reserve"); err != nil || info.Size() < 256<<10 {
		t.Errorf("nothing is kept for the next time: %v %v", info, err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// fillDisk writes a file that takes all that is left.
func fillDisk(t *testing.T, name string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 64 << 10; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// ownDisk mounts a small disk that goes away after the stores on it are closed.
func ownDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no disk of its own: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestAFullDiskAtTheStartIsNamedAsSuch(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	dir := ownDisk(t, fmt.Sprint(size))
	fill, data := filepath.Join(dir, "fill"), filepath.Join(dir, "data")
	refused := 0
	for _, left := range []int{0, 4, 12, 32, 64, 300} { // KiB
		write(t, fill, make([]byte, size-8192-left<<10))
		s, err := sqlite.Open(t.Context(), sqlite.Options{File: filepath.Join(data, "mesh.db"), Log: quiet()})
		if err == nil {
			err = s.Close()
		} else {
			kind(t, err, store.UnavailableFull)
			refused++
			err = nil
		}
		if err != nil {
			t.Error(err)
		}
		if err := errors.Join(os.RemoveAll(data), os.Remove(fill)); err != nil {
			t.Fatal(err)
		}
	}
	if refused < 4 {
		t.Errorf("%d of the disks were full", refused)
	}
}
