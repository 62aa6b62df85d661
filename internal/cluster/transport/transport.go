package transport

import (
	"context"
	"time"
)

// Peer is one incarnation of a silo. The epoch alone identifies it; it is never 0.
type Peer struct {
	Name  string
	Epoch uint64
	Addr  string // host:port at which it accepts connections
}

// Class says how a request in flight is treated when its peer becomes suspect.
type Class uint8

const (
	// Control is a request of the cluster itself. It is refused while the peer is suspect; one in
	// flight waits for its own bound.
	Control Class = iota
	// Ping passes suspicion, and a small reserve passes full queues.
	Ping
	// Read is answered at once when its peer becomes suspect: nothing can have changed.
	Read
	// Write is refused while the peer is suspect; one in flight waits for the answer or for the close.
	Write
	classes
)

func (c Class) String() string {
	if c < classes {
		return [...]string{"control", "ping", "read", "write"}[c]
	}
	return "unknown"
}

// Request is what travels to a peer.
type Request struct {
	Kind  uint8 // the caller's own, carried as it is
	Class Class
	// Body is its caller's again when Call returns. A handler reads the body that it receives until it
	// returns, and copies what it keeps.
	Body []byte
	// Within bounds the wait for the answer; 0 is no bound. It is not carried. Its lapse is told by
	// *LateError, up to a millisecond late; an answer that comes later is discarded.
	Within time.Duration
}

// Answer is the one outcome of a call.
type Answer struct {
	Body []byte // to be read until done returns
	Err  error  // nil, *NotSentError, *LostError or *LateError
}

// Transport is one silo's end of the network. All methods may be called from any goroutine, and none
// blocks but Close. Functions that are passed in (done) are called exactly once, from a goroutine or an
// event of the transport, never by the method itself and never under a lock of the transport; they must
// not block, since the answers of others wait behind them.
type Transport interface {
	// Call sends r to that incarnation, dialling it if there is no connection. Requests to one peer
	// leave in the order of Call; destinations are independent.
	Call(to Peer, r Request, done func(Answer))
	// Connect dials to unless there is a connection; one dial is shared by all who ask. done gets nil
	// or a *DialError, or the *NotSentError of a transport that is closed.
	Connect(to Peer, done func(error))
	// Drop closes the connection dialled to that incarnation. Requests that were written become
	// *LostError with the cause, the others *NotSentError. Broken is not called. The next call dials.
	Drop(epoch uint64, cause error)
	// Suspect marks a peer as not answering, or clears the mark. While it is set every call but Ping
	// is refused, and when it is set pending Read requests are answered. The mark outlives connections.
	Suspect(epoch uint64, on bool)
	// Forget drops the connection to an incarnation that has left the view, and forgets its mark and
	// its metrics.
	Forget(epoch uint64)
	// SetEpoch changes the own epoch at a re-join. All connections, of both directions, spoke for the
	// old one and are closed. With 0, "none", nobody is served and every call is refused.
	SetEpoch(epoch uint64)
	// Peers reports on every known peer, ordered by name and epoch.
	Peers() []PeerStats
	// Close refuses new calls, answers those that are pending, writes the answers that are queued for
	// others and waits for its goroutines. When ctx ends first, connections are cut and its error is
	// returned.
	Close(ctx context.Context) error
}

// Handler is what a transport needs of the silo above it.
type Handler interface {
	// Handle runs on the reader of the peer's connection, in order of arrival: it must not block. reply
	// is called exactly once, from any goroutine; the body is its caller's again when it returns. It does
	// nothing when the connection is gone.
	Handle(from Peer, r Request, reply func(body []byte))
	// Accepted tells that a peer has opened a new connection to us, before its first request.
	Accepted(from Peer)
	// Broken tells that a connection that we dialled broke, or that a dial failed, whoever asked for
	// it: then the cause is a *DialError. It is not called for Drop, Forget, SetEpoch and Close.
	Broken(to Peer, cause error)
}
