package node

import "strings"

// ApplyPatch applies an RFC 7396 merge patch to the writable fields of n (docs/api.md) and returns the
// result. null empties a field; the content is merged member by member; version and stamps in the
// patch are ignored. The errors are *[ContentError] for text that is not JSON or a result that is
// too large, and *[FieldError] for a member that nodes do not have, a value that does not fit, or a
// path, id or namespace that is not the node's.
func ApplyPatch(n Node, patch []byte, limits Limits) (Node, error) {
	text, err := canonical(patch, limits, 1)
	if err != nil {
		return Node{}, err
	}
	if text[0] != '{' {
		return Node{}, &ContentError{Kind: ContentSyntax, Reason: "a merge patch of a node is an object"}
	}
	for name, raw := range members(text) {
		if err := n.applyMember(name, raw); err != nil {
			return Node{}, err
		}
	}
	return n, n.Check(limits)
}

func (n *Node) applyMember(name, raw string) error {
	switch name {
	case "version", "createdDate", "createdBy", "lastModified", "lastModifiedBy":
		return nil
	case "path":
		return agree(name, raw, string(n.Path))
	case "id":
		return agree(name, raw, n.Path.ID())
	case "namespace":
		return agree(name, raw, string(n.Path.Namespace()))
	case "content":
		merged, err := MergePatch(n.Content, RawContent(strings.Clone(raw)))
		n.Content = merged
		return err
	case "state":
		if raw == "null" {
			return &FieldError{Field: name, Reason: "a node always has one"}
		}
	case "mainNode":
		if raw == "null" {
			n.MainNode = n.Path.Main()
			return nil
		}
		text, err := readText(name, raw)
		if err != nil {
			return err
		}
		n.MainNode, err = parseMain(text)
		return err
	}
	known, err := setField(n, name, raw)
	if err == nil && !known {
		err = &FieldError{Field: name, Reason: "nodes have no such field", Unknown: true}
	}
	return err
}

// agree refuses a member that contradicts the path of the node.
func agree(name, raw, actual string) error {
	text, err := readText(name, raw)
	if err == nil && strings.Trim(text, "/") != actual {
		err = &FieldError{Field: name, Reason: "it contradicts the path of the node, which does not change"}
	}
	return err
}

// NodeDiff returns the merge patch over the public form that turns a into b, for watch frames
// (docs/api.md, Live). ok is false where a merge patch cannot say the change; see [Diff].
func NodeDiff(a, b Node) (patch Content, ok bool) {
	return Diff(Content{text: string(a.AppendJSON(nil))}, Content{text: string(b.AppendJSON(nil))})
}
