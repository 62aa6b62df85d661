package node

import "iter"

// ValueKind is the kind of a JSON value.
type ValueKind uint8

// The kinds of JSON value.
const (
	ValueNull ValueKind = iota
	ValueBool
	ValueNumber
	ValueText
	ValueArray
	ValueObject
)

// Value is one JSON value inside a content. It shares the content's text.
type Value struct{ raw string }

// Kind returns the kind of the value; the zero Value is null.
func (v Value) Kind() ValueKind {
	if v.raw == "" {
		return ValueNull
	}
	switch v.raw[0] {
	case '"':
		return ValueText
	case '{':
		return ValueObject
	case '[':
		return ValueArray
	case 't', 'f':
		return ValueBool
	case 'n':
		return ValueNull
	}
	return ValueNumber
}

// Raw returns the JSON text of the value.
func (v Value) Raw() string { return v.raw }

// Text returns the characters of a text, and the JSON text of any other value; "" for null.
func (v Value) Text() string {
	switch v.Kind() {
	case ValueText:
		return unquote(v.raw)
	case ValueNull:
		return ""
	}
	return v.raw
}

// Lookup yields the values at the path of member names below the content. An array on the way stands
// for its elements, and one at the end is yielded element by element, so that "roles.role" finds the
// role of every element of roles. An empty array yields nothing.
func (c Content) Lookup(names []string) iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if c.text != "" {
			lookup(c.text, names, yield)
		}
	}
}

func lookup(raw string, names []string, yield func(Value) bool) bool {
	kind := Value{raw}.Kind()
	switch {
	case kind == ValueArray:
		for element := range elements(raw) {
			if !lookup(element, names, yield) {
				return false
			}
		}
		return true
	case len(names) == 0:
		return yield(Value{raw})
	case kind == ValueObject:
		for name, value := range members(raw) {
			if name == names[0] {
				return lookup(value, names[1:], yield)
			}
		}
	}
	return true
}

// Texts yields the texts in the content down to depth levels of arrays and objects below it, in their
// order. A content that is itself a text is at depth 0.
func (c Content) Texts(depth int) iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if c.text != "" {
			texts(c.text, depth, yield)
		}
	}
}

func texts(raw string, depth int, yield func(Value) bool) bool {
	v := Value{raw}
	switch v.Kind() {
	case ValueText:
		return yield(v)
	case ValueArray:
		if depth == 0 {
			return true
		}
		for element := range elements(raw) {
			if !texts(element, depth-1, yield) {
				return false
			}
		}
	case ValueObject:
		if depth == 0 {
			return true
		}
		for _, value := range members(raw) {
			if !texts(value, depth-1, yield) {
				return false
			}
		}
	}
	return true
}
