package sqlite

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

// tryLock locks one byte far behind the text of the file; false when somebody else has it.
func tryLock(file *os.File) (bool, error) {
	const failImmediately, exclusive = 1, 2
	const violation = syscall.Errno(33)
	at := syscall.Overlapped{Offset: 1 << 20}
	ok, _, err := lockFileEx.Call(file.Fd(), failImmediately|exclusive, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	if ok != 0 {
		return true, nil
	}
	if errors.Is(err, violation) {
		return false, nil
	}
	return false, err
}
