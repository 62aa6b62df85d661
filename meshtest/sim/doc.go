// Package sim runs the cluster protocol on a simulated network, table and clock.
//
// Every silo of a run is the product's own [cluster.Silo], [route.Lane] and claim handles; only what is
// below and above them is a model: connections that delay, stall, break and leave late frames, and in a
// quarter of the seeds let what the protocol says of itself overtake one another; a
// membership table with a server that can be away or fail over, hubs that answer after a moment, node
// hubs whose rows are fenced by their version. Everything happens on one goroutine in virtual time, so
// that a seed is a run: the same events in the same order.
//
// A run is a load, a schedule of disturbances drawn from the seed, a rest in which everything must
// become right again, and checks. [Run] returns what was violated; [Shrink] finds a smaller schedule that
// still fails. Rules: architecture.md "How correctness is shown", protocol.md §9, §10.
package sim
