package hub

import (
	"strings"
	"sync"

	"github.com/hubmesh/hubmesh/internal/address"
)

// routerRole tells in which role the mesh hub takes part in a delivery: "sender", "target" or "both";
// "" when it does not. The address type is exactly "mesh"; heartbeats are exempt (invariant 31).
func routerRole(from, to *address.Address, heartbeat bool) string {
	if heartbeat {
		return ""
	}
	is := func(a *address.Address) bool {
		return a != nil && strings.HasPrefix(a.Path(), "mesh/")
	}
	switch {
	case is(from) && is(to):
		return "both"
	case is(from):
		return "sender"
	case is(to):
		return "target"
	}
	return ""
}

// trafficLog reports deliveries from or to the mesh hub once per role and message type: the mesh hub
// is a router only. Nothing is blocked.
type trafficLog struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

func (t *trafficLog) check(m *Mesh, d *Delivery) {
	role := routerRole(d.from, d.to, d.info == &HeartBeat.typeInfo)
	if role == "" {
		return
	}
	key := role + " " + d.info.name
	t.mu.Lock()
	_, known := t.seen[key]
	if !known {
		if t.seen == nil {
			t.seen = map[string]struct{}{}
		}
		t.seen[key] = struct{}{}
	}
	t.mu.Unlock()
	if !known {
		m.log.Error("ROUTER_TRAFFIC", "role", role, "operation", d.info.name, "sender", d.Sender().String(), "target", d.to.String())
	}
}
