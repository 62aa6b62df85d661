package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"time"
)

// roleWord as first argument makes this binary another process of a scenario: "bench role NAME ARGS…".
const roleWord = "role"

// runRole is the life of such a process. It prints one line, then answers each line of its input with one
// line, and ends with its input: with its parent. HUBMESH_BENCH_PROFILES names a folder for CPU profiles.
func runRole(name string, args []string) error {
	roles := map[string]func(args []string) error{
		"bare": bareRole, "grpc": grpcRole, "nats": natsRole, "protoactor": protoRole, "silo": siloRole,
	}
	role := roles[name]
	if role == nil {
		return fmt.Errorf("no role is named %q", name)
	}
	if dir := os.Getenv("HUBMESH_BENCH_PROFILES"); dir != "" {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s-%d.prof", name, os.Getpid())))
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			return err
		}
		defer f.Close()
		defer pprof.StopCPUProfile()
	}
	return role(args)
}

// attend prints the first line and answers commands until the input ends.
func attend(first string, do func(words []string) (string, error)) error {
	fmt.Println(first)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		answer, err := do(strings.Fields(in.Text()))
		if err != nil {
			answer = "error " + err.Error()
		}
		fmt.Println(answer)
	}
	return in.Err()
}

// alone attends where there are no commands.
func alone(first string) error {
	return attend(first, func([]string) (string, error) { return "", errors.New("this role takes no commands") })
}

// child is another process of a scenario, as its parent sees it.
type child struct {
	first string // the line it began with
	cmd   *exec.Cmd
	in    io.WriteCloser
	mu    sync.Mutex // one command at a time
	out   *bufio.Reader
}

func spawn(role string, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(self, append([]string{roleWord, role}, args...)...)}
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	if c.first, err = c.line(); err != nil {
		return nil, errors.Join(fmt.Errorf("the %s process did not start: %w", role, err), c.stop())
	}
	return c, nil
}

func (c *child) line() (string, error) {
	text, err := c.out.ReadString('\n')
	if err != nil {
		return "", err
	}
	text = strings.TrimSuffix(text, "\n")
	if why, failed := strings.CutPrefix(text, "error "); failed {
		return "", errors.New(why)
	}
	return text, nil
}

// do has the child carry out a command and returns its answer.
func (c *child) do(format string, args ...any) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		return "", err
	}
	return c.line()
}

// stop lets the child end, and waits for it.
func (c *child) stop() error {
	c.in.Close()
	return c.cmd.Wait()
}

// kill ends it at once. The error of a process that was killed says nothing.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// cpu is the processor time of the child so far, user and system, in steps of 10 ms.
func (c *child) cpu() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name of the program may hold anything
	fields := strings.Fields(rest)
	const user, system, tick = 11, 12, 10 * time.Millisecond
	if len(fields) <= system {
		return 0
	}
	u, _ := strconv.Atoi(fields[user])
	k, _ := strconv.Atoi(fields[system])
	return time.Duration(u+k) * tick
}
