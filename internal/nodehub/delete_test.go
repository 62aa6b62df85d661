package nodehub_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/hubmesh/hubmesh/internal/store/memory"
	"github.com/hubmesh/hubmesh/internal/store/sqlite"
)

// onStores runs a test on each store that keeps partitions.
func onStores(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Run("memory", func(t *testing.T) { f(t, newRigOn(t, memory.New(memory.Options{}))) })
	t.Run("sqlite", func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), sqlite.Options{File: filepath.Join(t.TempDir(), "t.db")})
		if err != nil {
			t.Fatal(err)
		}
		f(t, newRigOn(t, s))
	})
}

func (r *rig) delete(path string) (*nodehub.DeleteReply, error) {
	return r.c.Delete(r.root, node.Path(path), true, nodehub.Condition{})
}

// wantNoPartition fails while the partition takes writes, is listed, or has nodes.
func (r *rig) wantNoPartition(name string) {
	r.t.Helper()
	_, err := r.c.Create(r.root, node.Node{Path: node.Path(name + "/late"), Content: node.RawContent(`{}`)})
	var gone *store.PartitionError
	if !errors.As(err, &gone) || gone.Reason != store.ReasonMissing {
		r.t.Errorf("a write after the delete: %v", err)
	}
	for p, err := range r.store.Descendants(r.root, node.Path(name)) {
		r.t.Errorf("'%s' is left (%v)", p, err)
	}
	all, err := r.store.Partitions(r.root)
	for _, p := range all {
		if p.Name == name {
			r.t.Errorf("the partition is there: %+v (%v)", p, err)
		}
	}
}

// data §1.4; decision 8: a write that passed its check before the delete began is waited for, and is
// deleted with the rest.
func TestAWriteThatIsUnderWayWhenItsSpaceIsDeletedIsDeletedToo(t *testing.T) {
	onStores(t, func(t *testing.T, r *rig) {
		r.create("k2", node.TypeSpace, `{}`)
		parked, release := make(chan struct{}), make(chan struct{})
		var once sync.Once
		r.store.hook(nil, func(batch []store.Write) {
			if batch[0].Node.Path == "k2/late" {
				once.Do(func() { close(parked); <-release })
			}
		})
		created := make(chan error, 1)
		go func() {
			_, err := r.c.Create(r.root, node.Node{Path: "k2/late", Content: node.RawContent(`{}`)})
			created <- err
		}()
		<-parked
		deleted := make(chan error, 1)
		go func() {
			_, err := r.delete("k2")
			deleted <- err
		}()
		// The delete has opened its guard once another write is refused by it.
		for {
			_, err := r.c.Create(r.root, node.Node{Path: "k2", NodeType: node.TypeSpace, Content: node.RawContent(`{}`)})
			var refused *message.Failure
			if errors.As(err, &refused) && refused.Reason == message.ReasonStopping {
				break
			}
		}
		select {
		case err := <-deleted:
			t.Fatalf("the delete did not wait: %v", err)
		default:
		}
		close(release)
		if err := <-created; err != nil {
			t.Fatal(err)
		}
		if err := <-deleted; err != nil {
			t.Fatal(err)
		}
		r.wantNoPartition("k2")
	})
}

// data §1.4; decision 8: a partition that is being deleted takes deletes only, whoever writes. The write
// here goes past every check of the process, as one whose writer has left.
func TestNothingComesIntoASpaceBetweenItsLastNodeAndItsRemoval(t *testing.T) {
	onStores(t, func(t *testing.T, r *rig) {
		r.create("k2", node.TypeSpace, `{}`)
		r.create("k2/a", "", `{}`)
		late := errors.New("no write was tried")
		r.store.onRemove = func() error {
			results, err := r.store.Store.Commit(context.Background(), []store.Write{{Op: store.OpCreate, Node: node.Node{Path: "k2/late", Version: 1}}})
			if late = err; err == nil {
				late = results[0].Err
			}
			return nil
		}
		if _, err := r.delete("k2"); err != nil {
			t.Fatal(err)
		}
		if refused := wantErr[*store.PartitionError](t, late); refused.Reason != store.ReasonDeleting {
			t.Errorf("%v", late)
		}
		r.wantNoPartition("k2")
		r.create("k2", node.TypeSpace, `{}`) // the name is free
		r.create("k2/a", "", `{}`)
	})
}

// decision 8: a delete that fails leaves a space that can be written, and can be tried again.
func TestASpaceWhoseDeletionFailedCanBeWrittenAndDeletedAgain(t *testing.T) {
	onStores(t, func(t *testing.T, r *rig) {
		r.create("k2", node.TypeSpace, `{}`)
		r.create("k2/a", "", `{}`)
		broken := &store.UnavailableError{Op: "remove", Err: errors.New("broken")}
		r.store.onRemove = func() error { return broken }
		_, err := r.delete("k2")
		wantErr[*nodehub.PartialDeleteError](t, err)
		if !errors.Is(err, broken) {
			t.Fatal(err)
		}
		r.create("k2/b", "", `{}`) // the control: not marked any more
		r.store.onRemove = nil
		// The root is gone already: what is below it, and the partition, go all the same.
		if reply, err := r.delete("k2"); err != nil || reply.Deleted < 1 {
			t.Fatalf("%+v %v", reply, err)
		}
		r.wantNoPartition("k2")
	})
}

// data §1.4: nodes below a path without a node can be removed.
func TestASubtreeWhoseRootIsAbsentCanBeDeleted(t *testing.T) {
	r := newRig(t)
	r.create("acme/none/a", "", `{}`)
	r.create("acme/none/b/c", "", `{}`)
	_, err := r.c.Delete(r.root, "acme/none", false, nodehub.Condition{})
	wantErr[*store.NotFoundError](t, err)
	if reply, err := r.delete("acme/none"); err != nil || reply.Deleted != 2 {
		t.Fatalf("%+v %v", reply, err)
	}
	_, err = r.delete("acme/none") // the control: nothing is left, and that is said
	wantErr[*store.NotFoundError](t, err)
	_, err = r.delete("nowhere")
	wantErr[*store.NotFoundError](t, err)
	_, err = r.delete("_Access")
	wantErr[*store.NotFoundError](t, err)
}

// decision 8: a process that ended in the middle of a deletion leaves nothing that is closed for ever.
func TestADeletionThatEndedWithItsProcessIsSettledAtTheStart(t *testing.T) {
	onStores(t, func(t *testing.T, r *rig) {
		r.create("k1", node.TypeSpace, `{}`)
		if err := r.store.EnsurePartition(r.root, "k2", "root"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"k1", "k2"} {
			if err := r.store.MarkPartition(r.root, name, true); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.s.Recover(r.root); err != nil {
			t.Fatal(err)
		}
		r.create("k1/a", "", `{}`) // it was not empty
		r.wantNoPartition("k2")
	})
}

// data §1.4: of two that delete one space one does, the other is told to come back.
func TestOneOfTwoDeletionsOfASpaceIsDone(t *testing.T) {
	onStores(t, func(t *testing.T, r *rig) {
		r.create("k2", node.TypeSpace, `{}`)
		parked, release := make(chan struct{}), make(chan struct{})
		r.store.onRemove = func() error { close(parked); <-release; return nil }
		first := make(chan error, 1)
		go func() {
			_, err := r.delete("k2")
			first <- err
		}()
		<-parked
		_, err := r.delete("k2")
		if f := wantErr[*message.Failure](t, err); f.Reason != message.ReasonStopping {
			t.Errorf("%v", err)
		}
		close(release)
		if err := <-first; err != nil {
			t.Fatal(err)
		}
		r.wantNoPartition("k2")
	})
}

// data §1.4, issue 2: writers that create and delete beside the deletion of their space leave nothing.
func TestADeletionBesideWritersLeavesNothing(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	onStores(t, func(t *testing.T, r *rig) {
		for round := range rounds {
			name := fmt.Sprintf("s%d", round)
			r.create(name, node.TypeSpace, `{}`)
			var writers sync.WaitGroup
			begun := make(chan struct{}, 1000)
			stop := make(chan struct{})
			for w := range 4 {
				writers.Go(func() {
					for i := 0; ; i++ {
						select {
						case <-stop:
							return
						default:
						}
						path := node.Path(fmt.Sprintf("%s/a/x%d-%d", name, w, i%7))
						_, _, err := r.c.Put(r.root, node.Node{Path: path, Content: node.RawContent(fmt.Sprintf(`{"i":%d}`, i))}, nodehub.Condition{})
						if i%3 == 0 && err == nil {
							_, _ = r.c.Delete(r.root, path, false, nodehub.Condition{})
						}
						if i == 5 {
							begun <- struct{}{}
						}
					}
				})
			}
			for range 4 {
				<-begun
			}
			_, err := r.delete(name)
			close(stop)
			writers.Wait()
			if err != nil {
				t.Errorf("%v", err)
				continue
			}
			r.wantNoPartition(name)
		}
	})
}
