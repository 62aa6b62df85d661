// Package budget is the table of named bounds and the deadline that travels with a delivery.
//
// It holds decision 5 of the architecture: the wait is bounded, never the work. What a caller waits is
// min(the step's own bound, what remains of its caller's − a margin), so the inner bound lapses first
// and its diagnosis arrives inside the caller's budget. Every bound has a name and stands in one table
// (bounds.go), whose order is checked at start. A hop costs one clock read and no allocation. Standard
// library only; every package above uses it for every timeout. Rules: hub.md §3, edge.md RB-1, C-7.
package budget
