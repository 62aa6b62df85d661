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
)

// startWithin is how long the server may take to listen: it is built before.
const startWithin = 30 * time.Second

// againstServer runs a phase beside a fresh server in memory. The environment tells where it is:
// HUBMESH_URL, HUBMESH_TOKEN (an Admin's) and HUBMESH_LOGIN (a login link that works once).
func againstServer(run func(context.Context, *runner) error) func(context.Context, *runner) error {
	return func(ctx context.Context, r *runner) error {
		dir, err := os.MkdirTemp("", "hubmesh-verify-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // a folder of the system's temporary ones
		program := filepath.Join(dir, "hubmesh")
		if err := r.run(ctx, ".", "go", "build", "-o", program, "./cmd/hubmesh"); err != nil {
			return err
		}
		token := filepath.Join(dir, "token")
		server := exec.Command(program, "serve", "--memory", "--data", dir, "--listen", "127.0.0.1:0", "--admin-token-file", token, "--log-level", "warn")
		server.Stderr = os.Stderr
		out, err := server.StdoutPipe()
		if err != nil {
			return err
		}
		if err := server.Start(); err != nil {
			return err
		}
		lines := make(chan string)
		go func() { // ends with the server's output
			defer close(lines)
			for s := bufio.NewScanner(out); s.Scan(); {
				lines <- s.Text()
			}
		}()
		stop := func() error {
			if err := server.Process.Signal(syscall.SIGTERM); err != nil {
				return err
			}
			for range lines {
			}
			return server.Wait()
		}
		url, login, err := greeting(lines)
		if err == nil {
			var secret []byte
			if secret, err = os.ReadFile(token); err == nil {
				beside := &runner{installed: r.installed, env: append(append([]string{}, r.env...), "HUBMESH_URL="+url, "HUBMESH_LOGIN="+login, "HUBMESH_TOKEN="+strings.TrimSpace(string(secret)))}
				err = run(ctx, beside)
			}
		}
		return errors.Join(err, stop())
	}
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
