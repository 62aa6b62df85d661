package transport

import (
	"errors"
	"fmt"
	"time"
)

// Reason says why a call was not answered by its peer.
type Reason uint8

const (
	// Suspect: the peer has not answered pings (see Transport.Suspect).
	Suspect Reason = iota
	// Overloaded: a queue to the peer is full.
	Overloaded
	// Unreachable: no connection could be made.
	Unreachable
	// Refused: the peer, or we, refused the handshake: another version, cluster or epoch.
	Refused
	// TooLarge: the body is larger than a frame may be.
	TooLarge
	// Broken: the connection broke.
	Broken
	// Dropped: the connection was closed from this side (Drop, Forget, SetEpoch).
	Dropped
	// NoEpoch: this silo is no member at present.
	NoEpoch
	// Closed: this transport has been closed.
	Closed
	reasons
)

func (r Reason) String() string {
	if r < reasons {
		return [...]string{"suspect", "overloaded", "unreachable", "refused", "too-large", "broken", "dropped", "no-epoch", "closed"}[r]
	}
	return "unknown"
}

// NotSentError: nothing of the request was handed to the network. It may be sent again.
type NotSentError struct {
	Peer   Peer
	Reason Reason
	Cause  error // may be nil
}

func (e *NotSentError) Error() string {
	return "not sent to " + describe(e.Peer, e.Reason, e.Cause)
}

func (e *NotSentError) Unwrap() error { return e.Cause }

// LostError: the request was written, or may have been, and no answer came. It may have been executed.
type LostError struct {
	Peer   Peer
	Reason Reason
	Cause  error // may be nil
}

func (e *LostError) Error() string {
	return "outcome unknown, sent to " + describe(e.Peer, e.Reason, e.Cause)
}

func (e *LostError) Unwrap() error { return e.Cause }

func describe(p Peer, r Reason, cause error) string {
	text := fmt.Sprintf("silo %s (%016x at %s): %v", p.Name, p.Epoch, p.Addr, r)
	if cause != nil {
		text += ": " + cause.Error()
	}
	return text
}

// LateError: the request's own bound lapsed.
type LateError struct {
	Peer   Peer
	Within time.Duration
	Sent   bool // false: nothing was handed to the network, and nothing will be
}

func (e *LateError) Error() string {
	if !e.Sent {
		return fmt.Sprintf("silo %s: the request could not be written within %v; nothing was sent", e.Peer.Name, e.Within)
	}
	return fmt.Sprintf("silo %s did not answer within %v; outcome unknown", e.Peer.Name, e.Within)
}

// TooLargeError refuses a body (C31). It carries sizes and never the payload.
type TooLargeError struct{ Size, Max int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("a body of %d bytes is over the limit of %d bytes: send less, or raise the limit on every silo", e.Size, e.Max)
}

// DialError says why there is no connection to a peer.
type DialError struct {
	Peer  Peer
	Cause error
}

func (e *DialError) Error() string {
	return fmt.Sprintf("dial silo %s at %s: %v", e.Peer.Name, e.Peer.Addr, e.Cause)
}

func (e *DialError) Unwrap() error { return e.Cause }

// VersionError refuses a peer that speaks another version of the wire protocol: that of the messages in the
// upper byte, and of the frames in the lower one.
type VersionError struct{ Ours, Theirs uint16 }

func (e *VersionError) Error() string {
	ours, theirs := e.Versions()
	return fmt.Sprintf("wire version %s here, %s there: run the same release on all silos", ours, theirs)
}

// Versions are the two as people read them: "messages.frames".
func (e *VersionError) Versions() (ours, theirs string) {
	text := func(v uint16) string { return fmt.Sprintf("%d.%d", v>>8, v&0xff) }
	return text(e.Ours), text(e.Theirs)
}

// ClusterError refuses a peer of another cluster.
type ClusterError struct{ Ours, Theirs string }

func (e *ClusterError) Error() string {
	return fmt.Sprintf("cluster %q here, %q there: check the address and the cluster's name", e.Ours, e.Theirs)
}

// EpochError refuses a connection that was meant for another incarnation.
type EpochError struct{ Want, Have uint64 } // Have is 0 when the silo is no member at present

func (e *EpochError) Error() string {
	return fmt.Sprintf("meant for epoch %016x, but %016x is there", e.Want, e.Have)
}

// StaleError refuses a connection that is older than one already accepted from the same incarnation.
type StaleError struct{ Generation, Accepted uint64 }

func (e *StaleError) Error() string {
	return fmt.Sprintf("connection %d is older than connection %d, which was accepted before it", e.Generation, e.Accepted)
}

// FrameError says what is wrong with bytes that came from a peer. The connection is closed.
type FrameError struct{ What string }

func (e *FrameError) Error() string { return "malformed frame: " + e.What }

var (
	errClosed      = errors.New("the transport has been closed")
	errNoEpoch     = errors.New("this silo is no member of the cluster at present")
	errRejoined    = errors.New("this silo's epoch has changed")
	errForgotten   = errors.New("that incarnation has left the view")
	errSlowPeer    = errors.New("the peer does not read its answers")
	errNobody      = errors.New("connection refused")
	errDialTimeout = errors.New("no answer to the dial")
	errPeerEnded   = errors.New("the peer closed the connection")
)

// dialReason tells a refusal in the handshake from an address that does not answer.
func dialReason(err error) Reason {
	var version *VersionError
	var cluster *ClusterError
	var epoch *EpochError
	var stale *StaleError
	if errors.As(err, &version) || errors.As(err, &cluster) || errors.As(err, &epoch) || errors.As(err, &stale) {
		return Refused
	}
	return Unreachable
}
