package content

import (
	"os"
	"time"

	"github.com/hubmesh/hubmesh/internal/filelock"
)

// lockFile is what processes that share a root lock while they put a file in its place or take one away.
const lockFile = "~lock"

// A turn is a few renames. lockWait bounds the wait for those of other processes, of which one may be frozen.
const (
	lockWait  = 10 * time.Second
	lockPause = 20 * time.Millisecond // the longest between two tries: the lock tells nobody when it is free
)

// turns let one change of a file happen at a time, in all processes that share a root: what a condition was asked
// about is then still so. A deletion of nodes takes no turn, as commits wait for it: it takes files away, and an
// upload that it overtakes comes to nothing.
type turns struct {
	slot chan struct{} // of this process
	file *os.File      // nil where no other process uses the root
}

func newTurns(root *os.Root, shared bool) (t *turns, err error) {
	t = &turns{slot: make(chan struct{}, 1)}
	if shared {
		t.file, err = root.OpenFile(lockFile, os.O_CREATE|os.O_RDWR, 0o640)
	}
	return t, err
}

// BusyError says that a file could not be changed because another process is at it for too long.
type BusyError struct{}

func (*BusyError) Error() string {
	return "another process of this mesh has been changing files for 10s; nothing was changed"
}

// take runs f in a turn.
func (t *turns) take(f func() error) error {
	late := time.NewTimer(lockWait)
	defer late.Stop()
	select {
	case t.slot <- struct{}{}:
	case <-late.C:
		return &BusyError{}
	}
	defer func() { <-t.slot }()
	if t.file == nil {
		return f()
	}
	for pause := time.Millisecond; ; pause = min(2*pause, lockPause) {
		ok, err := filelock.Try(t.file)
		if err != nil {
			return err
		}
		if ok {
			break
		}
		select {
		case <-time.After(pause):
		case <-late.C:
			return &BusyError{}
		}
	}
	defer filelock.Unlock(t.file) // it fails only for what is no file; closing it unlocks, too
	return f()
}

func (t *turns) close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}
