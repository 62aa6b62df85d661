// Package txlog is the change rows of a database as its transactions make them, in memory: ids that are
// taken early, positions that are taken while a row is locked, commits in any order, snapshots, crashes that
// hand ids out again, failovers that lose the last commits, pruning.
//
// It is the model against which the reader's position is tested (storage.md §2), and what feedtest serves.
// It knows store and node only, so that tests inside package feed can use it.
package txlog
