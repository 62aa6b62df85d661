package message

import "strings"

// Shorten cuts a text for people that quotes what may be long, at most bytes and between two letters.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
