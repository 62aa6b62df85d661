package transport_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hubmesh/hubmesh/internal/cluster/transport"
)

// peerMode makes this test binary the other process of a benchmark.
const peerMode = "HUBMESH_TRANSPORT_BENCH_PEER"

func TestMain(m *testing.M) {
	if mode := os.Getenv(peerMode); mode != "" {
		servePeer(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

// servePeer echoes until its input ends: with its parent.
func servePeer(mode string) {
	if mode == "bare" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		fmt.Println(l.Addr())
		go func() {
			c, err := l.Accept()
			if err == nil {
				b := newBare(c)
				b.read(func(id uint64, body []byte) { b.out <- bareFrame{id, body} })
			}
		}()
	} else {
		t := benchSilo("server", 2, mode == "tls")
		fmt.Println(t.Self().Addr)
	}
	io.Copy(io.Discard, os.Stdin)
}

type echo struct{}

func (echo) Handle(_ transport.Peer, r transport.Request, reply func([]byte)) { reply(r.Body) }
func (echo) Accepted(transport.Peer)                                          {}
func (echo) Broken(transport.Peer, error)                                     {}

func benchSilo(name string, epoch uint64, secure bool) *transport.TCP {
	cfg := transport.Config{
		Self: transport.Peer{Name: name, Epoch: epoch}, Cluster: "bench", Handler: echo{}, Listen: "127.0.0.1:0",
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	if secure {
		var err error
		if cfg.Secure, err = transport.FromSecret([]byte("a secret for benchmarks only"), "bench"); err != nil {
			panic(err)
		}
	}
	t, err := transport.Listen(context.Background(), cfg)
	if err != nil {
		panic(err)
	}
	return t
}

func spawnPeer(b *testing.B, mode string) string {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), peerMode+"="+mode)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); c.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return line[:len(line)-1]
}

// bare is the least that asks over framed TCP need: a batching writer, a reader, a table of those who
// wait in shards.
type bare struct {
	c    net.Conn
	out  chan bareFrame
	wait [64]struct {
		sync.Mutex
		m map[uint64]chan []byte
	}
}

type bareFrame struct {
	id   uint64
	body []byte
}

func newBare(c net.Conn) *bare {
	b := &bare{c: c, out: make(chan bareFrame, 4096)}
	for i := range b.wait {
		b.wait[i].m = map[uint64]chan []byte{}
	}
	go b.write()
	return b
}

func (b *bare) write() {
	w := bufio.NewWriterSize(b.c, 64<<10)
	for f := range b.out {
		for more := true; more; {
			var h [12]byte
			binary.BigEndian.PutUint32(h[:], uint32(len(f.body)))
			binary.BigEndian.PutUint64(h[4:], f.id)
			w.Write(h[:])
			w.Write(f.body)
			select {
			case f, more = <-b.out:
			default:
				more = false
			}
		}
		if w.Flush() != nil {
			return
		}
	}
}

func (b *bare) read(got func(uint64, []byte)) {
	r := bufio.NewReaderSize(b.c, 64<<10)
	var h [12]byte
	for {
		if _, err := io.ReadFull(r, h[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(h[:]))
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		got(binary.BigEndian.Uint64(h[4:]), body)
	}
}

// BenchmarkAsk is asks of 256 bytes between two processes, a thousand an operation, in turns with the
// bare connection, so that both see the same machine: `go test -bench Ask -benchtime 200x -run '^$'`.
func BenchmarkAsk(b *testing.B) {
	for _, callers := range []int{1, 64, 1024} {
		for _, mode := range []string{"plain", "tls"} {
			b.Run(fmt.Sprintf("%s/callers=%d", mode, callers), func(b *testing.B) { benchAsk(b, mode, callers) })
		}
	}
}

func benchAsk(b *testing.B, mode string, callers int) {
	ours := newCrowd(siloCaller(b, spawnPeer(b, mode), mode == "tls"), callers)
	bare := newCrowd(bareCaller(b, spawnPeer(b, "bare")), callers)
	b.ReportAllocs()
	for b.Loop() {
		ours.round()
		b.StopTimer()
		bare.round()
		b.StartTimer()
	}
	b.ReportMetric(0, "ns/op") // of a thousand asks, and asks/s says it
	b.ReportMetric(ours.rate(), "asks/s")
	b.ReportMetric(ours.rate()/bare.rate(), "rate/bare")
	b.ReportMetric(ours.median(), "p50-µs")
	b.ReportMetric(ours.median()/bare.median(), "p50/bare")
}

// crowd is callers that ask at the same time.
type crowd struct {
	asks    []func([]byte)
	took    [][]time.Duration
	body    []byte
	count   int
	elapsed time.Duration
}

func newCrowd(caller func(int) func([]byte), callers int) *crowd {
	c := &crowd{took: make([][]time.Duration, callers), body: make([]byte, 256)}
	for i := range callers {
		c.asks = append(c.asks, caller(i))
	}
	c.asks[0](c.body) // connects
	return c
}

// round is about a thousand asks.
func (c *crowd) round() {
	each := max(1000/len(c.asks), 4)
	start := time.Now()
	var all sync.WaitGroup
	for i, ask := range c.asks {
		all.Go(func() {
			for range each {
				asked := time.Now()
				ask(c.body)
				c.took[i] = append(c.took[i], time.Since(asked))
			}
		})
	}
	all.Wait()
	c.elapsed += time.Since(start)
	c.count += each * len(c.asks)
}

func (c *crowd) rate() float64 { return float64(c.count) / c.elapsed.Seconds() }

func (c *crowd) median() float64 {
	all := slices.Concat(c.took...)
	slices.Sort(all)
	return float64(all[len(all)/2].Nanoseconds()) / 1000
}

func bareCaller(b *testing.B, addr string) func(int) func([]byte) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	bare := newBare(c)
	b.Cleanup(func() { c.Close(); close(bare.out) })
	go bare.read(func(id uint64, body []byte) {
		s := &bare.wait[id%64]
		s.Lock()
		ch := s.m[id]
		delete(s.m, id)
		s.Unlock()
		ch <- body
	})
	return func(c int) func([]byte) {
		ch := make(chan []byte, 1)
		id := uint64(c)
		return func(body []byte) {
			id += 4096
			s := &bare.wait[id%64]
			s.Lock()
			s.m[id] = ch
			s.Unlock()
			bare.out <- bareFrame{id, body}
			if got := <-ch; len(got) != len(body) {
				panic("short")
			}
		}
	}
}

func siloCaller(b *testing.B, addr string, secure bool) func(int) func([]byte) {
	t := benchSilo("client", 1, secure)
	b.Cleanup(func() { t.Close(context.Background()) })
	to := transport.Peer{Name: "server", Epoch: 2, Addr: addr}
	return func(int) func([]byte) {
		ch := make(chan transport.Answer, 1)
		done := func(a transport.Answer) { ch <- a }
		return func(body []byte) {
			t.Call(to, transport.Request{Class: transport.Write, Body: body}, done)
			if a := <-ch; a.Err != nil || len(a.Body) != len(body) {
				panic(a.Err)
			}
		}
	}
}
