package hub

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/message"
)

func benchMesh(b *testing.B, hubs int) (*Mesh, context.Context, []string) {
	m, err := New(Options{ID: "1"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { m.Close(context.Background()) })
	resp := &echoResp{}
	k := NewKind("echo", Limits{})
	Handle(k, echo, func(context.Context, *Hub, *echoReq) (*echoResp, error) { return resp, nil })
	HandleQuick(k, relay, func(context.Context, *Hub, *echoReq) (*echoResp, error) { return resp, nil })
	paths := make([]string, hubs)
	for i := range paths {
		paths[i] = fmt.Sprintf("acme/n%d", i)
		if _, err := m.Start(address.Of(paths[i]), k, nil); err != nil {
			b.Fatal(err)
		}
	}
	return m, message.WithIdentity(context.Background(), alice), paths
}

func BenchmarkAsk(b *testing.B) {
	for _, c := range []struct{ callers, hubs int }{{1, 1}, {64, 1}, {1024, 1}, {64, 1000}} {
		for name, typ := range map[string]*Type[*echoReq, *echoResp]{"turn": echo, "quick": relay} {
			b.Run(fmt.Sprintf("%s/callers=%d/hubs=%d", name, c.callers, c.hubs), func(b *testing.B) {
				m, ctx, paths := benchMesh(b, c.hubs)
				req := &echoReq{}
				b.ReportAllocs()
				b.ResetTimer()
				var wg sync.WaitGroup
				for w := range c.callers {
					wg.Go(func() {
						for i := w; i < b.N; i += c.callers {
							if _, err := typ.Ask(ctx, m, paths[i%len(paths)], req); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}

func BenchmarkPost(b *testing.B) {
	m, ctx, paths := benchMesh(b, 1000)
	req := &Heart{}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := HeartBeat.Post(ctx, m, paths[i%len(paths)], req); err != nil {
			b.Fatal(err)
		}
	}
}
