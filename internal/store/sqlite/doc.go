// Package sqlite is the store in one SQLite file, for a mesh in one process.
//
// It owns the file, its schema and its lock; only whoever wires a process calls it, everybody else
// sees store.Store. One connection writes, a pool reads. A commit is durable when it returns: WAL with
// synchronous=FULL, history and tombstones in the same transaction. A second process on the same file
// is refused, and so is a file that a newer program has written: migrations are numbered and embedded.
//
// Rules: data.md §1.3, §2.1, §2.2, §2.4 as amended by architecture.md decisions 7, 8 and 9; figures and
// settings: storage.md §7. Passes store/storetest.
//
// A path is stored as its key: "/" is char(1), which no path holds, so that the order of keys is the
// order of the tree and everything below a path is one range. `select replace(key, char(1), '/') …` is
// how people read it; the view `readable` does that.
package sqlite
