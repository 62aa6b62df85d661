// Package importer brings a folder of node files and a folder of content files into the mesh.
//
// JSON files are nodes, Markdown files are documents with YAML front matter, index.md is the document of
// its folder; the place of a file decides the path of its node. An import runs as an activity, which lies where
// only who may read all that it tells of reads it, as whoever asked for it, through the node operations: what is new is created, what differs is replaced,
// what was imported from the same bytes before is left alone, also where somebody has edited it since.
// One broken file fails alone. Rules: edge.md §4, data.md §2.4 (files).
package importer
