// Package route finds who serves an address and hands deliveries over.
//
// [Router] is what a mesh asks where no hub of this process serves a target. For a node path it
// resolves the node in the store and activates its hub, once for all who wait, in their order of
// arrival; the work has its own bound and is never cancelled because a caller left (architecture.md,
// decision 5). For any other address it answers a typed refusal at once. [Resolver] answers which node
// a longer path belongs to; it keeps positive answers only and drops them on every change at or above.
// Rules: messaging.md §1.10, §1.11, §1.12, invariants 66–69; refusals by decision 2.
package route
