package cluster_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"slices"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/claim"
	"github.com/hubmesh/hubmesh/internal/cluster/clustertest"
	"github.com/hubmesh/hubmesh/internal/cluster/directory"
	"github.com/hubmesh/hubmesh/internal/cluster/membership"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

var (
	swaps  = flag.Int("swaps", 2, "deliveries that may overtake others in one order")
	orders = flag.Int("orders", 1_000_000, "orders of deliveries after which the search gives up, each case")
)

// small is a cluster of one slot whose every delivery the search puts in an order of its own. Messages
// from one silo to another keep their order, requests and answers apart, as on the two connections between
// them. Views reach each silo when the order says so, and may be skipped. What has a time of its own
// (repetitions, slot queries) happens when nothing else is left.
type small struct {
	clock  *clustertest.Clock
	silos  []*smallSilo
	ways   []*way // in order of their first message
	faults []string
}

type smallSilo struct {
	w     *small
	m     membership.Member
	core  *cluster.Core
	local map[string]uint64
	told  []cluster.Resolution
}

// way is messages in order; each is one delivery at a silo.
type way struct {
	name  string
	at    int // the silo that receives
	queue []func()
	count int
}

func (w *small) put(name string, at int, f func()) {
	i := slices.IndexFunc(w.ways, func(x *way) bool { return x.name == name })
	if i < 0 {
		i = len(w.ways)
		w.ways = append(w.ways, &way{name: name, at: at})
	}
	w.ways[i].queue = append(w.ways[i].queue, f)
}

func (w *small) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

func (w *small) silo(e membership.Epoch) int {
	return slices.IndexFunc(w.silos, func(s *smallSilo) bool { return s.m.Epoch == e })
}

// Call implements [cluster.Caller]: a request is one delivery, its answer another.
func (s *smallSilo) Call(to membership.Member, m wire.Request, _ time.Duration, done func(wire.Answer, error)) {
	w, from, at := s.w, s.w.silo(s.m.Epoch), s.w.silo(to.Epoch)
	kind, b := m.Kind(), wire.Encode(m)
	w.put(fmt.Sprintf("%d?%d", from, at), at, func() {
		got, err := wire.Decode(kind, b)
		if err != nil {
			w.fault("%v", err)
			return
		}
		w.silos[at].core.Handle(got, func(a wire.Answer) {
			b := wire.EncodeAnswer(a)
			w.put(fmt.Sprintf("%d!%d", at, from), from, func() {
				a, err := wire.DecodeAnswer(b)
				done(a, err)
			})
		})
	})
}

func (s *smallSilo) Serving(addr string) (uint64, bool) {
	reg, ok := s.local[addr]
	return reg, ok
}

// Granted holds P5: the silos are members of every view, so two of them never serve one node.
func (s *smallSilo) Granted(addr string, _ uint64) {
	for _, o := range s.w.silos {
		if _, serves := o.core.Claims.Serves(addr); serves && o != s {
			s.w.fault("P5: %s is served by %s and %s", addr, o.m.Name, s.m.Name)
		}
	}
}

func (s *smallSilo) StepAside(addr string, _ uint64) {
	s.w.fault("P5: %s steps aside for %s", s.m.Name, addr)
}
func (s *smallSilo) Load() int                      { return 0 }
func (s *smallSilo) HandOver(_ int, done func(int)) { done(0) }
func (s *smallSilo) TypeOf(_ string, done func(string, bool)) {
	s.w.clock.After(0, func() { done("", false) })
}
func (s *smallSilo) Stopping(string) bool                                              { return false }
func (s *smallSilo) Evicted()                                                          {}
func (s *smallSilo) Applied(*membership.View)                                          {}
func (s *smallSilo) Claiming(string, uint64, uint32, membership.Member, bool)          {}
func (s *smallSilo) Settled(string, uint64, uint32, bool)                              {}
func (s *smallSilo) Detaching(string, uint64)                                          {}
func (s *smallSilo) Landed(string, uint64, membership.Member, time.Duration, bool)     {}
func (s *smallSilo) NotLanding(addr string, _ uint64, m membership.Member, why string) {}
func (s *smallSilo) Lost(string, uint64, membership.Member)                            {}

const (
	smallNode = "acme/n"
	smallGone = "portal/gone"
	smallLive = "portal/live"
)

// newSmall is a settled cluster of so many silos, the first of which owns the slot while it does not
// leave. Two views are on their way in which it leaves and stays after all; two silos ask for the grant
// of one node, the last registers a process hub and disposes of another.
func newSmall(n int) *small {
	w := &small{clock: &clustertest.Clock{}}
	names := ownerFirst(n)
	var members []membership.Member
	for i, name := range names {
		members = append(members, clustertest.Silo(name, membership.Epoch(i+1)))
	}
	cfg := cluster.Defaults()
	cfg.Directory.Slots, cfg.Claims.Slots = 1, 1
	cfg.Directory.LocateGather, cfg.Claims.Gather = 0, 0
	v1 := clustertest.View(1, members...)
	for _, m := range members {
		s := &smallSilo{w: w, m: m, local: map[string]uint64{}}
		s.core = cluster.New(w.clock, s, s, s, cfg)
		w.silos = append(w.silos, s)
	}
	last := w.silos[n-1]
	var gone *claim.Handle
	for _, s := range w.silos {
		s.core.Joined(s.m.Epoch, v1)
	}
	gone = last.core.Claims.Handle(w.clock, smallGone)
	last.local[smallGone] = gone.Reg()
	gone.Attach()
	w.rest(nil)

	leaving := slices.Clone(members)
	leaving[0].Leaving = true
	v2, v3 := clustertest.View(2, leaving...), clustertest.View(3, members...)
	for i, s := range w.silos {
		w.put(fmt.Sprintf("v2@%d", i), i, func() { s.core.Apply(v2) })
	}
	for i, s := range w.silos {
		w.put(fmt.Sprintf("v3@%d", i), i, func() { s.core.Apply(v3) })
	}
	for _, i := range []int{n - 2, n - 1} {
		s := w.silos[i]
		w.put(fmt.Sprintf("ask@%d", i), i, func() {
			s.core.Resolve(cluster.Question{Addr: smallNode, Node: true, Until: time.Hour}, func(r cluster.Resolution) { s.told = append(s.told, r) })
		})
	}
	w.put("dispose", n-1, func() {
		delete(last.local, smallGone)
		gone.Dispose()
	})
	w.put("register", n-1, func() {
		h := last.core.Claims.Handle(w.clock, smallLive)
		last.local[smallLive] = h.Reg()
		h.Attach()
	})
	return w
}

// ownerFirst returns n names of which the first owns the only slot.
func ownerFirst(n int) []string {
	names := []string{"a", "b", "c"}[:n]
	var members []membership.Member
	for i, name := range names {
		members = append(members, clustertest.Silo(name, membership.Epoch(i+1)))
	}
	owner, _ := directory.NewTable(clustertest.View(1, members...), 1).Owner(0)
	i := slices.Index(names, owner.Name)
	names[0], names[i] = names[i], names[0]
	return names
}

// step is one delivery of a run: what could have been delivered, and what was.
type step struct {
	enabled []delivery
	chosen  int
}

type delivery struct {
	id string // the way and the number on it, the same in every run
	at int
}

// rest delivers everything, by the choices given and then the oldest way first, and lets time pass when
// nothing is left to deliver. It returns what it did.
func (w *small) rest(choices []int) []step {
	return w.deliver(func(i int, _ []delivery) int {
		if i < len(choices) {
			return choices[i]
		}
		return 0
	})
}

func (w *small) deliver(choose func(i int, enabled []delivery) int) []step {
	var steps []step
	w.clock.Flush()
	end := w.clock.Now() + 20*time.Second
	for {
		var s step
		var ways []*way
		for _, x := range w.ways {
			if len(x.queue) > 0 {
				s.enabled = append(s.enabled, delivery{fmt.Sprintf("%s#%d", x.name, x.count), x.at})
				ways = append(ways, x)
			}
		}
		if len(ways) == 0 {
			if !w.clock.Next(end) {
				return steps
			}
			continue
		}
		s.chosen = choose(len(steps), s.enabled)
		x := ways[s.chosen]
		f := x.queue[0]
		x.queue = x.queue[1:]
		x.count++
		steps = append(steps, s)
		f()
		w.clock.Flush()
	}
}

// check holds the rest against what must be true: P1, P3 and P5, and one outcome for each who asked.
func (w *small) check() {
	owner, last := w.silos[0], w.silos[len(w.silos)-1]
	if n := w.clock.Timers(); n > 0 {
		w.fault("%d timers are left: it does not come to rest", n)
	}
	if owned, settled := owner.core.Owner.Owned(); owned != 1 || settled != 1 {
		w.fault("P1: the owner has %d slots, %d settled", owned, settled)
	}
	entry := func(addr string, s *smallSilo, reg uint64) {
		if e, ok := owner.core.Owner.Entry(addr); !ok || e.Epoch != s.m.Epoch || e.Reg != reg {
			w.fault("P1: %s is served by %s/%d, its entry is %+v, %v", addr, s.m.Name, reg, e, ok)
		}
	}
	entry(smallLive, last, last.local[smallLive])
	if e, ok := owner.core.Owner.Entry(smallGone); ok {
		w.fault("P3: %s is gone, its entry is %+v", smallGone, e)
	}
	serve := 0
	for _, s := range w.silos {
		if reg, ok := s.core.Claims.Serves(smallNode); ok {
			serve++
			entry(smallNode, s, reg)
		}
	}
	if serve != 1 {
		w.fault("P1: the node is served by %d silos", serve)
	}
	for _, s := range w.silos[len(w.silos)-2:] {
		if len(s.told) != 1 || s.told[0].Entry == nil {
			w.fault("%s was told %+v", s.m.Name, s.told)
		}
	}
}

// explore runs the cluster in every order of its deliveries in which at most so many overtake others. Two
// deliveries at different silos commute, so an order that differs from another in nothing else is left out.
func explore(t *testing.T, n, swaps int) (covered int, all bool) {
	t.Helper()
	type todo struct {
		choices []int
		swaps   int
	}
	seen := map[uint64]bool{}
	stack := []todo{{}}
	for len(stack) > 0 {
		next := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		w := newSmall(n)
		steps := w.rest(next.choices)
		w.check()
		if len(w.faults) > 0 {
			var order []string
			for _, s := range steps {
				order = append(order, s.enabled[s.chosen].id)
			}
			t.Fatalf("%v\nin the order %v", w.faults, order)
		}
		if h := trace(steps, n); seen[h] {
			continue
		} else {
			seen[h] = true
		}
		if covered++; covered >= *orders {
			return covered, false
		}
		if next.swaps == swaps {
			continue
		}
		for i := len(next.choices); i < len(steps); i++ {
			for j, d := range steps[i].enabled {
				if j == steps[i].chosen || first(steps[i:], d) {
					continue
				}
				choices := make([]int, i+1)
				for k := range i {
					choices[k] = steps[k].chosen
				}
				choices[i] = j
				stack = append(stack, todo{choices, next.swaps + 1})
			}
		}
	}
	return covered, true
}

// first tells whether a delivery is the next at its silo anyway.
func first(steps []step, d delivery) bool {
	for _, s := range steps {
		if c := s.enabled[s.chosen]; c.at == d.at {
			return c.id == d.id
		}
	}
	return false
}

// trace is the order of deliveries at each silo: what tells two orders apart.
func trace(steps []step, n int) uint64 {
	h := fnv.New64a()
	for at := range n {
		for _, s := range steps {
			if c := s.enabled[s.chosen]; c.at == at {
				fmt.Fprint(h, c.id, " ")
			}
		}
		fmt.Fprint(h, "|")
	}
	return h.Sum64()
}

// protocol §11: one owner, two claimants, three views. -swaps goes deeper: 4 are 108,000 orders of two silos.
func TestEveryOrderOfDeliveriesKeepsOneActivationAndEveryEntry(t *testing.T) {
	for name, n := range map[string]int{"the owner is one of the two claimants": 2, "an owner and two claimants": 3} {
		t.Run(name, func(t *testing.T) {
			covered, all := explore(t, n, *swaps)
			t.Logf("%d orders of %d silos with at most %d overtakings; all of them: %v", covered, n, *swaps, all)
		})
	}
}

// protocol §10: the order in which an owner grants, loses its slot and regains it before the claimant,
// which has skipped the view between, hears of the grant. It gave two activations.
func TestAGrantFromBeforeTheSlotWasLostAndRegainedIsNotASecondActivation(t *testing.T) {
	order := []string{"ask@1#0", "1?0#2", "v3@1#0", "1?0#3", "v2@0#0", "v3@0#0", "1?0#4", "0!1#2", "0!1#3", "0!1#4", "v2@1#0", "ask@0#0"}
	w := newSmall(2)
	w.deliver(func(i int, enabled []delivery) int {
		if i >= len(order) {
			return 0
		}
		n := slices.IndexFunc(enabled, func(d delivery) bool { return d.id == order[i] })
		if n < 0 {
			t.Fatalf("step %d: no %s among %v: the messages have changed, and this order with them", i, order[i], enabled)
		}
		return n
	})
	if w.check(); len(w.faults) > 0 {
		t.Fatal(w.faults)
	}
}
