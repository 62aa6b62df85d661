package content

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

// tryLock locks the first byte of a file; false when somebody else has it. A process that ends leaves it.
func tryLock(file *os.File) (bool, error) {
	const failImmediately, exclusive = 1, 2
	const violation = syscall.Errno(33)
	ok, _, err := lockFileEx.Call(file.Fd(), failImmediately|exclusive, 0, 1, 0, uintptr(unsafe.Pointer(&syscall.Overlapped{})))
	if ok != 0 {
		return true, nil
	}
	if errors.Is(err, violation) {
		return false, nil
	}
	return false, err
}

func unlock(file *os.File) {
	_, _, _ = unlockFileEx.Call(file.Fd(), 0, 1, 0, uintptr(unsafe.Pointer(&syscall.Overlapped{})))
}
