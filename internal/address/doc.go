// Package address is the value that names a hub.
//
// It owns the two text forms of an address (messaging.md §1.1): the path form "acme/Stories/launch",
// which is the key for routing and persistence, and the full form "host~path", outermost host first,
// which goes on the wire. Addresses are case-sensitive everywhere. Everything above may use it; it
// holds values only and allocates nothing to compare or to look up. The parser is fuzzed.
package address
