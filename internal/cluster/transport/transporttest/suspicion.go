package transporttest

import (
	"errors"
	"testing"

	"github.com/hubmesh/hubmesh/internal/cluster/transport"
)

func runSuspicion(t *testing.T, rig Rig) {
	s := suite{t, rig}
	s.Run("suspicion answers the reads in flight and leaves writes", func(b bench) { // protocol §7
		a, c := b.pair()
		c.h.does(silent)
		read := a.call(c.self, transport.Request{Class: transport.Read, Body: []byte("r")})
		write := a.call(c.self, write("w"))
		control := a.call(c.self, transport.Request{Class: transport.Control, Body: []byte("c")})
		for range 3 {
			c.h.next(b.t)
		}
		a.Suspect(0xb1, true)
		lost(b.t, wait(b.t, "the read", read).Err, transport.Suspect)
		for _, k := range c.h.got {
			k.reply(k.r.Body) // the answer to the read is too late
		}
		for _, answer := range []<-chan transport.Answer{write, control} {
			if got := wait(b.t, "the answer", answer); got.Err != nil {
				b.t.Fatal(got.Err)
			}
		}
		if s := a.stats(0xb1); s.Discarded != 1 || s.Lost != 1 || !s.Suspect {
			b.t.Fatalf("%+v", s)
		}
	})
	s.Run("a suspect peer gets pings and nothing else until the mark is cleared", func(b bench) { // protocol §2
		a, c := b.pair()
		a.answered(b.t, c.self, "before")
		a.Suspect(0xb1, true)
		for _, class := range []transport.Class{transport.Control, transport.Read, transport.Write} {
			notSent(b.t, a.ask(b.t, c.self, class, "refused").Err, transport.Suspect)
		}
		if got := a.ask(b.t, c.self, transport.Ping, "ping"); got.Err != nil {
			b.t.Fatal(got.Err)
		}
		a.Suspect(0xb1, false)
		a.answered(b.t, c.self, "after")
		if c.h.handled("refused") != 0 {
			b.t.Fatal("a refused request arrived")
		}
	})
	s.Run("reads that wait for the dial are not sent when the peer becomes suspect", func(b bench) {
		a := b.open("a", 0xa1)
		to := transport.Peer{Name: "mute", Epoch: 0xe1, Addr: b.Mute(b.t)}
		read := a.call(to, transport.Request{Class: transport.Read, Body: []byte("r")})
		held := a.call(to, write("w"))
		a.Suspect(0xe1, true)
		notSent(b.t, wait(b.t, "the read", read).Err, transport.Suspect)
		if s := a.stats(0xe1); s.QueueLen != 1 || s.Pending != 1 || s.QueueBytes != 1 {
			b.t.Fatalf("%+v", s)
		}
		a.Drop(0xe1, errors.New("done"))
		notSent(b.t, wait(b.t, "the write", held).Err, transport.Dropped)
	})
	s.Run("the mark holds for a peer that was never called, and over a new connection", func(b bench) {
		a, c := b.pair()
		a.Suspect(0xb1, true)
		notSent(b.t, a.ask(b.t, c.self, transport.Read, "x").Err, transport.Suspect)
		a.connected(b.t, c.self)
		a.Drop(0xb1, errors.New("redial"))
		a.connected(b.t, c.self)
		notSent(b.t, a.ask(b.t, c.self, transport.Read, "x").Err, transport.Suspect)
		a.Suspect(0xb1, false)
		a.answered(b.t, c.self, "y")
	})
}
