package transporttest

import (
	"errors"
	"testing"

	"github.com/hubmesh/hubmesh/internal/cluster/transport"
)

func runLifecycle(t *testing.T, rig Rig) {
	s := suite{t, rig}
	s.Run("Close answers everything, and what comes after it", func(b bench) {
		a, c := b.pair()
		c.h.does(silent)
		written := a.call(c.self, write("written"))
		c.h.next(b.t)
		unwritten := a.call(transport.Peer{Name: "mute", Epoch: 0xe1, Addr: b.Mute(b.t)}, write("unwritten"))
		if err := a.Close(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
		select {
		case got := <-written:
			lost(b.t, got.Err, transport.Closed)
		default:
			b.t.Fatal("Close left a request without an outcome")
		}
		notSent(b.t, wait(b.t, "the outcome", unwritten).Err, transport.Closed)
		notSent(b.t, a.ask(b.t, c.self, transport.Ping, "x").Err, transport.Closed)
		notSent(b.t, a.ask(b.t, transport.Peer{Name: "new", Epoch: 0xf1, Addr: c.self.Addr}, transport.Ping, "x").Err, transport.Closed)
		notSent(b.t, a.connect(b.t, c.self), transport.Closed)
		if err := a.Close(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
		if len(a.h.broken) != 0 {
			b.t.Fatal("told as a break")
		}
	})
	s.Run("a silo that closes has written the answers that it gave", func(b bench) {
		a, c := b.pair()
		c.h.does(silent)
		var answers []<-chan transport.Answer
		for range 500 {
			answers = append(answers, a.call(c.self, write("x")))
		}
		var kept []arrived
		for range 500 {
			kept = append(kept, c.h.next(b.t))
		}
		for _, k := range kept {
			k.reply(make([]byte, 2000))
		}
		c.Close(b.t.Context())
		for _, answer := range answers {
			if got := wait(b.t, "an answer", answer); got.Err != nil {
				b.t.Fatal(got.Err)
			}
		}
		if got := wait(b.t, "the break", a.h.broken); got.to != c.self {
			b.t.Fatalf("%+v", got)
		}
	})
	s.Run("a new epoch closes what spoke for the old one, and is carried", func(b bench) { // protocol §2: evicted
		a, c := b.pair()
		a.answered(b.t, c.self, "as a1")
		c.answered(b.t, a.self, "to a1")
		c.h.does(silent)
		pending := a.call(c.self, write("pending"))
		for c.h.handled("pending") == 0 {
			c.h.next(b.t)
		}
		a.SetEpoch(0)
		lost(b.t, wait(b.t, "the outcome", pending).Err, transport.Dropped)
		notSent(b.t, a.ask(b.t, c.self, transport.Ping, "x").Err, transport.NoEpoch)
		wait(b.t, "the break of the other direction", c.h.broken)
		var epoch *transport.EpochError
		if err := c.connect(b.t, a.self); !errors.As(err, &epoch) || epoch.Have != 0 {
			b.t.Fatal(err)
		}
		a.SetEpoch(0xa2)
		c.h.does(nil)
		a.answered(b.t, c.self, "as a2")
		for got := c.h.next(b.t); string(got.r.Body) != "as a2"; got = c.h.next(b.t) {
			if got.from.Epoch != 0xa1 {
				b.t.Fatalf("%+v", got.from)
			}
		}
		c.answered(b.t, a.Self(), "to a2")
		if a.Self().Epoch != 0xa2 || !c.stats(0xa2).Accepted {
			b.t.Fatalf("%+v", c.Peers())
		}
	})
	s.Run("a forgotten incarnation has neither connection nor metrics", func(b bench) {
		a, c := b.pair()
		a.answered(b.t, c.self, "x")
		a.Suspect(0xb1, true)
		a.Forget(0xb1)
		if got := a.Peers(); len(got) != 0 {
			b.t.Fatalf("%+v", got)
		}
		a.answered(b.t, c.self, "a new start")
		a.Suspect(0xe1, true)
		a.Forget(0xe1)
		a.Forget(0xe2)
	})
	s.Run("the metrics of both ends add up", func(b bench) { // fault 17
		a, c := b.open("a", 0xa1, limits(transport.Limits{Body: 1000})), b.open("b", 0xb1)
		a.answered(b.t, c.self, "12345")
		a.answered(b.t, c.self, "123456789")
		a.ask(b.t, c.self, transport.Read, string(make([]byte, 1001)))
		a.Suspect(0xb1, true)
		a.ask(b.t, c.self, transport.Read, "x")
		a.Suspect(0xb1, false)
		s, other := a.stats(0xb1), c.stats(0xa1)
		if s.Calls != 4 || s.Answered != 2 || s.NotSent != 2 || s.Refused[transport.TooLarge] != 1 || s.Refused[transport.Suspect] != 1 {
			b.t.Fatalf("%+v", s)
		}
		const bytes = 2*15 + 14
		if s.FramesOut != 2 || s.FramesIn != 2 || s.BytesOut != bytes || s.BytesIn != bytes {
			b.t.Fatalf("%+v", s)
		}
		if other.FramesIn != 2 || other.FramesOut != 2 || other.BytesIn != bytes || other.BytesOut != bytes || !other.Accepted || other.Connected {
			b.t.Fatalf("%+v", other)
		}
	})
}
