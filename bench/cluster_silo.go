package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/route"
)

// blob is 256 bytes on their way.
type blob struct {
	B []byte `cbor:"1,keyasint"`
}

var (
	blobTurn  = hub.Define[*blob, *blob]("bench/blob", message.Request)
	blobQuick = hub.Define[*blob, *blob]("bench/blob-quick", message.Request)
	blobHold  = hub.Define[*blob, *blob]("bench/blob-hold", message.Request)
)

// silo is one process of a cluster whose membership is given to it.
type silo struct {
	name   string
	epoch  membership.Epoch
	mesh   *hub.Mesh
	router *route.Cluster
	net    *transport.TCP
	kind   *hub.Kind
	joined bool

	counted *counting
	claims  claims
	held    atomic.Int64 // asks that wait for an answer that does not come
	load    *load
}

// who asks: a service's own work, whose context has no end.
var who = message.WithIdentity(context.Background(), &message.Identity{Subject: "bench"})

// newSilo starts a silo that is in no view. secure turns TLS from the shared secret on.
func newSilo(name string, epoch membership.Epoch, secure bool) (*silo, error) {
	m, err := hub.New(hub.Options{ID: name})
	if err != nil {
		return nil, err
	}
	codec, err := route.NewCodec([]hub.WireType{blobTurn.Wire(), blobQuick.Wire(), blobHold.Wire()}, nil)
	if err != nil {
		return nil, err
	}
	s := &silo{name: name, epoch: epoch, mesh: m, kind: hub.NewKind("echo", hub.Limits{})}
	hub.Handle(s.kind, blobTurn, func(_ context.Context, _ *hub.Hub, r *blob) (*blob, error) { return r, nil })
	hub.HandleQuick(s.kind, blobQuick, func(_ context.Context, _ *hub.Hub, r *blob) (*blob, error) { return r, nil })
	hub.HandleLater(s.kind, blobHold, func(context.Context, *hub.Hub, *blob, hub.Reply[*blob]) error { s.held.Add(1); return nil })
	s.router = route.NewCluster(route.ClusterOptions{Mesh: m, Nodes: route.New(m, nil, nil), Codec: codec, Me: membership.Member{Name: name},
		Config: cluster.Defaults(), Pace: membership.DefaultPace(), Timing: membership.DefaultTiming(), Watch: &s.claims})
	cfg := transport.Config{Self: transport.Peer{Name: name}, Cluster: "bench", Listen: "127.0.0.1:0", Handler: s.router.Handler()}
	if secure {
		if cfg.Secure, err = transport.FromSecret([]byte("a secret for benchmarks only"), "bench"); err != nil {
			return nil, err
		}
	}
	if s.net, err = transport.Listen(context.Background(), cfg); err != nil {
		return nil, err
	}
	s.counted = &counting{TCP: s.net}
	return s, nil
}

// member describes the silo for a view, as one word.
func (s *silo) member() string { return fmt.Sprintf("%s,%d,%s", s.name, s.epoch, s.net.Addr()) }

// fix gives the silo a view: its number, and its members as words. The first one makes it a silo.
func (s *silo) fix(number uint64, members []string) error {
	var list []membership.Member
	for _, word := range members {
		part := strings.Split(word, ",")
		if len(part) != 3 {
			return fmt.Errorf("'%s' is not a member", word)
		}
		epoch, err := strconv.ParseUint(part[1], 10, 64)
		if err != nil {
			return err
		}
		list = append(list, membership.Member{Name: part[0], Epoch: membership.Epoch(epoch), Addr: part[2]})
	}
	v, err := membership.NewView(membership.Key{Timeline: 1, Number: number}, list)
	if err != nil {
		return err
	}
	if s.joined {
		s.router.Fix(v)
		return nil
	}
	s.joined = true
	s.router.StartFixed(s.counted, s.epoch, v)
	return nil
}

func (s *silo) start(path string) error {
	_, err := s.mesh.Start(address.Of(path), s.kind, nil)
	return err
}

func (s *silo) stop() {
	_ = s.net.Close(context.Background())
	s.router.Stop()
	_ = s.mesh.Close(context.Background())
}

// siloRole is a silo: "bench role silo NAME EPOCH plain|tls".
func siloRole(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("a silo needs a name, an epoch and plain or tls")
	}
	epoch, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return err
	}
	s, err := newSilo(args[0], membership.Epoch(epoch), args[2] != plain)
	if err != nil {
		return err
	}
	defer s.stop()
	return attend(s.member(), s.command)
}

// fixAll gives a view to silos of this process and of others, at the same time.
func fixAll(number uint64, here []*silo, others ...*child) error {
	return fixTo(number, here, others, here, others)
}

// fixTo gives the view of some silos to some.
func fixTo(number uint64, of []*silo, ofOthers []*child, here []*silo, others []*child) error {
	var members []string
	for _, s := range of {
		members = append(members, s.member())
	}
	for _, c := range ofOthers {
		members = append(members, c.first)
	}
	errs := make([]error, len(here)+len(others))
	var wg sync.WaitGroup
	for i, s := range here {
		wg.Go(func() { errs[i] = s.fix(number, members) })
	}
	for i, c := range others {
		wg.Go(func() { _, errs[len(here)+i] = c.do("view %d %s", number, strings.Join(members, " ")) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
