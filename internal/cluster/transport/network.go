package transport

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Network joins the ends of silos in one process, and is under the control of a test: it delays, cuts,
// loses, pauses and crashes. It behaves as TCP between processes does: connections keep order and
// break, what a cut holds back arrives at the heal, also late frames of closed connections, a process
// that stands still is connected and does not answer. All randomness is from one seed.
//
// Everything that reaches the code of a silo is an event of its endpoint: events of one endpoint run
// one after the other, are held while it is held, and vanish with it when it crashes.
//
// Lock order: there is one lock, and it is not held over calls to handlers, done functions or timers.
type Network struct {
	mu         sync.Mutex
	sched      Scheduler
	rng        *rand.Rand
	names      map[string]*Memory // the present incarnation of each name; for look-ups only
	addrs      map[string]*Memory
	cuts       map[[2]string]int
	flows      []*flow // in the order of their dials
	delay      DelayFunc
	loss       float64
	slower     time.Duration
	overtaking bool
}

// DelayFunc is how long a frame is under way. It must take its randomness from rng.
type DelayFunc func(rng *rand.Rand, from, to string) time.Duration

// UsualDelay is 40–400 µs, and 1–30 ms more for one frame in fifty.
func UsualDelay(rng *rand.Rand, _, _ string) time.Duration {
	d := between(rng, 40*time.Microsecond, 400*time.Microsecond)
	if rng.IntN(50) == 0 {
		d += between(rng, time.Millisecond, 30*time.Millisecond)
	}
	return d
}

func between(rng *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(rng.Int64N(int64(high-low)+1))
}

const (
	// localDelay is how long a silo takes to tell itself something, such as a refusal.
	localDelay = time.Microsecond
	// A kernel that tears a process down closes its sockets within these bounds.
	resetMin, resetMax = 300 * time.Microsecond, 8 * time.Millisecond
	// A lost frame is sent again after firstRetransmit, doubling to maxRetransmit.
	firstRetransmit, maxRetransmit = 200 * time.Millisecond, 2 * time.Second
)

// NewNetwork makes a network without endpoints.
func NewNetwork(s Scheduler, seed uint64) *Network {
	return &Network{
		sched: s, rng: rand.New(rand.NewPCG(seed, 0x6875626d657368)), delay: UsualDelay,
		names: map[string]*Memory{}, addrs: map[string]*Memory{}, cuts: map[[2]string]int{},
	}
}

// Join attaches an endpoint with the usual limits. The name and the address must be free: never used,
// crashed or closed.
func (n *Network) Join(self Peer, h Handler) *Memory {
	m, err := n.JoinWith(Config{Self: self, Handler: h})
	if err != nil {
		panic(err) // a fault of the test
	}
	return m
}

// JoinWith is Join with what else a Config says; Listen and Secure have no meaning here.
func (n *Network) JoinWith(cfg Config) (*Memory, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, err
	}
	if cfg.Self.Addr == "" {
		cfg.Self.Addr = cfg.Self.Name
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.names[cfg.Self.Name].alive() || n.addrs[cfg.Self.Addr].alive() {
		return nil, fmt.Errorf("transport: the name %s or the address %s is in use", cfg.Self.Name, cfg.Self.Addr)
	}
	m := &Memory{net: n, cfg: cfg, notices: notices{log: cfg.Logger}, epoch: cfg.Self.Epoch, links: map[uint64]*memoryLink{}, suspects: map[uint64]bool{}, accepted: map[uint64]*memoryPeer{}}
	n.names[cfg.Self.Name], n.addrs[cfg.Self.Addr] = m, m
	return m, nil
}

// SetDelay replaces the delay of frames that are sent from now on; nil is UsualDelay. Frames of one
// direction of a connection keep their order whatever it says.
func (n *Network) SetDelay(f DelayFunc) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if f == nil {
		f = UsualDelay
	}
	n.delay = f
}

// SetLoss makes that share of frames arrive late by retransmission.
func (n *Network) SetLoss(share float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.loss = share
}

// SetSlow adds d to the delay of each frame.
func (n *Network) SetSlow(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slower = d
}

// SetOvertaking lets requests of the class [Control] overtake others of their connection, which no real one does:
// what they say is to hold without their order.
func (n *Network) SetOvertaking(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.overtaking = on
}

// Cut holds back what goes from one name to the other. Cuts of the same direction add up; names stand
// for hosts, so a cut outlives a crash.
func (n *Network) Cut(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cuts[[2]string{from, to}]++
}

// Heal takes one cut back. What it was the last to hold back is on its way again; of a connection that
// has been closed meanwhile that happens half of the time.
func (n *Network) Heal(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	pair := [2]string{from, to}
	if n.cuts[pair] <= 1 {
		delete(n.cuts, pair)
		n.flush()
	} else {
		n.cuts[pair]--
	}
}

// CutBoth cuts both directions.
func (n *Network) CutBoth(a, b string) {
	n.Cut(a, b)
	n.Cut(b, a)
}

// HealBoth heals both directions.
func (n *Network) HealBoth(a, b string) {
	n.Heal(a, b)
	n.Heal(b, a)
}

func (n *Network) isCut(from, to *Memory) bool {
	return n.cuts[[2]string{from.cfg.Self.Name, to.cfg.Self.Name}] > 0
}

// Hold stops the process of that name: its events wait until Release.
func (n *Network) Hold(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if m := n.names[name]; m.alive() {
		m.held = true
	}
}

// Release lets it go on: what has been held runs in its order.
func (n *Network) Release(name string) {
	n.mu.Lock()
	m := n.names[name]
	if m.alive() && m.held {
		m.held = false
		n.sched.At(n.sched.Now(), m.drain)
	}
	n.mu.Unlock()
}

// Running tells whether an event of that process may run: it lives and is not held.
func (n *Network) Running(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.names[name]
	return m.alive() && !m.held
}

// Crash kills the process of that name: none of its events runs any more, so its pending calls are
// never told. Its kernel closes its sockets, which peers see within 8 ms, or at the heal of a cut.
func (n *Network) Crash(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.names[name]
	if !m.alive() {
		return
	}
	m.dead, m.events = true, nil
	for _, f := range slices.Clone(n.flows) {
		f.lose(m)
	}
}

// Break resets the connections between two names, in both directions, as a middlebox does.
func (n *Network) Break(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range slices.Clone(n.flows) {
		if f.server == nil {
			continue
		}
		x, y := f.client.cfg.Self.Name, f.server.cfg.Self.Name
		if x == a && y == b || x == b && y == a {
			f.open = [2]bool{}
			f.server.lost(f)
			f.reset(toClient)
		}
	}
	n.prune()
}

// travel is the delay of one frame.
func (n *Network) travel(from, to *Memory) time.Duration {
	d := n.delay(n.rng, from.cfg.Self.Name, to.cfg.Self.Name) + n.slower
	if n.loss > 0 {
		for again := firstRetransmit; n.rng.Float64() < n.loss && again <= maxRetransmit; again *= 2 {
			d += again
		}
	}
	return max(d, time.Nanosecond)
}

// kernel runs f later, under the lock and whatever becomes of processes meanwhile. f touches the state
// of the network only.
func (n *Network) kernel(d time.Duration, f func()) {
	n.sched.At(n.sched.Now()+d, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		f()
	})
}

// flush sends what cuts that are healed have held back.
func (n *Network) flush() {
	for _, f := range slices.Clone(n.flows) {
		for way := range f.stalled {
			from, to := f.ends(way)
			if len(f.stalled[way]) == 0 || n.isCut(from, to) {
				continue
			}
			held := f.stalled[way]
			f.stalled[way] = nil
			keep := !from.dead
			if keep && f.closed() {
				keep = n.rng.IntN(2) == 0
			}
			for _, p := range held {
				if keep || p.end {
					f.transmit(way, p)
				}
			}
		}
	}
	n.prune()
}

// prune forgets flows that are closed and hold nothing.
func (n *Network) prune() {
	n.flows = slices.DeleteFunc(n.flows, func(f *flow) bool {
		return f.closed() && !f.dialling && len(f.stalled[toServer])+len(f.stalled[toClient]) == 0
	})
}
