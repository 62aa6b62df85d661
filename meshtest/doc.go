// Package meshtest runs the silos of a mesh in one process, on a network and a membership table that the
// test controls.
//
// A [Cluster] is real: hubs, node hubs, routers, claims and the directory are those of the product. The
// network below them delays, cuts, loses, holds and crashes as the test says, and the silos share one
// store in memory. Inside a testing/synctest bubble it runs on virtual time. For thousands of seeded runs
// of the protocol alone, see meshtest/sim.
package meshtest
