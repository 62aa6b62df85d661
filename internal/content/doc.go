// Package content serves the files of content collections, and says what is known when it cannot.
//
// On each request it asks the owning hub which collections it has, through the reads hub and never
// through node operations: that question is the permission check, and its answer is not kept. Nothing
// is told about existence: a bad path, no node, no collection, an unpublished one, a refusal and a
// missing file are one answer. A read that lapses is terminated and described on one line, by the
// owner where it could answer early, else by the reader, and only with what was observed.
//
// Files lie in folders below one root, opened through os.Root, so that no name and no link leaves it.
// Rules: edge.md §1 CR-1…CR-11, RB-1…RB-6, DG-1…DG-8, B-1, B-2, C-1…C-7; faults 41, 43.
package content
