package nodehub_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

// data §1.3.1, §1.3.4, issue 4: where hubs of other processes write the same rows, what is held decides nothing
func TestWhatAnotherProcessAcknowledgedDecidesWhetherAWriteIsNeededAndMayBeMade(t *testing.T) {
	const on, off = `{"on":true}`, `{"on":false}`
	content := func(text string) string { return `{"content":` + text + `}` }
	for name, c := range map[string]struct {
		elsewhere string // what another process writes: "" deletes
		write     func(r *rig) (node.Node, error)
		want      string // "version content", or what the error is
		held      string // the same where what is held decides: the control
	}{
		"a patch that changes nothing here": {elsewhere: off, want: "3 " + on, held: "1 " + on, write: func(r *rig) (node.Node, error) {
			return r.c.Patch(r.root, "acme/x", []byte(content(on)), nodehub.Condition{})
		}},
		"a patch that changes nothing there": {elsewhere: off, want: "2 " + off, held: "2 " + off, write: func(r *rig) (node.Node, error) {
			return r.c.Patch(r.root, "acme/x", []byte(content(off)), nodehub.Condition{})
		}},
		"a put of what is held": {elsewhere: off, want: "3 " + on, held: "1 " + on, write: func(r *rig) (node.Node, error) {
			n, _, err := r.c.Put(r.root, node.Node{Path: "acme/x", State: node.StateActive, Content: node.RawContent(on)}, nodehub.Condition{})
			return n, err
		}},
		"a put of what was deleted": {want: "3 " + on, held: "1 " + on, write: func(r *rig) (node.Node, error) {
			n, _, err := r.c.Put(r.root, node.Node{Path: "acme/x", State: node.StateActive, Content: node.RawContent(on)}, nodehub.Condition{})
			return n, err
		}},
		"an old version as the condition of a change that is none": {elsewhere: off, want: "conflict with 2", held: "1 " + on, write: func(r *rig) (node.Node, error) {
			return r.c.Patch(r.root, "acme/x", []byte(content(on)), nodehub.Condition{Version: 1})
		}},
		"an old version as the condition of a change": {elsewhere: off, want: "conflict with 2", held: "conflict with 2", write: func(r *rig) (node.Node, error) {
			return r.c.Patch(r.root, "acme/x", []byte(`{"name":"n"}`), nodehub.Condition{Version: 1})
		}},
		"the acknowledged version as the condition": {elsewhere: off, want: "3 " + off, held: "conflict with 1", write: func(r *rig) (node.Node, error) {
			return r.c.Patch(r.root, "acme/x", []byte(`{"name":"n"}`), nodehub.Condition{Version: 2})
		}},
		"that there is none, after an acknowledged deletion": {want: "3 " + off, held: "exists", write: func(r *rig) (node.Node, error) {
			n, _, err := r.c.Put(r.root, node.Node{Path: "acme/x", State: node.StateActive, Content: node.RawContent(off)}, nodehub.Condition{Absent: true})
			return n, err
		}},
		"that there is none, where there is one": {elsewhere: off, want: "exists", held: "exists", write: func(r *rig) (node.Node, error) {
			n, _, err := r.c.Put(r.root, node.Node{Path: "acme/x", State: node.StateActive, Content: node.RawContent(on)}, nodehub.Condition{Absent: true})
			return n, err
		}},
	} {
		for _, rivals := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", rivals ", rivals), func(t *testing.T) {
				r := newRig(t, func(o *nodehub.Options) { o.Shared, o.Rivals = true, rivals })
				n := r.create("acme/x", "", on)
				r.get("acme/x") // its hub holds version 1
				r.stop()        // and is told nothing any more
				w := store.Write{Op: store.OpDelete, Expected: 1}
				if n.Version = 2; c.elsewhere != "" {
					w.Op, n.Content = store.OpUpdate, node.RawContent(c.elsewhere)
				}
				w.Node = n
				if res, err := r.store.Store.Commit(r.root, []store.Write{w}); err != nil || res[0].Err != nil {
					t.Fatal(res, err)
				}
				n, err := c.write(r)
				got := fmt.Sprint(n.Version, " ", n.Content.Text())
				var conflict *store.ConflictError
				switch {
				case errors.As(err, &conflict):
					got = fmt.Sprint("conflict with ", conflict.Actual)
				case errors.As(err, new(*store.ExistsError)):
					got = "exists"
				case err != nil:
					got = err.Error()
				}
				want := map[bool]string{true: c.want, false: c.held}[rivals]
				if got != want {
					t.Errorf("%s, want %s", got, want)
				}
				if !rivals || err != nil {
					return
				}
				if stored, err := r.store.Store.Read(r.root, "acme/x"); err != nil || stored.Version != n.Version || stored.Content.Text() != n.Content.Text() {
					t.Errorf("stored is version %d, %s: %v", stored.Version, stored.Content.Text(), err)
				}
			})
		}
	}
}

// data §1.3.1: the only writer of a row does not read it again
func TestTheOnlyWriterOfARowReadsNothingForAWriteThatChangesNothing(t *testing.T) {
	for _, rivals := range []bool{false, true} {
		r := newRig(t, func(o *nodehub.Options) { o.Shared, o.Rivals = true, rivals })
		r.create("acme/x", "", `{"on":true}`)
		r.get("acme/x")
		reads := func() int {
			r.store.mu.Lock()
			defer r.store.mu.Unlock()
			return r.store.reads["acme/x"]
		}
		before := reads()
		for range 10 {
			r.patch("acme/x", `{"content":{"on":true}}`)
		}
		if n, want := reads()-before, map[bool]int{true: 10}[rivals]; n != want {
			t.Errorf("rivals %v: %d reads, want %d", rivals, n, want)
		}
	}
}
