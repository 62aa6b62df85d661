package hub

import (
	"fmt"
	"strings"
	"time"

	"github.com/hubmesh/hubmesh/internal/lifecycle"
)

// Snapshot is what is observed of one hub at one moment. Taking it changes nothing and starts nothing.
type Snapshot struct {
	Address   string
	Kind      string
	Level     lifecycle.Level
	Queue     int // in the inbox
	Deferred  int
	Draining  bool   // a turn is under way
	Executing string // message type of the turn
	Since     time.Duration
	Gates     string // closed gates and since when; "" when none is
	Pending   []PendingAsk
	Version   uint64
	InitError error
	TimedOut  bool // quiescing ran into its bound
	Forced    bool // torn down by the watchdog

	discreet bool
}

// Discreet is the snapshot as it may be shown to whoever is no administrator: on its line the requests
// that the hub awaits are counted and not listed, as they are other callers' too and name their paths.
func (s Snapshot) Discreet() Snapshot {
	s.discreet = true
	return s
}

// PendingAsk is one request that the hub awaits.
type PendingAsk struct {
	ID, Type, Target string
	Age              time.Duration
}

// Snapshot observes the hub.
func (h *Hub) Snapshot() Snapshot {
	now := h.mesh.clock.Now()
	s := Snapshot{Address: h.addr.Path(), Kind: h.kind.name, Version: h.Version()}
	if d := h.cur.Load(); d != nil {
		s.Executing, s.Since = d.info.name, time.Duration(now-d.start.Load())
	}
	if h.gates() != 0 {
		s.Gates = h.closedGatesFor(now)
	}
	h.mu.Lock()
	s.Level = h.Level()
	s.Draining = h.flags.Load()&flagRunning != 0
	s.Queue = int(h.n)
	if e := h.ext.Load(); e != nil {
		s.Deferred, s.InitError, s.TimedOut, s.Forced = e.deferN, e.initErr, e.timedOut, e.forced
	}
	h.mu.Unlock()
	if h.flags.Load()&flagAsked != 0 {
		h.mesh.slots.each(func(sl *slot, gen uint32) {
			d := sl.cur.Load()
			if sl.owner.Load() == h && d != nil && d.gen == gen {
				s.Pending = append(s.Pending, PendingAsk{ID: correlation(sl.index, gen), Type: d.info.name, Target: d.to.String(), Age: time.Duration(now - d.posted)})
			}
		})
	}
	return s
}

// String is the snapshot on one line (edge.md DG-2).
func (s Snapshot) String() string {
	var b strings.Builder
	drains := 0
	if s.Draining {
		drains = 1
	}
	fmt.Fprintf(&b, "%s RunLevel=%s Queue(buffer=%d,deferred=%d,drainsInFlight=%d)", OneLine(s.Address), s.Level, s.Queue, s.Deferred, drains)
	if s.Executing != "" {
		fmt.Fprintf(&b, " Executing(%s, %dms)", OneLine(s.Executing), s.Since.Milliseconds())
	}
	if s.Gates != "" {
		fmt.Fprintf(&b, " Gates(%s)", OneLine(s.Gates))
	}
	fmt.Fprintf(&b, " PendingCallbacks=%d", len(s.Pending))
	if !s.discreet {
		s.listPending(&b)
	}
	if s.InitError != nil {
		fmt.Fprintf(&b, " InitializationError(%s)", OneLine(s.InitError.Error()))
	}
	return b.String()
}

// listPending names the first of the requests that the hub awaits.
func (s Snapshot) listPending(b *strings.Builder) {
	b.WriteByte('[')
	for i, p := range s.Pending {
		if i == 8 {
			fmt.Fprintf(b, " … %d more", len(s.Pending)-i)
			break
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(b, "%s=%s@%s(%dms)", p.ID, OneLine(p.Type), OneLine(p.Target), p.Age.Milliseconds())
	}
	b.WriteByte(']')
}

// OneLine keeps a text on one physical line: two log readers split on newlines.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r == '\u2028' || r == '\u2029' || r == '\u0085' {
			return ' '
		}
		return r
	}, s)
}

// Probe is what this process knows about the hub at an address. It is taken on the mesh, which owns
// every hub that is not hosted, and never starts one (edge.md DG-3).
type Probe struct {
	Found    bool
	Self     bool // the address is the reader's own
	Snapshot Snapshot
	// Activation says what is known of a start that has not published a hub yet: "in-flight(120ms)",
	// "none-recorded" or "unknown".
	Activation string
	Failed     string // kind of the panic that prevented the probe
}

// Activations tells about starts that are under way and have not published their hub.
type Activations interface {
	// InFlight is how long an activation of the path has been under way; false when none is recorded.
	InFlight(path string) (time.Duration, bool)
}

// Probe observes the hub at a path, on behalf of reader, which may be nil. A probe that panics says so
// and nothing else (DG-7).
func (m *Mesh) Probe(path string, reader *Hub) (p Probe) {
	defer func() {
		if r := recover(); r != nil {
			p = Probe{Failed: fmt.Sprintf("%T", r)}
		}
	}()
	h := m.registry.find(path)
	if h == nil {
		p.Activation = "unknown"
		if r := m.router.Load(); r != nil {
			if a, ok := (*r).(Activations); ok {
				p.Activation = "none-recorded"
				if age, under := a.InFlight(path); under {
					p.Activation = fmt.Sprintf("in-flight(%dms)", age.Milliseconds())
				}
			}
		}
		return p
	}
	return Probe{Found: true, Self: h == reader, Snapshot: h.Snapshot()}
}

// Discreet is the probe with a discreet snapshot.
func (p Probe) Discreet() Probe {
	p.Snapshot = p.Snapshot.Discreet()
	return p
}

// Clause is the target clause of a diagnosis (edge.md DG-4, DG-5): only what was observed.
func (p Probe) Clause() string {
	switch {
	case p.Failed != "":
		return "<diagnostics unavailable: " + OneLine(p.Failed) + ">"
	case p.Self:
		return "this hub itself"
	case !p.Found:
		return "no hosted hub was observed in this process at snapshot time, activation=" + p.Activation
	case p.Snapshot.Level == lifecycle.Starting:
		return "STILL STARTING: " + p.Snapshot.Gates + "; " + p.Snapshot.String()
	case p.Snapshot.Level >= lifecycle.Quiescing:
		return "SHUTTING DOWN " + p.Snapshot.String()
	default:
		return "Started " + p.Snapshot.String()
	}
}
