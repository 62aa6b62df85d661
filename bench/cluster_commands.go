package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	protocol "github.com/hubmesh/hubmesh/internal/cluster/wire"
	"github.com/hubmesh/hubmesh/internal/message"
)

// command carries out one line of a silo's input.
func (s *silo) command(words []string) (string, error) {
	if len(words) == 0 {
		return "", errors.New("an empty command")
	}
	args := words[1:]
	var n []int // the arguments that are numbers
	for _, a := range args {
		if i, err := strconv.Atoi(a); err == nil {
			n = append(n, i)
		}
	}
	switch {
	case words[0] == "view" && len(args) > 1 && len(n) == 1:
		return "ok", s.fix(uint64(n[0]), args[1:])
	case words[0] == "start" && len(args) == 1:
		return "ok", s.start(args[0])
	case words[0] == "many" && len(n) == 1:
		for i := range n[0] {
			if err := s.start(manyPath(i)); err != nil {
				return "", err
			}
		}
		return "ok", nil
	case words[0] == "held":
		return fmt.Sprint(s.held.Load()), nil
	case words[0] == "landed":
		landed := 0
		s.router.Do(func(x *cluster.Silo) { landed = x.Claims.Landed() })
		return fmt.Sprint(landed), nil
	case words[0] == "entries":
		return fmt.Sprint(s.entries()), nil
	case words[0] == "twice":
		return fmt.Sprint(s.claims.twice.Load()), nil
	case words[0] == "directory":
		return fmt.Sprint(s.counted.directory.Load()), nil
	case words[0] == "heap":
		settle()
		return fmt.Sprint(heap()), nil
	case words[0] == "reach" && len(n) == 2:
		return s.reach(n[0], n[1])
	case words[0] == "flood" && len(n) == 1:
		return s.flood(n[0]), nil
	case words[0] == "load" && len(n) == 1 && len(args) == 2:
		s.load = s.startLoad(args[0], n[0])
		return "ok", nil
	case words[0] == "unload" && s.load != nil:
		took := s.load.stop()
		if len(took) == 0 {
			return "", errors.New("nothing was asked")
		}
		return fmt.Sprintf("%f %f", quantile(micros(took), 0.5), quantile(micros(took), 0.99)), nil
	case words[0] == "frozen" && len(n) == 1 && len(args) == 2:
		return s.besideFrozen(args[0], n[0])
	}
	return "", fmt.Errorf("no such command: %v", words)
}

func manyPath(i int) string { return fmt.Sprintf("portal/n%d", i) }

// entries counts what the directory of this silo holds of the many.
func (s *silo) entries() (n int) {
	s.router.Do(func(x *cluster.Silo) {
		for addr := range x.Owner.Entries {
			if strings.HasPrefix(addr, "portal/n") {
				n++
			}
		}
	})
	return n
}

// counting counts the requests that are neither a message to a hub nor a sign of life.
type counting struct {
	*transport.TCP
	directory atomic.Int64
}

func (c *counting) Call(to transport.Peer, r transport.Request, done func(transport.Answer)) {
	if k := protocol.Kind(r.Kind); k != protocol.KindDeliver && k != protocol.KindPing {
		c.directory.Add(1)
	}
	c.TCP.Call(to, r, done)
}

// load is asks that go on until they are stopped.
type load struct {
	stopped atomic.Bool
	wg      sync.WaitGroup
	took    [][]time.Duration
}

func (s *silo) startLoad(path string, callers int) *load {
	l := &load{took: make([][]time.Duration, callers)}
	for i := range callers {
		l.wg.Go(func() {
			req := &blob{make([]byte, askBytes)}
			for !l.stopped.Load() {
				at := time.Now()
				if _, err := blobTurn.Ask(who, s.mesh, path, req); err == nil {
					l.took[i] = append(l.took[i], time.Since(at))
				}
			}
		})
	}
	return l
}

func (l *load) stop() (took []time.Duration) {
	l.stopped.Store(true)
	l.wg.Wait()
	for _, t := range l.took {
		took = append(took, t...)
	}
	return took
}

// reachers is how many asks of a sample are under way at once.
const reachers = 32

// reach asks a sample of the many until each has answered. It returns after how many milliseconds the
// last one had, and how many asks were repeated.
func (s *silo) reach(total, sample int) (string, error) {
	const patience, pause = 10 * time.Second, 2 * time.Millisecond
	var next, again atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	failed := make(chan error, reachers)
	for range reachers {
		wg.Go(func() {
			for next.Add(1) <= int64(sample) {
				path := manyPath(rand.IntN(total))
				for {
					_, err := blobTurn.Ask(who, s.mesh, path, &blob{})
					if err == nil {
						break
					}
					if time.Since(began) > patience {
						failed <- err
						return
					}
					again.Add(1)
					time.Sleep(pause)
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return "", err
	default:
		return fmt.Sprintf("%f %d", ms(time.Since(began)), again.Load()), nil
	}
}

// besideFrozen asks, for some milliseconds, addresses that this silo has not asked before: some are
// served by a silo that runs, others by nobody. It returns the longest wait for an answer in milliseconds,
// for each of the two.
func (s *silo) besideFrozen(prefix string, millis int) (string, error) {
	var mu sync.Mutex
	var worst [2]time.Duration
	var wg sync.WaitGroup
	var next atomic.Int64
	end := time.Now().Add(time.Duration(millis) * time.Millisecond)
	for range reachers {
		wg.Go(func() {
			for time.Now().Before(end) {
				i := next.Add(1)
				for kind, path := range []string{fmt.Sprintf("portal/%s%d", prefix, i%frozenHubs), fmt.Sprintf("portal/none-%s-%d", prefix, i)} {
					at := time.Now()
					_, err := blobTurn.Ask(who, s.mesh, path, &blob{})
					took := time.Since(at)
					if f := (*message.Failure)(nil); err != nil && !errors.As(err, &f) {
						return
					}
					mu.Lock()
					worst[kind] = max(worst[kind], took)
					mu.Unlock()
				}
				time.Sleep(frozenPause)
			}
		})
	}
	wg.Wait()
	return fmt.Sprintf("%f %f", ms(worst[0]), ms(worst[1])), nil
}
