package route

import (
	"slices"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
)

// Disposition says what became of a message that a lane has sent.
type Disposition uint8

// The dispositions.
const (
	// Answered: its target has answered it, or an end was put to it that is final.
	Answered Disposition = iota
	// Denied: the incarnation it was sent to says that it does not serve the address, or is another
	// incarnation. Nothing was executed, and nothing that follows it on its lane is.
	Denied
	// Deferred: it was refused without a word about who serves the address, and so is what follows it.
	Deferred
	// Unsent: it has not left this process. What follows it on its lane may have.
	Unsent
	// Missing: this process was to serve the address and does not. What follows it may have been taken.
	Missing
	// Lost: it left, and no answer will come. It may have been executed, so it is never sent again.
	Lost
)

// Carrier is what a lane of messages T needs of the process around it.
type Carrier[T any] interface {
	// After runs f with the lane locked once d has passed.
	After(d time.Duration, f func())
	// Resolve finds the target; done is called with the lane locked, not before Resolve has returned.
	Resolve(q cluster.Question, done func(cluster.Resolution))
	// Send sends an item on a numbered lane. It returns at once; [Item.Returned] is called with the lane
	// locked, once, not before Send has returned. An Answered message has its outcome.
	Send(to wire.Entry, lane uint64, i *Item[T])
	// Lose answers a message of which nobody can say whether it was executed.
	Lose(m T)
	// Refuse answers a message that was not delivered.
	Refuse(m T, r cluster.Refusal)
	// Over tells whether nobody waits for a message any more; such a message is not sent.
	Over(m T) bool
	// Until is the reading of the turn's clock up to which somebody waits for a message.
	Until(m T) time.Duration
	// Reachable tells whether an incarnation is in the view.
	Reachable(e wire.Entry) bool
	// Lane returns the next lane number of this process, greater than all before.
	Lane() uint64
}

// laneState is where a lane stands.
type laneState uint8

const (
	idle laneState = iota
	resolving
	open
	draining
)

func (s laneState) String() string { return [...]string{"idle", "resolving", "open", "draining"}[s] }

const (
	maxRefusals = 8 // how often one message is refused before its caller is told
	// maxLane bounds the messages that wait in one lane while its target is looked for; more are refused.
	// They wait no longer than a resolution, and the hub that they are for takes many more.
	maxLane = 4096
)

// Lane keeps the order of messages from this process to one address while the address moves
// (protocol.md §6). It is a state machine: idle, resolving, open to a target under a lane number, and
// draining. The first refusal stops the sending; when every answer that was outstanding has come, the
// refused ones are put back in their order and the target is resolved anew, under a greater number. The
// receiver that has refused a message refuses all of that lane, so none overtakes another. Only what was
// denied or never sent is sent again.
//
// A lane is locked by whoever calls it.
type Lane[T any] struct {
	carrier Carrier[T]
	addr    string
	node    bool

	state   laneState
	queue   []*Item[T]
	refused []*Item[T]
	out     int
	seq     uint64
	number  uint64
	target  wire.Entry
	stale   *wire.Entry
	tries   int // drains since something was answered
	// done is the greatest sequence number of a message that was executed or may have been.
	done uint64
}

// Item is a message on its lane, to which it belongs until its end.
type Item[T any] struct {
	lane     *Lane[T]
	m        T
	seq      uint64
	to       wire.Entry // where it was sent last
	refusals uint8
	unfenced bool // nobody has fenced what follows it
}

// Message is what the item carries.
func (e *Item[T]) Message() T { return e.m }

// NewLane returns the lane to an address; node says that it is a node path.
func NewLane[T any](c Carrier[T], addr string, node bool) *Lane[T] {
	return &Lane[T]{carrier: c, addr: addr, node: node}
}

// Idle tells whether the lane holds nothing and may be forgotten.
func (l *Lane[T]) Idle() bool {
	return l.out == 0 && len(l.queue) == 0 && len(l.refused) == 0 && l.state != resolving && l.state != draining
}

// LaneState describes a lane for diagnosis.
type LaneState struct {
	State       string
	Number      uint64
	Target      wire.Entry // with open
	Waiting     int        // messages that have not been sent
	Outstanding int
	Refused     int // refused while draining, to be sent again
}

// Describe returns where the lane stands.
func (l *Lane[T]) Describe() LaneState {
	return LaneState{State: l.state.String(), Number: l.number, Target: l.target, Waiting: len(l.queue), Outstanding: l.out, Refused: len(l.refused)}
}

// Submit sends a message, or queues it until the target is known.
func (l *Lane[T]) Submit(m T) { l.submit(&Item[T]{m: m}) }

// submit is Submit of an item that its message has room for.
func (l *Lane[T]) submit(e *Item[T]) {
	if len(l.queue) >= maxLane {
		l.carrier.Refuse(e.m, cluster.Refusal{Reason: cluster.Overloaded, Detail: "too many messages wait for the address to be found"})
		return
	}
	l.seq++
	e.lane, e.seq = l, l.seq
	if l.state == open && len(l.queue) == 0 && (l.out > 0 || l.carrier.Reachable(l.target)) {
		l.send(e)
		return
	}
	l.queue = append(l.queue, e)
	l.pump()
}

func (l *Lane[T]) pump() {
	switch l.state {
	case idle:
		if len(l.queue) > 0 {
			l.resolve()
		}
	case open:
		if l.out == 0 && !l.carrier.Reachable(l.target) {
			l.state = idle
			l.pump()
			return
		}
		queue := l.queue
		l.queue = nil
		for _, e := range queue {
			l.send(e)
		}
	}
}

func (l *Lane[T]) resolve() {
	l.state = resolving
	asked := l.seq
	q := cluster.Question{Addr: l.addr, Node: l.node, Stale: l.stale}
	for _, e := range l.queue {
		q.Until = max(q.Until, l.carrier.Until(e.m))
	}
	l.carrier.Resolve(q, func(r cluster.Resolution) {
		l.stale = nil
		if r.Entry != nil {
			l.state, l.target, l.number = open, *r.Entry, l.carrier.Lane()
			l.pump()
			return
		}
		// The verdict is about the moment at which it was asked for: whoever came later asks again.
		var later []*Item[T]
		queue := l.queue
		l.state, l.tries = idle, 0
		for _, e := range queue {
			if e.seq > asked {
				later = append(later, e)
			} else if !l.carrier.Over(e.m) {
				l.carrier.Refuse(e.m, r.Refusal)
			}
		}
		l.queue = later
		l.pump()
	})
}

func (l *Lane[T]) send(e *Item[T]) {
	if l.carrier.Over(e.m) {
		return
	}
	if l.state != open { // a refusal came while the queue was being sent
		l.queue = append(l.queue, e)
		return
	}
	l.out++
	e.to = l.target
	l.carrier.Send(l.target, l.number, e)
}

// Returned takes the end of an item that was sent.
func (e *Item[T]) Returned(d Disposition) {
	l := e.lane
	l.out--
	switch d {
	case Answered:
		l.tries = 0
		l.done = max(l.done, e.seq)
	case Lost:
		l.drain()
		l.done = max(l.done, e.seq)
		if !l.carrier.Over(e.m) {
			l.carrier.Lose(e.m)
		}
	case Denied, Deferred, Unsent, Missing:
		l.drain()
		if d == Denied || d == Missing {
			to := e.to
			l.stale = &to
		}
		e.unfenced = d == Unsent || d == Missing
		if e.refusals++; e.refusals <= maxRefusals {
			l.refused = append(l.refused, e)
		} else if !l.carrier.Over(e.m) {
			l.carrier.Refuse(e.m, cluster.Refusal{Reason: cluster.Unknown, Detail: "it was refused again and again while its address moved"})
		}
	}
	if l.state == draining && l.out == 0 {
		l.drained()
	}
}

func (l *Lane[T]) drain() {
	if l.state == open {
		l.state = draining
	}
}

// drained puts the refused messages back in their order and begins anew after a pause. One that nobody has
// fenced, and behind which another was executed, has lost its place: it is answered instead.
func (l *Lane[T]) drained() {
	l.refused = slices.DeleteFunc(l.refused, func(e *Item[T]) bool {
		late := e.unfenced && e.seq < l.done
		if late && !l.carrier.Over(e.m) {
			l.carrier.Refuse(e.m, cluster.Refusal{Reason: cluster.Unknown, Detail: "it was not sent when its turn came, and a later message was"})
		}
		return late
	})
	slices.SortFunc(l.refused, func(a, b *Item[T]) int { return int(int64(a.seq) - int64(b.seq)) })
	l.queue = append(l.refused, l.queue...)
	l.refused = nil
	l.tries++
	l.carrier.After(time.Millisecond<<min(l.tries, 7), func() {
		l.state = idle
		l.pump()
	})
}
