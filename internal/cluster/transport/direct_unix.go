//go:build unix

package transport

import "syscall"

// writeOnce writes what a socket takes without waiting, and returns how many bytes that was.
func writeOnce(fd uintptr, b []byte) int {
	n, _ := syscall.Write(int(fd), b)
	return n
}
