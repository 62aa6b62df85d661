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

// IsZero tells whether there is no content.
func (c Content) IsZero() bool { return c.text == "" }

// Text is the JSON text; "" when there is no content.
func (c Content) Text() string { return c.text }

// Len is the number of bytes of the JSON text.
func (c Content) Len() int { return len(c.text) }

// Decode unmarshals the content into v; without content v stays as it is.
func (c Content) Decode(v any) error {
	if c.text == "" {
		return nil
	}
	return json.Unmarshal([]byte(c.text), v)
}

// MarshalJSON writes the text as it is; no content is null.
func (c Content) MarshalJSON() ([]byte, error) {
	if c.text == "" {
		return []byte("null"), nil
	}
	return []byte(c.text), nil
}

// UnmarshalJSON keeps a compact copy of the text; null is no content.
func (c *Content) UnmarshalJSON(b []byte) error {
	parsed, err := ParseContent(b, DefaultLimits)
	if err != nil {
		return err
	}
	*c = parsed
	return nil
}
