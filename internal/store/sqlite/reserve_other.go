//go:build !linux

package sqlite

import "os"

// allocate gives a file room on the disk.
func allocate(f *os.File, size int) error { return writeZeros(f, size) }
