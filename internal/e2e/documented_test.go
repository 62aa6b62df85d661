package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// block returns the first block of commands below a heading of a page.
func block(t *testing.T, page, heading string) string {
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
	return text
}

// commands is block with ports that are free.
func commands(t *testing.T, page, heading string) (text string, ports map[string]string) {
	t.Helper()
	text = block(t, page, heading)
	ports = map[string]string{}
	text = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllStringFunc(text, func(addr string) string {
		if ports[addr] == "" {
			ports[addr] = reserve(t)
		}
		return ports[addr]
	})
	return text, ports
}

// shell begins commands in a folder that has the program, and calls ended with what they printed once they have ended
// by themselves.
func (w *town) shell(dir, text string, ended func(out string, err error)) (said *logbook) {
	w.t.Helper()
	if err := os.Symlink(program, filepath.Join(dir, "hubmesh")); err != nil {
		w.t.Fatal(err)
	}
	shell := exec.Command("bash", "-e", "-c", text)
	shell.Dir = dir
	shell.Env = append(os.Environ(), "URL="+w.url, "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
	said, out := &logbook{}, &logbook{}
	shell.Stdout, shell.Stderr = out, said
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.WaitDelay = time.Second // what it leaves running holds its output
	if err := shell.Start(); err != nil {
		w.t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		err := shell.Wait()
		if errors.Is(err, exec.ErrWaitDelay) {
			err = nil
		}
		if ended != nil {
			ended(out.String(), err)
		}
	}()
	w.t.Cleanup(func() {
		_ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL)
		<-over
	})
	return said
}

// hundreds returns the first digits of ports that are free with each of 1, 2 and 3 behind them.
func hundreds(t *testing.T) string {
	t.Helper()
	for range 100 {
		digits := fmt.Sprint(1100 + rand.IntN(2000)) // below what the system gives away by itself
		free := true
		for i := 1; i <= 3; i++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%s%d", digits, i))
			if free = free && err == nil; err == nil {
				_ = l.Close()
			}
		}
		if free {
			return digits
		}
	}
	t.Fatal("no ports are free")
	return ""
}

// issue 5: three silos are documented in five lines and work as written
func TestTheCommandsOfTheReadmeStartThreeSilosAndShowThem(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	text := strings.NewReplacer("127.0.0.1:808", "127.0.0.1:"+hundreds(t), "127.0.0.1:794", "127.0.0.1:"+hundreds(t)).Replace(block(t, "README.md", "## Three silos"))
	type end struct {
		out string
		err error
	}
	ends := make(chan end, 1)
	said := w.shell(t.TempDir(), text, func(out string, err error) { ends <- end{out, err} })
	select {
	case e := <-ends:
		flat := strings.Join(strings.Fields(e.out), "")
		_, why, _ := strings.Cut(flat, `"address":"Guide"`)
		if e.err != nil || !strings.Contains(flat, `"answered":3`) || !strings.Contains(why, `"owner":{"silo":"127.0.0.1:`) {
			t.Errorf("%v\n%s\n%s", e.err, e.out, said)
		}
	case <-time.After(2 * patience):
		t.Fatalf("they do not end:\n%s\n%s", text, said)
	}
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
	said := w.shell(dir, text+"\nwait", nil)
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
