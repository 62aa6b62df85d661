// Package render turns a node's document into HTML that is safe to show.
//
// It owns the one Markdown renderer: CommonMark with tables, task lists and strikethrough, "@path" links
// to nodes, "@@file" embeds, images by way of /api/content, links relative to the document. HTML in a
// document is untrusted: everything is sanitised after rendering, drawings in SVG included, and nothing
// that runs, loads or covers the page is let through. It asks for nodes through an interface of one
// method. Rules: edge.md §4 (Markdown).
package render
