// Package store is the contract between the mesh and whatever keeps its nodes.
//
// It owns the [Store] interface, the typed errors that every implementation answers with, the
// in-process change fan-out ([Fanout]) and the group committer ([Committer]), whose core is a state
// machine without a goroutine. It knows node and query, and no hub. Every implementation
// (store/memory, store/sqlite, store/postgres) passes the one suite in store/storetest. Rules: data.md
// §2.1, §2.2, §2.4 and §1.3 as amended by architecture.md decisions 3, 7, 8 and 9: commit, then
// publish, then answer; a lower write is a typed conflict; a partition is provisioned explicitly; a
// deleted path keeps a tombstone with its last version; history is kept in the same transaction.
package store
