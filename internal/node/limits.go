package node

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits bounds what one node may hold. The path's bound is not here: [MaxPathBytes] is a property of
// the stores.
type Limits struct {
	NodeBytes int // JSON text of a node, content included; in bytes
	Depth     int // nesting of arrays and objects in the content; an array of numbers has 1
	NameBytes int // name, node type, category, icon and desired id, each; in bytes
}

// DefaultLimits are the limits of a mesh that sets none.
var DefaultLimits = Limits{NodeBytes: 1 << 20, Depth: 200, NameBytes: 1024}

// FieldError says that one field of a node is not acceptable. Field is its name in JSON.
type FieldError struct {
	Field   string
	Reason  string
	Unknown bool // there is no such field
}

func (e *FieldError) Error() string { return fmt.Sprintf("field '%s': %s", e.Field, e.Reason) }

// Check tells whether the node keeps to limits: *[FieldError] for a field, *[ContentError] of kind
// [ContentSize] for the whole. The path and the content are taken as already parsed.
func (n Node) Check(limits Limits) error {
	named := [...]struct{ field, text string }{
		{"nodeType", n.NodeType}, {"name", n.Name}, {"category", n.Category}, {"icon", n.Icon}, {"desiredId", n.DesiredID},
	}
	for _, f := range named {
		if len(f.text) > limits.NameBytes {
			return &FieldError{Field: f.field, Reason: fmt.Sprintf("it has %d bytes; %d are allowed", len(f.text), limits.NameBytes)}
		}
		if err := checkText(f.field, f.text); err != nil {
			return err
		}
	}
	size := len(n.Content.text) + len(n.Description) + len(n.PreRenderedHTML)
	for _, f := range [...]struct{ field, text string }{
		{"description", n.Description}, {"preRenderedHtml", n.PreRenderedHTML},
		{"createdBy", n.CreatedBy}, {"lastModifiedBy", n.ModifiedBy},
	} {
		if err := checkText(f.field, f.text); err != nil {
			return err
		}
	}
	for _, context := range n.ExcludeFromContext {
		size += len(context)
		if err := checkText("excludeFromContext", context); err != nil {
			return err
		}
	}
	if size > limits.NodeBytes {
		return sizeError(size, limits.NodeBytes)
	}
	if n.State < StateNew || n.State > StateDeleted {
		return &FieldError{Field: "state", Reason: "it is one of New, Transient, Active, Rejected, Deleted"}
	}
	if n.SyncBehavior < SyncInclude || n.SyncBehavior > SyncExcludeThisAndKids {
		return &FieldError{Field: "syncBehavior", Reason: "it is one of Include, ExcludeThisOnly, ExcludeThisAndChildren"}
	}
	return nil
}

// checkText refuses what a store cannot keep as text.
func checkText(field, text string) error {
	if strings.IndexByte(text, 0) >= 0 {
		return &FieldError{Field: field, Reason: "it holds a NUL, which a store cannot keep"}
	}
	if !utf8.ValidString(text) {
		return &FieldError{Field: field, Reason: "it is not valid UTF-8"}
	}
	return nil
}
