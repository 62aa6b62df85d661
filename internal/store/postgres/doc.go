// Package postgres keeps nodes in PostgreSQL, for any number of processes at once.
//
// It is the store of a cluster: one set of tables, keyed by path, with a partition column. A commit is one
// pipeline of array statements: rows, history, tombstones and change rows in one transaction, each row
// compared with the version that its writer expected, so that a row that conflicts fails alone and two
// processes never both win. A commit whose answer was lost with its connection is made again; a row that
// is found as it was written is an acknowledged one. Rows that a program other than ours writes get their
// history and change rows from triggers.
//
// Subscribers are told of the commits of this process. What other processes commit comes through the
// change rows; package feed reads them.
//
// Text queries find their candidates by an index that one process fills from the change rows, [TextIndex]
// (docs/decisions/text-search.md).
//
// It stands on package store and query, knows no hub, and is opened by the root package. Rules: data.md
// §2; architecture.md decisions 7 to 9; storage.md §3 to §5, as docs/decisions/postgres-statements.md amends.
package postgres
