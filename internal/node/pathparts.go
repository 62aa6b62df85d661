package node

import (
	"cmp"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// String returns the text of the path; "" for the root scope.
func (p Path) String() string { return string(p) }

// IsRoot tells whether p is the root scope.
func (p Path) IsRoot() bool { return p == "" }

// Partition returns the first segment; "" for the root scope.
func (p Path) Partition() string {
	first, _, _ := strings.Cut(string(p), "/")
	return first
}

// Namespace returns everything before the last segment; "" for a top-level path. It is the
// "namespace" of a node record (data.md §1.1).
func (p Path) Namespace() Path { return p.Parent() }

// Parent returns the path one level up; the root scope is its own parent.
func (p Path) Parent() Path {
	if i := strings.LastIndexByte(string(p), '/'); i >= 0 {
		return p[:i]
	}
	return ""
}

// ID returns the last segment; "" for the root scope.
func (p Path) ID() string { return string(p[strings.LastIndexByte(string(p), '/')+1:]) }

// Depth returns the number of segments; 0 for the root scope.
func (p Path) Depth() int {
	if p == "" {
		return 0
	}
	return strings.Count(string(p), "/") + 1
}

// Segments yields the segments from the first to the last.
func (p Path) Segments() iter.Seq[string] {
	return func(yield func(string) bool) {
		if p == "" {
			return
		}
		for segment := range strings.SplitSeq(string(p), "/") {
			if !yield(segment) {
				return
			}
		}
	}
}

// Contains tells whether other is p or lies below it. The boundary is a segment: "ACME" does not
// contain "ACME2" (architecture.md decision 12). The root scope contains everything.
func (p Path) Contains(other Path) bool {
	if p == "" || p == other {
		return true
	}
	return len(other) > len(p) && other[len(p)] == '/' && other[:len(p)] == p
}

// Compare orders paths as a walk through the tree meets them: segment by segment, by bytes, a path
// before what is below it. This is what "path order" means everywhere. (The order of the plain texts
// differs: "a-b" is a smaller text than "a/x".)
func (p Path) Compare(other Path) int {
	for i := range min(len(p), len(other)) {
		a, b := p[i], other[i]
		if a == b {
			continue
		}
		if a == '/' || b != '/' && a < b {
			return -1
		}
		return 1
	}
	return cmp.Compare(len(p), len(other))
}

// Ancestors yields the parent, its parent and so on, ending with the root scope.
func (p Path) Ancestors() iter.Seq[Path] {
	return func(yield func(Path) bool) {
		for p != "" {
			p = p.Parent()
			if !yield(p) {
				return
			}
		}
	}
}

// Fold returns a key that is equal for two paths that differ in letter case only, in any script. Such
// pairs are refused at create (architecture.md, superseded rules).
func (p Path) Fold() string { return Fold(string(p)) }

// Fold returns a key that is equal for texts that differ in letter case only, as strings.EqualFold
// tells.
func Fold(text string) string {
	for i := range len(text) {
		if c := text[i]; c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' {
			return strings.Map(FoldRune, text)
		}
	}
	return text
}

// FoldRune is [Fold] of one character: it maps all that fold to each other (K, k and the Kelvin sign) to one of them.
func FoldRune(r rune) rune {
	if r < utf8.RuneSelf {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return unicode.ToLower(least)
}
