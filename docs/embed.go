// Package docs is the documentation, as files: the first start of a mesh imports it as the space Guide.
package docs

import "embed"

//go:embed *.md decisions/*.md images
var files embed.FS

// Files returns the pages.
func Files() embed.FS { return files }
