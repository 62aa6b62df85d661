package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hubmesh/hubmesh/client"
)

// townPatience is how long something may take before a measurement is given up.
const townPatience = 30 * time.Second

// town is a database and the silos on it.
type town struct {
	bin, url, dir, secret string

	mu    sync.Mutex
	silos map[string]*siloProcess // those that run
	views []seenView
	more  chan struct{} // closed and made anew at each view
}

// seenView is a view that a silo has logged, or, without members, that it joins.
type seenView struct {
	at      time.Time
	silo    string
	members []string
	begins  bool
	leaves  map[string]bool // members that are leaving
}

// siloProcess is one running silo.
type siloProcess struct {
	name, url, token string
	cmd              *exec.Cmd
	done             chan error
	gone             time.Time // once it is done
}

func newTown(bin, dir, url string) (*town, error) {
	t := &town{bin: bin, url: url, dir: dir, secret: filepath.Join(dir, "secret"), silos: map[string]*siloProcess{}, more: make(chan struct{})}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return t, os.WriteFile(t.secret, []byte("the secret of the silos of this measurement"), 0o600)
}

func (t *town) close() {
	for _, s := range t.silos {
		_ = s.cmd.Process.Kill() // it may have ended
		_ = s.wait()
	}
}

// start starts silos together and waits until they are ready.
func (t *town) start(names ...string) error {
	var all []*siloProcess
	var up []<-chan string
	for _, name := range names {
		s := &siloProcess{name: name, done: make(chan error, 1)}
		s.cmd = exec.Command(t.bin, "serve", "--postgres", t.url, "--data", filepath.Join(t.dir, "data"), "--listen", "127.0.0.1:0",
			"--cluster-listen", "127.0.0.1:0", "--name", name, "--cluster-secret-file", t.secret, "--log-level", "info")
		out, err := s.cmd.StdoutPipe()
		if err != nil {
			return err
		}
		says, err := s.cmd.StderrPipe()
		if err != nil {
			return err
		}
		if err := s.cmd.Start(); err != nil {
			return err
		}
		url := make(chan string, 1)
		var read sync.WaitGroup
		read.Go(func() { url <- listening(out) })
		read.Go(func() { t.hear(says) })
		go func() {
			read.Wait()
			err := s.cmd.Wait()
			s.gone = time.Now()
			s.done <- err
		}()
		all, up = append(all, s), append(up, url)
	}
	for i, s := range all {
		select {
		case s.url = <-up[i]:
		case <-time.After(townPatience):
		}
		if s.url == "" {
			return fmt.Errorf("silo %s did not start", s.name)
		}
		token, err := os.ReadFile(filepath.Join(t.dir, "data", "admin-token"))
		if err != nil {
			return err
		}
		s.token = strings.TrimSpace(string(token))
		if err := ready(s.url); err != nil {
			return err
		}
		t.mu.Lock()
		t.silos[s.name] = s
		t.mu.Unlock()
	}
	return nil
}

// hear reads the log lines of a silo.
func (t *town) hear(from io.Reader) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one struct {
			Time            time.Time
			Level, Msg      string
			Silo, View      string
			Error, Waiting  string
			Address, Reason string
		}
		if json.Unmarshal(lines.Bytes(), &one) != nil {
			fmt.Fprintln(os.Stderr, lines.Text())
			continue
		}
		switch one.Msg {
		case "This silo joins the cluster":
			t.note(seenView{at: one.Time, silo: one.Silo, begins: true})
		case "A view of the cluster counts":
			v := seenView{at: one.Time, silo: one.Silo, leaves: map[string]bool{}}
			_, list, _ := strings.Cut(strings.TrimSuffix(one.View, "]"), "[")
			for _, m := range strings.Split(list, ", ") {
				name, state, _ := strings.Cut(m, "/")
				v.members = append(v.members, name)
				v.leaves[name] = strings.Contains(state, "leaving")
			}
			t.note(v)
		default:
			if one.Level == "ERROR" {
				fmt.Fprintln(os.Stderr, lines.Text())
			}
		}
	}
}

func (t *town) note(v seenView) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.views = append(t.views, v)
	close(t.more)
	t.more = make(chan struct{})
}

// until waits until the views hold something, which is told by find with what it found.
func (t *town) until(what string, find func([]seenView) (time.Time, bool)) (time.Time, error) {
	late := time.After(townPatience)
	for {
		t.mu.Lock()
		at, ok := find(t.views)
		more := t.more
		t.mu.Unlock()
		if ok {
			return at, nil
		}
		select {
		case <-more:
		case <-late:
			return at, errors.New("waited in vain for " + what)
		}
	}
}

// first finds, for each silo, its first view after a moment for which holds is true, and returns the last of these.
func first(views []seenView, after time.Time, silos []string, holds func(seenView) bool) (last time.Time, ok bool) {
	for _, s := range silos {
		found := false
		for _, v := range views {
			if v.silo == s && !v.begins && v.at.After(after) && holds(v) {
				found = true
				if v.at.After(last) {
					last = v.at
				}
				break
			}
		}
		if !found {
			return last, false
		}
	}
	return last, true
}

func in(v seenView, name string) bool {
	for _, m := range v.members {
		if m == name {
			return true
		}
	}
	return false
}

// with is when the last of the silos has a silo in its view; without, when it has not.
func (t *town) with(name string, after time.Time, silos ...string) (time.Time, error) {
	return t.until(name+" in every view", func(all []seenView) (time.Time, bool) {
		return first(all, after, silos, func(v seenView) bool { return in(v, name) })
	})
}

func (t *town) without(name string, after time.Time, silos ...string) (time.Time, error) {
	return t.until(name+" in no view", func(all []seenView) (time.Time, bool) {
		return first(all, after, silos, func(v seenView) bool { return !in(v, name) })
	})
}

// joins records how long it took from the first line of those who join until all silos have them in their views.
func (t *town) joins(r *Result, what string, names ...string) error {
	t.mu.Lock()
	var began time.Time
	for _, v := range t.views {
		for _, n := range names {
			// The newest start of each; the first of these.
			if v.begins && v.silo == n && (began.IsZero() || len(names) == 1 || v.at.Sub(began) > 5*time.Second) {
				began = v.at
			}
		}
	}
	var all []string
	for n := range t.silos {
		all = append(all, n)
	}
	t.mu.Unlock()
	at, err := t.until(what, func(views []seenView) (time.Time, bool) {
		return first(views, began, all, func(v seenView) bool {
			for _, n := range names {
				if !in(v, n) {
					return false
				}
			}
			return true
		})
	})
	if err == nil {
		r.add(what, ms(at.Sub(began)))
	}
	return err
}

// goes ends a silo by a signal and records how long it was in a view after it had said that it leaves.
func (t *town) goes(r *Result, what, name string, s syscall.Signal) error {
	p := t.silos[name]
	began := time.Now()
	if err := p.cmd.Process.Signal(s); err != nil {
		return err
	}
	err := p.wait()
	delete(t.silos, name)
	var rest []string
	for n := range t.silos {
		rest = append(rest, n)
	}
	out, werr := t.without(name, began, rest...)
	if err = errors.Join(err, werr); err != nil {
		return err
	}
	leaving, ok := first(t.views, began, rest, func(v seenView) bool { return v.leaves[name] })
	if !ok {
		return fmt.Errorf("nobody saw %s leave", name)
	}
	r.add(what, ms(out.Sub(leaving)))
	r.add("a leaver, from SIGTERM", ms(out.Sub(began)))
	return nil
}

func (t *town) ready(name string) error { return ready(t.silos[name].url) }

func ready(url string) error {
	for end := time.Now().Add(townPatience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		resp, err := http.Get(url + "/ready")
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return nil
		}
	}
	return fmt.Errorf("%s is not ready", url)
}

func (s *siloProcess) client() *client.Client {
	c, err := client.New(client.Options{Server: s.url, Token: s.token})
	if err != nil {
		panic(err) // the address is what the silo has printed
	}
	return c
}

// wait returns how the process has ended.
func (s *siloProcess) wait() error {
	err := <-s.done
	s.done <- err
	return err
}

func (s *siloProcess) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return s.wait()
}
