package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// links are the network between silos: each is dialled through a proxy of its own, which knows from the kernel
// which process has dialled. What is cut is held back and nothing is closed, as where packets are lost.
type links struct {
	t *testing.T

	mu   sync.Mutex
	at   map[string]*exchange // by silo
	pids map[string]int
	cuts map[[2]string]bool // from, to
	pass *sync.Cond
	over bool
	work sync.WaitGroup
}

// exchange is where one silo is dialled.
type exchange struct {
	listener net.Listener
	to       string // the address at which the silo listens
}

func newLinks(t *testing.T) *links {
	t.Helper()
	if _, err := os.Stat("/proc/net/tcp"); err != nil {
		t.Skip("this system does not tell which process has dialled")
	}
	l := &links{t: t, at: map[string]*exchange{}, pids: map[string]int{}, cuts: map[[2]string]bool{}}
	l.pass = sync.NewCond(&l.mu)
	t.Cleanup(l.close)
	return l
}

func (l *links) close() {
	l.mu.Lock()
	l.over = true
	for _, x := range l.at {
		x.listener.Close()
	}
	l.pass.Broadcast()
	l.mu.Unlock()
	l.work.Wait()
}

// flags are those with which a silo is started, so that it is dialled through here. One that comes back keeps its
// address.
func (l *links) flags(name string) []string {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.at[name]
	if x == nil {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			l.t.Fatal(err)
		}
		x = &exchange{listener: listener, to: reserve(l.t)}
		l.at[name] = x
		l.work.Go(func() { l.accept(name, x) })
	}
	return []string{"--cluster-listen", x.to, "--advertise", x.listener.Addr().String()}
}

// reserve returns an address at which nobody listens, and at which nobody will before whoever it is for: it is of a host of
// its own, where no connection of another process begins. Of 127.0.0.1 each port that is free may be the next one's.
func reserve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// runs notes the process that has a name.
func (l *links) runs(p *silo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pids[p.name] = p.cmd.Process.Pid
}

func (l *links) accept(to string, x *exchange) {
	for {
		c, err := x.listener.Accept()
		if err != nil {
			return
		}
		l.work.Go(func() { l.carry(c, to, x) })
	}
}

// carry carries one connection.
func (l *links) carry(dialled net.Conn, to string, x *exchange) {
	defer dialled.Close()
	from := l.dialler(dialled)
	served, err := net.Dial("tcp", x.to)
	if err != nil {
		return
	}
	defer served.Close()
	var both sync.WaitGroup
	both.Go(func() { l.copy(dialled, served, from, to) })
	both.Go(func() { l.copy(served, dialled, to, from) })
	both.Wait()
}

// copy carries one direction, and holds it back while it is cut.
func (l *links) copy(src, dst net.Conn, from, to string) {
	defer src.Close()
	defer dst.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		l.mu.Lock()
		for l.cuts[[2]string{from, to}] && !l.over {
			l.pass.Wait()
		}
		l.mu.Unlock()
		if n > 0 {
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut holds back what goes from one silo to another one; heal lets it go on.
func (l *links) cut(from, to string)  { l.set(from, to, true) }
func (l *links) heal(from, to string) { l.set(from, to, false) }

func (l *links) set(from, to string, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cuts[[2]string{from, to}] = cut
	l.pass.Broadcast()
}

// dialler finds the silo that has opened a connection; "" where it is none.
func (l *links) dialler(c net.Conn) string {
	inode := socketOf(c.RemoteAddr().(*net.TCPAddr).Port, c.LocalAddr().(*net.TCPAddr).Port)
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, pid := range l.pids {
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)) // none of a process that is gone
		for _, fd := range fds {
			if at, err := os.Readlink(fd); err == nil && at == "socket:["+inode+"]" {
				return name
			}
		}
	}
	return ""
}

// socketOf is the inode of the socket between two ports of this machine, at the end of the first.
func socketOf(local, remote int) string {
	text, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return ""
	}
	ends := func(field string) int {
		_, port, _ := strings.Cut(field, ":")
		n, err := strconv.ParseInt(port, 16, 32)
		if err != nil {
			return -1
		}
		return int(n)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 9 && ends(f[1]) == local && ends(f[2]) == remote {
			return f[9]
		}
	}
	return ""
}

// startLinked starts silos together whose network is here, and waits until they see each other.
func (w *town) startLinked(l *links, names ...string) []*silo {
	w.t.Helper()
	var all []*silo
	for _, name := range names {
		p := w.begin(name, l.flags(name)...)
		l.runs(p)
		all = append(all, p)
	}
	for _, p := range all {
		if err := p.up(); err != nil {
			w.t.Fatalf("%v:\n%s", err, p.log)
		}
	}
	for _, p := range all {
		p.ready()
		p.sees(names...)
	}
	return all
}
