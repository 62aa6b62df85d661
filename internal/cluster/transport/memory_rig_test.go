package transport_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/cluster/transport/transporttest"
)

func TestMemoryHoldsTheContractOfATransport(t *testing.T) {
	transporttest.Run(t, memoryRig{})
}

type memoryRig struct{}

func (memoryRig) Bubble(t *testing.T, test func(*testing.T)) { synctest.Test(t, test) }

func (memoryRig) World(*testing.T) transporttest.World {
	return &memoryWorld{net: transport.NewNetwork(transport.Timers(), 1)}
}

type memoryWorld struct {
	net   *transport.Network
	names []string
}

func (w *memoryWorld) Open(t *testing.T, cfg transport.Config, version uint16) transporttest.Silo {
	m, err := w.net.JoinWith(transport.Speaking(cfg, version))
	if err != nil {
		t.Fatal(err)
	}
	w.names = append(w.names, cfg.Self.Name)
	return m
}

func (w *memoryWorld) Crash(_ *testing.T, name string) { w.net.Crash(name) }

func (w *memoryWorld) Break(_ *testing.T, name string) {
	for _, other := range w.names {
		w.net.Break(other, name)
	}
}

func (w *memoryWorld) Mute(*testing.T) string {
	m := w.net.Join(transport.Peer{Name: "mute", Epoch: 0xe1}, echo{})
	w.net.Hold("mute")
	return m.Self().Addr
}

// Lag makes one frame slow. Those after it on the same connection keep behind it.
func (w *memoryWorld) Lag(_ *testing.T, from, to string) (carries, release func()) {
	const lag = time.Second
	slow, some := true, make(chan struct{})
	w.net.SetDelay(func(rng *rand.Rand, a, b string) time.Duration {
		if slow && a == from && b == to {
			slow = false
			close(some)
			return lag
		}
		return transport.UsualDelay(rng, a, b)
	})
	return func() { <-some }, func() { <-time.After(2 * lag) }
}
