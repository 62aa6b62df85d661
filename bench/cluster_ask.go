package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/hub"
)

// subject is what asks another process can be made through.
type subject struct {
	caller func(number int) func(body []byte) error
	close  func()
}

// contender is a way to ask another process.
type contender struct {
	name string
	role string
	dial func(server *child, secure *tls.Config) (*subject, error)
}

var contenders = []contender{
	{"bare", "bare", dialBare},
	{"hubmesh", "silo", dialSilo},
	{"hubmesh quick", "silo", dialSiloQuick},
	{"grpc", "grpc", dialGRPC},
	{"nats", "nats", dialNATS},
	{"protoactor", "protoactor", dialProto},
}

const echoPath = "portal/echo"

func dialSilo(server *child, secure *tls.Config) (*subject, error) {
	return siloSubject(server, secure, blobTurn.Ask)
}

func dialSiloQuick(server *child, secure *tls.Config) (*subject, error) {
	return siloSubject(server, secure, blobQuick.Ask)
}

// rig is one contender with its server process.
type rig struct {
	name, mode string
	server     *child
	subject    *subject
}

func (c contender) rig(mode, dir string) (*rig, error) {
	args := []string{plain}
	if mode == "tls" {
		args[0] = dir
	}
	if c.role == "silo" {
		args = []string{"server", "2", mode}
	}
	var secure *tls.Config
	server, err := spawn(c.role, args...)
	if err != nil {
		return nil, err
	}
	if mode == "tls" {
		if secure, err = securityOf([]string{dir}); err != nil {
			return nil, errors.Join(err, server.stop())
		}
	}
	s, err := c.dial(server, secure)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s, %s: %w", c.name, mode, err), server.stop())
	}
	r := &rig{c.name, mode, server, s}
	if err := patiently(func() error { return s.caller(0)(make([]byte, askBytes)) }); err != nil { // connects
		return nil, errors.Join(fmt.Errorf("%s, %s: the first ask: %w", c.name, mode, err), server.stop())
	}
	return r, nil
}

// patiently repeats what may fail while processes find each other.
func patiently(f func() error) error {
	const patience, pause = 5 * time.Second, 20 * time.Millisecond
	for end := time.Now().Add(patience); ; time.Sleep(pause) {
		if err := f(); err == nil || time.Now().After(end) {
			return err
		}
	}
}

const (
	askBytes = 256
	askWarm  = 200 * time.Millisecond // callers grow their stacks, and heaps their size
	askFor   = 500 * time.Millisecond
)

// burst is what some callers saw while they asked for a while.
type burst struct {
	perSecond float64
	took      []time.Duration
	cpu       time.Duration // of both processes, an ask
	failed    int64
}

// run asks from a number of callers, for a while that does not count and then for one that does.
func (g *rig) run(callers int) (b burst, err error) {
	var failed atomic.Int64
	all := make([][]time.Duration, callers)
	var wg sync.WaitGroup
	began := time.Now().Add(askWarm)
	for i := range callers {
		ask := g.subject.caller(i)
		wg.Go(func() {
			body := make([]byte, askBytes)
			for at := time.Now(); at.Sub(began) < askFor; {
				err := ask(body)
				now := time.Now()
				if err != nil {
					failed.Add(1)
					time.Sleep(time.Millisecond)
				} else if at.After(began) {
					all[i] = append(all[i], now.Sub(at))
				}
				at = now
			}
		})
	}
	time.Sleep(time.Until(began))
	before := cpu() + g.server.cpu()
	wg.Wait()
	elapsed := time.Since(began)
	spent := cpu() + g.server.cpu() - before
	b.failed = failed.Load()
	for _, list := range all {
		b.took = append(b.took, list...)
	}
	if len(b.took) == 0 {
		return b, fmt.Errorf("%s, %s: no ask was answered within %v", g.name, g.mode, askFor)
	}
	b.perSecond = float64(len(b.took)) / elapsed.Seconds()
	b.cpu = spent / time.Duration(len(b.took))
	return b, nil
}

func micros(list []time.Duration) []float64 {
	out := make([]float64, len(list))
	for i, d := range list {
		out[i] = float64(d) / float64(time.Microsecond)
	}
	return out
}

func clusterAskScenario(ctx context.Context, rounds int) (*Result, error) {
	r := newResult("cluster-ask", "asks/s between two processes", rounds)
	dir, err := os.MkdirTemp("", "hubmesh-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := makeCertificate(dir); err != nil {
		return nil, err
	}
	modes, sizes := []string{"plain", "tls"}, []int{1, 64, 1024}
	var rigs []*rig
	defer func() {
		for _, g := range rigs {
			g.subject.close()
			_ = g.server.stop()
		}
	}()
	only := os.Getenv("HUBMESH_BENCH_ONLY") // comma-separated contenders, while one works on them
	for _, mode := range modes {
		for _, c := range contenders {
			if only != "" && !strings.Contains(","+only+",", ","+c.name+",") {
				continue
			}
			g, err := c.rig(mode, dir)
			if err != nil {
				return nil, err
			}
			rigs = append(rigs, g)
		}
	}
	for range rounds {
		for _, callers := range sizes {
			for _, g := range rigs {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				b, err := g.run(callers)
				if err != nil {
					return nil, err
				}
				id := fmt.Sprintf("%s, %s, %d callers", g.name, g.mode, callers)
				r.add(id, b.perSecond)
				r.add("p50 µs, "+id, quantile(micros(b.took), 0.5))
				r.add("p99 µs, "+id, quantile(micros(b.took), 0.99))
				if b.failed > 0 {
					r.add("failed asks, "+id, float64(b.failed))
				}
				r.add("cpu µs an ask, "+id, float64(b.cpu)/float64(time.Microsecond))
			}
		}
	}
	for _, mode := range modes {
		judgeAsks(r, mode)
	}
	r.note("bare is a queue, a writer that flushes when the queue runs dry and a table of those who wait: no address, deadline, identity, order across connections or refusal; what it asks is answered on its reader")
	r.note("grpc is one bidirectional stream that carries raw bytes; nats is a server in each process with one client in it, routed; protoactor is its remote with default settings; hubmesh quick is a handler that promises not to block")
	r.note("TLS is 1.3 with certificates on both sides, for every subject")
	r.note("GoAkt and Ergo are not among the peers: their releases could not be had as modules")
	return r, nil
}

func judgeAsks(r *Result, mode string) {
	id := func(name string, callers int) string { return fmt.Sprintf("%s, %s, %d callers", name, mode, callers) }
	for _, goal := range []struct {
		callers     int
		bare, peers float64
	}{{64, 0.8, 2.5}, {1024, 0.9, 4}} {
		for _, of := range []string{"hubmesh", "hubmesh quick"} {
			for _, c := range contenders {
				if strings.HasPrefix(c.name, "hubmesh") || len(r.samples[id(c.name, goal.callers)]) == 0 {
					continue
				}
				name := fmt.Sprintf("%s/%s, %s, %d callers", of, c.name, mode, goal.callers)
				r.ratio(name, id(of, goal.callers), id(c.name, goal.callers))
				if of == "hubmesh" {
					r.goal(name, ">=", map[bool]float64{true: goal.bare, false: goal.peers}[c.name == "bare"])
				}
			}
		}
	}
	for _, callers := range []int{64, 1024} {
		r.ratio(fmt.Sprintf("bare/hubmesh cpu, %s, %d callers", mode, callers), "cpu µs an ask, "+id("bare", callers), "cpu µs an ask, "+id("hubmesh", callers))
	}
	for _, of := range []string{"hubmesh", "hubmesh quick"} {
		name := fmt.Sprintf("%s/bare p50, %s, 1 caller", of, mode)
		r.ratio(name, "p50 µs, "+id(of, 1), "p50 µs, "+id("bare", 1))
		if of == "hubmesh" {
			r.goal(name, "<=", 1.2)
		}
	}
}

// siloSubject is a silo in this process whose asks are served in another.
func siloSubject(server *child, secure *tls.Config, ask func(context.Context, *hub.Mesh, string, *blob) (*blob, error)) (*subject, error) {
	s, err := newSilo("caller", 1, secure != nil)
	if err != nil {
		return nil, err
	}
	if err := fixAll(1, []*silo{s}, server); err != nil {
		return nil, err
	}
	if _, err := server.do("start %s", echoPath); err != nil {
		return nil, err
	}
	return &subject{close: s.stop, caller: func(int) func([]byte) error {
		return func(body []byte) error {
			got, err := ask(who, s.mesh, echoPath, &blob{body})
			if err != nil {
				return err
			}
			return whole(got.B, body)
		}
	}}, nil
}
