package hub

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/hubmesh/hubmesh/internal/message"
)

// typeInfo describes a message type. Its id is an index into rule tables and means nothing outside
// this process; the wire carries the name.
type typeInfo struct {
	id    uint32
	name  string
	flags message.Flags
	// request and reply make empty values to decode into; nil where the type is not a pointer.
	request, reply func() any
}

// lastType numbers message types. A number is only an index; nothing depends on its value.
var lastType atomic.Uint32

// Type is a message type: a request with its response, or an event. Declare types at package level
// with [Define]. Use pointer types for Req and Resp: values cost an allocation each.
type Type[Req, Resp any] struct{ typeInfo }

// Define declares a message type. The name is its name on the wire and in logs, such as "node/patch".
func Define[Req, Resp any](name string, flags message.Flags) *Type[Req, Resp] {
	return &Type[Req, Resp]{typeInfo{id: lastType.Add(1), name: name, flags: flags, request: maker[Req](), reply: maker[Resp]()}}
}

// Name is the name on the wire.
func (t *Type[Req, Resp]) Name() string { return t.name }

// outcome says what a rule did with a delivery.
type outcome uint8

const (
	passed    outcome = iota // not this rule's; the next one may take it
	handled                  // done; value or error is the reply
	later                    // taken; the handler replies after the turn
	forwarded                // retargeted; its new target answers
)

// rule is one handler of a kind or of a hub.
type rule struct {
	info  *typeInfo // nil: looks at every delivery
	quick bool
	run   func(d *Delivery) (any, error, outcome)
}

// Handle registers f for messages of type t in every hub of kind k. f runs on the hub's turn: it may
// ask other hubs, but never its own. An error becomes a failure for the caller; a *message.Failure
// is passed on as it is. Where several rules match, the newest runs first and its answer counts.
// Handle panics on a kind that already has hubs.
func Handle[Req, Resp any](k *Kind, t *Type[Req, Resp], f func(ctx context.Context, h *Hub, req Req) (Resp, error)) {
	k.add(rule{info: &t.typeInfo, run: func(d *Delivery) (any, error, outcome) {
		resp, err := f(d, d.hub, d.msg.(Req))
		return resp, err, handled
	}})
}

// HandleQuick registers f for messages of type t like [Handle], with a promise: no I/O, no ask, no
// blocking. On an idle hub a quick turn runs on the caller's goroutine. It cannot be abandoned, so its
// deadline does not fire; an ask inside it fails.
func HandleQuick[Req, Resp any](k *Kind, t *Type[Req, Resp], f func(ctx context.Context, h *Hub, req Req) (Resp, error)) {
	k.add(rule{info: &t.typeInfo, quick: true, run: func(d *Delivery) (any, error, outcome) {
		resp, err := f(d, d.hub, d.msg.(Req))
		return resp, err, handled
	}})
}

// Reply answers one request after its turn has ended. It may be called from any goroutine; calls
// after the first, and after the caller has gone, do nothing.
type Reply[Resp any] func(resp Resp, err error)

// HandleLater registers f for requests whose work leaves the turn: f starts it and returns, and the
// reply is sent whenever it is there. An error from f is the reply. ctx stays valid until the reply.
func HandleLater[Req, Resp any](k *Kind, t *Type[Req, Resp], f func(ctx context.Context, h *Hub, req Req, reply Reply[Resp]) error) {
	k.add(rule{info: &t.typeInfo, run: func(d *Delivery) (any, error, outcome) {
		err := f(d, d.hub, d.msg.(Req), func(resp Resp, err error) {
			if err != nil {
				d.fail(message.Classify(err))
				return
			}
			d.answer(resp)
		})
		if err != nil {
			return nil, err, handled
		}
		return nil, nil, later
	}})
}

// HandleAny registers f to look at every delivery of the kind. f answers one of [Pass], [Done],
// [Later] or [Forward].
func HandleAny(k *Kind, f func(d *Delivery) (Verdict, error)) {
	k.add(rule{run: func(d *Delivery) (any, error, outcome) {
		v, err := f(d)
		if err != nil {
			return nil, err, handled
		}
		return v.apply(d)
	}})
}

// Verdict is what a handler registered by [HandleAny] decides.
type Verdict struct {
	outcome outcome
	value   any
	to      string
}

// Pass leaves the delivery to the next rule.
func Pass() Verdict { return Verdict{outcome: passed} }

// Done answers the delivery with value, which may be nil.
func Done(value any) Verdict { return Verdict{outcome: handled, value: value} }

// Later says that [Delivery.Answer] or [Delivery.Fail] will be called.
func Later() Verdict { return Verdict{outcome: later} }

// Forward retargets the delivery to another address, which answers it.
func Forward(to string) Verdict { return Verdict{outcome: forwarded, to: to} }

func (v Verdict) apply(d *Delivery) (any, error, outcome) {
	if v.outcome == forwarded {
		if err := d.forward(v.to); err != nil {
			return nil, err, handled
		}
	}
	return v.value, nil, v.outcome
}

// On registers a handler on one hub, ahead of those of its kind, and returns its removal. It may be
// called at any time.
func On[Req, Resp any](h *Hub, t *Type[Req, Resp], f func(ctx context.Context, h *Hub, req Req) (Resp, error)) (remove func()) {
	return h.addRule(&rule{info: &t.typeInfo, run: func(d *Delivery) (any, error, outcome) {
		resp, err := f(d, d.hub, d.msg.(Req))
		return resp, err, handled
	}})
}

func (t *typeInfo) String() string { return t.name }

// unexpected is the failure for a reply of another type than the caller's.
func unexpected(info *typeInfo, v any) error {
	return &message.Failure{Type: message.Failed, Operation: info.name,
		Message: fmt.Sprintf("the reply to '%s' is a %T", info.name, v)}
}
