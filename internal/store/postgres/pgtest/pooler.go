package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNoPooler says that no pooler is installed.
var ErrNoPooler = errors.New("pgtest: pgbouncer is not installed: apt-get install pgbouncer")

// Pooler is a PgBouncer before a server.
type Pooler struct {
	port  int
	from  string
	cmd   *exec.Cmd
	ended chan struct{}
}

// Pooler starts a PgBouncer in a mode: session, transaction or statement. Close it.
func (s *Server) Pooler(mode string) (*Pooler, error) {
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		if path = "/usr/sbin/pgbouncer"; !exists(path) {
			return nil, ErrNoPooler
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Pooler{port: l.Addr().(*net.TCPAddr).Port, from: fmt.Sprint("127.0.0.1:", s.port), ended: make(chan struct{})}
	_ = l.Close()
	file := filepath.Join(s.folder, fmt.Sprint("pooler-", p.port, ".ini"))
	text := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = %s
default_pool_size = 4
max_client_conn = 200
`, s.port, p.port, mode)
	// "any" needs a user that is known to the server.
	text = strings.Replace(text, "* = host=127.0.0.1", "* = user=postgres host=127.0.0.1", 1)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, err
	}
	p.cmd = exec.Command(path, file)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	p.cmd.Stdout, p.cmd.Stderr = s.log, s.log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	ctx, cancel := context.WithTimeoutCause(context.Background(), startBound, errStart)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, p.Through(s.url("postgres")))
		if err == nil {
			return p, conn.Close(ctx)
		}
		select {
		case <-p.ended:
			return nil, fmt.Errorf("the pooler ended at its start:\n%s", s.log)
		case <-ctx.Done():
			return nil, errors.Join(err, p.Close())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Through is a URL of the server by way of the pooler.
func (p *Pooler) Through(url string) string {
	return strings.Replace(url, p.from, fmt.Sprint("127.0.0.1:", p.port), 1)
}

// Close ends the pooler.
func (p *Pooler) Close() error {
	err := p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.ended
	return err
}
