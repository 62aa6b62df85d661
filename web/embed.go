// Package web holds the built page: the files of dist, embedded so that the binary needs no Node.
//
// It owns the page's sources (src, in TypeScript) and their committed build; `npm ci && npm run build`
// makes the same files again from the same sources. Only httpapi serves them: a file by its exact
// name, and index.html for every other path that is no route of the server. Files below _app carry a
// hash of their content in their name and may be cached for good; all others must be asked for again.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files is the built page, with index.html at its root. It is read-only and safe to share.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		// "dist" is a valid path, and that is all fs.Sub can refuse.
		panic(err)
	}
	return files
}
