package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/hubmesh/hubmesh"
)

// fill creates a space "bench" with n nodes of about the given bytes of content, 1,000 to a folder.
func fill(ctx context.Context, m *hubmesh.Mesh, n, bytes int) error {
	if _, err := m.Create(ctx, "bench", hubmesh.Space, map[string]any{}); err != nil {
		return err
	}
	c, err := hubmesh.JSON(map[string]any{"text": strings.Repeat("x", max(bytes-12, 1))})
	if err != nil {
		return err
	}
	const chunk = 1000
	for from := 0; from < n; from += chunk {
		nodes := make([]hubmesh.Node, 0, chunk)
		for i := from; i < min(from+chunk, n); i++ {
			nodes = append(nodes, hubmesh.Node{Path: hubmesh.Path(fmt.Sprintf("bench/d%d/n%d", i/1000, i)), NodeType: hubmesh.Markdown, Content: c})
		}
		errs, err := m.CreateMany(ctx, nodes)
		if err = errors.Join(append(errs, err)...); err != nil {
			return err
		}
	}
	return nil
}

// binary builds the product's binary, in the product's own module, and returns its path.
func binary(ctx context.Context, dir string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/hubmesh/hubmesh").Output()
	if err != nil {
		return "", fmt.Errorf("finding the product's module: %w", err)
	}
	out := filepath.Join(dir, "hubmesh")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", out, "./cmd/hubmesh")
	cmd.Dir = strings.TrimSpace(string(root))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return out, cmd.Run()
}

// workspace makes a temporary folder with the product's binary in it; clean removes it.
func workspace(ctx context.Context) (dir, bin string, clean func(), err error) {
	if dir, err = os.MkdirTemp("", "hubmesh-bench-"); err != nil {
		return "", "", nil, err
	}
	clean = func() { os.RemoveAll(dir) }
	if bin, err = binary(ctx, dir); err != nil {
		clean()
		return "", "", nil, err
	}
	return dir, bin, clean, nil
}

// server is a running "hubmesh serve".
type server struct {
	cmd   *exec.Cmd
	url   string
	token string
	took  time.Duration // from its start to the first 200
}

// serve starts the binary on an empty folder and waits for its first 200.
func serve(bin, dir string, args ...string) (*server, error) {
	file := filepath.Join(dir, "token")
	cmd := exec.Command(bin, append([]string{"serve", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--admin-token-file", file, "--log-level", "error"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd}
	if s.url = listening(out); s.url == "" {
		return nil, errors.New("serve did not start")
	}
	resp, err := http.Get(s.url + "/")
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	resp.Body.Close()
	s.took = time.Since(began)
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("first answer: %s", resp.Status), s.stop())
	}
	token, err := os.ReadFile(file)
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	s.token = strings.TrimSpace(string(token))
	return s, nil
}

// listening reads a server's address from its output, and reads on.
func listening(out io.Reader) (url string) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			url = at
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return url
}

// pocketbaseVersion is what pocketbase/go.mod pins: a version that this project's toolchain builds.
const pocketbaseVersion = "0.30.0"

// buildPocketbase builds the peer of the folder pocketbase.
func buildPocketbase(ctx context.Context, dir string) (bin string, err error) {
	bin = filepath.Join(dir, "pocketbase")
	build := exec.CommandContext(ctx, "go", "build", "-o", bin, ".")
	build.Dir = "pocketbase"
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("it did not build: %w: %s", err, text)
	}
	return bin, nil
}

// runPocketbase runs the peer on a folder; option "durable" makes it sync before it acknowledges.
func runPocketbase(bin, dir string, options ...string) (*server, error) {
	cmd := exec.Command(bin, append([]string{dir}, options...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd}
	if s.url = listening(out); s.url == "" {
		return nil, errors.Join(errors.New("it did not start"), s.stop())
	}
	return s, nil
}

// resident is the server's resident memory in bytes.
func (s *server) resident() float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	var size, resident float64
	fmt.Sscan(string(b), &size, &resident)
	return resident * float64(os.Getpagesize())
}

func (s *server) stop() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	return s.cmd.Wait()
}

// do sends one request as the Admin and wants a status below 300.
func (s *server) do(client *http.Client, method, path, body string) error {
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	var buf [4096]byte
	for {
		if _, err := resp.Body.Read(buf[:]); err != nil {
			break
		}
	}
	resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, strings.TrimSpace(string(buf[:200])))
	}
	return nil
}
