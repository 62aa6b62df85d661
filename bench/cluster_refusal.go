package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/message"
)

const (
	refusalsIdle = 1000
	refusalsLoad = 500
	inFlight     = 1000
	holdPath     = "portal/hold"
)

func clusterRefusalScenario(ctx context.Context, rounds int) (*Result, error) {
	r := newResult("cluster-refusal", "ms", rounds)
	for round := range rounds {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := refusalRound(r, round); err != nil {
			return nil, err
		}
	}
	for name, goal := range map[string]float64{"refusal p99, idle": 2, "refusal p99, 64 callers asking": 10, "answered after the break, the last of 1000": 20} {
		r.metric(name, r.median(name))
		r.goal(name, "<=", goal)
	}
	r.metric("asks in flight that had another end than lost", r.median("asks in flight that had another end than lost"))
	r.goal("asks in flight that had another end than lost", "<=", 0)
	r.note("a refusal is of a process address that nobody serves, a new one each time: its slot owner asks every silo before it is given")
	r.note("the serving process is killed with SIGKILL; it broke when another connection to it, opened before, ended in the asking process; the time since the kill includes what the kernel takes to end a process")
	return r, nil
}

// refusalRound is one pair of silos, from its start to the kill of one.
func refusalRound(r *Result, round int) error {
	s, err := newSilo("caller", 1, false)
	if err != nil {
		return err
	}
	defer s.stop()
	server, err := spawn("silo", "server", "2", plain)
	if err != nil {
		return err
	}
	defer server.kill()
	if err := fixAll(1, []*silo{s}, server); err != nil {
		return err
	}
	for _, path := range []string{echoPath, holdPath} {
		if _, err := server.do("start %s", path); err != nil {
			return err
		}
	}
	for _, path := range []string{echoPath, holdPath} { // found from here on
		if err := patiently(func() error { _, err := blobTurn.Ask(who, s.mesh, path, &blob{}); return err }); err != nil {
			return err
		}
	}
	idle, err := s.refusals(fmt.Sprintf("idle%d", round), refusalsIdle)
	if err != nil {
		return err
	}
	r.add("refusal p50, idle", quantile(idle, 0.5))
	r.add("refusal p99, idle", quantile(idle, 0.99))
	l := s.startLoad(echoPath, 64)
	time.Sleep(askWarm)
	loaded, err := s.refusals(fmt.Sprintf("load%d", round), refusalsLoad)
	l.stop()
	if err != nil {
		return err
	}
	r.add("refusal p50, 64 callers asking", quantile(loaded, 0.5))
	r.add("refusal p99, 64 callers asking", quantile(loaded, 0.99))
	return s.breakOff(r, server)
}

// refusals asks addresses that nobody serves, one after the other.
func (s *silo) refusals(prefix string, count int) (took []float64, err error) {
	for i := range count {
		at := time.Now()
		_, err := blobTurn.Ask(who, s.mesh, fmt.Sprintf("portal/%s-%d", prefix, i), &blob{})
		took = append(took, ms(time.Since(at)))
		if f := (*message.Failure)(nil); !errors.As(err, &f) || !f.TargetUnserved {
			return nil, fmt.Errorf("an unserved address was answered with %w", err)
		}
	}
	return took, nil
}

// breakOff kills the server with asks in flight and measures how long they wait for their end.
func (s *silo) breakOff(r *Result, server *child) error {
	_, _, addr := cut3(server.first)
	witness, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer witness.Close()
	ends := make([]time.Time, inFlight)
	var others atomic.Int64
	var wg sync.WaitGroup
	for i := range inFlight {
		wg.Go(func() {
			_, err := blobHold.Ask(who, s.mesh, holdPath, &blob{make([]byte, askBytes)})
			ends[i] = time.Now()
			if f := (*message.Failure)(nil); !errors.As(err, &f) || !f.OutcomeUnknown {
				others.Add(1)
			}
		})
	}
	err = patiently(func() error {
		n, err := server.do("held")
		if err == nil && n != fmt.Sprint(inFlight) {
			err = fmt.Errorf("%s of %d asks have arrived", n, inFlight)
		}
		return err
	})
	if err != nil {
		return err
	}
	var broke time.Time
	broken := make(chan struct{})
	go func() {
		defer close(broken)
		_, _ = io.Copy(io.Discard, witness)
		broke = time.Now()
	}()
	killed := time.Now()
	if err := server.cmd.Process.Kill(); err != nil {
		return err
	}
	wg.Wait()
	<-broken
	last := ends[0]
	for _, at := range ends {
		if at.After(last) {
			last = at
		}
	}
	r.add("answered after the break, the last of 1000", max(ms(last.Sub(broke)), 0))
	r.add("answered after the kill, the last of 1000", ms(last.Sub(killed)))
	r.add("asks in flight that had another end than lost", float64(others.Load()))
	return nil
}

// cut3 takes the three parts of a member's word apart.
func cut3(word string) (name, epoch, addr string) {
	part := strings.SplitN(word+",,", ",", 3)
	return part[0], part[1], strings.TrimRight(part[2], ",")
}
