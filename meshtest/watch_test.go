package meshtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/mirror"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
)

// viewer looks at one node like a page: it applies the frames it gets, comes back with the version it
// holds when its watch ends, and goes to another silo when its own is gone.
type viewer struct {
	path node.Path
	pick func() *Silo

	mu     sync.Mutex
	held   node.Node
	frames int
	opened int
	faults []error
}

func (v *viewer) run(ctx context.Context) {
	for ctx.Err() == nil {
		if s := v.pick(); s != nil {
			v.follow(ctx, s)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// follow reads a watch until it ends.
func (v *viewer) follow(ctx context.Context, s *Silo) {
	v.mu.Lock()
	since := v.held.Version
	v.mu.Unlock()
	w, err := s.Mirrors.Watch(ctx, v.path, since)
	for err == nil {
		var f mirror.Frame
		if f, err = w.Next(ctx); err == nil {
			v.take(f)
		}
	}
	if w != nil {
		v.mu.Lock()
		v.opened++
		v.mu.Unlock()
		w.Close()
	}
	if ctx.Err() == nil && !errors.Is(err, mirror.ErrClosed) && !message.IsTransient(err) && !errors.As(err, new(*budget.Lapse)) {
		v.fault("the watch ended with %v", err)
	}
}

func (v *viewer) fault(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faults = append(v.faults, fmt.Errorf(format, args...))
}

// take applies a frame, and minds the gaps and the repeats.
func (v *viewer) take(f mirror.Frame) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.frames++
	held := v.held.Version
	switch {
	case f.Kind == mirror.Current && f.Version == held:
	case f.Kind == mirror.Current || f.Version <= held:
		v.faults = append(v.faults, fmt.Errorf("frame %d of version %d after version %d", f.Kind, f.Version, held))
	case f.Kind == mirror.Full:
		v.held = f.Node
	case f.Kind == mirror.Patch && f.BasedOn != held:
		v.faults = append(v.faults, fmt.Errorf("a patch on version %d, held is %d", f.BasedOn, held))
	case f.Kind == mirror.Patch:
		text, err := v.held.MarshalJSON()
		if err == nil {
			var merged node.Content
			if merged, err = node.MergePatch(node.RawContent(string(text)), f.Patch); err == nil {
				err = v.held.UnmarshalJSON([]byte(merged.Text()))
			}
		}
		if err != nil {
			v.faults = append(v.faults, err)
		}
	}
}

// at waits until the viewer holds a version.
func (v *viewer) at(c *Cluster, version int64) {
	c.Wait(fmt.Sprintf("the viewer of %s to see version %d", v.path, version), func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.held.Version >= version
	})
}

// check compares what is held with what is stored.
func (v *viewer) check(t *testing.T, stored node.Node) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, err := range v.faults {
		t.Errorf("viewer of %s: %v", v.path, err)
	}
	if v.frames > 0 && !v.held.SameAs(stored) {
		t.Errorf("viewer of %s holds version %d, stored is %d", v.path, v.held.Version, stored.Version)
	}
}

// faults 18 and 19
// SY-4, C28
// invariant 63
func TestAWatchGoesOnFromItsVersionWhenItsOwnerDiesMovesOrStartsAgain(t *testing.T) {
	mesh(t, Options{Seed: 5, Silos: 3}, func(t *testing.T, c *Cluster) {
		c.create(t, "acme", "acme/a")
		ctx, stop := context.WithCancel(system(t))
		var work sync.WaitGroup
		defer work.Wait()
		defer stop()
		owner := func() *Silo {
			for _, s := range c.Silos() {
				if s.Mesh.Find("acme/a") != nil {
					return s
				}
			}
			return nil
		}
		if _, err := c.Silo("s1").Nodes.Get(ctx, "acme/a"); err != nil {
			t.Fatal(err)
		}
		first := owner()
		reader := c.Silos()[0]
		if reader == first {
			reader = c.Silos()[1]
		}
		v := &viewer{path: "acme/a", pick: func() *Silo { return reader }}
		work.Go(func() { v.run(ctx) })
		n := 0
		write := func(from *Silo) {
			n++
			var got node.Node
			c.Wait("a write to be acknowledged", func() bool {
				var err error
				got, err = from.Nodes.Patch(ctx, "acme/a", fmt.Appendf(nil, `{"description":"%d"}`, n), nodehub.Condition{})
				return err == nil
			})
			v.at(c, got.Version)
		}
		write(reader)
		first.Crash() // dies
		for _, s := range c.Silos() {
			if s != reader {
				write(s)
			}
		}
		second := owner()
		if second == nil || second == first || second == reader {
			t.Fatal("the silo that wrote did not take the node over")
		}
		if err := second.Leave(ctx); err != nil { // moves
			t.Fatal(err)
		}
		write(reader)
		c.Add("s3")
		c.WaitJoined()
		write(c.Silo("s3"))
		stop()
		work.Wait()
		stored, err := c.Store.Read(system(t), "acme/a")
		if err != nil {
			t.Fatal(err)
		}
		v.check(t, stored)
		if v.opened != 1 {
			t.Errorf("the watch was opened %d times: an owner's end ended it", v.opened)
		}
	})
}
