package httpapi

import (
	"net"

	"golang.org/x/sys/unix"
)

// noNewcomer lets everything pass but the first packet of a connection. The data of a TCP packet begins at its header.
var noNewcomer = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 13}, // the flags
	{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0x12},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0x02, Jf: 1}, // SYN, and no ACK
	{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0xffffffff},
}

// shut keeps new connections from a listener, as if it did not answer yet: who dials tries again by itself, and is
// refused once it is closed. waiting tells whether there are connections that nobody has accepted.
func shut(l *net.TCPListener) (waiting func() bool, ok bool) {
	raw, err := l.SyscallConn()
	if err != nil {
		return nil, false
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(noNewcomer)), Filter: &noNewcomer[0]})
	})
	if err != nil || set != nil {
		return nil, false
	}
	return func() (some bool) {
		err := raw.Control(func(fd uintptr) {
			info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			some = err == nil && info.Unacked > 0 // of a listener: the length of its queue
		})
		return err == nil && some
	}, true
}
