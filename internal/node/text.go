package node

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// appendRune writes one character of a quoted text in canonical form.
func appendRune(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	if r < 0x20 {
		const hex = "0123456789abcdef"
		return append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
	}
	return utf8.AppendRune(dst, r)
}

// appendText writes text quoted, in canonical form; invalid UTF-8 becomes U+FFFD.
func appendText(dst []byte, text string) []byte {
	dst = append(dst, '"')
	run := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if c >= utf8.RuneSelf && (r != utf8.RuneError || size > 1) {
			i += size
			continue
		}
		dst = append(dst, text[run:i]...)
		dst = appendRune(dst, r)
		i += size
		run = i
	}
	dst = append(dst, text[run:]...)
	return append(dst, '"')
}

// unquote returns the characters of a quoted JSON text.
func unquote(raw string) string {
	if len(raw) < 2 {
		return "" // broken text of a store
	}
	if strings.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var text string
	if json.Unmarshal([]byte(raw), &text) != nil {
		return raw[1 : len(raw)-1]
	}
	return text
}
