package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
)

type (
	pingReq  struct{ n int }
	pingResp struct{ n int }
)

var (
	pingTurn  = hub.Define[*pingReq, *pingResp]("bench/turn", message.Request)
	pingQuick = hub.Define[*pingReq, *pingResp]("bench/quick", message.Request)
)

// mailbox is the limit: a mutex, a list, a goroutine while there is work, a pooled reply channel. It
// has no bound, deadline, identity, panic isolation or accounting.
type mailbox struct {
	mu         sync.Mutex
	head, tail *letter
	running    bool
}

type letter struct {
	next  *letter
	req   *pingReq
	reply chan *pingResp
}

var replies = sync.Pool{New: func() any { return make(chan *pingResp, 1) }}

func (b *mailbox) ask(req *pingReq) *pingResp {
	l := &letter{req: req, reply: replies.Get().(chan *pingResp)}
	b.mu.Lock()
	if b.tail == nil {
		b.head = l
	} else {
		b.tail.next = l
	}
	b.tail = l
	start := !b.running
	b.running = true
	b.mu.Unlock()
	if start {
		go b.run()
	}
	resp := <-l.reply
	replies.Put(l.reply)
	return resp
}

func (b *mailbox) run() {
	for {
		b.mu.Lock()
		list := b.head
		b.head, b.tail = nil, nil
		if list == nil {
			b.running = false
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		for l := list; l != nil; l = l.next {
			l.reply <- &pingResp{l.req.n}
		}
	}
}

// shape is how many callers ask how many hubs.
type shape struct{ callers, hubs int }

func (s shape) String() string {
	if s.hubs == 1 {
		return fmt.Sprintf("%d callers", s.callers)
	}
	return fmt.Sprintf("%d callers on %d hubs", s.callers, s.hubs)
}

var shapes = []shape{{1, 1}, {64, 1}, {1024, 1}, {64, 1000}}

// cost is what one round of asks took.
type cost struct {
	cpu, wall     time.Duration // per ask
	allocs, bytes float64       // per ask
}

// measure runs asks from s.callers goroutines for about d and returns the cost of one.
func measure(s shape, d time.Duration, ask func(i int)) cost {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var wg sync.WaitGroup
	counts := make([]int, s.callers)
	c0, t0 := cpu(), time.Now()
	end := t0.Add(d)
	for w := range s.callers {
		wg.Go(func() {
			n := 0
			for i := w; ; i += s.callers {
				ask(i % s.hubs)
				if n++; n%64 == 0 && time.Now().After(end) {
					break
				}
			}
			counts[w] = n
		})
	}
	wg.Wait()
	c1, t1 := cpu(), time.Now()
	runtime.ReadMemStats(&after)
	total := 0
	for _, n := range counts {
		total += n
	}
	return cost{(c1 - c0) / time.Duration(total), t1.Sub(t0) / time.Duration(total),
		float64(after.Mallocs-before.Mallocs) / float64(total), float64(after.TotalAlloc-before.TotalAlloc) / float64(total)}
}

func askScenario(ctx context.Context, rounds int) (*Result, error) {
	r := newResult("ask", "ns of processor time an ask", rounds)
	m, err := hub.New(hub.Options{ID: "bench"})
	if err != nil {
		return nil, err
	}
	defer m.Close(context.Background())
	kind := hub.NewKind("bench", hub.Limits{})
	hub.Handle(kind, pingTurn, func(_ context.Context, _ *hub.Hub, q *pingReq) (*pingResp, error) { return &pingResp{q.n}, nil })
	hub.HandleQuick(kind, pingQuick, func(_ context.Context, _ *hub.Hub, q *pingReq) (*pingResp, error) { return &pingResp{q.n}, nil })
	paths := make([]string, 1000)
	boxes := make([]mailbox, 1000)
	for i := range paths {
		paths[i] = fmt.Sprintf("acme/n%d", i)
		if _, err := m.Start(address.Of(paths[i]), kind, nil); err != nil {
			return nil, err
		}
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(quiet))
	defer system.Shutdown()
	pids := make([]*actor.PID, 1000)
	props := actor.PropsFromFunc(func(c actor.Context) {
		if q, ok := c.Message().(*pingReq); ok {
			c.Respond(&pingResp{q.n})
		}
	})
	for i := range pids {
		pids[i] = system.Root.Spawn(props)
	}
	// An identity in a context without a Done, as a service's own work has: the wait is one channel.
	who := message.WithIdentity(context.Background(), &message.Identity{Subject: "bench"})
	req := &pingReq{1}
	subjects := map[string]func(i int){
		"mailbox": func(i int) { boxes[i].ask(req) },
		"hub": func(i int) {
			if _, err := pingTurn.Ask(who, m, paths[i], req); err != nil {
				panic(err)
			}
		},
		"quick": func(i int) {
			if _, err := pingQuick.Ask(who, m, paths[i], req); err != nil {
				panic(err)
			}
		},
		"protoactor": func(i int) {
			if _, err := system.Root.RequestFuture(pids[i], req, 10*time.Second).Result(); err != nil {
				panic(err)
			}
		},
	}
	order := []string{"mailbox", "hub", "quick", "protoactor"}
	const each = 150 * time.Millisecond
	for _, s := range shapes {
		for range 3 * rounds { // three runs of rounds
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			for _, name := range order {
				c := measure(s, each, subjects[name])
				r.add(name+", "+s.String(), float64(c.cpu))
				r.add(name+" asks/s, "+s.String(), float64(time.Second)/float64(c.wall))
				if name == "hub" {
					r.add("hub allocations, "+s.String(), c.allocs)
					r.add("hub bytes, "+s.String(), c.bytes)
				}
			}
		}
		hubRatio := "mailbox/hub cpu, " + s.String()
		r.ratio(hubRatio, "mailbox, "+s.String(), "hub, "+s.String())
		r.goal(hubRatio, ">=", 0.55)
		quickRatio := "mailbox/quick cpu, " + s.String()
		r.ratio(quickRatio, "mailbox, "+s.String(), "quick, "+s.String())
		r.goal(quickRatio, ">=", 1.5)
		r.metric("allocations an ask, "+s.String(), r.median("hub allocations, "+s.String()))
		r.goal("allocations an ask, "+s.String(), "<=", 2.05) // the measuring itself allocates a little
		r.metric("bytes an ask, "+s.String(), r.median("hub bytes, "+s.String()))
		r.goal("bytes an ask, "+s.String(), "<=", 192)
	}
	r.ratio("hub/protoactor asks/s, 64 callers", "hub asks/s, 64 callers", "protoactor asks/s, 64 callers")
	r.goal("hub/protoactor asks/s, 64 callers", ">=", 5)
	return r, nil
}
