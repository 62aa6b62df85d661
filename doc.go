// Package hubmesh is the embedding interface of the mesh: start one in a program, register node types
// with typed handlers, ask a node by its path, watch it, and serve the page and the API.
//
// Every node is served by one hub: handlers of one node never run at the same time, and need no locks.
// Calls act for the identity in their context ([As]); without one they are refused. The zero
// [Options] is a mesh in memory; with Dir it is durable in an embedded SQLite file.
package hubmesh
