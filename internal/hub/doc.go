// Package hub is the actor runtime: hubs with an inbox, turns, gates, request and reply, hosted hubs
// and ordered disposal.
//
// A [Mesh] is one process's set of hubs. A [Hub] is single-threaded: one turn at a time, in the order
// of arrival. An idle hub has no goroutine, no timer and no channel. A [Kind] holds the handlers, gates
// and initialisers that many hubs share. A message type is made by [Define]; [Type.Ask] awaits a
// reply inside a travelling [budget.Budget], [Type.Post] does not wait. Every request gets exactly one
// outcome: the compare-and-swap that takes its reply slot out of pending. Where no hub serves an
// address, the mesh hands the delivery to its [Router], an interface of one method.
//
// It knows no database and no node. Rules: messaging.md §1.1–§1.10 as amended; hub.md §1–§6.
//
// Lock order: registry shard, then children of a hub, then hub. No lock is held over a call to user
// code, a log line or a channel operation that can block.
package hub
