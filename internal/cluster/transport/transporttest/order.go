package transporttest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hubmesh/hubmesh/internal/cluster/transport"
)

func runOrder(t *testing.T, rig Rig) {
	s := suite{t, rig}
	s.Run("requests to one peer arrive in the order of Call", func(b bench) { // C30
		a, c := b.pair()
		const count = 2000
		for i := range count { // the first wait for the dial, the others do not
			a.Call(c.self, write(fmt.Sprint(i)), func(transport.Answer) {})
			if i == count/2 {
				a.connected(b.t, c.self)
			}
		}
		for i := range count {
			if got := c.h.next(b.t); string(got.r.Body) != fmt.Sprint(i) {
				b.t.Fatalf("request %d is %s", i, got.r.Body)
			}
		}
	})
	s.Run("a peer that does not answer delays no other", func(b bench) { // C30
		a, c := b.pair()
		silo := b.open("silent", 0xd1)
		silo.h.does(silent)
		first := a.call(silo.self, write("kept"))
		second := a.call(transport.Peer{Name: "mute", Epoch: 0xe1, Addr: b.Mute(b.t)}, write("unheard"))
		for i := range 100 {
			a.answered(b.t, c.self, fmt.Sprint(i))
		}
		select {
		case got := <-first:
			b.t.Fatal(got)
		case got := <-second:
			b.t.Fatal(got)
		default:
		}
	})
	s.Run("answers may come in any order", func(b bench) {
		a, c := b.pair()
		c.h.does(silent)
		var answers []<-chan transport.Answer
		for i := range 100 {
			answers = append(answers, a.call(c.self, write(fmt.Sprint(i))))
		}
		var kept []arrived
		for range 100 {
			kept = append(kept, c.h.next(b.t))
		}
		for i := range kept {
			k := kept[(i*37+11)%100]
			k.reply(append([]byte("to "), k.r.Body...))
		}
		for i, answer := range answers {
			if got := wait(b.t, "an answer", answer); got.Err != nil || string(got.Body) != fmt.Sprint("to ", i) {
				b.t.Fatalf("%d: %q %v", i, got.Body, got.Err)
			}
		}
	})
	s.Run("kind, class, body and sender arrive as they were given", func(b bench) {
		a, c := b.pair()
		large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		for _, body := range [][]byte{nil, []byte("x"), large[:511], large[:513], large[:40000], large[:70000], large} {
			for class := transport.Control; class <= transport.Write; class++ {
				r := transport.Request{Kind: uint8(len(body)), Class: class, Body: body}
				answer := a.call(c.self, r)
				got := c.h.next(b.t)
				if diff := cmp.Diff(a.self, got.from); diff != "" {
					b.t.Fatalf("sender (-want +got): %s", diff)
				}
				if got.r.Kind != r.Kind || got.r.Class != r.Class || !bytes.Equal(got.r.Body, r.Body) {
					b.t.Fatalf("%d bytes, %v: arrived as %d bytes, kind %d, %v", len(body), class, len(got.r.Body), got.r.Kind, got.r.Class)
				}
				if back := wait(b.t, "the answer", answer); back.Err != nil || !bytes.Equal(back.Body, body) {
					b.t.Fatalf("%d bytes came back as %d, %v", len(body), len(back.Body), back.Err)
				}
			}
		}
	})
	s.Run("a body that its caller changes after the call, or its handler after the reply, arrives as it was", func(b bench) {
		a, c := b.pair()
		body := func(i int) string {
			return fmt.Sprintf("body %d %s", i, bytes.Repeat([]byte{'a' + byte(i%26)}, i%700+i/2990*20000))
		}
		c.h.does(func(r transport.Request, reply func([]byte)) {
			back := bytes.Clone(r.Body)
			reply(back)
			clear(back)
		})
		var answers []<-chan transport.Answer
		var scratch []byte
		for i := range 3000 {
			scratch = append(scratch[:0], body(i)...)
			answers = append(answers, a.call(c.self, transport.Request{Class: transport.Write, Body: scratch}))
			clear(scratch)
		}
		for i, answer := range answers {
			if got := c.h.next(b.t); string(got.r.Body) != body(i) {
				b.t.Fatalf("body %d has become %q", i, got.r.Body)
			}
			if got := wait(b.t, "the answer", answer); got.Err != nil || string(got.Body) != body(i) {
				b.t.Fatalf("answer %d has become %q, %v", i, got.Body, got.Err)
			}
		}
	})
	s.Run("a new connection is announced before its first request", func(b bench) {
		a, c := b.pair()
		c.h.does(func(r transport.Request, reply func([]byte)) {
			if len(c.h.accepted) == 0 {
				b.t.Error("a request came first")
			}
			reply(nil)
		})
		a.ask(b.t, c.self, transport.Read, "x")
		if got := c.h.nextAccepted(b.t); got != a.self {
			b.t.Fatalf("announced as %+v, not %+v", got, a.self)
		}
	})
}
