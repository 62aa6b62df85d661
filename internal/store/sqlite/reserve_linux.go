package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// allocate gives a file room on the disk without writing it.
func allocate(f *os.File, size int) error {
	for {
		err := syscall.Fallocate(int(f.Fd()), 0, 0, int64(size))
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOSYS):
			return writeZeros(f, size)
		default:
			return err
		}
	}
}
