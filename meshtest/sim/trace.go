package sim

import (
	"fmt"
	"io"
	"strings"

	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// tracer writes what happens to one address.
type tracer struct {
	w    *world
	to   io.Writer
	addr string
}

func (t *tracer) note(p *process, format string, args ...any) {
	if t == nil {
		return
	}
	fmt.Fprintf(t.to, "%12v %s/%s: %s\n", t.w.now, p.name, p.silo.Self(), fmt.Sprintf(format, args...))
}

func (t *tracer) about(p *process, addr, format string, args ...any) {
	if t != nil && addr == t.addr {
		t.note(p, addr+" "+format, args...)
	}
}

// message tells of a directory message that speaks of the address or of its slot, and of its answer.
func (t *tracer) message(p *process, to transport.Peer, r transport.Request, answer []byte) {
	if t == nil || r.Class != transport.Control {
		return
	}
	m, err := wire.Decode(wire.Kind(r.Kind), r.Body)
	if err != nil {
		t.note(p, "cannot be read: %v", err)
		return
	}
	text := fmt.Sprintf("%+v", m)
	slot := p.slotOf(t.addr)
	switch m := m.(type) {
	case wire.HandOver:
		if m.Slot != slot {
			return
		}
	case wire.SlotQuery:
		for _, g := range m.Slots {
			if g.Slot == slot {
				text += t.addr
			}
		}
	}
	if !strings.Contains(text, t.addr) {
		return
	}
	if answer == nil {
		t.note(p, "%s to %s/%016x: %s", m.Kind(), to.Name, to.Epoch, shorten(text, t.addr))
		return
	}
	a, _ := wire.DecodeAnswer(answer)
	t.note(p, "%s from %s/%016x answered at %s: %T %s", m.Kind(), p.name, p.mem.Self().Epoch, to.Name, a, shorten(fmt.Sprintf("%+v", a), t.addr))
}

// shorten keeps the beginning of a message and what stands around an address in it.
func shorten(text, addr string) string {
	if len(text) < 300 {
		return text
	}
	out := text[:150]
	for at := strings.Index(text, addr); at >= 0; at = -1 {
		out += " … " + text[max(0, at-20):min(len(text), at+len(addr)+60)]
	}
	return out
}
