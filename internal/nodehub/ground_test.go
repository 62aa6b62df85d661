package nodehub_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/route"
	"github.com/hubmesh/hubmesh/internal/store"
)

// two are two processes on one store, which know the same assignments.
func two(t *testing.T, shared bool) (a, b *rig) {
	t.Helper()
	a = newRig(t, func(o *nodehub.Options) { o.Shared = shared })
	m, err := hub.New(hub.Options{ID: "2"})
	if err != nil {
		t.Fatal(err)
	}
	b = &rig{t: t, mesh: m, store: &gate{Store: a.store.Store, reads: map[node.Path]int{}}, access: a.access, root: a.root}
	b.commit = store.NewCommitter(b.store, store.CommitterOptions{})
	if b.s, err = nodehub.New(nodehub.Options{Mesh: m, Store: b.store, Committer: b.commit, Access: b.access, Shared: shared}); err != nil {
		t.Fatal(err)
	}
	b.c = b.s.Client()
	m.SetRouter(route.New(m, b.store, b.s))
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
		b.commit.Close()
	})
	a.create("acme/x", "", `{}`)
	return a, b
}

// park stops the first commit that holds a write until release is closed.
func (r *rig) park(is func(store.Write) bool) (parked, release chan struct{}) {
	parked, release = make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.store.hook(nil, func(batch []store.Write) {
		for _, w := range batch {
			if is(w) {
				once.Do(func() {
					close(parked)
					<-release
				})
			}
		}
	})
	return parked, release
}

func (r *rig) wantAbsent(t *testing.T, path node.Path, absent bool) {
	t.Helper()
	_, err := r.store.Read(t.Context(), path)
	if errors.As(err, new(*store.NotFoundError)) != absent {
		t.Errorf("'%s': %v", path, err)
	}
}

// data §1.4, decision 3
func TestACreateWhoseGroundAnotherProcessHasDeletedIsRefused(t *testing.T) {
	n := node.Node{Path: "acme/x/y/z", Content: node.RawContent(`{}`)}
	first := func(out []nodehub.Outcome, err error) error {
		if err == nil {
			err = out[0].Err
		}
		return err
	}
	for name, create := range map[string]func(b *rig) error{
		"one":    func(b *rig) error { _, err := b.c.Create(b.root, n); return err },
		"many":   func(b *rig) error { return first(b.c.CreateMany(b.root, []node.Node{n})) },
		"import": func(b *rig) error { return first(b.c.Import(b.root, []node.Node{n})) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, shared := range []bool{true, false} { // without: the control
				a, b := two(t, shared)
				parked, release := b.park(func(w store.Write) bool { return w.Node.Path == "acme/x/y/z" })
				ended := make(chan error, 1)
				go func() { ended <- create(b) }()
				<-parked
				if _, err := a.delete("acme/x"); err != nil {
					t.Fatal(err)
				}
				close(release)
				err := <-ended
				var f *message.Failure
				if refused := errors.As(err, &f) && f.Type == message.ShuttingDown && strings.Contains(f.Message, "'acme/x' is being deleted"); refused != shared {
					t.Errorf("shared %v: %v", shared, err)
				}
				a.wantAbsent(t, "acme/x/y/z", shared)
			}
		})
	}
}

// data §1.4, decision 3
func TestWhatAnotherProcessCreatesDuringADeletionGoesWithIt(t *testing.T) {
	for _, made := range []node.Node{
		{Path: "acme/x/y", Content: node.RawContent(`{}`)},
		{Path: "acme/x/_Access/bob_Access", NodeType: node.TypeAccessAssignment, Content: nodehub.AssignmentContent("bob", "Viewer")},
	} {
		t.Run(string(made.Path), func(t *testing.T) {
			for _, shared := range []bool{true, false} { // without: the control
				a, b := two(t, shared)
				parked, release := a.park(func(w store.Write) bool { return w.Op == store.OpDelete && w.Node.Path == "acme/x" })
				ended := make(chan error, 1)
				go func() {
					_, err := a.delete("acme/x")
					ended <- err
				}()
				<-parked // it has looked for the last time before its root goes
				if _, err := b.c.Create(b.root, made); err != nil {
					t.Fatal(err)
				}
				close(release)
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
				a.wantAbsent(t, "acme/x", true)
				a.wantAbsent(t, made.Path, shared)
			}
		})
	}
}

// data §1.4
func TestADeletionWithoutRecursionIsRefusedForAChildThatAnotherProcessHasJustCreated(t *testing.T) {
	for _, shared := range []bool{true, false} { // without: the control
		a, b := two(t, shared)
		parked, release := a.park(func(w store.Write) bool { return w.Op == store.OpDelete && w.Node.Path == "acme/x" })
		ended := make(chan error, 1)
		go func() {
			_, err := a.c.Delete(a.root, "acme/x", false, nodehub.Condition{})
			ended <- err
		}()
		<-parked
		if _, err := b.c.Create(b.root, node.Node{Path: "acme/x/y", Content: node.RawContent(`{}`)}); err != nil {
			t.Fatal(err)
		}
		close(release)
		var children *nodehub.ChildrenError
		if err := <-ended; errors.As(err, &children) != shared {
			t.Errorf("shared %v: %v", shared, err)
		}
		a.wantAbsent(t, "acme/x", !shared)
	}
}

// data §1.4: what is granted at a path is granted to the node that is there
func TestNobodyMakesANodeWhereAnotherProcessHasDeletedOneBeforeItsAssignmentsAreGone(t *testing.T) {
	again := node.Node{Path: "acme/x", Content: node.RawContent(`{}`)}
	below := node.Node{Path: "acme/x/late", Content: node.RawContent(`{}`)}
	first := func(out []nodehub.Outcome, err error) error {
		if err == nil {
			err = out[0].Err
		}
		return err
	}
	for name, create := range map[string]func(b *rig) error{
		"the node":     func(b *rig) error { _, err := b.c.Create(b.root, again); return err },
		"one below it": func(b *rig) error { _, err := b.c.Create(b.root, below); return err },
		"many":         func(b *rig) error { return first(b.c.CreateMany(b.root, []node.Node{again})) },
		"an import":    func(b *rig) error { return first(b.c.Import(b.root, []node.Node{again})) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, shared := range []bool{true, false} { // without: the control
				a, b := two(t, shared)
				if err := a.c.Grant(a.root, "acme/x", "bob", "Editor"); err != nil {
					t.Fatal(err)
				}
				a.store.failing(func(batch []store.Write) error { // as if the process ended there
					if isAssignment(batch[0].Node.Path) {
						return errBroken
					}
					return nil
				})
				_, err := a.delete("acme/x")
				wantErr[*nodehub.PartialDeleteError](t, err)
				a.wantAbsent(t, "acme/x", true)
				if err := create(b); err != nil {
					t.Fatal(err)
				}
				if left := b.left("acme/x"); len(left) > 0 == shared || len(b.journal()) > 0 == shared {
					t.Errorf("shared %v: left %v", shared, left)
				}
			}
		})
	}
	t.Run("bob may no more what he might there", func(t *testing.T) {
		for _, shared := range []bool{true, false} { // without: the control
			a, b := two(t, shared)
			if err := a.c.Grant(a.root, "acme/x", "bob", "Editor"); err != nil {
				t.Fatal(err)
			}
			a.store.failing(func(batch []store.Write) error {
				if isAssignment(batch[0].Node.Path) {
					return errBroken
				}
				return nil
			})
			_, err := a.delete("acme/x")
			wantErr[*nodehub.PartialDeleteError](t, err)
			if _, err := b.c.Create(as("bob"), again); (err == nil) == shared {
				t.Errorf("shared %v: bob makes it again: %v", shared, err)
			}
		}
	})
}
