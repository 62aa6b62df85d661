package transport

import (
	"net"
	"syscall"
)

// direct writes a frame at once on the goroutine of whoever has it, where nobody else uses the connection:
// that saves waking the writer. It never waits. It belongs to whoever holds the lock of the connection,
// while the writer writes nothing.
type direct struct {
	raw  syscall.RawConn
	try  func(fd uintptr) bool
	buf  []byte
	sent int
	rest []byte // what did not fit into the kernel's buffer: the writer goes on with it
}

// newDirect returns nil where a connection can not be written to directly, such as one with TLS.
func newDirect(conn net.Conn) *direct {
	c, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	d := &direct{raw: raw}
	d.try = func(fd uintptr) bool {
		d.sent = max(writeOnce(fd, d.buf), 0) // a failure is the writer's to find
		return true
	}
	return d
}

// write writes a small frame. What it could not write is in rest, for the writer.
func (d *direct) write(f *frame) {
	d.buf = append(f.appendHeader(d.buf[:0]), f.body...)
	d.sent = 0
	if err := d.raw.Write(d.try); err != nil || d.sent < len(d.buf) {
		d.rest = append(d.rest, d.buf[d.sent:]...)
	}
}

// idle tells whether a frame may be written; d may be nil.
func (d *direct) idle() bool { return d != nil && len(d.rest) == 0 }

// left tells whether the writer has to go on with what write has begun; d may be nil.
func (d *direct) left() bool { return d != nil && len(d.rest) > 0 }

// take hands what is left to the writer; d may be nil.
func (d *direct) take() (rest []byte) {
	if d != nil {
		rest, d.rest = d.rest, nil
	}
	return rest
}

// crowd observes how many requests are without an answer at once.
type crowd struct {
	most   int // since there was none
	before int // the same, the time before
}

// now tells how many there are.
func (c *crowd) now(count int) {
	if count == 0 {
		c.before, c.most = c.most, 0
	}
	c.most = max(c.most, count)
}

// alone tells whether there was at most one at once, until now and the time before. Where many ask, the
// first after a pause is not alone: others are about to come, and are written with it.
func (c *crowd) alone() bool { return c.most <= 1 && c.before <= 1 }
