package nodehub_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

type noteRequest struct{ text string }

// withType registers a node type with handlers.
func withType(name string, add func(k *hub.Kind)) func(*nodehub.Options) {
	return func(o *nodehub.Options) { o.Types = map[string]func(*hub.Kind){name: add} }
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

// data §2.1
func TestTheFirstMessageStartsTheHubWithOneReadOfItsRow(t *testing.T) {
	r := newRig(t)
	r.create("acme/a", "", `{}`)
	r.store.mu.Lock()
	r.store.reads["acme/a"] = 0
	r.store.mu.Unlock()
	if r.mesh.Find("acme/a") != nil {
		t.Fatal("the hub runs before anybody asked")
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { r.get("acme/a") })
	}
	wg.Wait()
	if n := r.store.reads["acme/a"]; n != 1 {
		t.Fatalf("the row was read %d times", n)
	}
}

// invariant 57
// messaging §1.11
func TestAMissingPathIsAnsweredAtOnceWithItsNearestAncestor(t *testing.T) {
	r := newRig(t)
	r.create("acme/a", "", `{}`)
	_, err := r.c.Get(r.root, "acme/a/b/c")
	f := wantErr[*message.Failure](t, err)
	if f.Type != message.NotFound || !strings.Contains(f.Message, "No node found at 'acme/a/b/c'") || !strings.Contains(f.Message, "'acme/a'") {
		t.Fatalf("%v", f)
	}
	if r.mesh.Find("acme/a/b/c") != nil {
		t.Fatal("a miss created a hub")
	}
	if _, err := r.c.Get(r.root, "acme/a"); err != nil {
		t.Fatal(err)
	}
}

// data §1.3.5
func TestACommitDuringAnActivationIsNotLost(t *testing.T) {
	for _, what := range []string{"update", "delete"} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			n := r.create("acme/a", "", `{"x":1}`)
			parked, release := make(chan struct{}), make(chan struct{})
			var once sync.Once
			r.store.hook(func(p node.Path) {
				if p == "acme/a" {
					once.Do(func() { close(parked); <-release }) // the old row is read, the hub is not there yet
				}
			}, nil)
			got := make(chan error)
			var read node.Node
			go func() {
				var err error
				read, err = r.c.Get(r.root, "acme/a")
				got <- err
			}()
			<-parked
			w := store.Write{Op: store.OpUpdate, Node: n, Expected: 1, Origin: "elsewhere"}
			w.Node.Version, w.Node.Content = 2, node.RawContent(`{"x":2}`)
			if what == "delete" {
				w.Op = store.OpDelete
			}
			if res, err := r.commit.Submit(context.Background(), w); err != nil || res.Err != nil {
				t.Fatal(err, res.Err)
			}
			close(release)
			err := <-got // this read was put before the commit: either answer is true
			if err == nil && read.Version > 2 {
				t.Fatal(read.Version)
			}
			again, err := r.c.Get(r.root, "acme/a")
			switch {
			case what == "update" && (err != nil || again.Version != 2):
				t.Fatalf("a read after the commit: version %d, %v", again.Version, err)
			case what == "delete" && err == nil:
				t.Fatalf("a read after the deletion: version %d", again.Version)
			}
		})
	}
}

// messaging §1.11
func TestConcurrentFirstMessagesAreDeliveredInTheirOrderOfArrival(t *testing.T) {
	var mu sync.Mutex
	var got []string
	note := hub.Define[*noteRequest, *hub.None]("test/note", 0)
	r := newRig(t, withType("Diary", func(k *hub.Kind) {
		hub.Handle(k, note, func(_ context.Context, _ *hub.Hub, q *noteRequest) (*hub.None, error) {
			mu.Lock()
			got = append(got, q.text)
			mu.Unlock()
			return nil, nil
		})
	}))
	r.create("acme/d", "Diary", `{}`)
	parked, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.store.hook(func(p node.Path) {
		if p == "acme/d" {
			once.Do(func() { close(parked); <-release })
		}
	}, nil)
	var want []string
	post := func(i int) {
		text := fmt.Sprint(i)
		want = append(want, text)
		if err := note.Post(r.root, r.mesh, "acme/d", &noteRequest{text}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		post(i)
	}
	<-parked
	close(release)
	for i := range 100 {
		post(100 + i) // some meet the activation, some the hub
	}
	r.get("acme/d") // behind them all
	mu.Lock()
	defer mu.Unlock()
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Fatalf("got %v", got)
	}
}

// messaging §1.11
// C-5
func TestAnActivationThatHangsLapsesAtTheReaderWithWhatIsKnownAndIsNotCancelledByIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		defer r.close()
		r.create("acme/a", "", `{}`)
		release := make(chan struct{})
		r.store.hook(func(p node.Path) {
			if p == "acme/a" {
				<-release
			}
		}, nil)
		begin := time.Now()
		_, err := r.c.Get(r.root, "acme/a")
		l := wantErr[*budget.Lapse](t, err)
		if l.ReportedBy != budget.ByCaller || !strings.Contains(l.Clause, "no hosted hub was observed in this process at snapshot time, activation=in-flight(") || time.Since(begin) != 10*time.Second {
			t.Fatalf("after %v: %v", time.Since(begin), err)
		}
		for _, forbidden := range []string{"never activated", "absent", "owned elsewhere", "reply lost"} {
			if strings.Contains(l.Error(), forbidden) {
				t.Fatalf("claims %q", forbidden)
			}
		}
		close(release)
		r.store.hook(nil, nil)
		if _, err := r.c.Get(r.root, "acme/a"); err != nil {
			t.Fatal(err)
		}
	})
}
