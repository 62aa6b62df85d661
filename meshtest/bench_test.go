package meshtest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/route"
)

type blob struct {
	B []byte `cbor:"1,keyasint"`
}

var blobType = hub.Define[*blob, *blob]("bench/blob", message.Request)

// pair is two silos on loopback.
func pair(b *testing.B) [2]*hub.Mesh {
	var meshes [2]*hub.Mesh
	var routers [2]*route.Cluster
	var nets [2]*transport.TCP
	members := make([]membership.Member, 2)
	for i := range 2 {
		m, err := hub.New(hub.Options{ID: fmt.Sprint(i)})
		if err != nil {
			b.Fatal(err)
		}
		codec, err := route.NewCodec([]hub.WireType{blobType.Wire()}, nil)
		if err != nil {
			b.Fatal(err)
		}
		meshes[i] = m
		routers[i] = route.NewCluster(route.ClusterOptions{Mesh: m, Nodes: route.New(m, nil, nil), Codec: codec,
			Me: membership.Member{Name: fmt.Sprint("s", i)}, Config: cluster.Defaults(), Pace: membership.DefaultPace(), Timing: membership.DefaultTiming()})
		if nets[i], err = transport.Listen(context.Background(), transport.Config{Self: transport.Peer{Name: fmt.Sprint("s", i)}, Listen: "127.0.0.1:0", Handler: routers[i].Handler()}); err != nil {
			b.Fatal(err)
		}
		members[i] = membership.Member{Name: fmt.Sprint("s", i), Epoch: membership.Epoch(i + 1), Addr: nets[i].Addr().String()}
	}
	v, err := membership.NewView(membership.Key{Timeline: 1, Number: 1}, members)
	if err != nil {
		b.Fatal(err)
	}
	for i, r := range routers {
		r.StartFixed(nets[i], members[i].Epoch, v)
	}
	b.Cleanup(func() {
		for i := range 2 {
			nets[i].Close(context.Background())
			routers[i].Stop()
			meshes[i].Close(context.Background())
		}
	})
	return meshes
}

// BenchmarkAskAcrossSilos is the whole ask between two silos in one process, over TCP: both ends are in its
// figures.
func BenchmarkAskAcrossSilos(b *testing.B) {
	meshes := pair(b)
	echo := func(_ context.Context, _ *hub.Hub, r *blob) (*blob, error) { return r, nil }
	turn, quick := hub.NewKind("echo", hub.Limits{}), hub.NewKind("quick", hub.Limits{})
	hub.Handle(turn, blobType, echo)
	hub.HandleQuick(quick, blobType, echo)
	ctx := message.WithIdentity(context.Background(), &message.Identity{Subject: "bench"})
	req := &blob{make([]byte, 256)}
	for path, k := range map[string]*hub.Kind{"portal/turn": turn, "portal/quick": quick} {
		if _, err := meshes[1].Start(address.Of(path), k, nil); err != nil {
			b.Fatal(err)
		}
		for range 100 { // the silos may still be dialling each other
			if _, err := blobType.Ask(ctx, meshes[0], path, req); err == nil {
				break
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	for _, path := range []string{"portal/turn", "portal/quick"} {
		for _, callers := range []int{1, 64, 1024} {
			b.Run(fmt.Sprint(path, "/", callers), func(b *testing.B) {
				b.ReportAllocs()
				before := processorTime(b)
				ask(b, callers, func() error {
					_, err := blobType.Ask(ctx, meshes[0], path, req)
					return err
				})
				b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// ask has b.N asks made by some callers.
func ask(b *testing.B, callers int, f func() error) {
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := f(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// processorTime is what the process has used of the processors.
func processorTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
