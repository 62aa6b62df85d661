package content

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
)

// CR-9
// While a node is being started, whoever may not read it is answered as at once as for a path where there
// is none, and by the same answer; whoever may read it waits for its owner. No hub is started for the one
// who may not.
func TestWhoeverMayNotReadIsAnsweredAtOnceWhileANodeStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, map[node.Path]time.Duration{"acme": 15 * time.Second})
		defer r.release()
		retire(r, "acme")
		began := time.Now()
		_, refused := r.read(as("eve"), "acme/hello.txt")
		_, absent := r.read(as("eve"), "nowhere/hello.txt")
		if !isNotFound(refused) || !isNotFound(absent) || refused.Error() != absent.Error() {
			t.Fatalf("refused: %v; absent: %v", refused, absent)
		}
		if took := time.Since(began); took != 0 {
			t.Fatalf("the refusal took %v", took)
		}
		if r.mesh.Find("acme") != nil {
			t.Fatal("the hub was started for it")
		}
		if _, err := r.nodes.Get(as("eve"), "acme"); err == nil || time.Since(began) != 0 {
			t.Fatalf("a read of the node: %v after %v", err, time.Since(began))
		}
		// The control: whoever may read waits for the owner and is told of it.
		if _, err := r.read(r.admin, "acme/hello.txt"); !errors.As(err, new(*Unreachable)) || time.Since(began) < 9*time.Second {
			t.Fatalf("whoever may read: %v after %v", err, time.Since(began))
		}
	})
}

// DG-2
// Two readers wait for the same node at once: the one who is no administrator is told how many requests
// wait and not for which paths; the administrator and the log are told everything.
func TestALapseTellsAReaderNothingOfTheReadsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, map[node.Path]time.Duration{"acme": 15 * time.Second, "acme/doc": 20 * time.Second})
		defer r.release()
		if err := r.nodes.Grant(r.admin, "acme", "bob", "Viewer"); err != nil {
			t.Fatal(err)
		}
		retire(r, "acme")
		retire(r, "acme/doc")
		results := make(chan error, 2)
		for _, admin := range []bool{false, true} {
			go func() {
				who := as("bob")
				if admin {
					who = r.admin
				}
				_, err := r.read(who, "acme/hello.txt")
				results <- err
			}()
		}
		<-time.After(100 * time.Millisecond) // virtual: the other's read is under way when both lapse
		others := make(chan error, 1)
		go func() {
			_, err := r.nodes.Get(r.admin, "acme/doc")
			others <- err
		}()
		var seen int
		for range 2 {
			var u *Unreachable
			if err := <-results; !errors.As(err, &u) {
				t.Fatal(err)
			}
			told := strings.Contains(u.Line, "acme/doc") && strings.Contains(u.Reader, "[")
			if told {
				seen++
			}
			if !told && (strings.Contains(u.Line+u.Reader+u.Clause, "acme/doc") || !strings.Contains(u.Reader, "PendingCallbacks=")) {
				t.Errorf("half told: %s", u.Line)
			}
		}
		<-others
		if seen != 1 {
			t.Fatalf("%d of the two were told of the read of another path, want the administrator", seen)
		}
		for _, l := range r.content.Lapses() {
			if !strings.Contains(l.Reader, "[") {
				t.Errorf("what is kept for the administrator lacks it: %s", l.Line)
			}
		}
	})
}
