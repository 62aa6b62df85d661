package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// commands returns the first block of commands below a heading of a page, with ports that are free.
func commands(t *testing.T, page, heading string) (text string, ports map[string]string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", page))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), "\n"+heading+"\n")
	_, after, _ = strings.Cut(after, "```sh\n")
	text, _, ok := strings.Cut(after, "```")
	if !ok {
		t.Fatalf("%s has no commands below '%s'", page, heading)
	}
	ports = map[string]string{}
	text = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllStringFunc(text, func(addr string) string {
		if ports[addr] == "" {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ports[addr] = l.Addr().String()
			_ = l.Close()
		}
		return ports[addr]
	})
	return text, ports
}

// issue 5: three silos are documented and work as written
func TestTheDocumentedCommandsStartThreeSilos(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	text, ports := commands(t, "docs/operating.md", "## Three silos")
	if n := strings.Count(text, "\n"); n != 4 {
		t.Errorf("they are %d", n)
	}
	dir := t.TempDir()
	shell := exec.Command("bash", "-e", "-c", text+"\nwait")
	shell.Dir = dir
	shell.Env = append(os.Environ(), "URL="+w.url, "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
	var said logbook
	shell.Stdout, shell.Stderr = &said, &said
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL)
		_ = shell.Wait()
	})
	for _, at := range []string{"127.0.0.1:8081", "127.0.0.1:8082", "127.0.0.1:8083"} {
		if ports[at] == "" {
			t.Fatalf("no %s in:\n%s", at, text)
		}
		(&silo{t: t, name: at, url: "http://" + ports[at]}).ready()
	}
	token, err := os.ReadFile(filepath.Join(dir, "shared", "admin-token"))
	if err != nil {
		t.Fatal(err)
	}
	wait(t, "the status of three silos", func() error {
		ask := exec.Command(program, "cluster", "status", "--server", "http://"+ports["127.0.0.1:8083"])
		ask.Env = append(os.Environ(), "HUBMESH_TOKEN="+strings.TrimSpace(string(token)))
		var out bytes.Buffer
		ask.Stdout = &out
		if err := ask.Run(); err != nil {
			return err
		}
		var s status
		if err := json.Unmarshal(out.Bytes(), &s); err != nil {
			return err
		}
		if s.Answered != 3 {
			return fmt.Errorf("%d answered:\n%s", s.Answered, said.String())
		}
		return nil
	})
}
