// Package mirror keeps views of nodes current for those who look at them.
//
// A [Watch] of a node yields a full frame, then patches that name the version they build on; a frame's
// version is the node's version. It subscribes to the process's change feed first and asks the owner
// then, so that nothing between the two is lost or told twice; a slow reader costs no queue, since the
// next frame is always the difference between what it holds and what is newest. [Listing] and [Result]
// watch children and queries as whole replacements. Losing the right to read ends a watch.
//
// An open listing or result rides out a read that says nothing (refused for the moment, lapsed, permissions not
// yet known); only a final answer ends it. docs/decisions/a-watch-has-no-half-at-the-owner.md says why.
//
// Rules: data.md §4.2 SY-3, SY-4 as amended (frames are RFC 7396 merge patches), Q-1, Q-3; edge.md
// AC-R1; faults 35 and 36.
package mirror
