package access_test

import (
	"errors"
	"testing"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/node"
)

// edge §2.2: nothing is decided with assignments that may have changed unheard
func TestAnIndexThatIsNotFedDeterminesNothing(t *testing.T) {
	x := load(t, grant("acme", "bob", "Viewer"))
	fed := true
	x.DecideWhile(func() bool { return fed })
	if v := x.Evaluator().Check("bob", "acme", access.Read); v != access.Granted {
		t.Fatalf("the control: %v", v)
	}
	fed = false
	e := x.Evaluator()
	for _, subject := range []access.Subject{"bob", "eve", access.Anonymous, ""} {
		if v := e.Check(subject, "acme", access.Read); v != access.Undetermined || !errors.As(e.Require(subject, "acme", access.Read), new(*access.UndeterminedError)) {
			t.Errorf("%q: %v", subject, v)
		}
		if e.Reaches(subject, "") || e.HoldsNothing(subject) || e.Loaded() {
			t.Errorf("%q: something is decided", subject)
		}
	}
	if v := e.Check(access.System, "acme", access.Administer); v != access.Granted {
		t.Errorf("the program itself: %v", v)
	}
	x.Apply(set(grant("acme", "eve", "Viewer"), 2)) // what is told meanwhile counts afterwards
	fed = true
	if v := x.Evaluator().Check("eve", "acme", access.Read); v != access.Granted {
		t.Errorf("fed again: %v", v)
	}
}

// data §2: a read that follows lost commits takes an assignment back
func TestALoadTakesBackWhatDidNotChangeMeanwhile(t *testing.T) {
	kept, changed := grant("acme", "bob", "Viewer"), grant("acme", "eve", "Viewer")
	kept.Version, changed.Version = 2, 2
	x := load(t, kept, changed)
	withdrawn := func(n node.Node, version int64) access.Change {
		n.Content = node.RawContent(`{"accessObject":"nobody","roles":[]}`)
		return set(n, version)
	}
	x.Apply(withdrawn(kept, 3)) // is lost
	err := x.Load(func(yield func(node.Node, error) bool) {
		x.Apply(withdrawn(changed, 3)) // while the assignments are read
		_ = yield(kept, nil) && yield(changed, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	e := x.Evaluator()
	if v := e.Check("bob", "acme", access.Read); v != access.Granted {
		t.Errorf("what was lost counts: %v", v)
	}
	if v := e.Check("eve", "acme", access.Read); v != access.Denied { // the control
		t.Errorf("what changed while it was read does not count: %v", v)
	}
}
