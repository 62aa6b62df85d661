package e2e_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// town is a database and what its silos share.
type town struct {
	t      *testing.T
	url    string
	secret string // file
	data   string // folder
}

func newTown(t *testing.T) *town {
	t.Helper()
	url, err := server.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := &town{t: t, url: url, secret: filepath.Join(t.TempDir(), "secret"), data: filepath.Join(t.TempDir(), "data")}
	if err := os.WriteFile(w.secret, []byte("the secret of all silos of this town\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// silo is a running "hubmesh serve".
type silo struct {
	t     *testing.T
	name  string
	cmd   *exec.Cmd
	url   string
	token string
	log   *logbook
	done  chan error
	began time.Time
	up    func() error // waits until it listens
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

// has tells whether a line was written that holds all parts.
func (l *logbook) has(parts ...string) bool {
	for line := range strings.Lines(l.String()) {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(line, p)
		}
		if all {
			return true
		}
	}
	return false
}

// begin starts a silo and returns at once; [silo.up] waits for it.
func (w *town) begin(name string, args ...string) *silo { return w.beginAs(program, name, args...) }

func (w *town) beginAs(binary, name string, args ...string) *silo {
	w.t.Helper()
	p := &silo{t: w.t, name: name, log: &logbook{}, done: make(chan error, 1), began: time.Now()}
	p.cmd = exec.Command(binary, append([]string{"serve", "--postgres", w.url, "--data", w.data, "--listen", "127.0.0.1:0",
		"--cluster-listen", "127.0.0.1:0", "--name", name, "--cluster-secret-file", w.secret, "--log-level", cmp.Or(os.Getenv("HUBMESH_E2E_LOG"), "info")}, args...)...)
	p.cmd.Stderr = p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	listening := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if url, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
				p.url = url
				close(listening)
			}
		}
		p.done <- p.cmd.Wait()
	}()
	w.t.Cleanup(func() {
		p.kill()
		if w.t.Failed() {
			w.t.Logf("silo %s said:\n%s", name, p.log)
		}
	})
	p.up = func() error {
		select {
		case <-listening:
		case err := <-p.done:
			p.done <- err
			return fmt.Errorf("%s ended: %w", name, err)
		case <-time.After(patience):
			return fmt.Errorf("%s did not listen", name)
		}
		token, err := os.ReadFile(filepath.Join(w.data, "admin-token"))
		p.token = strings.TrimSpace(string(token))
		return err
	}
	return p
}

// start starts silos together and waits until each is ready and sees all of them.
func (w *town) start(names ...string) []*silo {
	w.t.Helper()
	var all []*silo
	for _, name := range names {
		all = append(all, w.begin(name))
	}
	for _, p := range all {
		if err := p.up(); err != nil {
			w.t.Fatalf("%v:\n%s", err, p.log)
		}
	}
	for _, p := range all {
		p.ready()
		p.sees(names...)
	}
	return all
}

// patience is how long a test waits for something that should come.
const patience = 30 * time.Second

// wait tries until something holds.
func wait(t *testing.T, what string, holds func() error) {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited for %s: %v", what, err)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// ready waits for the readiness endpoint.
func (p *silo) ready() {
	p.t.Helper()
	wait(p.t, p.name+" to be ready", func() error {
		resp, err := http.Get(p.url + "/ready")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			var b bytes.Buffer
			_, _ = b.ReadFrom(resp.Body)
			return fmt.Errorf("%d: %s", resp.StatusCode, b.String())
		}
		return nil
	})
}

// metrics is what Prometheus reads.
func (p *silo) metrics() string {
	p.t.Helper()
	resp, err := http.Get(p.url + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatalf("metrics: %d %v", resp.StatusCode, err)
	}
	return b.String()
}

// status is a part of what /api/cluster answers.
type status struct {
	Answered int
	Missing  []string
	Totals   struct {
		Slots    struct{ Total, Owned, Settled int }
		Claims   struct{ Processes, ProcessesLanded, Granted int }
		Refusals map[string]int64
		Repairs  map[string]int64
	}
	Silos []struct {
		Silo, Missing string
		Status        struct {
			Members []struct{ Silo string }
			Process struct{ Feed struct{ Live bool } }
		}
	}
}

func (p *silo) status() (s status, err error) {
	text, err := p.client().ClusterStatus(p.t.Context())
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

// sees waits until the silo and those it names have one view, of exactly these.
func (p *silo) sees(names ...string) {
	p.t.Helper()
	want := strings.Join(names, " ")
	wait(p.t, p.name+" to see "+want, func() error {
		s, err := p.status()
		if err != nil {
			return err
		}
		if len(s.Silos) != len(names) {
			return fmt.Errorf("%d silos", len(s.Silos))
		}
		for _, one := range s.Silos {
			var members []string
			for _, m := range one.Status.Members {
				members = append(members, m.Silo)
			}
			if got := strings.Join(members, " "); got != want {
				return fmt.Errorf("%s sees '%s' %s", one.Silo, got, one.Missing)
			}
		}
		return nil
	})
}

func (p *silo) client() *client.Client {
	p.t.Helper()
	c, err := client.New(client.Options{Server: p.url, Token: p.token})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

func (p *silo) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// kill ends the process as SIGKILL does, and waits for its end.
func (p *silo) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	err := <-p.done
	p.done <- err
}

// stop ends the process as an operator does and returns how it ended.
func (p *silo) stop() error {
	p.signal(syscall.SIGTERM)
	err := <-p.done
	p.done <- err
	return err
}

// explanation is a part of what /api/why answers.
type explanation struct {
	Cluster struct {
		SlotOwner   string
		Owner       *struct{ Silo string }
		OwnerReport *struct {
			RunLevel string
			Handled  int
		}
		Answered, Missing []string
	}
	Bounds []struct {
		Name  string
		Fired []string
	}
}

func (p *silo) why(path string) explanation {
	p.t.Helper()
	var x explanation
	wait(p.t, "why "+path, func() error {
		text, err := p.client().Why(p.t.Context(), path)
		if err != nil {
			return err
		}
		x = explanation{}
		return json.Unmarshal(text, &x)
	})
	return x
}

// transient tells whether a request may be tried again.
func transient(err error) bool {
	var e *client.Error
	if errors.As(err, &e) {
		return e.Retry != client.Never
	}
	return true // no answer at all
}

// create makes nodes through a silo, one after the other.
func (p *silo) create(paths ...string) {
	p.t.Helper()
	for _, path := range paths {
		n := client.Node{Path: path, Content: json.RawMessage(`{}`)}
		if !strings.Contains(path, "/") {
			n.NodeType = "Space"
		}
		wait(p.t, "creating "+path, func() error {
			_, err := p.client().Create(p.t.Context(), n)
			return err
		})
	}
}

// read reads a node through a silo, which is then its owner if nobody is.
func (p *silo) read(path string) (n client.Node) {
	p.t.Helper()
	wait(p.t, p.name+" to answer for "+path, func() (err error) {
		n, err = p.client().Get(p.t.Context(), path)
		return err
	})
	return n
}

// watch collects the events of a node until the test ends.
type watch struct {
	events chan client.Event
	ended  chan error
}

func (p *silo) watch(path string) *watch {
	ctx, cancel := context.WithCancel(p.t.Context())
	w := &watch{events: make(chan client.Event, 10_000), ended: make(chan error, 1)}
	go func() {
		w.ended <- p.client().Watch(ctx, path, client.WatchOptions{}, func(e client.Event) error {
			w.events <- e
			return nil
		})
	}()
	p.t.Cleanup(func() {
		cancel()
		<-w.ended
	})
	return w
}

// until takes events up to a version and minds that each goes on from the one before: no gap, no repeat.
func (w *watch) until(t *testing.T, from, to int64) {
	t.Helper()
	late := time.After(patience)
	for from < to {
		select {
		case e := <-w.events:
			if e.Kind == client.Patch && e.BasedOn != from || e.Version <= from {
				t.Fatalf("after version %d came a %s of %d, based on %d", from, e.Kind, e.Version, e.BasedOn)
			}
			from = e.Version
		case err := <-w.ended:
			w.ended <- err
			t.Fatalf("the watch ended at version %d: %v", from, err)
		case <-late:
			t.Fatalf("version %d did not come, %d did", to, from)
		}
	}
}
