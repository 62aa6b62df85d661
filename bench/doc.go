// Command bench measures the mesh beside its limit and its peers, interleaved in one run, and writes
// results/<scenario>.json. Ratios are judged, absolute times are shown: machines differ and are shared.
// Between processes it is its own other process: see child.go.
// It is a module of its own, so that no peer enters the product's graph.
package main
