package sqlite

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hubmesh/hubmesh/internal/filelock"
	"github.com/hubmesh/hubmesh/internal/store"
)

// fileLock keeps other processes away from a database: SQLite itself would let two of them serve it,
// and each would take its own caches and version counts for the truth. The lock ends with the
// process, however that ends.
type fileLock struct{ file *os.File }

// lockFile takes the lock, or says who has it.
func lockFile(name string) (*fileLock, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	free, err := filelock.Try(file)
	if err == nil && !free {
		holder, _ := io.ReadAll(io.LimitReader(file, 100))
		err = &store.UnavailableError{
			Kind: store.UnavailableLocked, Op: "lock",
			Hint: "one process serves a database; end the other one, or name another data folder",
			Err:  fmt.Errorf("the database is in use by process %s", strings.TrimSpace(string(holder))),
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	// For people; the lock holds without it.
	_ = file.Truncate(0)
	_, _ = file.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	return &fileLock{file}, nil
}

// release gives the lock back. The file stays: removing it would let two processes lock two files.
func (l *fileLock) release() error { return l.file.Close() }
