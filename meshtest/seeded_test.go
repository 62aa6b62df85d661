package meshtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
)

var (
	seedsOfMeshes = flag.Int("mesh-seeds", 20, "seeds of real silos to run")
	fromOfMeshes  = flag.Uint64("mesh-from", 1, "first of them")
)

// storm is one seeded run of real silos: load, disturbances, rest, checks.
type storm struct {
	t     *testing.T
	c     *Cluster
	mu    sync.Mutex
	acks  map[string]int64  // greatest acknowledged version, by node
	hubs  map[string]string // process hubs that are served, by the silo that serves them
	ends  map[string]int
	added int
}

var stormNodes = []string{"acme/a", "acme/b", "acme/c", "acme/d", "acme/e", "acme/f"}

// "How correctness is shown", decisions 2 and 3, faults 1, 6, 14
func TestRealSilosLoseNothingAndAnswerEverythingUnderSeededDisturbances(t *testing.T) {
	seeds := *seedsOfMeshes
	if os.Getenv("HUBMESH_SOAK") != "" {
		seeds *= 10
	}
	for seed := *fromOfMeshes; seed < *fromOfMeshes+uint64(seeds); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runStorm(t, seed) })
		})
	}
}

func runStorm(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 77))
	s := &storm{t: t, acks: map[string]int64{}, hubs: map[string]string{}, ends: map[string]int{}}
	s.c = New(t, Options{Seed: seed, Silos: 2 + r.IntN(3), Types: wireTypes()})
	defer s.c.close()
	s.c.create(t, append([]string{"acme"}, stormNodes...)...)
	ctx, stop := context.WithCancel(message.WithIdentity(t.Context(), message.SystemIdentity()))
	defer stop()
	var load sync.WaitGroup
	busy, loading := context.WithCancel(ctx)
	for i := range 6 {
		own := rand.New(rand.NewPCG(seed, uint64(100+i)))
		load.Go(func() { s.load(busy, own) })
	}
	var views sync.WaitGroup
	looking, look := context.WithCancel(ctx)
	viewers := make([]*viewer, 4)
	for i := range viewers {
		own := rand.New(rand.NewPCG(seed, uint64(200+i)))
		v := &viewer{path: node.Path(stormNodes[own.IntN(len(stormNodes))]), pick: func() *Silo { return s.pick(own) }}
		viewers[i] = v
		views.Go(func() { v.run(looking) })
	}
	for range 3 + r.IntN(5) {
		<-time.After(time.Duration(200+r.IntN(1500)) * time.Millisecond)
		s.strike(ctx, r)
	}
	<-time.After(2 * time.Second)
	loading()
	load.Wait()
	s.c.Table.SetAway(false)
	s.c.WaitJoined()
	for _, v := range viewers {
		stored, err := s.c.Store.Read(ctx, v.path)
		if err != nil {
			t.Fatal(err)
		}
		v.at(s.c, stored.Version)
		defer v.check(t, stored)
	}
	look()
	views.Wait()
	s.check()
}

// pick returns a running silo.
func (s *storm) pick(r *rand.Rand) *Silo {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.c.Silos()
	if len(all) == 0 {
		return nil
	}
	return all[r.IntN(len(all))]
}

func (s *storm) load(ctx context.Context, r *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		<-time.After(time.Duration(1+r.IntN(20)) * time.Millisecond)
		silo := s.pick(r)
		if silo == nil {
			continue
		}
		p := stormNodes[r.IntN(len(stormNodes))]
		switch r.IntN(4) {
		case 0:
			s.note(ctx, p, second(echo.Ask(ctx, silo.Mesh, fmt.Sprintf("portal/h%d", r.IntN(4)), &echoRequest{n})), false)
		case 1:
			_, err := silo.Nodes.Get(ctx, node.Path(p))
			s.note(ctx, p, err, true)
		default:
			got, err := silo.Nodes.Patch(ctx, node.Path(p), fmt.Appendf(nil, `{"description":"%d"}`, n), nodehub.Condition{})
			s.note(ctx, p, err, true)
			if err == nil {
				s.mu.Lock()
				s.acks[p] = max(s.acks[p], got.Version)
				s.mu.Unlock()
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }

// note counts an outcome. A node that exists is never answered with anything final.
func (s *storm) note(ctx context.Context, p string, err error, exists bool) {
	var f *message.Failure
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.ends["done"]++
	case ctx.Err() != nil || errors.Is(err, context.Canceled):
	case message.IsTransient(err):
		s.ends["transient"]++
	case errors.As(err, &f) && f.Type == message.NotFound && !exists:
		s.ends["released"]++
	default:
		s.t.Errorf("%s: %v", p, err)
	}
}

// strike makes one thing go wrong, for a while.
func (s *storm) strike(ctx context.Context, r *rand.Rand) {
	a, b := s.pick(r), s.pick(r)
	d := time.Duration(100+r.IntN(3000)) * time.Millisecond
	alone := a == nil || len(s.c.Silos()) < 2
	switch n := r.IntN(8); {
	case n == 0 || alone:
		s.added++
		s.c.Add(fmt.Sprintf("n%d", s.added))
	case n == 1:
		s.drop(a, a.Crash)
	case n == 2:
		s.drop(a, func() {
			if err := a.Leave(ctx); err != nil && ctx.Err() == nil {
				s.t.Errorf("leaving: %v", err)
			}
		})
	case n == 3 && a != b:
		s.c.Network.CutBoth(a.Name, b.Name)
		<-time.After(d)
		s.c.Network.HealBoth(a.Name, b.Name)
	case n == 4:
		s.c.Network.Hold(a.Name)
		<-time.After(d)
		s.c.Network.Release(a.Name)
	case n == 5:
		s.c.Table.SetAway(true)
		<-time.After(d)
		s.c.Table.SetAway(false)
	case n == 6:
		at := fmt.Sprintf("portal/h%d", r.IntN(4))
		s.mu.Lock()
		_, served := s.hubs[at]
		s.mu.Unlock()
		if !served {
			serve(s.t, a, at)
			s.mu.Lock()
			s.hubs[at] = a.Name
			s.mu.Unlock()
		}
	default:
		s.c.Network.SetLoss(0.2)
		<-time.After(d)
		s.c.Network.SetLoss(0)
	}
}

// drop ends a silo and forgets the hubs that only it had.
func (s *storm) drop(a *Silo, end func()) {
	s.mu.Lock()
	for at, name := range s.hubs {
		if name == a.Name {
			delete(s.hubs, at)
		}
	}
	s.mu.Unlock()
	end()
}

// check reads every node and asks every hub from every silo.
func (s *storm) check() {
	ctx := system(s.t)
	for _, silo := range s.c.Silos() {
		for p, v := range s.acks {
			n, err := silo.Nodes.Get(ctx, node.Path(p))
			if err != nil || n.Version < v {
				s.t.Errorf("%s at %s: version %d, acknowledged %d: %v", p, silo.Name, n.Version, v, err)
			}
		}
		for at, name := range s.hubs {
			if r, err := echo.Ask(ctx, silo.Mesh, at, &echoRequest{}); err != nil || r.Silo != name {
				s.t.Errorf("%s of %s from %s: %+v %v", at, name, silo.Name, r, err)
			}
		}
	}
	for _, p := range stormNodes {
		var owners []string
		for _, silo := range s.c.Silos() {
			if silo.Mesh.Find(p) != nil {
				owners = append(owners, silo.Name)
			}
		}
		if len(owners) > 1 {
			s.t.Errorf("%s has hubs at %v", p, owners)
		}
	}
	s.t.Logf("%v", s.ends)
	if s.ends["done"] == 0 {
		s.t.Error("nothing was done")
	}
}
