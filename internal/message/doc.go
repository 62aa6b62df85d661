// Package message holds the values that a delivery carries: states, flags, typed failures and the
// identity of whoever asks.
//
// It owns the vocabulary of messaging.md §1.3 and §1.6 that hubs, routers, the wire and the edge share.
// Values only, standard library only; every package above may use it. [Failure] is the one error that
// crosses a hub boundary: its type says whether to ask again, its cause stays reachable by errors.As
// inside a process.
package message
