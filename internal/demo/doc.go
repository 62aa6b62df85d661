// Package demo runs three silos in one process, to be typed into, killed, frozen, cut off and started again.
//
// Each silo is a whole mesh of the product, with an HTTP server of its own. What they share is embedded: one
// store, one membership table, one network in memory. All that goes in or out of a silo passes its gate, so
// that a silo can be treated as the world treats a process: killed (nothing of it happens any more, its sockets
// close, nobody is told), frozen (nothing gets in or out until it thaws, as after SIGSTOP; its own clock goes
// on), cut off from others (the network alone).
//
// Before them stands the front door, a reverse proxy such as clusters have: it asks each silo whether it is
// ready, sends each request to one that is, and breaks what hangs on one that is not. The page at /_demo acts
// through its API (api.go) and shows what is observed from outside of the silos.
//
// It is used by the program alone.
package demo
