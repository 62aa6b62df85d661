// Package access decides who may do what: it folds the assignments that lie in the tree into the
// permissions of one subject at one path.
//
// It owns the permission bits and the fixed roles, the shape of an assignment
// ({scope}/_Access/{subject}_Access), the fold, and the live [Index] that keeps the fold current.
// [Evaluator] is an immutable snapshot: pure, without clock or I/O, asked on every request, message and
// row. Index is a thin shell around it: a lock, a pointer and a list of listeners. The package knows
// node, and no store: whoever has a change feed hands [Change] values in.
//
// Rules: edge.md §2.1 and §2.2 as far as they are built (no groups, policies and custom roles yet), the
// last-admin guard of §2.3, and architecture.md decision 12: scopes end at a segment. Failing closed is
// the default everywhere: no grant is nothing, and an index that is not loaded grants nothing and says
// "undetermined", which is not a denial and may be tried again.
package access
