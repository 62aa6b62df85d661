// Package memtable is the membership table in the memory of one process (architecture.md decision 1), for
// silos that share it: those of a demonstration and of tests, which may take it away.
//
// It keeps [membership.Rows] under a lock; a call takes a moment, as one of a database does, and is answered on
// the silo's turn. It knows membership alone.
package memtable
