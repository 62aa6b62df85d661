package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/client"
)

// programEnv makes this test binary run as the program itself, so that a test has a real process to kill.
const programEnv = "HUBMESH_TEST_PROGRAM"

// process is a running "hubmesh serve".
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	dir   string
	url   string
	token string
	login string
	err   *logbook
	done  chan error
}

// logbook collects what a process says, while a test reads it.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// start runs "hubmesh serve" on dir and waits until it listens. Without a line that says so it returns
// what the process ended with.
func start(t *testing.T, dir string, env []string, args ...string) (*process, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, dir: dir, err: &logbook{}, done: make(chan error, 1)}
	p.cmd = exec.Command(self, append([]string{"serve", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--admin-token-file", filepath.Join(dir, "token")}, args...)...)
	p.cmd.Env = append(append(os.Environ(), programEnv+"=1"), env...)
	p.cmd.Stderr = p.err
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if url, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
				p.url = url
			}
			if _, link, ok := strings.Cut(lines.Text(), "minutes): "); ok {
				p.login = link
				close(listening)
			}
		}
		p.done <- p.cmd.Wait()
	}()
	t.Cleanup(p.kill)
	select {
	case <-listening:
	case err := <-p.done:
		p.done <- err
		return p, fmt.Errorf("serve ended: %w: %s", err, p.err)
	}
	token, err := os.ReadFile(filepath.Join(dir, "token"))
	if err != nil {
		t.Fatal(err)
	}
	p.token = strings.TrimSpace(string(token))
	return p, nil
}

func mustStart(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	p, err := start(t, dir, env, args...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// kill ends the process as SIGKILL does, and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	err := <-p.done
	p.done <- err
}

// stop ends the process as an operator does and returns how it ended.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err := <-p.done
	p.done <- err
	return err
}

func (p *process) client(token string) *client.Client {
	p.t.Helper()
	c, err := client.New(client.Options{Server: p.url, Token: token})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// do sends a request as the bearer of token ("" is nobody) and returns status, body and header.
func (p *process) do(method, path, token, body string) (int, string, http.Header) {
	p.t.Helper()
	req, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatalf("%s %s: %v\n%s", method, path, err, p.err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}

// importInto runs the verb "import" against the process and wants exit 0.
func (p *process) importInto(into, src, content string) string {
	p.t.Helper()
	args := []string{"import", src, "--server", p.url, "--token-file", filepath.Join(p.dir, "token")}
	if into != "" {
		args = append(args, "--into", into)
	}
	if content != "" {
		args = append(args, "--content", content)
	}
	var out, errs bytes.Buffer
	if code := run(context.Background(), args, std{strings.NewReader(""), &out, &errs}); code != 0 {
		p.t.Fatalf("import: exit %d: %s", code, errs.String())
	}
	return out.String()
}

// data §2.4
// bad input: a process killed during writes
func TestKillingTheProcessDuringWritesLosesNothingAcknowledged(t *testing.T) {
	dir := t.TempDir()
	p := mustStart(t, dir, nil)
	ctx := t.Context()
	if _, err := p.client(p.token).Create(ctx, client.Node{Path: "w", NodeType: "Space"}); err != nil {
		t.Fatal(err)
	}
	const writers = 8
	for round := range 3 {
		var mu sync.Mutex
		acked := map[string]int64{}
		total := 0
		enough := make(chan struct{})
		var wg sync.WaitGroup
		c := p.client(p.token)
		for w := range writers {
			path := fmt.Sprintf("w/r%d-n%d", round, w)
			wg.Go(func() {
				n, err := c.Create(ctx, client.Node{Path: path, Content: json.RawMessage(`{}`)})
				for i := 0; err == nil; i++ {
					mu.Lock()
					acked[path] = n.Version
					if total++; total == 400 {
						close(enough)
					}
					mu.Unlock()
					n, err = c.Patch(ctx, path, fmt.Appendf(nil, `{"content":{"n":%d}}`, i), client.If{})
				}
			})
		}
		<-enough
		p.kill() // in the middle of writes
		wg.Wait()
		p = mustStart(t, dir, nil)
		c = p.client(p.token)
		for path, version := range acked {
			n, err := c.Get(ctx, path)
			if err != nil || n.Version < version {
				t.Fatalf("round %d: %s: acknowledged %d, found %d, %v", round, path, version, n.Version, err)
			}
			want := n.Version
			for before := int64(0); want > 0; {
				list, err := c.Versions(ctx, path, before, 1000)
				if err != nil || len(list) == 0 {
					t.Fatalf("%s: history ends at %d: %v", path, want, err)
				}
				for _, v := range list {
					if v.Version != want {
						t.Fatalf("%s: %d where %d belongs", path, v.Version, want)
					}
					want--
					before = v.Version
				}
			}
		}
	}
	if err := p.stop(); err != nil {
		t.Fatalf("a stop by an operator: %v\n%s", err, p.err)
	}
}

// C-1
// C-2
// fault 43
func TestADelayedStartIsTold503WithStillStartingAndTheNextReadIs200(t *testing.T) {
	if testing.Short() {
		t.Skip("takes the read budget")
	}
	p := mustStart(t, t.TempDir(), []string{testingEnv + "=1"}, "--fault", "start:w/slow=12s")
	c := p.client(p.token)
	for _, n := range []client.Node{{Path: "w", NodeType: "Space"}, {Path: "w/slow", Content: json.RawMessage(`{}`)}} {
		if _, err := c.Create(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	status, body, header := p.do("GET", "/api/content/w/slow/x.txt", p.token, "")
	took := time.Since(began)
	if status != 503 || took > 10*time.Second || header.Get("Retry-After") == "" {
		t.Fatalf("%d after %v: %s", status, took, body)
	}
	for _, want := range []string{"STILL STARTING: gate 'Initialize' closed for", `"reported_by":"owner"`, `"code":"lapsed"`, "Reading content collection config from 'w/slow' gave up after"} {
		if !strings.Contains(body, want) {
			t.Errorf("the answer lacks %s: %s", want, body)
		}
	}
	if status, body, _ := p.do("GET", "/api/lapses", p.token, ""); status != 200 || !strings.Contains(body, "STILL STARTING") {
		t.Fatalf("lapses: %d %s", status, body)
	}
	// The next read waits for the rest of the delay, inside its own budget.
	if status, body, _ := p.do("GET", "/api/nodes/w/slow", p.token, ""); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if n := strings.Count(p.err.String(), "Content read timed out for w/slow/x.txt"); n != 1 {
		t.Fatalf("%d log lines", n)
	}
}

// edge §4
func TestTheSampleTreesAreImportedShownAndServedToWhoMayReadThem(t *testing.T) {
	data := sampleData(t)
	p := mustStart(t, t.TempDir(), nil)
	p.importInto("Doc", filepath.Join(data, "docs"), "")
	p.importInto("", filepath.Join(data, "samples", "Data"), filepath.Join(data, "samples", "content"))
	shown := 0
	for _, tree := range []struct{ dir, into string }{{"docs", "Doc/"}, {"samples/Data", ""}} {
		root := filepath.Join(data, tree.dir)
		err := filepath.WalkDir(root, func(file string, d os.DirEntry, err error) error {
			ext := filepath.Ext(file)
			if err != nil || d.IsDir() || (ext != ".json" && ext != ".md") {
				return err
			}
			rel, _ := filepath.Rel(root, file)
			path := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(rel, ext), "index"), "/")
			url := (&urlPath{tree.into + path}).String()
			if status, body, _ := p.do("GET", "/api/nodes/"+url, p.token, ""); status != 200 {
				t.Errorf("%s: %d %s", rel, status, body)
			}
			if status, body, _ := p.do("GET", "/api/render/"+url, p.token, ""); status != 200 || (ext == ".md" && !strings.Contains(body, "<")) {
				t.Errorf("%s is not rendered: %d %.100s", rel, status, body)
			}
			shown++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if shown < 300 {
		t.Fatalf("%d files", shown)
	}
	may, err := p.client(p.token).CreateToken(t.Context(), "Alice", "test")
	if err != nil {
		t.Fatal(err)
	}
	not, err := p.client(p.token).CreateToken(t.Context(), "Mallory", "test")
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(data, "samples", "content", "Northwind")
	served := 0
	err = filepath.WalkDir(root, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(root, file)
		url := "/api/content/Northwind/" + (&urlPath{filepath.ToSlash(rel)}).String()
		want, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if status, body, h := p.do("GET", url, may.Token, ""); status != 200 || body != string(want) || h.Get("Cache-Control") != "private, no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d, %d bytes, %v", rel, status, len(body), h)
		}
		tokens := []string{not.Token, ""}
		if served == 0 {
			tokens = append(tokens, "hm_nonsense") // once: bad tokens are rate limited
		}
		for _, token := range tokens {
			if status, _, _ := p.do("GET", url, token, ""); status != 404 {
				t.Errorf("%s to %q: %d", rel, token, status)
			}
		}
		served++
		return nil
	})
	if err != nil || served < 100 {
		t.Fatal(served, err)
	}
	// Public is every authenticated subject in ACME's assignments, and no visitor.
	if status, _, _ := p.do("GET", "/api/nodes/ACME", not.Token, ""); status != 200 {
		t.Errorf("Public does not cover an authenticated subject: %d", status)
	}
	if status, _, _ := p.do("GET", "/api/nodes/ACME", "", ""); status != 404 {
		t.Errorf("Public covers a visitor: %d", status)
	}
}

// urlPath escapes the segments of a path.
type urlPath struct{ path string }

func (u *urlPath) String() string {
	var out []string
	for seg := range strings.SplitSeq(u.path, "/") {
		var b strings.Builder
		for i := range len(seg) {
			if c := seg[i]; 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		}
		out = append(out, b.String())
	}
	return strings.Join(out, "/")
}

// sampleData is the folder of sample trees, where the machine has one.
func sampleData(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("HUBMESH_SAMPLE_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	if _, err := os.Stat(filepath.Join(dir, "samples", "Data")); errors.Is(err, os.ErrNotExist) {
		t.Skip("no sample data here; HUBMESH_SAMPLE_DATA names its folder")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// fault 41
func TestBadInputIsRefusedWithTheRightStatusAndTheServerGoesOn(t *testing.T) {
	p := mustStart(t, t.TempDir(), nil)
	if _, err := p.client(p.token).Create(t.Context(), client.Node{Path: "w", NodeType: "Space"}); err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		code                     string
	}{
		{"dot dot", "GET", "/api/nodes/w/%2e%2e/x", "", 400, "invalid_path"},
		{"encoded slash", "GET", "/api/nodes/w%2fx", "", 400, "invalid_path"},
		{"double encoded dots", "GET", "/api/nodes/w/%252e%252e/x", "", 400, "invalid_path"},
		{"NUL", "GET", "/api/nodes/w/a%00b", "", 400, "invalid_path"},
		{"backslash", "GET", "/api/nodes/w/a%5cb", "", 400, "invalid_path"},
		{"invalid UTF-8", "GET", "/api/nodes/w/%ff", "", 400, "invalid_path"},
		{"long path", "GET", "/api/nodes/w/" + strings.Repeat("x", 30_000), "", 400, "invalid_path"},
		{"deep JSON", "POST", "/api/nodes/w/a", `{"content":` + deep + `}`, 400, "invalid_json"},
		{"broken JSON", "POST", "/api/nodes/w/a", `{"content":`, 400, "invalid_json"},
		{"large node", "POST", "/api/nodes/w/a", `{"content":"` + strings.Repeat("x", 2<<20) + `"}`, 413, "too_large"},
		{"large body", "POST", "/api/nodes/w/a", `{"content":"` + strings.Repeat("x", 9<<20) + `"}`, 413, "too_large"},
		{"missing partition", "POST", "/api/nodes/nowhere/a", `{"content":{}}`, 409, "partition_missing"},
		{"content traversal", "GET", "/api/content/w/%2e%2e/%2e%2e/etc/passwd", "", 404, "not_found"},
		{"no method", "DELETE", "/api/content/w/x", "", 405, "method_not_allowed"},
		{"bad query", "GET", "/api/query?q=%28", "", 400, "invalid_query"},
	} {
		status, body, _ := p.do(c.method, c.path, p.token, c.body)
		if status != c.status || !strings.Contains(body, `"code":"`+c.code+`"`) {
			t.Errorf("%s: %d %.200s, want %d %s", c.name, status, body, c.status, c.code)
		}
	}
	// 100 MiB without a declared length: refused while it is read.
	pr, pw := io.Pipe()
	go func() {
		chunk := bytes.Repeat([]byte("x"), 1<<20)
		_, err := pw.Write([]byte(`{"content":"`))
		for i := 0; i < 100 && err == nil; i++ {
			_, err = pw.Write(chunk)
		}
		pw.Close()
	}()
	req, err := http.NewRequest("POST", p.url+"/api/nodes/w/big", pr)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		if resp.StatusCode != 413 {
			t.Errorf("100 MiB: %d", resp.StatusCode)
		}
	}
	pr.Close()
	// A request line of 1 MiB.
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go fmt.Fprintf(conn, "GET /api/nodes/%s HTTP/1.1\r\nHost: x\r\n\r\n", strings.Repeat("x", 1<<20))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.Contains(line, "431") && !strings.Contains(line, "414") && !strings.Contains(line, "400") {
		t.Errorf("1 MiB path: %s", line)
	}
	if status, body, _ := p.do("GET", "/api/nodes/w", p.token, ""); status != 200 {
		t.Fatalf("the server does not go on: %d %s", status, body)
	}
}

func TestTheFirstStartWritesTheTokenOnceAndTheLoginLinkWorksOnce(t *testing.T) {
	dir := t.TempDir()
	p := mustStart(t, dir, nil)
	info, err := os.Stat(filepath.Join(dir, "token"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}
	if status, body, _ := p.do("GET", "/api/whoami", p.token, ""); status != 200 || !strings.Contains(body, `"admin":true`) {
		t.Fatalf("%d %s", status, body)
	}
	noFollow := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for i, want := range []int{303, 401} {
		resp, err := noFollow.Get(p.login)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if (i == 0 && resp.StatusCode/100 != 3) || (i == 1 && resp.StatusCode != want) {
			t.Fatalf("use %d: %d", i+1, resp.StatusCode)
		}
	}
	if err := p.stop(); err != nil {
		t.Fatal(err, p.err)
	}
	again := mustStart(t, dir, nil)
	if again.token != p.token {
		t.Fatal("the token changed")
	}
	if status, body, _ := again.do("GET", "/api/nodes/Guide", again.token, ""); status != 200 || !strings.Contains(body, `"version":1`) {
		t.Fatalf("the guide after a second start: %d %s", status, body)
	}
}
