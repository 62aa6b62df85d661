package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hubmesh/hubmesh/internal/store/postgres/pgtest"
)

// startWithin is how long the server may take to listen: it is built before.
const startWithin = 30 * time.Second

// againstServer runs a phase beside a fresh server in memory. The environment tells where it is:
// HUBMESH_URL, HUBMESH_TOKEN (an Admin's) and HUBMESH_LOGIN (a login link that works once).
func againstServer(run func(context.Context, *runner) error) func(context.Context, *runner) error {
	return func(ctx context.Context, r *runner) error {
		return inFolder(func(dir string) error {
			program, err := build(ctx, r, dir)
			if err != nil {
				return err
			}
			s, err := startServer(program, "serve", filepath.Join(dir, "a"), "--memory")
			if err != nil {
				return err
			}
			return errors.Join(run(ctx, s.beside(r, "")), s.stop())
		})
	}
}

// againstDemo runs a phase beside `hubmesh demo`: HUBMESH_DEMO_URL and HUBMESH_DEMO_LOGIN.
func againstDemo(run func(context.Context, *runner) error) func(context.Context, *runner) error {
	return func(ctx context.Context, r *runner) error {
		return inFolder(func(dir string) error {
			program, err := build(ctx, r, dir)
			if err != nil {
				return err
			}
			s, err := startServer(program, "demo", filepath.Join(dir, "a"), "--log-level", "error")
			if err != nil {
				return err
			}
			beside := &runner{installed: r.installed, env: append(append([]string{}, r.env...), "HUBMESH_DEMO_URL="+s.url, "HUBMESH_DEMO_LOGIN="+s.login)}
			return errors.Join(run(ctx, beside), s.stop())
		})
	}
}

// againstTwo runs a phase beside two servers on one PostgreSQL database. The variables of the second one end
// with _B.
func againstTwo(run func(context.Context, *runner) error) func(context.Context, *runner) error {
	return func(ctx context.Context, r *runner) error {
		return inFolder(func(dir string) (err error) {
			program, err := build(ctx, r, dir)
			if err != nil {
				return err
			}
			database, err := pgtest.Start()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, database.Close()) }()
			url, err := database.Database(ctx)
			if err != nil {
				return err
			}
			beside := r
			for _, name := range []string{"", "_B"} {
				s, err := startServer(program, "serve", filepath.Join(dir, "data"+name), "--postgres", url)
				if err != nil {
					return err
				}
				defer s.stop() //nolint:errcheck // what it served was looked at
				beside = s.beside(beside, name)
			}
			return run(ctx, beside)
		})
	}
}

func inFolder(run func(dir string) error) error {
	dir, err := os.MkdirTemp("", "hubmesh-verify-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder of the system's temporary ones
	return run(dir)
}

func build(ctx context.Context, r *runner, dir string) (program string, err error) {
	program = filepath.Join(dir, "hubmesh")
	return program, r.run(ctx, ".", "go", "build", "-o", program, "./cmd/hubmesh")
}

// server is a running one.
type server struct {
	url, login, token string
	command           *exec.Cmd
	lines             <-chan string
}

// startServer starts one by a verb, on a free port, and waits until it listens.
func startServer(program, verb, dir string, args ...string) (*server, error) {
	token := filepath.Join(dir, "token")
	s := &server{command: exec.Command(program, append([]string{verb, "--data", dir, "--listen", "127.0.0.1:0", "--admin-token-file", token, "--log-level", "warn"}, args...)...)}
	s.command.Stderr = os.Stderr
	out, err := s.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	lines := make(chan string)
	go func() { // ends with the server's output
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	s.lines = lines
	if s.url, s.login, err = greeting(lines); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	secret, err := os.ReadFile(token)
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	s.token = strings.TrimSpace(string(secret))
	return s, nil
}

// stop ends the server in order.
func (s *server) stop() error {
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	for range s.lines {
	}
	return s.command.Wait()
}

// beside is a runner whose programs know of the server.
func (s *server) beside(r *runner, suffix string) *runner {
	return &runner{installed: r.installed, env: append(append([]string{}, r.env...),
		"HUBMESH_URL"+suffix+"="+s.url, "HUBMESH_LOGIN"+suffix+"="+s.login, "HUBMESH_TOKEN"+suffix+"="+s.token)}
}

// greeting reads the server's first lines: where it listens, and the login link.
func greeting(lines <-chan string) (url, login string, err error) {
	late := time.NewTimer(startWithin)
	defer late.Stop()
	for url == "" || login == "" {
		select {
		case line, ok := <-lines:
			if !ok {
				return "", "", fmt.Errorf("the server ended before it listened: %w", io.ErrUnexpectedEOF)
			}
			if at, found := strings.CutPrefix(line, "listening on "); found {
				url = at
			}
			if i := strings.Index(line, "http"); i >= 0 && strings.Contains(line, "/login?code=") {
				login = line[i:]
			}
		case <-late.C:
			return "", "", fmt.Errorf("the server did not listen within %v", startWithin)
		}
	}
	return url, login, nil
}
