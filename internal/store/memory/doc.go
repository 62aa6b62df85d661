// Package memory is the store that keeps its nodes in memory: for tests, and for programs that need
// no durability. It answers like every other store, history, tombstones and the order of changes
// included, and passes store/storetest. Nothing survives the process.
//
// Rules: data.md §2.4 as amended: keys are case-sensitive, kinds of change are true, Deleted carries
// the removed node.
package memory
