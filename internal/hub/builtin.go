package hub

import (
	"context"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/lifecycle"
	"github.com/hubmesh/hubmesh/internal/message"
)

const boundInit = budget.Initialise

// PingRequest asks whether a hub answers.
type PingRequest struct{}

// Pong answers a PingRequest.
type Pong struct{}

// None is the response type of messages that nobody awaits.
type None struct{}

// DisposeRequest disposes the hub that it reaches; the root mesh hub refuses it.
type DisposeRequest struct{}

// Heart is a heartbeat.
type Heart struct{}

// Notice carries the failure of a delivery that nobody awaited to its sender's hub.
type Notice struct{ Failure *message.Failure }

// Work is run on the hub's turn.
type Work struct {
	Run func(ctx context.Context, h *Hub)
}

type shutdown struct{ level lifecycle.Level }

type initialised struct{ err error }

// The built-in messages (messaging.md §1.2).
var (
	Ping      = Define[*PingRequest, *Pong]("hub/ping", message.Request|message.System|message.Safe)
	Dispose   = Define[*DisposeRequest, *None]("hub/dispose", message.System|message.Lifecycle)
	HeartBeat = Define[*Heart, *None]("hub/heartbeat", message.System|message.Ignorable)
	Failed    = Define[*Notice, *None]("hub/failure", message.System|message.Ignorable)
	Execute   = Define[*Work, *None]("hub/execute", message.System)

	shutdownType    = Define[*shutdown, *None]("hub/shutdown", message.System|message.Lifecycle)
	initialisedType = Define[*initialised, *None]("hub/initialised", message.System|message.Lifecycle)
)

// builtin handles the messages that every hub knows. It is true when d was one of them and no rule of
// the kind is to see it.
func (h *Hub) builtin(d *Delivery) bool {
	switch m := d.msg.(type) {
	case *initialised:
		h.finishStart(m.err)
	case *shutdown:
		h.shutdownTurn(m.level)
	case *DisposeRequest:
		if h == h.mesh.root {
			return true // messaging.md §1.9: the root refuses message-borne disposal
		}
		h.Dispose()
	case *Work:
		m.Run(d, h)
	default:
		return false
	}
	return true
}

// passesGates tells whether a message always passes (messaging.md §1.7).
func passesGates(info *typeInfo) bool {
	return info.flags.Has(message.Lifecycle) || info == &HeartBeat.typeInfo || info == &Failed.typeInfo
}
