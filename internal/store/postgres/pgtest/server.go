package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a running server. It is not safe for concurrent use but for [Server.Database] and [Server.URL].
type Server struct {
	folder string // holds data and socket
	port   int
	extra  []string
	bin    string
	as     *syscall.Credential // nil: this process's own user

	cmd   *exec.Cmd
	ended chan struct{}
	log   *lockedBuffer

	mu   sync.Mutex
	made int
}

// startBound is how long a server may take to answer.
const startBound = 60 * time.Second

var errStart = errors.New("pgtest: the server did not answer within a minute")

// Start makes a new cluster and starts its server. settings are further command-line settings such as
// "max_connections=20". Stop it with [Server.Close].
func Start(settings ...string) (*Server, error) {
	s := &Server{extra: settings, log: &lockedBuffer{}}
	var err error
	if s.bin, err = binaries(); err != nil {
		return nil, err
	}
	if s.as, err = unprivileged(); err != nil {
		return nil, err
	}
	if s.folder, err = os.MkdirTemp("", "hubmesh-pg-"); err != nil {
		return nil, err
	}
	if s.as != nil {
		if err := os.Chown(s.folder, int(s.as.Uid), int(s.as.Gid)); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	initdb := s.command("initdb", "-D", s.data(), "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w\n%s", err, out), s.Close())
	}
	return s, s.started()
}

func (s *Server) started() error {
	if s.port == 0 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return errors.Join(err, s.Close())
		}
		s.port = l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
	}
	if err := s.Run(); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// Standby makes a standby of the server, which follows it.
func (s *Server) Standby() (*Server, error) {
	folder, err := os.MkdirTemp("", "hubmesh-pg-")
	if err != nil {
		return nil, err
	}
	b := &Server{folder: folder, extra: s.extra, bin: s.bin, as: s.as, log: &lockedBuffer{}}
	if b.as != nil {
		if err := os.Chown(folder, int(b.as.Uid), int(b.as.Gid)); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	backup := b.command("pg_basebackup", "-D", b.data(), "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-U", "postgres", "-R", "-X", "stream", "-c", "fast")
	if out, err := backup.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("pg_basebackup: %w\n%s", err, out), b.Close())
	}
	return b, b.started()
}

// Promote makes a standby the primary, and waits until it is.
func (s *Server) Promote(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "select pg_promote(true, 60)")
	return err
}

// CaughtUp tells whether a standby has replayed all that its primary has written.
func (s *Server) CaughtUp(ctx context.Context, primary *Server) (bool, error) {
	var at, replayed string
	for _, ask := range []struct {
		of   *Server
		text string
		into *string
	}{{primary, "select pg_current_wal_lsn()::text", &at}, {s, "select coalesce(pg_last_wal_replay_lsn(), '0/0')::text", &replayed}} {
		conn, err := pgx.Connect(ctx, ask.of.url("postgres"))
		if err != nil {
			return false, err
		}
		err = conn.QueryRow(ctx, ask.text).Scan(ask.into)
		if err = errors.Join(err, conn.Close(ctx)); err != nil {
			return false, err
		}
	}
	return at == replayed, nil
}

// binaries finds the folder of the newest installed server.
func binaries() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // the pattern is well formed
	if len(found) > 0 {
		slices.SortFunc(found, func(a, b string) int { return version(a) - version(b) })
		return filepath.Dir(found[len(found)-1]), nil
	}
	path, err := exec.LookPath("postgres")
	if err != nil {
		return "", errors.New("no PostgreSQL server is installed: apt-get install postgresql")
	}
	return filepath.Dir(path), nil
}

func version(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

func unprivileged() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("a server does not run as root, and there is no user postgres: %w", err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func (s *Server) data() string { return filepath.Join(s.folder, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.folder
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PGTZ=UTC")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Setpgid: true}
	return cmd
}

// Run starts the server, again after [Server.Kill] or [Server.Stop], and waits until it answers.
func (s *Server) Run() error {
	args := []string{"-D", s.data(), "-p", strconv.Itoa(s.port), "-k", s.folder, "-c", "listen_addresses=127.0.0.1", "-c", "log_min_messages=warning"}
	for _, setting := range s.extra {
		args = append(args, "-c", setting)
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), startBound, errStart)
	defer cancel()
	for {
		from := len(s.log.String())
		ended, err := s.begin(ctx, args)
		if !ended || !passing(s.log.String()[from:]) || ctx.Err() != nil {
			return err
		}
		<-time.After(20 * time.Millisecond)
	}
}

// passing tells whether a server that ended at its start may succeed in a moment: the kernel still takes down the
// backends of the one that was killed, or its port is the near end of somebody's connection just now.
func passing(said string) bool {
	return strings.Contains(said, "is still in use") || strings.Contains(said, "Address already in use")
}

// begin starts the server and waits until it answers, or has ended.
func (s *Server) begin(ctx context.Context, args []string) (over bool, err error) {
	s.cmd = s.command("postgres", args...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		return false, err
	}
	ended := make(chan struct{})
	cmd := s.cmd
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	s.ended = ended
	for {
		conn, err := pgx.Connect(ctx, s.url("postgres"))
		if err == nil {
			return false, conn.Close(ctx)
		}
		select {
		case <-ended:
			return true, fmt.Errorf("the server ended at its start:\n%s", s.log)
		case <-ctx.Done():
			return false, fmt.Errorf("the server does not answer: %w\n%s", err, s.log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Kill ends the server and its backends with SIGKILL, as a crash does.
func (s *Server) Kill() {
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	<-s.ended
}

// Stop ends the server in order; open connections are closed.
func (s *Server) Stop() {
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	<-s.ended
}

// Close ends the server and removes its folder.
func (s *Server) Close() error {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(syscall.SIGQUIT)
		<-s.ended
	}
	return os.RemoveAll(s.folder)
}

// Port is where the server listens on 127.0.0.1.
func (s *Server) Port() int { return s.port }

func (s *Server) url(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// Database makes an empty database and returns its URL.
func (s *Server) Database(ctx context.Context) (url string, err error) {
	s.mu.Lock()
	s.made++
	name := fmt.Sprint("test", s.made)
	s.mu.Unlock()
	if err := s.Exec(ctx, "create database "+name); err != nil {
		return "", err
	}
	return s.url(name), nil
}

// Copy makes a database with the contents of another one, to which nobody is connected.
func (s *Server) Copy(ctx context.Context, from string) (url string, err error) {
	config, err := pgx.ParseConfig(from)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	s.made++
	name := fmt.Sprint("test", s.made)
	s.mu.Unlock()
	if err := s.Exec(ctx, fmt.Sprintf("create database %s template %s", name, config.Database)); err != nil {
		return "", err
	}
	return s.url(name), nil
}

// Restore makes a database of the same name as one of another server, from a dump of that.
func (s *Server) Restore(ctx context.Context, from *Server, url string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	dump := from.command("pg_dump", "-h", "127.0.0.1", "-p", strconv.Itoa(from.port), "-U", "postgres", config.Database)
	text, err := dump.Output()
	if err != nil {
		return fmt.Errorf("pg_dump: %w", err)
	}
	if err := s.Exec(ctx, "create database "+config.Database); err != nil {
		return err
	}
	restore := s.command("psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-U", "postgres", config.Database)
	restore.Stdin = bytes.NewReader(text)
	if out, err := restore.CombinedOutput(); err != nil {
		return fmt.Errorf("psql: %w\n%s", err, out)
	}
	return nil
}

// Dump is a backup of one database.
func (s *Server) Dump(url string) ([]byte, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	dump := s.command("pg_dump", "-Fc", "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-U", "postgres", config.Database)
	text, err := dump.Output()
	if err != nil {
		return nil, fmt.Errorf("pg_dump: %w", err)
	}
	return text, nil
}

// Load puts a backup in the place of what is in a database, in one transaction.
func (s *Server) Load(url string, dump []byte) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	restore := s.command("pg_restore", "-1", "-c", "--if-exists", "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-U", "postgres", "-d", config.Database)
	restore.Stdin = bytes.NewReader(dump)
	if out, err := restore.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_restore: %w\n%s", err, out)
	}
	return nil
}

// Exec runs a statement as the superuser, in the database postgres.
func (s *Server) Exec(ctx context.Context, text string, args ...any) error {
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, text, args...)
	return err
}

// Admit has the server let in whom the lines of a pg_hba.conf say, beside the user postgres.
func (s *Server) Admit(ctx context.Context, lines ...string) error {
	text := "local all all trust\nhost all postgres 127.0.0.1/32 trust\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(s.data(), "pg_hba.conf"), []byte(text), 0o600); err != nil {
		return err
	}
	return s.Exec(ctx, "select pg_reload_conf()")
}

// Log is what the server has written.
func (s *Server) Log() string { return s.log.String() }

// lockedBuffer is a buffer that two goroutines may use.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
