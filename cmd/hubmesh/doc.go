// Command hubmesh serves a mesh and talks to one.
//
// `hubmesh serve` runs a process; every other verb is a client of the HTTP API. One file is one verb, and
// holds flags and calls, nothing else. Results are JSON on the standard output, one document, or a line
// each where there are many; errors and progress go to the standard error. The exit code tells what kind
// of failure it was: see codes.go.
package main
