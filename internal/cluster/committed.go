package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// maxCommitted bounds the addresses of one [wire.Committed]. Where more have changed, all may have.
const maxCommitted = 256

// committedAgain is the pause before a member that did not answer is told again.
const committedAgain = 50 * time.Millisecond

// Follower takes note of what others have committed past the hubs of this process. It is called on the turn.
type Follower interface {
	// Committed calls done once, on the turn, as soon as nothing older than what was committed before the call is
	// answered here for the addresses, or with why that is not known. No addresses are all of them.
	Committed(addrs []string, done func(err error))
}

// Untold is a member that may still answer as before a commit, and what was observed of it.
type Untold struct {
	Silo string
	Why  string
}

// telling tells the members of a view of a commit.
type telling struct {
	addrs []string
	until time.Duration // reading of the clock after which nobody is told again
	left  int
	out   []Untold
	done  func([]Untold)
}

// Tell tells every other member that what stands at addresses was changed in the store without their hubs, and
// waits until each answers from nothing older, is in no view any more, or the time is over. done is called once,
// on the turn, perhaps before Tell returns, with those that are left. One request goes to each member, however
// many addresses there are: who serves what may change meanwhile, and whoever starts a hub later reads the row.
func (k *Core) Tell(addrs []string, within time.Duration, done func([]Untold)) {
	if k.self == 0 {
		done([]Untold{{Silo: k.name(), Why: "is in no view, and told nobody"}})
		return
	}
	if len(addrs) > maxCommitted {
		addrs = nil
	}
	t := &telling{addrs: addrs, until: k.clock.Now() + within, left: 1, done: done}
	for _, m := range k.view.Members() {
		if m.Epoch != k.self {
			t.left++
			k.tell(t, m, "")
		}
	}
	t.over()
}

func (t *telling) over() {
	if t.left--; t.left == 0 {
		slices.SortFunc(t.out, func(a, b Untold) int { return cmp.Compare(a.Silo, b.Silo) })
		t.done(t.out)
	}
}

// tell tells one member. said is what it answered last when it was told before.
func (k *Core) tell(t *telling, m membership.Member, said string) {
	left := t.until - k.clock.Now()
	req := wire.Committed{Head: wire.Head{From: k.self, To: m.Epoch, Key: k.view.Key()}, Addrs: t.addrs}
	k.caller.Call(m, req, left, func(a wire.Answer, err error) {
		why := "it answered something else"
		switch a := a.(type) {
		case wire.OK:
			t.over()
			return
		case wire.WrongEpoch:
			t.over() // that incarnation answers nothing any more
			return
		case wire.Unknown:
			said = a.Why
			why = said
		case nil:
			if why = said; why == "" && err != nil {
				why = err.Error()
			}
		}
		switch {
		case k.self != 0 && !k.view.Has(m.Epoch):
			t.over() // it is out, and knows that it may be
		case k.self == 0 || k.clock.Now()+committedAgain >= t.until:
			t.out = append(t.out, Untold{Silo: m.Name, Why: why})
			t.over()
		default:
			k.clock.After(committedAgain, func() { k.tell(t, m, said) })
		}
	})
}

// committed answers a peer that has told of a commit.
func (s *Silo) committed(addrs []string, answer func(wire.Answer)) {
	f, ok := s.parts.Host.(Follower)
	if !ok {
		answer(wire.OK{})
		return
	}
	f.Committed(addrs, func(err error) {
		if err != nil {
			answer(wire.Unknown{Why: err.Error()})
			return
		}
		answer(wire.OK{})
	})
}
