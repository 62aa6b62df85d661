// Package feedtest is a store that several processes share, in memory: a [Server] whose change rows are those
// of transactions (txlog), with wake-ups, nodes, consumers' positions and the faults of a network and of a
// server. A test of the feed, or of what stands on it, gives each of its processes the Source of one Server.
// Time in it is the runtime's, so tests run it in a testing/synctest bubble.
package feedtest
