package node

import "fmt"

// ContentKind says what is wrong with a JSON text.
type ContentKind uint8

// The kinds of *[ContentError].
const (
	ContentSyntax    ContentKind = iota + 1 // not one JSON value
	ContentSize                             // more bytes than allowed
	ContentDepth                            // arrays and objects nested deeper than allowed
	ContentDuplicate                        // an object names a member twice
	ContentText                             // text that a store cannot keep
	ContentNumber                           // a number that a store cannot keep
)

// ContentError says why a text is not acceptable as JSON, and where. Offset counts bytes from 0.
type ContentError struct {
	Kind   ContentKind
	Reason string
	Offset int64
}

func (e *ContentError) Error() string {
	if e.Kind == ContentSize {
		return "too large: " + e.Reason
	}
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Reason)
}

func sizeError(size, allowed int) *ContentError {
	return &ContentError{Kind: ContentSize, Reason: fmt.Sprintf("it has %d bytes; %d are allowed", size, allowed)}
}
