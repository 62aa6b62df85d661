package meshtest

import (
	"context"
	"fmt"
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

func BenchmarkAskAcrossSilos(b *testing.B) {
	meshes := pair(b)
	k := hub.NewKind("echo", hub.Limits{})
	hub.HandleQuick(k, blobType, func(_ context.Context, _ *hub.Hub, r *blob) (*blob, error) { return r, nil })
	if _, err := meshes[1].Start(address.Of("portal/x"), k, nil); err != nil {
		b.Fatal(err)
	}
	ctx := message.WithIdentity(context.Background(), message.SystemIdentity())
	req := &blob{make([]byte, 256)}
	for range 100 { // the silos may still be dialling each other
		if _, err := blobType.Ask(ctx, meshes[0], "portal/x", req); err == nil {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	for _, callers := range []int{1, 64, 1024} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			b.SetParallelism(max(callers/2, 1))
			b.ReportAllocs()
			if callers == 1 {
				for b.Loop() {
					if _, err := blobType.Ask(ctx, meshes[0], "portal/x", req); err != nil {
						b.Fatal(err)
					}
				}
				return
			}
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if _, err := blobType.Ask(ctx, meshes[0], "portal/x", req); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
