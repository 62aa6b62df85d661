package node

import (
	"iter"
	"strings"
)

// members yields the members of an object: their names and the pieces of text that are their values.
// It steps over the values without reading them, and ends at text that is no object.
func members(object string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		r := reader{text: object}
		for ok := r.open('{'); ok && r.more('}'); {
			name, err := r.key()
			if err != nil || !yield(name, r.skip()) {
				return
			}
		}
	}
}

// elements yields the pieces of text that are the elements of an array.
func elements(array string) iter.Seq[string] {
	return func(yield func(string) bool) {
		r := reader{text: array}
		for ok := r.open('['); ok && r.more(']'); {
			if before := r.at; !yield(r.skip()) || r.at == before {
				return
			}
		}
	}
}

// open steps into a container.
func (r *reader) open(bracket byte) bool {
	r.space()
	if r.at >= len(r.text) || r.text[r.at] != bracket {
		return false
	}
	r.at++
	return true
}

// more steps to the next part of a container; false at its end.
func (r *reader) more(closing byte) bool {
	r.space()
	if r.at < len(r.text) && r.text[r.at] == ',' {
		r.at++
		r.space()
	}
	return r.at < len(r.text) && r.text[r.at] != closing
}

// skip steps over one value, without recursion, and returns its text.
func (r *reader) skip() string {
	r.space()
	start, depth := r.at, 0
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case '"':
			if !r.quoted() {
				r.at = len(r.text)
			}
			if depth == 0 {
				return r.text[start:r.at]
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				r.at++
				return r.text[start:r.at]
			}
			if depth < 0 {
				return strings.TrimRight(r.text[start:r.at], " \t\r\n")
			}
		case ',':
			if depth == 0 {
				return strings.TrimRight(r.text[start:r.at], " \t\r\n")
			}
		}
		r.at++
	}
	return r.text[start:r.at]
}
