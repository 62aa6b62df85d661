package transport_test

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hubmesh/hubmesh/internal/cluster/transport"
)

// events is a scheduler of one goroutine: what run takes off the heap is all that happens.
type events struct {
	now   time.Duration
	count int
	heap  eventHeap

	still  func() time.Duration // how long the process stands still after it has read the clock; nil: never
	read   time.Duration        // the last reading
	delays bool                 // counts a delay from wherever the process stood when it asked, as it must not
}

type event struct {
	at    time.Duration
	order int
	f     func()
}

type eventHeap []*event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(e any)   { *h = append(*h, e.(*event)) }
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}

func (e *events) Now() time.Duration {
	e.read = e.now
	if e.still != nil {
		e.now += e.still()
	}
	return e.read
}

func (e *events) At(at time.Duration, f func()) func() bool {
	e.count++
	if e.delays {
		at += e.now - e.read
	}
	ev := &event{max(at, e.now), e.count, f}
	heap.Push(&e.heap, ev)
	return func() bool {
		stopped := ev.f != nil
		ev.f = nil
		return stopped
	}
}

func (e *events) run(d time.Duration) {
	until := e.now + d
	for len(e.heap) > 0 && e.heap[0].at <= until {
		ev := heap.Pop(&e.heap).(*event)
		e.now = max(ev.at, e.now)
		if f := ev.f; f != nil {
			ev.f = nil
			f()
		}
	}
	e.now = until
}

// world is a network of one goroutine, and a trace of all that reaches its silos.
type world struct {
	t *testing.T
	*events
	*transport.Network
	trace []string
}

func newWorld(t *testing.T, seed uint64) *world {
	e := &events{}
	return &world{t: t, events: e, Network: transport.NewNetwork(e, seed)}
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%v ", w.now)+fmt.Sprintf(format, args...))
}

// saw counts lines of the trace that contain text.
func (w *world) saw(text string) (n int) {
	for _, line := range w.trace {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (w *world) must(n int, text string) {
	w.t.Helper()
	if got := w.saw(text); got != n {
		w.t.Fatalf("%d lines of %q, not %d:\n%s", got, text, n, strings.Join(w.trace, "\n"))
	}
}

type silo struct {
	*transport.Memory
	w    *world
	name string
	act  func(body string, reply func([]byte))
}

func (s *silo) Handle(from transport.Peer, r transport.Request, reply func([]byte)) {
	s.w.note("%s handles %s", s.name, r.Body)
	if s.act != nil {
		s.act(string(r.Body), reply)
		return
	}
	reply(r.Body)
}
func (s *silo) Accepted(from transport.Peer) {
	s.w.note("%s accepts %s/%d", s.name, from.Name, from.Epoch)
}
func (s *silo) Broken(to transport.Peer, cause error) {
	s.w.note("%s broken %s/%d: %v", s.name, to.Name, to.Epoch, cause)
}

func (w *world) open(name string, epoch uint64) *silo {
	s := &silo{w: w, name: name}
	s.Memory = w.Join(transport.Peer{Name: name, Epoch: epoch}, s)
	return s
}

func (s *silo) call(to *silo, body string) {
	s.Call(to.Self(), transport.Request{Class: transport.Write, Body: []byte(body)}, func(a transport.Answer) {
		if a.Err == nil {
			s.w.note("%s answered %s", s.name, a.Body)
			return
		}
		var lost *transport.LostError
		s.w.note("%s failed %s, lost %v: %v", s.name, body, errors.As(a.Err, &lost), a.Err)
	})
}

// protocol §9: seeds that replay
func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	run := func(seed uint64) []string {
		w := newWorld(t, seed)
		rng := rand.New(rand.NewPCG(seed, 2))
		var silos []*silo
		for i := range 4 {
			silos = append(silos, w.open(string(rune('a'+i)), uint64(i+1)))
		}
		epoch := uint64(10)
		for step := range 400 {
			x, y := rng.IntN(4), rng.IntN(4)
			a, b := silos[x], silos[y]
			switch rng.IntN(16) {
			case 0:
				w.Cut(a.name, b.name)
			case 1, 2:
				w.Heal(a.name, b.name)
			case 3:
				w.Hold(a.name)
			case 4, 5:
				w.Release(a.name)
			case 6:
				w.Crash(a.name)
				epoch++
				silos[x] = w.open(a.name, epoch)
			case 7:
				a.Drop(b.Self().Epoch, errors.New("dropped"))
			case 8:
				a.Suspect(b.Self().Epoch, step%2 == 0)
			case 9:
				epoch++
				a.SetEpoch(epoch)
			case 10:
				w.SetLoss(float64(rng.IntN(2)) * 0.2)
			default:
				for i := range 5 {
					r := transport.Request{Class: transport.Class(i % 4), Body: fmt.Appendf(nil, "%d.%d", step, i), Within: time.Duration(i) * 100 * time.Millisecond}
					a.Call(b.Self(), r, func(got transport.Answer) { w.note("%s %s: %s %v", a.name, r.Body, got.Body, got.Err) })
				}
			}
			w.run(time.Duration(rng.IntN(40)) * time.Millisecond)
		}
		for _, s := range silos {
			w.note("%+v", s.Peers())
		}
		return w.trace
	}
	before := runtime.NumGoroutine()
	for seed := range uint64(10) {
		if diff := cmp.Diff(run(seed), run(seed)); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
	if slices.Equal(run(1), run(2)) {
		t.Fatal("the seed has no effect")
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Fatalf("%d goroutines were started", after-before)
	}
}

// protocol §9: what a cut does
func TestACutHoldsBackWhatGoesOneWayUntilTheHeal(t *testing.T) {
	w := newWorld(t, 1)
	a, b := w.open("a", 1), w.open("b", 2)
	a.call(b, "first")
	w.run(time.Second)
	w.must(1, "a answered first")
	w.Cut("b", "a")
	for i := range 3 {
		a.call(b, fmt.Sprint("unanswered ", i))
	}
	w.run(10 * time.Second)
	w.must(3, "b handles unanswered")
	w.must(0, "a answered unanswered")
	w.Heal("b", "a")
	w.run(time.Second)
	w.must(3, "a answered unanswered")
	w.CutBoth("a", "b")
	w.Cut("a", "b") // cuts add up
	a.call(b, "held")
	w.HealBoth("a", "b")
	w.run(time.Second)
	w.must(0, "b handles held")
	w.Heal("a", "b")
	w.run(time.Second)
	w.must(1, "a answered held")
}

// protocol §9: what a cut does
func TestADialToACutPeerEndsAfterItsBoundAndADialToAHeldOneToo(t *testing.T) {
	for name, hinder := range map[string]func(w *world){
		"cut there": func(w *world) { w.Cut("a", "b") },
		"cut back":  func(w *world) { w.Cut("b", "a") },
		"held":      func(w *world) { w.Hold("b") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			a, b := w.open("a", 1), w.open("b", 2)
			hinder(w)
			a.call(b, "x")
			w.run(1999 * time.Millisecond)
			w.must(0, "a")
			w.run(2 * time.Millisecond)
			w.must(1, "a failed x, lost false")
			w.must(1, "a broken b/2: dial silo b")
			w.Heal("a", "b")
			w.Heal("b", "a")
			w.Release("b")
			w.run(25 * time.Millisecond) // calls rest a while after a failed dial
			a.call(b, "y")
			w.run(time.Second)
			w.must(1, "a answered y")
			w.must(0, "b handles x")
		})
	}
}

// protocol §9: late frames of connections that were closed
func TestHalfOfTheClosedConnectionsStillDeliverWhatACutHeldBack(t *testing.T) {
	delivered := 0
	for seed := range uint64(200) {
		w := newWorld(t, seed)
		a, b := w.open("a", 1), w.open("b", 2)
		a.call(b, "first")
		w.run(time.Second)
		w.Cut("a", "b")
		a.call(b, "late")
		a.Drop(2, errors.New("no pong"))
		w.run(time.Second)
		w.must(1, "a failed late, lost true")
		w.Heal("a", "b")
		w.run(time.Second)
		delivered += w.saw("b handles late")
		a.call(b, "second")
		w.run(time.Second)
		w.must(1, "a answered second")
	}
	if delivered < 70 || delivered > 130 {
		t.Fatalf("%d of 200", delivered)
	}
}

// protocol §9: kills, and restarts on the same address
func TestACrashIsSeenWithinEightMillisecondsOrAtTheHeal(t *testing.T) {
	for seed := range uint64(50) {
		w := newWorld(t, seed)
		a, b := w.open("a", 1), w.open("b", 2)
		b.act = func(string, func([]byte)) {}
		a.call(b, "pending")
		b.call(a, "x")
		b.After(time.Minute, func() { w.note("b lives") })
		w.run(time.Second)
		cut := seed%2 == 1
		if cut {
			w.CutBoth("a", "b")
		}
		w.Crash("b")
		crashed := w.now
		if cut {
			w.run(5 * time.Second)
			w.must(0, "a broken")
			w.HealBoth("a", "b")
			crashed = w.now
		}
		w.run(8*time.Millisecond + 1)
		w.must(1, "a broken b/2")
		w.must(1, "a failed pending, lost true")
		var took time.Duration
		for _, line := range w.trace {
			if strings.Contains(line, "a broken") {
				at, _ := time.ParseDuration(strings.Fields(line)[0])
				took = at - crashed
			}
		}
		if took < 300*time.Microsecond {
			t.Fatalf("seen after %v", took)
		}
		if w.Running("b") || !w.Running("a") {
			t.Fatal("Running is wrong")
		}
		a.call(b, "refused")
		w.run(100 * time.Millisecond)
		w.must(1, "a failed refused, lost false")
		again := w.open("b", 3)
		a.call(again, "again")
		w.run(2 * time.Minute)
		w.must(1, "a answered again")
		w.must(0, "b lives")
	}
}

// protocol §9: pauses
func TestWhatIsHeldRunsInItsOrderAtRelease(t *testing.T) {
	w := newWorld(t, 1)
	a, b := w.open("a", 1), w.open("b", 2)
	a.call(b, "first")
	w.run(time.Second)
	w.Hold("b")
	if w.Running("b") {
		t.Fatal("it is held")
	}
	for i := range 20 {
		a.call(b, fmt.Sprintf("held %02d", i))
	}
	b.After(time.Millisecond, func() { w.note("b's own timer") })
	w.run(time.Minute)
	w.must(0, "b handles held")
	w.must(0, "timer")
	w.trace = nil
	w.Release("b")
	w.run(time.Second)
	w.must(20, "a answered held")
	w.must(1, "b's own timer")
	var order []string
	for _, line := range w.trace {
		if strings.Contains(line, "b handles") {
			order = append(order, line)
		}
	}
	if !slices.IsSorted(order) || len(order) != 20 {
		t.Fatal(strings.Join(order, "\n"))
	}
}

// protocol §9: loss and delay
func TestLossAndSlownessAreDelayAndKeepTheOrder(t *testing.T) {
	elapsed := func(change func(*world)) time.Duration {
		w := newWorld(t, 5)
		a, b := w.open("a", 1), w.open("b", 2)
		change(w)
		for i := range 300 {
			a.call(b, fmt.Sprintf("%03d", i))
		}
		for w.saw("a answered") < 300 {
			w.run(time.Millisecond)
		}
		next := 0
		for _, line := range w.trace {
			if strings.Contains(line, "b handles") {
				if !strings.HasSuffix(line, fmt.Sprintf("%03d", next)) {
					t.Fatalf("%d: %s", next, line)
				}
				next++
			}
		}
		return w.now
	}
	usual := elapsed(func(*world) {})
	lossy := elapsed(func(w *world) { w.SetLoss(0.2) })
	slow := elapsed(func(w *world) { w.SetSlow(300 * time.Millisecond) })
	if usual > 150*time.Millisecond || lossy < 200*time.Millisecond || slow < 900*time.Millisecond {
		t.Fatal(usual, lossy, slow)
	}
}

// protocol §3: a connection keeps its order
func TestAProcessThatStandsStillBetweenTwoFramesDoesNotChangeTheirOrder(t *testing.T) {
	for _, delays := range []bool{false, true} { // the control: a clock that counts delays
		w := newWorld(t, 9)
		rng := rand.New(rand.NewPCG(1, 2))
		w.SetDelay(func(*rand.Rand, string, string) time.Duration { return time.Duration(1+rng.IntN(3)) * time.Millisecond })
		a, b := w.open("a", 1), w.open("b", 2)
		a.call(b, "first")
		w.run(time.Second)
		w.must(1, "a answered first")
		w.still, w.delays = func() time.Duration { return time.Duration(rng.IntN(2)) * 20 * time.Millisecond }, delays
		for i := range 100 {
			a.call(b, fmt.Sprintf("%03d", i))
		}
		w.run(time.Minute)
		w.must(100, "b handles 0")
		var came []string
		for _, line := range w.trace {
			if _, body, ok := strings.Cut(line, "b handles 0"); ok {
				came = append(came, body)
			}
		}
		if slices.IsSorted(came) == delays {
			t.Errorf("with delays %v: %v", delays, came)
		}
	}
}

// decision 4
func TestSilosInMemoryShareNoBytes(t *testing.T) {
	w := newWorld(t, 1)
	a, b := w.open("a", 1), w.open("b", 2)
	answer := []byte("answer")
	b.act = func(body string, reply func([]byte)) {
		reply(answer)
		copy(answer, "xxxxxx")
	}
	body := []byte("request")
	a.Call(b.Self(), transport.Request{Body: body}, func(got transport.Answer) { w.note("got %s", got.Body) })
	copy(body, "xxxxxxx")
	w.run(time.Second)
	w.must(1, "b handles request")
	w.must(1, "got answer")
}

// fault 17
func TestEveryCallOfALivingSiloEndsOnceInAnyRun(t *testing.T) {
	for seed := range uint64(200) {
		w := newWorld(t, seed)
		rng := rand.New(rand.NewPCG(seed, 3))
		a, b := w.open("a", 1), w.open("b", 2)
		handled, ended := map[string]int{}, map[string]error{}
		b.act = func(body string, reply func([]byte)) {
			handled[body]++
			if rng.IntN(4) > 0 {
				b.After(time.Duration(rng.IntN(50))*time.Millisecond, func() { reply([]byte(body)) })
			}
		}
		held := []func(){func() { w.Heal("a", "b") }, func() { w.Heal("b", "a") }, func() { w.Release("b") }, func() { a.Suspect(2, false) }}
		calls := 0
		for range 300 {
			switch rng.IntN(12) {
			case 0:
				w.Cut("a", "b")
			case 1:
				w.Cut("b", "a")
			case 2:
				w.Hold("b")
			case 3:
				a.Suspect(2, true)
			case 4:
				a.Drop(2, errors.New("dropped"))
			case 5:
				w.Break("a", "b")
			case 6, 7:
				held[rng.IntN(len(held))]()
			default:
				body := fmt.Sprint(calls)
				calls++
				r := transport.Request{Class: transport.Class(rng.IntN(4)), Body: []byte(body), Within: time.Duration(rng.IntN(3)) * 300 * time.Millisecond}
				a.Call(b.Self(), r, func(got transport.Answer) {
					if _, twice := ended[body]; twice {
						t.Fatalf("seed %d: %s ended twice", seed, body)
					}
					ended[body] = got.Err
				})
			}
			w.run(time.Duration(rng.IntN(30)) * time.Millisecond)
		}
		a.Close(t.Context())
		if len(ended) != calls {
			t.Fatalf("seed %d: %d of %d calls ended", seed, len(ended), calls)
		}
		for _, s := range a.Peers() {
			if s.Calls != s.Answered+s.Late+s.Lost+s.NotSent || s.Pending != 0 {
				t.Fatalf("seed %d: %+v", seed, s)
			}
		}
		for range 200 {
			w.Heal("a", "b")
			w.Heal("b", "a")
		}
		w.Release("b")
		w.run(time.Minute)
		for body, err := range ended {
			var notSent *transport.NotSentError
			var late *transport.LateError
			never := errors.As(err, &notSent) || errors.As(err, &late) && !late.Sent
			if n := handled[body]; n > 1 || never && n > 0 || err == nil && n != 1 {
				t.Fatalf("seed %d: %s was handled %d times and told as %v", seed, body, n, err)
			}
		}
	}
}
