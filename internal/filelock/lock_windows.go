package filelock

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

var (
	kernel       = syscall.NewLazyDLL("kernel32.dll")
	lockFileEx   = kernel.NewProc("LockFileEx")
	unlockFileEx = kernel.NewProc("UnlockFileEx")
)

// behind is where the one byte is that is locked: far behind the text of the file, which others may read.
const behind = 1 << 20

// Try takes the lock of a file; false when somebody else has it. It does not wait.
func Try(file *os.File) (bool, error) {
	const failImmediately, exclusive = 1, 2
	const violation = syscall.Errno(33)
	ok, _, err := lockFileEx.Call(file.Fd(), failImmediately|exclusive, 0, 1, 0, uintptr(unsafe.Pointer(&syscall.Overlapped{Offset: behind})))
	if ok != 0 {
		return true, nil
	}
	if errors.Is(err, violation) {
		return false, nil
	}
	return false, err
}

// Unlock gives the lock of a file back. It fails only for what is no open file.
func Unlock(file *os.File) {
	_, _, _ = unlockFileEx.Call(file.Fd(), 0, 1, 0, uintptr(unsafe.Pointer(&syscall.Overlapped{Offset: behind})))
}
