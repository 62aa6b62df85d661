package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What comes from a server or a disk is written to a terminal, which takes some characters for commands: a name must
// not move the cursor, split a line, or show the letters of another one in another order.

// plain writes out what a terminal would obey and nobody would see.
func plain(text string) string { return written(text, func(rune) bool { return false }) }

// plainLines is plain for a text of several lines.
func plainLines(text string) string { return written(text, func(r rune) bool { return r == '\n' }) }

func written(text string, kept func(rune) bool) string {
	var b strings.Builder
	for i, size := 0, 0; i < len(text); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case !obeyed(r) || kept(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// obeyed tells whether a terminal takes a character for a command, or shows nothing for it. The two joiners belong to
// the spelling of words and to pictures.
func obeyed(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) || unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d'
}

// plainJSON escapes in a JSON text what JSON itself lets stand and a terminal obeys. Such characters are inside of
// strings only, so that the value is the same.
func plainJSON(text []byte) []byte {
	stands := func(r rune) bool { return r == '\n' || !obeyed(r) }
	if !strings.ContainsFunc(string(text), func(r rune) bool { return !stands(r) }) {
		return text
	}
	var b strings.Builder
	for _, r := range string(text) {
		switch {
		case stands(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return []byte(b.String())
}
