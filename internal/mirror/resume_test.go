package mirror

import (
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// stampAt is the stamp of a row that was modified at a second.
func stampAt(second int64) string { return stampOf(node.Node{ModifiedAt: time.Unix(second, 0)}) }

// put has a row stand at a version, modified at a second: the newest one, or else only a past one.
func (w *world) put(path node.Path, version, second int64, newest bool) {
	n := node.Node{Path: path, MainNode: path, State: node.StateActive, Version: version, ModifiedAt: time.Unix(second, 0)}
	n.Content = node.RawContent(`{"stands":"` + stampOf(n) + `"}`)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.past[path] == nil {
		w.past[path] = map[int64]node.Node{}
	}
	w.past[path][version] = n
	if newest {
		w.rows[path] = n
	}
}

// data §2, issue 4: after a failover that lost commits, or a restored backup, the version alone names no row
func TestAReaderThatComesBackWithAnotherRowThanStandsAtItsVersionStartsAnew(t *testing.T) {
	const kept, lost = 50, 99 // seconds
	stands := func(newest int64, past ...int64) func(*world) {
		return func(w *world) {
			for _, version := range past {
				w.put("a", version, kept+version, false)
			}
			w.put("a", newest, kept+newest, true)
		}
	}
	for name, c := range map[string]struct {
		stored func(*world)
		since  int64
		stamp  string
		want   Frame
	}{
		"at the newest version":                             {stands(5), 5, stampAt(lost), Frame{Kind: Full, Version: 5, Reset: true}},
		"the control: its row stands there":                 {stands(5), 5, stampAt(kept + 5), Frame{Kind: Current, Version: 5}},
		"the control: it knows the version alone":           {stands(5), 5, "", Frame{Kind: Current, Version: 5}},
		"at a version of the past":                          {stands(6, 5), 5, stampAt(lost), Frame{Kind: Full, Version: 6, Reset: true}},
		"the control: its row is in the past":               {stands(6, 5), 5, stampAt(kept + 5), Frame{Kind: Patch, Version: 6, BasedOn: 5}},
		"the control: it knows the past version alone":      {stands(6, 5), 5, "", Frame{Kind: Patch, Version: 6, BasedOn: 5}},
		"a version that is not kept says nothing of a loss": {stands(6), 5, stampAt(lost), Frame{Kind: Full, Version: 6}},
		"at a version that is not there yet":                {stands(6), 7, stampAt(lost), Frame{Kind: Full, Version: 6, Reset: true}},
		"at one that an owner has not heard of":             {stands(6, 7), 7, stampAt(lost), Frame{Kind: Full, Version: 6, Reset: true}},
		"the control: its row is what the owner waits for":  {stands(6, 7), 7, stampAt(kept + 7), Frame{Kind: Full, Version: 6}},
		"with a deletion, which was lost":                   {stands(5), 5, noRow, Frame{Kind: Full, Version: 5, Reset: true}},
		"with a deletion that stands, before a new life":    {stands(6), 5, noRow, Frame{Kind: Full, Version: 6}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			c.stored(w)
			watch, err := w.hub.Resume(t.Context(), "a", c.since, c.stamp)
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Close()
			f := next(t, watch)
			if f.Kind != c.want.Kind || f.Version != c.want.Version || f.BasedOn != c.want.BasedOn || f.Reset != c.want.Reset {
				t.Errorf("%+v, want %+v", f, c.want)
			}
			if f.Stamp != stampAt(kept+f.Version) {
				t.Errorf("version %d has the stamp %s", f.Version, f.Stamp)
			}
			n := w.rows["a"]
			n.Version, n.ModifiedAt, n.Name = 8, time.Unix(kept+8, 0), "later"
			w.hub.Changed(store.Change{Kind: store.Updated, Path: "a", Node: n, Version: n.Version})
			if g := next(t, watch); g.Kind != Patch || g.BasedOn != f.Version || g.Stamp != stampAt(kept+8) || g.Reset {
				t.Errorf("then %+v", g)
			}
		})
	}
}

// data §2, issue 4
func TestAReaderWhoseRowWasLostIsToldOfTheDeletionThatStandsInItsPlace(t *testing.T) {
	for stamp, reset := range map[string]bool{stampAt(99): true, noRow: false, "": false} {
		w := newWorld()
		w.put("a", 4, 4, true)
		watch, err := w.hub.Resume(t.Context(), "a", 5, stamp)
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Close()
		w.remove("a", 5) // before the first frame
		if f := next(t, watch); f.Kind != Deleted || f.Version != 5 || f.Stamp != noRow || f.Reset != reset {
			t.Errorf("with the stamp %q: %+v", stamp, f)
		}
	}
}
