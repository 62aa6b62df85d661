package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/client"
)

var (
	soakSeconds = flag.Int("seconds", 8, "how long faults go on")
	soakSeed    = flag.Uint64("seed", 1, "of the schedule of faults")
)

// storm is three silos under load, whatever happens to them.
type storm struct {
	*town
	links *links
	rng   *rand.Rand
	names []string
	acks  *writers

	mu    sync.Mutex
	silos map[string]*silo // those that run
	seen  map[string]int64 // the version that was followed, by path
}

// front is the address of a proxy that sends each request to a silo that runs, as clusters have one.
func (s *storm) front() string {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			s.mu.Lock()
			defer s.mu.Unlock()
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "127.0.0.1:1" // nobody
			for _, at := range rand.Perm(len(s.names)) {
				if p := s.silos[s.names[at]]; p != nil {
					r.Out.URL.Host = strings.TrimPrefix(p.url, "http://")
				}
			}
		},
		ErrorLog: log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintf(w, `{"code":"unavailable","retry":"after","retryAfter":1,"status":503,"detail":%q}`, err)
		},
	}
	at := httptest.NewServer(proxy)
	s.t.Cleanup(func() {
		at.CloseClientConnections()
		at.Close()
	})
	return at.URL
}

// outcome bounds a write: one that is sent to a silo that stands still, as the front does not know, is answered when
// that goes on, and the longest of the faults is 30 s.
const outcome = 30*time.Second + patience

// load writes to each path, in order and through whoever runs, and follows it.
func (s *storm) load(paths []string) {
	ctx, cancel := context.WithCancel(s.t.Context())
	s.acks = &writers{stop: cancel, acked: map[string]int{}, last: map[string]int64{}, failed: map[string]int{}, more: make(chan struct{})}
	front := s.front()
	s.t.Cleanup(func() {
		cancel()
		s.acks.work.Wait()
	})
	c, err := client.New(client.Options{Server: front, Token: s.silos["a"].token})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, path := range paths {
		s.acks.work.Go(func() {
			for n := 1; ctx.Err() == nil; {
				within, done := context.WithTimeoutCause(ctx, outcome, fmt.Errorf("no outcome of a write of '%s' within %v", path, outcome))
				got, err := c.Patch(within, path, fmt.Appendf(nil, `{"content":{"n":%d}}`, n), client.If{})
				if within.Err() != nil && ctx.Err() == nil {
					s.t.Error(context.Cause(within))
				}
				done()
				if s.acks.note(ctx, path, n, got.Version, err) {
					n++
				} else {
					<-time.After(10 * time.Millisecond) // before it is tried again
				}
			}
		})
		s.acks.work.Go(func() { s.follow(ctx, c, path) })
	}
}

// follow watches a path through one silo after the other, each from the version that the one before has told.
func (s *storm) follow(ctx context.Context, c *client.Client, path string) {
	var have int64
	for ctx.Err() == nil {
		err := c.Watch(ctx, path, client.WatchOptions{}, func(e client.Event) error {
			if e.Kind == client.Patch && e.BasedOn != have || e.Version < have || e.Kind == client.Deleted {
				s.t.Errorf("'%s': after version %d came a %s of %d, based on %d", path, have, e.Kind, e.Version, e.BasedOn)
			}
			have = e.Version
			s.mu.Lock()
			s.seen[path] = have
			s.mu.Unlock()
			return nil
		})
		if ctx.Err() == nil && !transient(err) {
			s.t.Errorf("the watch of '%s' ended: %v", path, err)
			return
		}
		have = 0 // a new watch knows nothing
		<-time.After(10 * time.Millisecond)
	}
}

// some is a silo by chance.
func (s *storm) some() string { return s.names[s.rng.IntN(len(s.names))] }

// two are different silos by chance.
func (s *storm) two() (a, b string) {
	at := s.rng.Perm(len(s.names))
	return s.names[at[0]], s.names[at[1]]
}

// begins starts silos and waits until they are up.
func (s *storm) begins(names ...string) {
	s.t.Helper()
	var all []*silo
	for _, name := range names {
		p := s.begin(name, s.links.flags(name)...)
		s.links.runs(p)
		all = append(all, p)
	}
	for _, p := range all {
		if err := p.up(); err != nil {
			s.t.Fatalf("%v:\n%s", err, p.log)
		}
		s.mu.Lock()
		s.silos[p.name] = p
		s.mu.Unlock()
	}
}

// takes removes silos from those that run, and returns them.
func (s *storm) takes(names ...string) (all []*silo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		all = append(all, s.silos[name])
		delete(s.silos, name)
	}
	return all
}

// lasts waits for as long as a fault lasts.
func (s *storm) lasts(least, most time.Duration) {
	<-time.After(least + time.Duration(s.rng.Int64N(int64(most-least)))) // the fault itself
}

func (s *storm) killed(names ...string) {
	for _, p := range s.takes(names...) {
		p.kill()
	}
	s.lasts(time.Millisecond, 3*time.Second)
	s.begins(names...)
}

func (s *storm) cutOff(ways ...[2]string) {
	for _, w := range ways {
		s.links.cut(w[0], w[1])
	}
	s.lasts(500*time.Millisecond, longer(4*time.Second, 15*time.Second))
	for _, w := range ways {
		s.links.heal(w[0], w[1])
	}
}

// faults are what may happen; each ends what it began.
func (s *storm) faults(away func(bool)) map[string]func() {
	return map[string]func(){
		"kill one": func() { s.killed(s.some()) },
		"kill two": func() { a, b := s.two(); s.killed(a, b) },
		"kill all": func() { s.killed(s.names...) },
		"freeze": func() {
			s.mu.Lock()
			p := s.silos[s.some()]
			s.mu.Unlock()
			p.signal(syscall.SIGSTOP)
			s.lasts(200*time.Millisecond, longer(3*time.Second, 31*time.Second))
			p.signal(syscall.SIGCONT)
		},
		"restart": func() {
			p := s.takes(s.some())[0]
			if err := p.stop(); err != nil {
				s.t.Errorf("%s ended with %v:\n%s", p.name, err, p.log)
			}
			s.begins(p.name)
		},
		"cut off": func() {
			a := s.some()
			var ways [][2]string
			for _, b := range s.names {
				if a != b {
					ways = append(ways, [2]string{a, b}, [2]string{b, a})
				}
			}
			s.cutOff(ways...)
		},
		"cut one way": func() { a, b := s.two(); s.cutOff([2]string{a, b}) },
		"cut a link":  func() { a, b := s.two(); s.cutOff([2]string{a, b}, [2]string{b, a}) },
		"database away": func() {
			away(true)
			s.lasts(200*time.Millisecond, longer(3*time.Second, 20*time.Second))
			away(false)
		},
	}
}

// issue 5: a seeded schedule of faults under load ends with everything equal
func TestAfterAnyFaultsUnderLoadEverythingIsEqual(t *testing.T) {
	proxy, err := server.Proxy()
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	s := &storm{town: newTown(t), links: newLinks(t), rng: rand.New(rand.NewPCG(*soakSeed, 0)), names: []string{"a", "b", "c"}, silos: map[string]*silo{}, seen: map[string]int64{}}
	s.url = proxy.Through(s.url)
	s.begins(s.names...)
	nodes := paths(6)
	s.silos["a"].owned(nodes)
	s.load(nodes)
	faults := s.faults(func(gone bool) {
		proxy.Refuse(gone)
		if gone {
			proxy.Cut()
		}
	})
	kinds := []string{"kill one", "kill two", "kill all", "freeze", "restart", "cut off", "cut one way", "cut a link", "database away"}
	for end := time.Now().Add(time.Duration(*soakSeconds) * time.Second); time.Now().Before(end) && !t.Failed(); {
		kind := kinds[s.rng.IntN(len(kinds))]
		began := time.Now()
		faults[kind]()
		healed := time.Now()
		for _, name := range s.names {
			s.silos[name].ready()
			s.silos[name].sees(s.names...)
		}
		whole := time.Now()
		s.acks.further(t, 2)
		t.Logf("%-13s %6.2f s, whole after %5.2f s, every node written after %5.2f s", kind, healed.Sub(began).Seconds(), whole.Sub(healed).Seconds(), time.Since(healed).Seconds())
	}
	for _, path := range nodes {
		wait(t, "the watch of "+path, func() error {
			s.acks.mu.Lock()
			defer s.acks.mu.Unlock()
			s.mu.Lock()
			defer s.mu.Unlock()
			if have, want := s.seen[path], s.acks.last[path]; have < want {
				return fmt.Errorf("it has version %d and %d was acknowledged", have, want)
			}
			return nil
		})
	}
	s.acks.stop()
	s.acks.work.Wait()
	for _, name := range s.names {
		s.acks.end(t, s.silos[name])
	}
	for _, path := range nodes {
		s.equal(path)
	}
	t.Logf("acknowledged: %v", s.acks.acked)
}

// equal minds that every silo has the same of a node, and that its history has every version once.
func (s *storm) equal(path string) {
	s.t.Helper()
	want := s.silos["a"].read(path)
	for _, name := range s.names[1:] {
		if got := s.silos[name].read(path); got.Version != want.Version || string(got.Content) != string(want.Content) {
			s.t.Errorf("'%s': a has version %d with %s, %s has version %d with %s", path, want.Version, want.Content, name, got.Version, got.Content)
		}
	}
	next := want.Version
	for next > 0 {
		list, err := s.silos["b"].client().Versions(s.t.Context(), path, next+1, 500)
		if err != nil {
			s.t.Fatal(err)
		}
		if len(list) == 0 {
			break // the history keeps so many
		}
		for _, v := range list {
			if v.Version != next {
				s.t.Fatalf("'%s': the history has version %d where %d should be", path, v.Version, next)
			}
			next--
		}
	}
}
