package transporttest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/hubmesh/hubmesh/internal/cluster/transport"
)

func runBreaks(t *testing.T, rig Rig) {
	s := suite{t, rig}
	s.Run("a broken connection answers all that is pending at once, and the next call dials", func(b bench) { // protocol §2
		a, c := b.pair()
		c.h.does(silent)
		var pending []<-chan transport.Answer
		for i := range 10000 {
			pending = append(pending, a.call(c.self, write(fmt.Sprint(i))))
		}
		for range 10000 {
			c.h.next(b.t)
		}
		b.Break(b.t, "b")
		for _, p := range pending {
			lost(b.t, wait(b.t, "an outcome", p).Err, transport.Broken)
		}
		if got := wait(b.t, "the break", a.h.broken); got.to != c.self {
			b.t.Fatalf("%+v", got)
		}
		c.h.does(nil)
		a.answered(b.t, c.self, "again")
		if s := a.stats(0xb1); s.Reconnects != 1 || !s.Connected {
			b.t.Fatalf("%+v", s)
		}
	})
	s.Run("Drop loses what was written, refuses what was not, and is not told as a break", func(b bench) {
		a, c := b.pair()
		c.h.does(silent)
		written := a.call(c.self, write("written"))
		c.h.next(b.t)
		cause := errors.New("no pong for 1.5 s")
		a.Drop(0xb1, cause)
		if got := wait(b.t, "the outcome", written); !errors.Is(got.Err, cause) {
			b.t.Fatal(got.Err)
		} else {
			lost(b.t, got.Err, transport.Dropped)
		}
		to := transport.Peer{Name: "mute", Epoch: 0xe1, Addr: b.Mute(b.t)}
		connect := make(chan error, 1)
		a.Connect(to, func(err error) { connect <- err })
		unwritten := a.call(to, write("unwritten"))
		a.Drop(0xe1, cause)
		notSent(b.t, wait(b.t, "the outcome", unwritten).Err, transport.Dropped)
		if err := wait(b.t, "the connect", connect); !errors.Is(err, cause) {
			b.t.Fatal(err)
		}
		c.h.does(nil)
		a.answered(b.t, c.self, "again")
		if len(a.h.broken) != 0 {
			b.t.Fatal("told as a break")
		}
	})
	s.Run("a peer that restarts at its address is another peer; what was for the old one ends at once", func(b bench) { // fault 7
		a, c := b.pair()
		c.h.does(silent)
		old := a.call(c.self, write("for the old"))
		c.h.next(b.t)
		b.Crash(b.t, "b")
		lost(b.t, wait(b.t, "the outcome", old).Err, transport.Broken)
		wait(b.t, "the break", a.h.broken)
		next := b.open("b", 0xb2)
		if next.self.Addr != c.self.Addr {
			b.t.Fatalf("%+v, %+v", c.self, next.self)
		}
		err := a.connect(b.t, c.self)
		var epoch *transport.EpochError
		if !errors.As(err, &epoch) || epoch.Want != 0xb1 || epoch.Have != 0xb2 {
			b.t.Fatal(err)
		}
		notSent(b.t, a.ask(b.t, c.self, transport.Write, "for the old").Err, transport.Refused)
		a.answered(b.t, next.self, "for the new")
		if next.h.handled("for the old") != 0 {
			b.t.Fatal("a request for the old incarnation reached the new one")
		}
	})
	s.Run("a newer connection of a peer fences what still comes on its older one", func(b bench) { // protocol §1
		a, c := b.pair()
		a.answered(b.t, c.self, "first")
		carries, release := b.Lag(b.t, "a", "b")
		late := a.call(c.self, write("late"))
		carries()
		a.Drop(0xb1, errors.New("redial"))
		lost(b.t, wait(b.t, "the outcome", late).Err, transport.Dropped)
		a.answered(b.t, c.self, "second")
		release()
		a.answered(b.t, c.self, "third")
		if c.h.handled("late") != 0 {
			b.t.Fatal("the older connection was not fenced")
		}
	})
	s.Run("without a newer connection, what a closed one still carries is handled", func(b bench) { // protocol §1: the control of the fence
		a, c := b.pair()
		a.answered(b.t, c.self, "first")
		c.h.next(b.t)
		carries, release := b.Lag(b.t, "a", "b")
		a.call(c.self, write("late"))
		carries()
		a.Drop(0xb1, errors.New("closed"))
		release()
		if got := c.h.next(b.t); string(got.r.Body) != "late" {
			b.t.Fatalf("%s", got.r.Body)
		}
	})
}
