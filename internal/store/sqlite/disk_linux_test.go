package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

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
