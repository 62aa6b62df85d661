// Package feed takes commits to everything in this process that has to know of them (decision 7).
//
//	own commits ──────────── Publish ─┬─> logical: Changes, once in the cluster, by its publisher
//	                                  └─> invalidation: Invalidations, before the writer is answered
//	change rows ── reader ────────────┬─> a queue a subscriber, newest of a path wins
//	payload ─ coalescer ─ one read ───┘
//	listener ─ wakes the reader       notifier ─ wakes the others        Consumer ─ stored position, leased
//
// The store wires it: [Relay] alone for one in process, [Open] with a [Source] for one that several
// processes share. reader.go, notifier.go, listener.go, coalescing.go, echo.go and queue.go are state
// machines without goroutine, clock or I/O; the shells beside them own these. Rules: storage.md §2, §6,
// data.md §2.2, CF-1 to CF-25.
package feed
