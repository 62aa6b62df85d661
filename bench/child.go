package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// roleWord as first argument makes this binary another process of a scenario: "bench role NAME ARGS…".
const roleWord = "role"

// runRole is the life of such a process. It prints one line, then answers each line of its input with one
// line, and ends with its input: with its parent.
func runRole(name string, args []string) error {
	roles := map[string]func(args []string) error{
		"bare": bareRole, "grpc": grpcRole, "nats": natsRole, "protoactor": protoRole, "silo": siloRole,
	}
	role := roles[name]
	if role == nil {
		return fmt.Errorf("no role is named %q", name)
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
