package node

import (
	"fmt"
	"strings"
)

// value is one JSON value of a text that has been checked before: its piece of the text and, for
// containers, its parts.
type value struct {
	raw   string
	keys  []string // names of an object's members, unquoted
	parts []value  // the members' values, or an array's elements
}

func (v *value) isObject() bool { return v.raw[0] == '{' }
func (v *value) isArray() bool  { return v.raw[0] == '[' }
func (v *value) isNull() bool   { return v.raw == "null" }

// member returns the value of the member, or nil.
func (v *value) member(name string) *value {
	for i, key := range v.keys {
		if key == name {
			return &v.parts[i]
		}
	}
	return nil
}

// index returns a look-up of members by name that stays fast for large objects.
func (v *value) index() func(name string) *value {
	if len(v.keys) <= linearKeys {
		return v.member
	}
	byName := make(map[string]*value, len(v.keys))
	for i, key := range v.keys {
		byName[key] = &v.parts[i]
	}
	return func(name string) *value { return byName[name] }
}

// parseTree reads the text of a content into a tree.
func parseTree(c Content) (value, error) {
	r := reader{text: c.String()}
	v, err := r.value(0)
	if err != nil {
		return value{}, err
	}
	r.space()
	if r.at < len(r.text) {
		return value{}, r.broken()
	}
	return v, nil
}

// reader walks over valid JSON, from a store perhaps with white space and other escapes than the
// canonical ones.
type reader struct {
	text string
	at   int
}

// maxTreeDepth ends the recursion on text that no [ParseContent] has seen; it is far above any limit.
const maxTreeDepth = 10_000

func (r *reader) broken() error {
	return &ContentError{Kind: ContentSyntax, Reason: fmt.Sprintf("unexpected %.20q", r.text[min(r.at, len(r.text)):]), Offset: int64(r.at)}
}

func (r *reader) space() {
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return
		}
	}
}

func (r *reader) value(depth int) (value, error) {
	r.space()
	if r.at >= len(r.text) || depth > maxTreeDepth {
		return value{}, r.broken()
	}
	start := r.at
	switch open := r.text[r.at]; open {
	case '{', '[':
		var v value
		r.at++
		for {
			r.space()
			if r.at >= len(r.text) {
				return value{}, r.broken()
			}
			switch r.text[r.at] {
			case open + 2: // the closing bracket in ASCII
				r.at++
				v.raw = r.text[start:r.at]
				return v, nil
			case ',':
				r.at++
				r.space()
			}
			if open == '{' {
				key, err := r.key()
				if err != nil {
					return value{}, err
				}
				v.keys = append(v.keys, key)
			}
			part, err := r.value(depth + 1)
			if err != nil {
				return value{}, err
			}
			v.parts = append(v.parts, part)
		}
	case '"':
		if !r.quoted() {
			return value{}, r.broken()
		}
	default:
		n := strings.IndexAny(r.text[r.at:], ",]} \t\r\n")
		if n < 0 {
			n = len(r.text) - r.at
		}
		if n == 0 {
			return value{}, r.broken()
		}
		r.at += n
	}
	return value{raw: r.text[start:r.at]}, nil
}

// key reads a member's name and the colon.
func (r *reader) key() (string, error) {
	start := r.at
	if !r.quoted() {
		return "", r.broken()
	}
	key := unquote(r.text[start:r.at])
	r.space()
	if r.at >= len(r.text) || r.text[r.at] != ':' {
		return "", r.broken()
	}
	r.at++
	return key, nil
}

// quoted steps over a quoted text.
func (r *reader) quoted() bool {
	if r.at >= len(r.text) || r.text[r.at] != '"' {
		return false
	}
	for i := r.at + 1; i < len(r.text); i++ {
		switch r.text[i] {
		case '\\':
			i++
		case '"':
			r.at = i + 1
			return true
		}
	}
	return false
}
