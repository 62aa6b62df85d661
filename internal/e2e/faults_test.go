package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
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

// writers write to nodes through a silo, each write once it was acknowledged the last, and remember what was
// acknowledged.
type writers struct {
	stop context.CancelFunc
	work sync.WaitGroup

	mu     sync.Mutex
	acked  map[string]int   // the greatest number that was acknowledged, by path
	last   map[string]int64 // its version
	failed map[string]int   // refusals by code
	wrong  []string
	more   chan struct{} // closed and made anew at each acknowledgement
}

// write starts writers of paths through a silo. Each writes numbers in their order.
func (p *silo) write(paths ...string) *writers {
	ctx, stop := context.WithCancel(p.t.Context())
	w := &writers{stop: stop, acked: map[string]int{}, last: map[string]int64{}, failed: map[string]int{}, more: make(chan struct{})}
	for _, path := range paths {
		w.work.Go(func() {
			c := p.client()
			for n := 1; ctx.Err() == nil; {
				got, err := c.Patch(ctx, path, fmt.Appendf(nil, `{"content":{"n":%d}}`, n), client.If{})
				if w.note(ctx, path, n, got.Version, err) {
					n++
				}
			}
		})
	}
	p.t.Cleanup(func() {
		stop()
		w.work.Wait()
	})
	return w
}

func (w *writers) note(ctx context.Context, path string, n int, version int64, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.failed[fmt.Sprintf("%.400s", err)]++
		if !transient(err) {
			w.wrong = append(w.wrong, err.Error())
		}
		return false
	}
	if version <= w.last[path] {
		w.wrong = append(w.wrong, fmt.Sprintf("'%s': version %d was acknowledged after %d", path, version, w.last[path]))
	}
	w.acked[path], w.last[path] = n, version
	close(w.more)
	w.more = make(chan struct{})
	return true
}

// further waits until each path has so many further acknowledgements.
func (w *writers) further(t *testing.T, each int) {
	t.Helper()
	w.mu.Lock()
	goal := map[string]int{}
	for path := range w.acked {
		goal[path] = w.acked[path] + each
	}
	w.mu.Unlock()
	late := time.After(patience)
	for {
		w.mu.Lock()
		more, open := w.more, len(goal) == 0
		for path, n := range goal {
			open = open || w.acked[path] < n
		}
		failed := fmt.Sprint(w.failed)
		w.mu.Unlock()
		if !open {
			return
		}
		if len(goal) == 0 {
			w.mu.Lock()
			for path := range w.acked {
				goal[path] = each
			}
			w.mu.Unlock()
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("no further acknowledgements: %v; refused %s", w.acked, failed)
		}
	}
}

// end stops the writers and minds that what was acknowledged is there.
func (w *writers) end(t *testing.T, by *silo) {
	t.Helper()
	w.stop()
	w.work.Wait()
	for _, s := range w.wrong {
		t.Error(s)
	}
	for path, n := range w.acked {
		var have struct{ N int }
		got := by.read(path)
		if err := json.Unmarshal(got.Content, &have); err != nil {
			t.Fatal(err)
		}
		// The one after it may have been written without an acknowledgement.
		if have.N < n || have.N > n+1 || got.Version < w.last[path] {
			at := time.Now()
			t.Errorf("'%s': %d at version %d was acknowledged, %d at version %d is there", path, n, w.last[path], have.N, got.Version)
			wait(t, "what was acknowledged", func() error {
				if got = by.read(path); got.Version < w.last[path] {
					return fmt.Errorf("version %d", got.Version)
				}
				return nil
			})
			t.Logf("version %d is there %v later", got.Version, time.Since(at))
		}
	}
}

func paths(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint("acme/n", i))
	}
	return all
}

// owned makes nodes whose hubs a silo runs.
func (p *silo) owned(names []string) {
	p.t.Helper()
	p.create(append([]string{"acme"}, names...)...)
	for _, path := range names {
		p.read(path)
	}
}

// issue 5: SIGKILL of a silo; faults.md
// invariant 62
func TestWhenTheOwnerIsKilledItsNodesAnswerElsewhereAndNothingAcknowledgedIsLost(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	all := w.start("a", "b", "c")
	a, b, c := all[0], all[1], all[2]
	nodes := paths(12)
	a.owned(nodes)
	writing := b.write(nodes...)
	writing.further(t, 3)
	if x := b.why(nodes[0]); x.Cluster.Owner == nil || x.Cluster.Owner.Silo != "a" {
		t.Fatalf("%+v", x)
	}
	look := c.watch(nodes[0])
	from := (<-look.events).Version
	killed := time.Now()
	a.kill()
	for _, path := range nodes {
		c.read(path)
	}
	if took := time.Since(killed); took > 5*time.Second {
		t.Errorf("the last address answered again after %v", took)
	} else {
		t.Logf("every address answered again %v after the kill", took)
	}
	writing.further(t, 3)
	b.sees("b", "c")
	writing.end(t, c)
	look.until(t, from, writing.last[nodes[0]])
	if x := c.why(nodes[0]); x.Cluster.Owner == nil || x.Cluster.Owner.Silo == "a" {
		t.Errorf("%+v", x)
	}
}

// issue 5: SIGSTOP for 1.6 s, then SIGCONT
func TestASiloThatWasFrozenServesNothingStaleAndComesBack(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	all := w.start("a", "b", "c")
	a, b := all[0], all[1]
	nodes := paths(4)
	a.owned(nodes)
	writing := b.write(nodes...)
	writing.further(t, 2)
	a.signal(syscall.SIGSTOP)
	thaw := time.After(1600 * time.Millisecond) // the fault itself
	x := b.why(nodes[0])
	if len(x.Cluster.Missing) != 1 || !strings.HasPrefix(x.Cluster.Missing[0], "a: ") || !strings.Contains(x.Cluster.Missing[0], "bound 'observe', 1s") {
		t.Errorf("why says of a frozen owner: %+v", x.Cluster)
	}
	for _, bound := range x.Bounds {
		if fired := strings.Join(bound.Fired, " "); (fired != "") != (bound.Name == "observe") || fired != "" && fired != "a" {
			t.Errorf("the bound '%s' is said to have fired for '%s'", bound.Name, fired)
		}
	}
	<-thaw
	a.signal(syscall.SIGCONT)
	began := time.Now()
	// What has been acknowledged elsewhere meanwhile is what the thawed silo answers, or it refuses.
	for range 20 {
		writing.mu.Lock()
		least := writing.last[nodes[0]]
		writing.mu.Unlock()
		if n, err := a.client().Get(t.Context(), nodes[0]); err == nil && n.Version < least {
			t.Fatalf("version %d was acknowledged, the thawed silo answers %d", least, n.Version)
		} else if err != nil && !transient(err) {
			t.Fatal(err)
		}
	}
	a.ready()
	a.sees("a", "b", "c")
	t.Logf("ready %v after it was thawed", time.Since(began))
	writing.further(t, 3)
	writing.end(t, a)
}

// issue 5: rolling restart; decision 6
func TestASiloThatLeavesLosesNothing(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	all := w.start("a", "b", "c")
	a, b, c := all[0], all[1], all[2]
	nodes := paths(8)
	a.owned(nodes)
	writing := b.write(nodes...)
	writing.further(t, 3)
	look := c.watch(nodes[0])
	from := (<-look.events).Version
	if err := a.stop(); err != nil {
		t.Errorf("%v:\n%s", err, a.log)
	}
	writing.further(t, 3)
	b.sees("b", "c")
	again := w.start2("a")
	again.sees("a", "b", "c")
	writing.further(t, 3)
	writing.end(t, again)
	if len(writing.failed) > 0 {
		t.Errorf("writes were refused: %v", writing.failed)
	}
	look.until(t, from, writing.last[nodes[0]])
}

// start2 starts one silo beside others and waits until it is ready.
func (w *town) start2(name string) *silo {
	w.t.Helper()
	p := w.begin(name)
	if err := p.up(); err != nil {
		w.t.Fatalf("%v:\n%s", err, p.log)
	}
	p.ready()
	return p
}

// issue 5: two of three killed together
func TestTheOneThatIsLeftOfThreeAnswersForAll(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	all := w.start("a", "b", "c")
	a, b, c := all[0], all[1], all[2]
	nodes := paths(6)
	b.owned(nodes[:3])
	for _, path := range nodes[3:] {
		c.create(path)
		c.read(path)
	}
	look := a.watch(nodes[0])
	from := (<-look.events).Version
	killed := time.Now()
	b.signal(syscall.SIGKILL)
	c.signal(syscall.SIGKILL)
	for _, path := range nodes {
		a.read(path)
	}
	a.sees("a")
	t.Logf("alone %v after the kill", time.Since(killed))
	writing := a.write(nodes...)
	writing.further(t, 2)
	writing.end(t, a)
	look.until(t, from, writing.last[nodes[0]])
}

// issue 5: all killed, one restarted
func TestOfThreeThatWereKilledTogetherOneComesBackAlone(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	all := w.start("a", "b", "c")
	nodes := paths(3)
	all[0].owned(nodes)
	writing := all[1].write(nodes...)
	writing.further(t, 3)
	for _, p := range all {
		p.signal(syscall.SIGKILL)
	}
	for _, p := range all {
		p.kill()
	}
	began := time.Now()
	again := w.start2("a")
	t.Logf("ready %v after it was started", time.Since(began))
	again.sees("a")
	writing.end(t, again)
}

// issue 5: wrong secret
func TestASiloWithAnotherSecretIsRefusedInOneLine(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	a := w.start("a")[0]
	other := *w
	other.secret = filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other.secret, []byte("this is the secret of somebody else"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := other.begin("b")
	refusedInOneLine(t, b, "another secret", "--cluster-secret-file")
	wait(t, "a to say so", func() error {
		if !a.log.has("WARN", "certificate") {
			return fmt.Errorf("it said %s", a.log)
		}
		return nil
	})
	a.sees("a")
}

// issue 5: two versions of the binary side by side
func TestASiloOfAnotherWireVersionIsRefusedInOneLine(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	a := w.start("a")[0]
	refusedInOneLine(t, w.beginAs(newer(t), "b"), "wire version", "release")
	a.sees("a")
}

// newer builds the program with the next wire version.
func newer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/hubmesh/hubmesh/internal/cluster/wire").Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(strings.TrimSpace(string(out)), "messages.go")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "const Version = 4\n", "const Version = 5\n", 1)
	if changed == string(text) {
		t.Fatal("the wire version is not where this test looks for it")
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{file: filepath.Join(dir, "messages.go")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"messages.go": []byte(changed), "overlay.json": overlay} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(dir, "hubmesh")
	if err := build(binary, "-overlay", filepath.Join(dir, "overlay.json")); err != nil {
		t.Fatal(err)
	}
	return binary
}

// refusedInOneLine wants a start to end with one line for people that holds all parts.
func refusedInOneLine(t *testing.T, p *silo, parts ...string) {
	t.Helper()
	if err := p.up(); err == nil {
		t.Fatal("it started")
	}
	var lines []string
	for line := range strings.Lines(p.log.String()) {
		if strings.HasPrefix(line, "hubmesh: ") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 1 {
		t.Fatalf("it said:\n%s", p.log)
	}
	for _, part := range parts {
		if !strings.Contains(lines[0], part) {
			t.Errorf("no '%s' in: %s", part, lines[0])
		}
	}
}
