// Package pgtest runs a real PostgreSQL server for tests and benchmarks, from the installed binaries, in a
// folder and on a port of its own.
//
// A [Server] can be stopped, killed and started again on the same data, so that a test sees what a crash
// leaves. PostgreSQL does not run as root: there it is started as the user postgres. It imports nothing of
// the product.
package pgtest
