// Package transport carries requests and their answers between incarnations of silos: framed TCP, and
// a twin in memory on a network that a test controls. It knows no directory and no hub; bodies are
// opaque to it.
//
// Each direction of a pair of silos has one connection: A's requests leave on the connection that A
// dialled, in the order of [Transport.Call], and their answers come back on it in any order. A call has
// exactly one outcome: an answer, *[NotSentError] (no byte was handed to the network), *[LostError] (it
// was, and what became of it is unknown) or *[LateError]. Every queue is bounded and refuses at once.
// A peer of another wire version, cluster or epoch is refused in the handshake, and a newer connection
// of a peer fences its older ones.
//
// The rules of calls (admission, suspicion, what is written, lapses, metrics) are in book.go and
// session.go, without goroutine, clock or I/O; [TCP] and [Memory] are shells around them, and
// transporttest is the suite of both. Rules: protocol.md §1, §2, §7; messaging.md C30, C31; decision 4.
//
// Bodies are copied when they are queued and read where they have arrived, so none is kept by anybody else. A
// writer for each connection writes what has gathered; a frame that is alone on its connection is written by
// whoever brings it, without waiting (direct.go).
//
// The failure detector, redialling and the directory are above: it pings with [Ping] requests, and is
// told of broken connections and failed dials by [Handler].
package transport
