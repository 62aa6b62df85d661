package node

import "iter"

// members yields the members of an object in canonical form: their names and the pieces of text that
// are their values. It steps over the values without reading them.
func members(object string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		r := reader{text: object, at: 1}
		for r.at < len(object) && object[r.at] != '}' {
			if object[r.at] == ',' {
				r.at++
			}
			name, err := r.key()
			if err != nil {
				return
			}
			start := r.at
			r.skip()
			if !yield(name, object[start:r.at]) {
				return
			}
		}
	}
}

// skip steps over one value of a text in canonical form, without recursion.
func (r *reader) skip() {
	depth := 0
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case '"':
			if !r.quoted() {
				r.at = len(r.text)
			}
			if depth == 0 {
				return
			}
		case '{', '[':
			depth++
			r.at++
		case '}', ']':
			if depth == 0 {
				return
			}
			depth--
			r.at++
			if depth == 0 {
				return
			}
		case ',':
			if depth == 0 {
				return
			}
			r.at++
		default:
			r.at++
		}
	}
}
