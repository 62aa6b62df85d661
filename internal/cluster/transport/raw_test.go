package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
)

// spy is a handler and a log that tell a test what happens.
type spy struct {
	requests chan Request
	replies  chan func([]byte)
	accepted chan Peer
	broken   chan error
	lines    chan string
	silent   bool
}

func newSpy() *spy {
	return &spy{requests: make(chan Request, 1<<17), replies: make(chan func([]byte), 1<<17), accepted: make(chan Peer, 100), broken: make(chan error, 100), lines: make(chan string, 100)}
}

func (s *spy) Handle(_ Peer, r Request, reply func([]byte)) {
	kept := r
	kept.Body = bytes.Clone(r.Body)
	s.requests <- kept
	if s.silent {
		s.replies <- reply
		return
	}
	reply(r.Body)
}
func (s *spy) Accepted(from Peer)             { s.accepted <- from }
func (s *spy) Broken(_ Peer, cause error)     { s.broken <- cause }
func (s *spy) Write(line []byte) (int, error) { s.lines <- string(line); return len(line), nil }

func receive[V any](t *testing.T, what string, from <-chan V) V {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(30 * time.Second):
		t.Fatalf("still waiting for %s", what)
		panic("unreachable")
	}
}

func listen(t *testing.T, name string, epoch uint64, s *spy, change func(*Config)) *TCP {
	t.Helper()
	cfg := Config{Self: Peer{Name: name, Epoch: epoch}, Cluster: "test", Handler: s, Listen: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(s, nil))}
	if change != nil {
		change(&cfg)
	}
	silo, err := Listen(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silo.Close(context.Background()) })
	return silo
}

// rawDial is a connection to the silo that speaks for epoch 9.
func rawDial(t *testing.T, to *TCP) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", to.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func greet(t *testing.T, to *TCP, generation uint64) (net.Conn, welcome) {
	t.Helper()
	c := rawDial(t, to)
	h := hello{version: Version, epoch: 9, generation: generation, target: to.epoch.Load(), maxBody: 4 << 20, cluster: "test", name: "raw", addr: "nowhere:1"}
	if _, err := c.Write(h.append(nil)); err != nil {
		t.Fatal(err)
	}
	w, err := readWelcome(c, Version)
	if err != nil {
		t.Fatal(err)
	}
	return c, w
}

// ended waits until the other side has closed the connection.
func ended(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(30 * time.Second))
	_, err := io.Copy(io.Discard, c)
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		t.Fatal("the connection is still open")
	}
}

// bad input: garbage, truncated and oversized frames on the silo port
func TestAPeerThatSendsGarbageIsCutOffWithALoggedCauseAndHarmsNobodyElse(t *testing.T) {
	large := frame{typ: frameRequest, body: make([]byte, 101)}
	cut := frame{typ: frameRequest, body: []byte("a body")}
	for name, test := range map[string]struct {
		greet bool
		bytes string
		want  string // in the log; empty: nothing
	}{
		"another protocol":         {false, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "does not start as one of ours"},
		"a handshake that is long": {false, "hubm\x00\x01\xff\xff", "a handshake of 65535 bytes"},
		"a handshake that is cut":  {false, "hubm\x00\x01\x00\x10abc", "unexpected EOF"},
		"a handshake of nonsense":  {false, "hubm\x00\x01\x00\x03abc", "a hello of the wrong length"},
		"frames of nonsense":       {true, strings.Repeat("nonsense", 10), "malformed frame"},
		"a body over the limit":    {true, string(large.appendHeader(nil)), "101 bytes is over the limit of 100"},
		"an answer to nothing":     {true, string((&frame{typ: frameAnswer}).appendHeader(nil)), "an answer on a connection that the peer dialled"},
		"a frame that is cut":      {true, string(cut.appendHeader(nil)) + "a b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, other := newSpy(), newSpy()
			silo := listen(t, "b", 2, s, func(c *Config) { c.Limits.Body = 100; c.Limits.QueueBytes = 1000 })
			good := listen(t, "a", 1, other, nil)
			c := rawDial(t, silo)
			if test.greet {
				c, _ = greet(t, silo, 1)
			}
			c.Write([]byte(test.bytes))
			c.(*net.TCPConn).CloseWrite()
			ended(t, c)
			if test.want != "" {
				if line := receive(t, "a line", s.lines); !strings.Contains(line, test.want) || !strings.Contains(line, "level=WARN") {
					t.Fatal(line)
				}
			}
			answer := make(chan Answer, 1)
			good.Call(silo.Self(), Request{Body: []byte("good")}, func(a Answer) { answer <- a })
			if a := receive(t, "an answer", answer); a.Err != nil {
				t.Fatal(a.Err)
			}
			if len(s.requests) != 1 {
				t.Fatal("a malformed request reached the handler")
			}
		})
	}
}

// bad input: a peer that comes again and again
func TestTheSameRefusalIsLoggedOnceAMinute(t *testing.T) {
	s := newSpy()
	n := notices{log: slog.New(slog.NewTextHandler(s, nil))}
	for i := range 100 {
		n.warn(int64(i)*int64(time.Second), "x", "refused")
	}
	first, second := receive(t, "a line", s.lines), receive(t, "a line", s.lines)
	if strings.Contains(first, "omitted") || !strings.Contains(second, "omitted=59") || len(s.lines) != 0 {
		t.Fatal(first, second, len(s.lines))
	}
}

// bad input: connections that never finish their handshake
func TestConnectionsThatDoNotShakeHandsAreBoundedInNumber(t *testing.T) {
	s := newSpy()
	table := budget.Defaults().With(budget.Handshake, time.Hour) // none is over before the last is made, on any machine
	silo := listen(t, "b", 2, s, func(c *Config) { c.Bounds = &table })
	var idle []net.Conn
	for range maxOpening {
		idle = append(idle, rawDial(t, silo))
	}
	ended(t, rawDial(t, silo)) // connections are accepted in their order
	if line := receive(t, "the refusal", s.lines); !strings.Contains(line, "too many handshakes") {
		t.Fatal(line)
	}
	for _, c := range idle {
		c.Close()
	}
	silo.opening <- struct{}{} // there is room again once the silo has seen one of them go
	<-silo.opening
	if _, w := greet(t, silo, 1); w.verdict != welcomed {
		t.Fatalf("%+v", w)
	}
}

// bad input: connections that never finish their handshake
func TestConnectionsThatDoNotShakeHandsAreBoundedInTime(t *testing.T) {
	s := newSpy()
	table := budget.Defaults().With(budget.Handshake, 50*time.Millisecond)
	silo := listen(t, "b", 2, s, func(c *Config) { c.Bounds = &table })
	for range 20 {
		ended(t, rawDial(t, silo))
	}
	if line := receive(t, "the refusal", s.lines); !strings.Contains(line, "i/o timeout") {
		t.Fatal(line)
	}
}

// protocol §1: connection generation
func TestAnOlderConnectionIsRefusedAndOneThatIsOpenIsFenced(t *testing.T) {
	s := newSpy()
	silo := listen(t, "b", 2, s, nil)
	first, _ := greet(t, silo, 1)
	f := frame{typ: frameRequest, body: []byte("first")}
	send := func(c net.Conn, f frame) { c.Write(append(f.appendHeader(nil), f.body...)) }
	send(first, f)
	receive(t, "the first request", s.requests)
	third, w := greet(t, silo, 3)
	if w.verdict != welcomed {
		t.Fatalf("%+v", w)
	}
	send(first, frame{typ: frameRequest, body: []byte("late")})
	ended(t, first)
	second, w := greet(t, silo, 2)
	if w.verdict != staleGeneration || w.detail != 3 {
		t.Fatalf("%+v", w)
	}
	ended(t, second)
	send(third, frame{typ: frameRequest, body: []byte("third")})
	if r := receive(t, "the next request", s.requests); string(r.Body) != "third" {
		t.Fatalf("%s", r.Body)
	}
}

// protocol §1: order holds across connections
func TestANewerConnectionWaitsForTheRequestThatTheOlderOneIsHandling(t *testing.T) {
	s := newSpy()
	inside, leave := make(chan struct{}), make(chan struct{})
	p := &parked{spy: s, inside: inside, leave: leave}
	silo := listen(t, "b", 2, s, func(c *Config) { c.Handler = p })
	first, _ := greet(t, silo, 1)
	f := frame{typ: frameRequest, body: []byte("parked")}
	first.Write(append(f.appendHeader(nil), f.body...))
	receive(t, "the request", inside)
	<-s.accepted
	greet(t, silo, 2)
	select {
	case <-s.accepted:
		t.Fatal("the newer connection began before the older one had ended")
	default:
	}
	close(leave)
	receive(t, "the newer connection", s.accepted)
}

type parked struct {
	*spy
	inside, leave chan struct{}
}

func (p *parked) Handle(from Peer, r Request, reply func([]byte)) {
	p.inside <- struct{}{}
	<-p.leave
	p.spy.Handle(from, r, reply)
}

// decision 4: bounded queues
func TestAPeerThatStopsReadingCausesRefusalsAndBoundedMemory(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var peer sync.WaitGroup
	stop := make(chan struct{})
	peer.Go(func() { // shakes hands and reads no more
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		h, _ := readHello(c, Version)
		c.Write(welcome{version: Version, epoch: h.target, maxBody: 4 << 20, cluster: "test", name: "stuck"}.append(nil))
		<-stop
	})
	t.Cleanup(func() { close(stop); l.Close(); peer.Wait() })
	s := newSpy()
	const queue = 1 << 20
	table := budget.Defaults().With(budget.SiloWrite, 2*time.Second) // the queue is full long before, on any machine
	silo := listen(t, "a", 1, s, func(c *Config) { c.Limits = Limits{Body: 64 << 10, QueueBytes: queue}; c.Bounds = &table })
	to := Peer{Name: "stuck", Epoch: 7, Addr: l.Addr().String()}
	answers := make(chan Answer, 1<<16)
	body := make([]byte, 32<<10)
	connected := make(chan error, 1)
	silo.Connect(to, func(err error) { connected <- err })
	if err := receive(t, "the connection", connected); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for open := true; open; runtime.Gosched() {
		select {
		case err := <-s.broken: // the bound of a write
			if refused == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("%d refused; %v", refused, err)
			}
			open = false
			continue
		case a := <-answers:
			var notSent *NotSentError
			if errors.As(a.Err, &notSent) && notSent.Reason == Overloaded {
				refused++
			}
		default:
		}
		if got := silo.Peers()[0]; got.QueueBytes > queue {
			t.Fatalf("%d bytes are queued", got.QueueBytes)
		} else if len(answers) == 0 {
			silo.Call(to, Request{Class: Write, Body: body}, func(a Answer) { answers <- a })
		}
	}
	silo.Close(t.Context())
	if got := silo.Peers()[0]; got.Pending != 0 || got.Calls != got.Lost+got.NotSent || got.Lost == 0 {
		t.Fatalf("%+v", got)
	}
}

// decision 4: bounded queues
func TestAPeerThatDoesNotReadItsAnswersIsReadNoMoreAndThenCutOff(t *testing.T) {
	s := newSpy()
	s.silent = true
	const queue = 256 << 10
	silo := listen(t, "b", 2, s, func(c *Config) { c.Limits = Limits{Body: 64 << 10, QueueBytes: queue} })
	c, _ := greet(t, silo, 1)
	f := frame{typ: frameRequest}
	var many []byte
	for range 1000 {
		many = f.appendHeader(many)
	}
	c.Write(many)
	var replies []func([]byte)
	for range 1000 {
		replies = append(replies, receive(t, "a request", s.replies))
	}
	for _, reply := range replies { // 60 MB, far more than the kernel and the queue hold
		reply(make([]byte, 60<<10))
	}
	if line := receive(t, "the cut", s.lines); !strings.Contains(line, "does not read its answers") {
		t.Fatal(line)
	}
	ended(t, c)
}

// decision 4: what is in flight on a connection that breaks is answered at once
func TestTenThousandCallsInFlightAreAnsweredQuicklyWhenTheConnectionBreaks(t *testing.T) {
	a, b := newSpy(), newSpy()
	b.silent = true
	silo, peer := listen(t, "a", 1, a, nil), listen(t, "b", 2, b, nil)
	const count = 10000
	var left, wrong atomic.Int64
	left.Store(count)
	last := make(chan time.Time, 1)
	for range count {
		silo.Call(peer.Self(), Request{Class: Write, Body: []byte("x")}, func(a Answer) {
			if lost := (*LostError)(nil); !errors.As(a.Err, &lost) {
				wrong.Add(1)
			}
			if left.Add(-1) == 0 {
				last <- time.Now()
			}
		})
	}
	for range count {
		receive(t, "a request", b.requests)
	}
	start := time.Now()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	peer.Close(gone)
	took := receive(t, "the last outcome", last).Sub(start)
	if wrong.Load() > 0 {
		t.Fatalf("%d calls were not told as lost", wrong.Load())
	}
	t.Logf("%d calls were answered %v after the break", count, took)
	if took > 2*time.Second {
		t.Fatal("that is not at once")
	}
}

// decision 4: a list of members that names addresses alone
func TestASiloTellsWhoItIs(t *testing.T) {
	s := newSpy()
	a, b := listen(t, "a", 0, newSpy(), nil), listen(t, "b", 2, s, nil)
	who, err := a.Identify(t.Context(), b.Self().Addr)
	if err != nil || who != b.Self() {
		t.Fatal(who, err)
	}
	b.SetEpoch(0)
	if who, err := a.Identify(t.Context(), b.Self().Addr); err == nil {
		t.Fatal(who)
	}
	b.Close(t.Context())
	var dial *DialError
	if _, err := a.Identify(t.Context(), b.Self().Addr); !errors.As(err, &dial) {
		t.Fatal(err)
	}
	if len(s.lines) != 0 || len(s.accepted) != 0 {
		t.Fatal("it was logged or announced")
	}
}

// bad input: a configuration that cannot work
func TestAConfigurationThatCannotWorkIsRefused(t *testing.T) {
	good := Config{Self: Peer{Name: "a", Epoch: 1}, Handler: newSpy(), Listen: "127.0.0.1:0"}
	for name, change := range map[string]func(*Config){
		"no name":              func(c *Config) { c.Self.Name = "" },
		"a name of 256 bytes":  func(c *Config) { c.Self.Name = strings.Repeat("x", 256) },
		"no handler":           func(c *Config) { c.Handler = nil },
		"a queue below a body": func(c *Config) { c.Limits = Limits{Body: 100, QueueBytes: 99} },
		"a negative limit":     func(c *Config) { c.Limits.Pending = -1 },
		"no such address":      func(c *Config) { c.Listen = "256.0.0.1:0" },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good
			change(&cfg)
			if silo, err := Listen(t.Context(), cfg); err == nil {
				silo.Close(t.Context())
				t.Fatal("it listens")
			}
		})
	}
}

// decision 4: one shared secret, or given certificates
func TestSilosOfDifferentSecretsOrNoneRefuseEachOther(t *testing.T) {
	secure := func(secret, cluster string) *Security {
		s, err := FromSecret([]byte(secret), cluster)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	right := secure("the one secret of the cluster", "test")
	for name, other := range map[string]*Security{
		"another secret": secure("the secret of another cluster", "test"), "another cluster": secure("the one secret of the cluster", "other"), "no TLS": nil,
	} {
		t.Run(name, func(t *testing.T) {
			quick := budget.Defaults().With(budget.SiloDial, 500*time.Millisecond).With(budget.Handshake, 400*time.Millisecond)
			a := listen(t, "a", 1, newSpy(), func(c *Config) { c.Secure, c.Bounds = right, &quick })
			b := listen(t, "b", 2, newSpy(), func(c *Config) { c.Secure, c.Bounds = other, &quick })
			for _, pair := range [][2]*TCP{{a, b}, {b, a}} {
				done := make(chan error, 1)
				pair[0].Connect(pair[1].Self(), func(err error) { done <- err })
				var dial *DialError
				if err := receive(t, "the refusal", done); !errors.As(err, &dial) {
					// TLS 1.3 tells the client of its certificate after the handshake: then the
					// connection is not opened either, since no welcome comes.
					t.Fatalf("%v", err)
				}
			}
		})
	}
	if _, err := FromSecret([]byte("short"), "test"); err == nil {
		t.Fatal("a secret of five bytes was taken")
	}
	old := right.client.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	silo := listen(t, "c", 3, newSpy(), func(c *Config) { c.Secure = right })
	if err := tls.Client(rawDial(t, silo), old).HandshakeContext(t.Context()); err == nil {
		t.Fatal("TLS 1.2 was accepted")
	}
	bare := right.client.Clone()
	bare.Certificates = nil
	c := tls.Client(rawDial(t, silo), bare)
	c.Write(hello{version: Version, epoch: 9, generation: 1, target: 3, cluster: "test", name: "x"}.append(nil))
	if _, err := readWelcome(c, Version); err == nil {
		t.Fatal("a peer without a certificate was accepted")
	}
}
