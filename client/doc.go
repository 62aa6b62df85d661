// Package client talks to a hubmesh process over its HTTP API: the same verbs as the command line and
// the TypeScript client, and watches that survive reconnects.
//
// It stands on the standard library alone, so that other programs can import it cheaply. A [Client] is
// safe for concurrent use. Every error of the server is an [*Error] with a stable code; [Error.Retry]
// says what to do about it. Nothing is retried behind the caller's back, except that [Client.Watch]
// connects again, with jitter, after a connection that had been good is lost.
package client
