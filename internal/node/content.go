package node

import (
	"encoding/json"
)

// Content is the JSON text of a node's content. It is immutable by type: the text is a string, so
// that a node can be shared between hubs, caches and readers without a copy. The zero value is
// "no content" and marshals as null.
type Content struct{ text string }

// RawContent wraps JSON text that is already known to be valid, such as a row read back from a
// store. Use [ParseContent] for anything that comes from outside.
func RawContent(text string) Content {
	if text == "null" {
		text = ""
	}
	return Content{text: text}
}

// ParseContent checks that b is one JSON value within limits and returns it in canonical form:
// compact, members in their order, numbers as they were written, escapes only where JSON needs them.
// null is no content. It refuses, with *[ContentError]: anything after the value, invalid UTF-8,
// members named twice, \u0000 and lone surrogates (PostgreSQL keeps neither), numbers beyond
// 1e±9999, more than limits.Depth levels, more than limits.NodeBytes bytes. Time and memory are linear
// in min(len(b), 4 × limits.NodeBytes); the depth costs no stack.
func ParseContent(b []byte, limits Limits) (Content, error) {
	text, err := canonical(b, limits, 0)
	if err != nil {
		return Content{}, err
	}
	return RawContent(text), nil
}

// IsZero tells whether there is no content.
func (c Content) IsZero() bool { return c.text == "" }

// Text is the JSON text; "" when there is no content.
func (c Content) Text() string { return c.text }

// Len is the number of bytes of the JSON text.
func (c Content) Len() int { return len(c.text) }

// String is the JSON text; "null" when there is no content.
func (c Content) String() string {
	if c.text == "" {
		return "null"
	}
	return c.text
}

// Decode unmarshals the content into v; without content v stays as it is. A value of another kind is *[ShapeError].
func (c Content) Decode(v any) error {
	if c.text == "" {
		return nil
	}
	return Shape(json.Unmarshal([]byte(c.text), v))
}

// MarshalBinary is the JSON text, for encodings that carry it as it is.
func (c Content) MarshalBinary() ([]byte, error) { return []byte(c.text), nil }

// UnmarshalBinary takes JSON text that [Content.MarshalBinary] has written.
func (c *Content) UnmarshalBinary(b []byte) error {
	c.text = string(b)
	return nil
}

// MarshalJSON writes the text as it is; no content is null.
func (c Content) MarshalJSON() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalJSON keeps a canonical copy of the text, checked against [DefaultLimits]; null is no
// content.
func (c *Content) UnmarshalJSON(b []byte) error {
	parsed, err := ParseContent(b, DefaultLimits)
	if err != nil {
		return err
	}
	*c = parsed
	return nil
}
