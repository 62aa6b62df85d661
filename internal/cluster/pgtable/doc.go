// Package pgtable is the membership table in PostgreSQL (architecture.md decision 1, protocol.md §2).
//
// Each call is one transaction, made by one goroutine on one connection of its own, so that the load of the
// store delays no heartbeat; a call that gets no answer within its bound ends with an error, and the
// connection is made anew. Every change of a member raises the view's number under the lock of one row, in
// the same transaction, and wakes the listeners of all silos. The timeline in a view's key is the server's,
// so that a view after a failover is greater whatever the failover has lost. For four seconds after a
// connection was made, or a new timeline seen, every heartbeat counts as fresh: nobody could beat before.
//
// The tables are made by the migrations of store/postgres. It is opened by the root package, and knows
// membership alone.
package pgtable
