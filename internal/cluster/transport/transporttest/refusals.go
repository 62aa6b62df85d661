package transporttest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/cluster/transport"
)

func runRefusals(t *testing.T, rig Rig) {
	s := suite{t, rig}
	s.Run("a full queue refuses at once, and takes pings", func(b bench) {
		a := b.open("a", 0xa1, limits(transport.Limits{QueueFrames: 10}))
		to := transport.Peer{Name: "mute", Epoch: 0xe1, Addr: b.Mute(b.t)}
		for range 10 {
			a.call(to, write("waits"))
		}
		notSent(b.t, a.ask(b.t, to, transport.Write, "one too many").Err, transport.Overloaded)
		ping := a.call(to, transport.Request{Class: transport.Ping})
		notSent(b.t, a.ask(b.t, to, transport.Control, "one too many").Err, transport.Overloaded)
		if s := a.stats(0xe1); s.QueueLen != 11 || s.Refused[transport.Overloaded] != 2 {
			b.t.Fatalf("%+v", s)
		}
		select {
		case got := <-ping:
			b.t.Fatal(got)
		default:
		}
	})
	s.Run("a queue is bounded in bytes", func(b bench) {
		a := b.open("a", 0xa1, limits(transport.Limits{Body: 1000, QueueBytes: 2500}))
		to := transport.Peer{Name: "mute", Epoch: 0xe1, Addr: b.Mute(b.t)}
		a.call(to, write(strings.Repeat("x", 1000)))
		a.call(to, write(strings.Repeat("x", 1000)))
		notSent(b.t, a.ask(b.t, to, transport.Write, strings.Repeat("x", 501)).Err, transport.Overloaded)
		a.call(to, write(strings.Repeat("x", 500)))
		if s := a.stats(0xe1); s.QueueBytes != 2500 {
			b.t.Fatalf("%+v", s)
		}
	})
	s.Run("requests without an answer are bounded", func(b bench) {
		a, c := b.open("a", 0xa1, limits(transport.Limits{Pending: 5})), b.open("b", 0xb1)
		c.h.does(silent)
		for range 5 {
			a.call(c.self, write("x"))
		}
		notSent(b.t, a.ask(b.t, c.self, transport.Write, "y").Err, transport.Overloaded)
		c.h.next(b.t).reply(nil)
	})
	s.Run("a body above the limit is refused with sizes and without the payload", func(b bench) { // C31
		a, c := b.open("a", 0xa1, limits(transport.Limits{Body: 100})), b.open("b", 0xb1)
		a.answered(b.t, c.self, strings.Repeat("y", 100))
		got := a.ask(b.t, c.self, transport.Write, strings.Repeat("secret", 17))
		notSent(b.t, got.Err, transport.TooLarge)
		var large *transport.TooLargeError
		if !errors.As(got.Err, &large) || large.Size != 102 || large.Max != 100 || strings.Contains(got.Err.Error(), "secret") {
			b.t.Fatal(got.Err)
		}
	})
	s.Run("the smaller limit of both ends holds, for requests that wait for the dial too", func(b bench) { // C31
		a, c := b.open("a", 0xa1), b.open("b", 0xb1, limits(transport.Limits{Body: 100}))
		fits, waits := a.call(c.self, write("fits")), a.call(c.self, write(strings.Repeat("x", 101)))
		notSent(b.t, wait(b.t, "the refusal", waits).Err, transport.TooLarge)
		if got := wait(b.t, "the answer", fits); got.Err != nil {
			b.t.Fatal(got.Err)
		}
		notSent(b.t, a.ask(b.t, c.self, transport.Write, strings.Repeat("x", 101)).Err, transport.TooLarge)
		if n := c.h.handled(strings.Repeat("x", 101)); n != 0 {
			b.t.Fatal("it arrived")
		}
	})
	s.Run("an answer above the limit leaves the outcome unknown and says why", func(b bench) { // C31
		a, c := b.open("a", 0xa1, limits(transport.Limits{Body: 100})), b.open("b", 0xb1)
		c.h.does(func(_ transport.Request, reply func([]byte)) { reply(make([]byte, 101)) })
		got := a.ask(b.t, c.self, transport.Write, "x")
		lost(b.t, got.Err, transport.TooLarge)
		var large *transport.TooLargeError
		if !errors.As(got.Err, &large) || large.Size != 101 || large.Max != 100 {
			b.t.Fatal(got.Err)
		}
	})
	s.Run("an address where nobody listens is unreachable at once, and many calls are few dials", func(b bench) {
		a, c := b.pair()
		b.Crash(b.t, "b")
		notSent(b.t, a.ask(b.t, c.self, transport.Write, "x").Err, transport.Unreachable)
		var dial *transport.DialError
		if got := wait(b.t, "the failed dial", a.h.broken); got.to != c.self || !errors.As(got.cause, &dial) {
			b.t.Fatalf("%+v", got)
		}
		for i := range 1000 {
			notSent(b.t, a.ask(b.t, c.self, transport.Write, fmt.Sprint(i)).Err, transport.Unreachable)
		}
		if s := a.stats(0xb1); s.Dials > 500 || s.FailedDials != s.Dials || s.Connected {
			b.t.Fatalf("%d dials for 1000 calls, %d failed", s.Dials, s.FailedDials)
		}
		before := a.stats(0xb1).Dials
		if err := a.connect(b.t, c.self); !errors.As(err, &dial) || a.stats(0xb1).Dials != before+1 {
			b.t.Fatalf("Connect did not dial: %v", err)
		}
	})
}
