package query

import (
	"strings"
	"unicode/utf8"

	"github.com/hubmesh/hubmesh/internal/node"
)

// finder looks for a term in texts, in any letter case and without copying them.
type finder struct {
	term    string // folded
	ascii   bool
	escaped bool // the term has characters that JSON escapes
}

func newFinder(term string) finder {
	f := finder{term: node.Fold(term), ascii: true}
	for i := range len(f.term) {
		c := f.term[i]
		f.ascii = f.ascii && c < utf8.RuneSelf
		f.escaped = f.escaped || c < 0x20 || c == '"' || c == '\\'
	}
	return f
}

// in tells whether the term occurs in text.
func (f finder) in(text string) bool {
	if !f.ascii {
		return strings.Contains(node.Fold(text), f.term)
	}
	if len(text) < len(f.term) {
		return false
	}
	lower := f.term[0]
	upper := lower
	if lower >= 'a' && lower <= 'z' {
		upper -= 'a' - 'A'
	}
	// The next occurrence of either letter; found is len(text) where there is none.
	find := func(c byte, from int) int {
		if i := strings.IndexByte(text[from:], c); i >= 0 {
			return from + i
		}
		return len(text)
	}
	last := len(text) - len(f.term)
	nextLower, nextUpper := find(lower, 0), len(text)
	if upper != lower {
		nextUpper = find(upper, 0)
	}
	for {
		at := min(nextLower, nextUpper)
		if at > last {
			return false
		}
		if equalASCII(text[at:at+len(f.term)], f.term) {
			return true
		}
		if at == nextLower {
			nextLower = find(lower, at+1)
		} else {
			nextUpper = find(upper, at+1)
		}
	}
}

// inJSON tells whether the term occurs in a text of a content. The quoted form is looked at first,
// as reading escapes costs more.
func (f finder) inJSON(value node.Value) bool {
	raw := value.Raw()
	if strings.IndexByte(raw, '\\') < 0 {
		return f.in(raw[1 : len(raw)-1])
	}
	// Canonical text writes every character that needs no escape as itself.
	if !f.escaped && !strings.Contains(raw, `\u`) && !f.in(raw) {
		return false
	}
	return f.in(value.Text())
}

// equalASCII tells whether text is folded but for the case of ASCII letters.
func equalASCII(text, folded string) bool {
	for i := range len(folded) {
		c := text[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != folded[i] {
			return false
		}
	}
	return true
}
