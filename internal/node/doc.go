// Package node is the value model of the mesh: paths, node records, content and merge patches.
//
// It owns what a node is (data.md §1.1), which paths are legal (§1.2), what a satellite is, and the
// RFC 7396 merge patch. It holds values only: no clock, no I/O, no goroutine, standard library only.
// Every package above it may use it. Values are immutable once handed out: content is a type around a
// string, so that a node may be shared between hubs without a copy (hub.md §4).
package node
