package nodehub_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/memory"
)

var errBroken = &store.UnavailableError{Op: "commit", Err: errors.New("broken")}

// private makes acme/priv with a child, which vera, a Viewer of acme, may not read. The grants of bob lie on
// both.
func (r *rig) private() {
	r.t.Helper()
	r.create("acme/priv", "", `{"s":"SECRET"}`)
	r.create("acme/priv/kid", "", `{"s":"SECRET"}`)
	r.create("acme/priv/kid/_Comment/c", "", `{"s":"SECRET"}`)
	if err := r.c.Grant(r.root, "acme", "vera", "Viewer"); err != nil {
		r.t.Fatal(err)
	}
	r.deny("acme/priv", "vera", "Viewer")
	r.deny("acme/priv/kid", "vera", "Viewer")
	for _, scope := range []node.Path{"acme/priv", "acme/priv/kid"} {
		if err := r.c.Grant(r.root, scope, "bob", "Viewer"); err != nil {
			r.t.Fatal(err)
		}
	}
}

// seen is what of acme/priv and below a caller is shown, by whichever way.
func (r *rig) seen(ctx context.Context) (out []string) {
	r.t.Helper()
	q, err := query.Parse("path:acme scope:subtree s:SECRET")
	if err != nil {
		r.t.Fatal(err)
	}
	rows, err := r.c.Select(ctx, q)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, n := range rows {
		out = append(out, "query "+string(n.Path))
	}
	for _, path := range []node.Path{"acme/priv", "acme/priv/kid", "acme/priv/kid/_Comment/c"} {
		if _, err := r.c.Get(ctx, path); err == nil {
			out = append(out, "node "+string(path))
		}
		if _, err := r.c.At(ctx, path, 1); err == nil {
			out = append(out, "version "+string(path))
		}
		entries, _, err := r.c.Children(ctx, path.Parent(), store.Page{})
		if err != nil {
			r.t.Fatal(err)
		}
		for _, e := range entries {
			if e.Path == path {
				out = append(out, "child "+string(path))
			}
		}
	}
	return out
}

// left are the assignments that are stored below a path.
func (r *rig) left(path node.Path) (out []string) {
	r.t.Helper()
	for p, err := range r.store.Descendants(r.root, path) {
		if err != nil {
			r.t.Fatal(err)
		}
		if _, ok := p.Scope(); ok {
			out = append(out, string(p))
		}
	}
	return out
}

func (r *rig) journal() map[string][]byte {
	r.t.Helper()
	all, err := r.store.Store.Blobs().List(r.root, "deletions")
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

func isAssignment(p node.Path) bool { _, ok := p.Scope(); return ok }

// data §1.4
// edge §2.5
// The look is before each commit of the deletion, with the hubs of the nodes in memory.
func TestANodeIsDeniedUntilItIsGoneAtEachStepOfItsDeletion(t *testing.T) {
	for _, recursive := range []bool{true, false} {
		onStores(t, func(t *testing.T, r *rig) {
			r.private()
			if !recursive {
				if _, err := r.delete("acme/priv/kid"); err != nil {
					t.Fatal(err)
				}
			}
			r.get("acme/priv")
			vera, commits := as("vera"), 0
			var order []node.Path
			r.store.hook(nil, func(batch []store.Write) {
				commits++
				for _, w := range batch {
					order = append(order, w.Node.Path)
				}
				if got := r.seen(vera); len(got) > 0 {
					t.Errorf("before commit %d, of '%s': %v", commits, batch[0].Node.Path, got)
				}
			})
			reply, err := r.c.Delete(r.root, "acme/priv", recursive, nodehub.Condition{})
			if err != nil || reply.Deleted != len(order) {
				t.Fatalf("%+v of %d %v", reply, len(order), err)
			}
			r.store.hook(nil, nil)
			began := false
			for _, p := range order {
				if began && !isAssignment(p) {
					t.Errorf("'%s' goes after an assignment: %v", p, order)
				}
				began = began || isAssignment(p)
			}
			if got, kept := r.left("acme/priv"), r.journal(); !began || len(got)+len(kept)+len(r.seen(vera)) > 0 {
				t.Errorf("left %v, journal %q", got, kept)
			}
		})
	}
}

// data §1.4
func TestWhatWasGrantedAtADeletedPathIsGoneAfterACrashBeforeTheEnd(t *testing.T) {
	onStores(t, func(t *testing.T, r *rig) {
		r.private()
		r.store.failing(func(batch []store.Write) error {
			if isAssignment(batch[0].Node.Path) {
				return errBroken
			}
			return nil
		})
		_, err := r.delete("acme/priv")
		wantErr[*nodehub.PartialDeleteError](t, err)
		if got := r.left("acme/priv"); len(got) != 4 || len(r.journal()) != 1 {
			t.Fatalf("nothing is left to be done: %v", got)
		}
		// Nobody comes there before they are gone.
		_, err = r.c.Create(r.root, node.Node{Path: "acme/priv", Content: node.RawContent(`{}`)})
		if f := wantErr[*message.Failure](t, err); f.Reason != message.ReasonStopping {
			t.Error(err)
		}
		r.store.failing(nil)
		if err := r.s.Recover(r.root); err != nil {
			t.Fatal(err)
		}
		if got := r.left("acme/priv"); len(got)+len(r.journal()) > 0 {
			t.Errorf("left %v", got)
		}
		if v := r.access.Evaluator().Check("bob", "acme/priv", access.Read); v != access.Denied {
			t.Errorf("bob is %s", v)
		}
	})
}

// data §1.4
func TestADeletionThatDidNotReachItsRootLeavesTheRootAndWhatDeniesIt(t *testing.T) {
	for _, crash := range []bool{false, true} {
		onStores(t, func(t *testing.T, r *rig) {
			r.private()
			r.store.failing(func(batch []store.Write) error {
				if p := batch[0].Node.Path; p == "acme/priv" || crash && isAssignment(p) {
					return errBroken
				}
				return nil
			})
			_, err := r.delete("acme/priv")
			wantErr[*nodehub.PartialDeleteError](t, err)
			r.store.failing(nil)
			if crash {
				if len(r.journal()) != 1 || len(r.left("acme/priv")) != 4 {
					t.Fatal("nothing is left to be done")
				}
				if err := r.s.Recover(r.root); err != nil {
					t.Fatal(err)
				}
			}
			if got := fmt.Sprint(r.left("acme/priv")); got != "[acme/priv/_Access/bob_Access acme/priv/_Access/vera_Access]" || len(r.journal()) > 0 {
				t.Errorf("left %v", got)
			}
			if got := r.seen(as("vera")); len(got) > 0 {
				t.Errorf("vera sees %v", got)
			}
			if _, err := r.c.Get(as("bob"), "acme/priv"); err != nil { // the control
				t.Error(err)
			}
		})
	}
}

// data §1.4
func TestTheAssignmentsOfADeletionThatFailedAreTriedAgainAndThenThePathIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.close()
		r.private()
		r.store.failing(func(batch []store.Write) error {
			if isAssignment(batch[0].Node.Path) {
				return errBroken
			}
			return nil
		})
		_, err := r.delete("acme/priv")
		wantErr[*nodehub.PartialDeleteError](t, err)
		<-time.After(time.Minute)
		r.store.failing(nil)
		<-time.After(6 * time.Second)
		r.create("acme/priv", "", `{"s":"new"}`)
		if _, err := r.c.Get(as("bob"), "acme/priv"); err == nil || len(r.journal()) > 0 {
			t.Error("what was granted on the deleted node is granted on the new one")
		}
	})
}

// data §1.4
// The commit ends after the deletion has lapsed: what it removes is not there when the deletion fails.
func TestWhatALapsedDeletionStillRemovesLeavesNoGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.close()
		r.private()
		release := make(chan struct{})
		r.store.hook(nil, func([]store.Write) { <-release })
		if _, err := r.delete("acme/priv"); err == nil {
			t.Fatal("it did not lapse")
		}
		<-time.After(time.Second)
		r.store.hook(nil, nil)
		close(release)
		<-time.After(time.Minute)
		if got := fmt.Sprint(r.left("acme/priv")); got != "[acme/priv/_Access/bob_Access acme/priv/_Access/vera_Access]" || len(r.journal()) > 0 {
			t.Errorf("left %v", got)
		}
		if _, err := r.c.Get(as("bob"), "acme/priv"); err != nil { // the control: it is there, and so is what is granted on it
			t.Error(err)
		}
	})
}

// data §1.4
func TestAnAssignmentThatChangedSinceItsDeletionWasNotedStays(t *testing.T) {
	r := newRig(t)
	r.create("acme/x", "", `{}`)
	for _, role := range []string{"Viewer", "Editor"} {
		if err := r.c.Grant(r.root, "acme/x", "bob", role); err != nil {
			t.Fatal(err)
		}
	}
	results, err := r.store.Store.Commit(r.root, []store.Write{{Op: store.OpDelete, Node: node.Node{Path: "acme/x", Version: 2}, Expected: 1}})
	if err != nil || results[0].Err != nil {
		t.Fatal(results, err)
	}
	for version, want := range []int{1, 1, 0} { // it has version 2
		text := fmt.Sprintf(`{"root":"acme/x","assignments":[{"path":"acme/x/_Access/bob_Access","version":%d}]}`, version)
		if err := r.store.Blobs().Put(r.root, "deletions", "acme/x", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := r.s.Recover(r.root); err != nil {
			t.Fatal(err)
		}
		if got := r.left("acme/x"); len(got) != want || len(r.journal()) > 0 {
			t.Errorf("noted at version %d: %v", version, got)
		}
	}
}

// decision 8
func TestASpaceOfWhichOnlyAssignmentsWereLeftAtTheEndOfTheProcessIsGoneAfterTheStart(t *testing.T) {
	onStores(t, func(t *testing.T, r *rig) {
		r.create("k2", node.TypeSpace, `{}`)
		r.create("k2/a", "", `{}`)
		if err := r.c.Grant(r.root, "k2", "bob", "Admin"); err != nil {
			t.Fatal(err)
		}
		r.store.failing(func(batch []store.Write) error {
			if isAssignment(batch[0].Node.Path) {
				return errBroken
			}
			return nil
		})
		_, err := r.delete("k2")
		wantErr[*nodehub.PartialDeleteError](t, err)
		r.store.failing(nil)
		if err := r.store.MarkPartition(r.root, "k2", true); err != nil { // as the end of the process leaves it
			t.Fatal(err)
		}
		if err := r.s.Recover(r.root); err != nil {
			t.Fatal(err)
		}
		all, err := r.store.Partitions(r.root)
		if len(r.left("k2")) > 0 || err != nil || strings.Contains(fmt.Sprint(all), "k2") {
			t.Errorf("%v %v %v", r.left("k2"), all, err)
		}
	})
}

// data §1.4
func TestTheJournalOfADeletionIsCutToWhatTheSideTableTakes(t *testing.T) {
	r := newRig(t)
	r.create("acme/big", "", `{}`)
	const many = 700
	for i := range many {
		r.deny("acme/big", fmt.Sprintf("subject-%s-%d", strings.Repeat("x", 100), i), "Viewer")
	}
	most, entries := 0, map[string][]byte{}
	r.store.hook(nil, func([]store.Write) {
		for key, text := range r.journal() {
			entries[key] = bytes.Clone(text)
			most = max(most, len(text))
		}
	})
	reply, err := r.delete("acme/big")
	if err != nil || reply.Deleted != many+1 {
		t.Fatal(reply, err)
	}
	if len(entries) < 2 || most > 64<<10 || entries["acme/big"] == nil || len(r.journal()) > 0 {
		t.Errorf("%d entries of at most %d bytes, %d left", len(entries), most, len(r.journal()))
	}
}

// fullBlobs is a side table on a full disk.
type fullBlobs struct{ store.Blobs }

func (fullBlobs) PutMany(context.Context, string, map[string][]byte) error {
	return &store.UnavailableError{Kind: store.UnavailableFull, Op: "write a blob", Err: errors.New("full")}
}

// bad input: a full disk
func TestANodeWithAssignmentsIsDeletedOnAFullDisk(t *testing.T) {
	r := newRigOn(t, memory.New(memory.Options{}))
	r.private()
	r.store.blobs = fullBlobs{r.store.Store.Blobs()}
	if _, err := r.delete("acme/priv"); err != nil || len(r.left("acme/priv")) > 0 {
		t.Fatal(err)
	}
}
