package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/message"
)

const (
	floodAsks  = 10_000 // a second, each of an address of its own that nobody serves
	floodFor   = 3 * time.Second
	floodBeat  = 10 * time.Millisecond // asks come in groups, like those of a page that is opened
	floodCalls = 4                     // callers of an address that is served, on the silo that floods
)

func clusterFloodScenario(ctx context.Context, rounds int) (*Result, error) {
	r := newResult("cluster-flood", "ms", rounds)
	for range rounds {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := floodRound(r); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"asks a second", "refused as unserved, share", "refused as busy, share", "refusal p50", "refusal p99", "heap of the asking silo after, MiB", "asks that had no answer"} {
		r.metric(name, r.median(name))
	}
	r.goal("asks that had no answer", "<=", 0)
	r.ratio("p99 of served asks, beside/before", "p99 µs of served asks, beside", "p99 µs of served asks, before")
	r.note("three processes; the second asks 10,000 random process addresses a second that nobody serves, for three seconds, in groups each 10 ms: each is a locate at every silo before it is refused")
	r.note("served asks are of four callers on the flooding silo to one hub on the first")
	return r, nil
}

func floodRound(r *Result) error {
	t, err := startTrio()
	if err != nil {
		return err
	}
	defer t.end()
	if err := fixTo(1, nil, t[:], nil, t[:]); err != nil {
		return err
	}
	if _, err := t[0].do("start %s", echoPath); err != nil {
		return err
	}
	for _, when := range []string{"before", "beside"} {
		if _, err := t[1].do("load %s %d", echoPath, floodCalls); err != nil {
			return err
		}
		if when == "before" {
			time.Sleep(unrelatedFor)
		} else if err := flooded(r, t[1]); err != nil {
			return err
		}
		p, err := numbers(t[1], "unload")
		if err != nil {
			return err
		}
		r.add("p50 µs of served asks, "+when, p[0])
		r.add("p99 µs of served asks, "+when, p[1])
	}
	after, err := number(t[1], "heap")
	r.add("heap of the asking silo after, MiB", after/(1<<20))
	return err
}

func flooded(r *Result, c *child) error {
	n, err := numbers(c, "flood %d", floodAsks)
	if err != nil {
		return err
	}
	for i, name := range []string{"asks a second", "refused as unserved, share", "refused as busy, share", "asks that had no answer", "refusal p50", "refusal p99"} {
		r.add(name, n[i])
	}
	return nil
}

// flood asks random addresses that nobody serves, perSecond of them, and answers with what became of them.
func (s *silo) flood(perSecond int) string {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var took []float64
	unserved, busy, none := 0, 0, 0
	ask := func() {
		at := time.Now()
		_, err := blobTurn.Ask(who, s.mesh, fmt.Sprintf("portal/%x", rand.Uint64()), &blob{})
		mu.Lock()
		defer mu.Unlock()
		took = append(took, ms(time.Since(at)))
		switch f := (*message.Failure)(nil); {
		case errors.As(err, &f) && f.TargetUnserved:
			unserved++
		case message.IsTransient(err):
			busy++
		default:
			none++ // a lapse, or an answer from nowhere
		}
	}
	began, sent := time.Now(), 0
	for beat := range int(floodFor / floodBeat) {
		for due := int(float64(perSecond) * (time.Duration(beat+1) * floodBeat).Seconds()); sent < due; sent++ {
			wg.Go(ask)
		}
		time.Sleep(time.Until(began.Add(time.Duration(beat+1) * floodBeat)))
	}
	wg.Wait()
	all := float64(sent)
	return fmt.Sprintf("%f %f %f %d %f %f", all/time.Since(began).Seconds(), float64(unserved)/all, float64(busy)/all, none, quantile(took, 0.5), quantile(took, 0.99))
}
