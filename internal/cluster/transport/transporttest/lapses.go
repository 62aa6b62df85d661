package transporttest

import (
	"errors"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/transport"
)

func runLapses(t *testing.T, rig Rig) {
	s := suite{t, rig}
	s.Run("a peer that never answers costs the request's own bound", func(b bench) {
		a, c := b.pair()
		c.h.does(silent)
		a.connected(b.t, c.self)
		start := time.Now()
		long := a.call(c.self, transport.Request{Class: transport.Read, Body: []byte("long"), Within: time.Hour})
		short := a.call(c.self, transport.Request{Class: transport.Read, Body: []byte("short"), Within: 40 * time.Millisecond})
		got := wait(b.t, "the lapse", short)
		var late *transport.LateError
		if !errors.As(got.Err, &late) || !late.Sent || late.Within != 40*time.Millisecond {
			b.t.Fatal(got.Err)
		}
		if took := time.Since(start); took < 40*time.Millisecond {
			b.t.Fatalf("lapsed after %v", took)
		}
		first, second := c.h.next(b.t), c.h.next(b.t)
		second.reply([]byte("late"))
		first.reply([]byte("in time"))
		if got := wait(b.t, "the other answer", long); got.Err != nil {
			b.t.Fatal(got.Err)
		}
		if s := a.stats(0xb1); s.Discarded != 1 || s.Late != 1 || s.Answered != 1 || s.Pending != 0 {
			b.t.Fatalf("%+v", s)
		}
	})
	s.Run("a request that lapses before it is written is never written", func(b bench) {
		a := b.open("a", 0xa1, slowDial) // the lapse comes first on any machine
		to := transport.Peer{Name: "mute", Epoch: 0xe1, Addr: b.Mute(b.t)}
		first := a.call(to, transport.Request{Class: transport.Write, Body: []byte("short"), Within: 10 * time.Millisecond})
		second := a.call(to, transport.Request{Class: transport.Write, Body: []byte("long")})
		var late *transport.LateError
		if got := wait(b.t, "the lapse", first); !errors.As(got.Err, &late) || late.Sent {
			b.t.Fatal(got.Err)
		}
		if s := a.stats(0xe1); s.QueueLen != 1 && s.FailedDials == 0 {
			b.t.Fatalf("%+v", s)
		}
		notSent(b.t, wait(b.t, "the failed dial", second).Err, transport.Unreachable)
	})
	s.Run("a bound of a later call that ends earlier is kept", func(b bench) {
		a, c := b.pair()
		c.h.does(silent)
		bounds := []time.Duration{time.Hour, 200 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond, time.Millisecond}
		var ends []<-chan transport.Answer
		for _, d := range bounds {
			ends = append(ends, a.call(c.self, transport.Request{Class: transport.Read, Within: d}))
		}
		for _, i := range []int{4, 2, 3, 1} {
			var late *transport.LateError
			if got := wait(b.t, bounds[i].String(), ends[i]); !errors.As(got.Err, &late) || late.Within != bounds[i] {
				b.t.Fatal(got.Err)
			}
		}
	})
}
