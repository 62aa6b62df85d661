package node

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// CheckNew refuses, with *[PathError], a path that a new node may not have although one that is there
// may: with characters that are not seen and make two paths look like one; see [Unseen].
func (p Path) CheckNew() error {
	if r, reason := Unseen(string(p)); reason != "" {
		return pathError(string(p), fmt.Sprintf("it holds U+%04X, %s; leave it out", r, reason))
	}
	return nil
}

// Unseen returns the first character of a text that makes two names look like one, and what it is; reason is "" where
// there is none. These are what Unicode calls default ignorable (marks of direction, zero-width spaces and joiners, the
// soft hyphen, the byte order mark, variation selectors, tags), other format characters, fillers that have no
// shape, and code points that are no characters or mean what two parties have agreed on.
func Unseen(text string) (char rune, reason string) {
	for _, r := range text {
		if r < utf8.RuneSelf {
			continue
		}
		switch {
		case unicode.Is(unicode.Bidi_Control, r):
			return r, "a character that changes the direction of writing"
		case unicode.Is(unicode.Variation_Selector, r):
			return r, "a variation selector, which changes the look of the character before it"
		case unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, invisible):
			return r, "a character that is not seen"
		case unicode.Is(unicode.Noncharacter_Code_Point, r):
			return r, "a code point that is no character"
		case unicode.Is(unicode.Co, r):
			return r, "a code point for private use"
		}
	}
	return 0, ""
}

// invisible are letters and marks without a shape that Unicode does not call ignorable: the empty Braille pattern.
var invisible = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x2800, Hi: 0x2800, Stride: 1}}}
