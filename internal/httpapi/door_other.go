//go:build !linux

package httpapi

import "net"

// shut has no means here.
func shut(*net.TCPListener) (waiting func() bool, ok bool) { return nil, false }
