package node

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// UnmarshalJSON reads the public form of a node (docs/api.md) within [DefaultLimits]; unknown members
// are ignored. See [DecodeLoose] for the details.
func (n *Node) UnmarshalJSON(b []byte) error {
	decoded, _, err := Decode(b, DefaultLimits)
	if err != nil {
		return err
	}
	*n = decoded
	return nil
}

// DecodeLoose reads a node within [DefaultLimits] and names the members it does not know, in their
// order; see [Decode].
func DecodeLoose(b []byte) (n Node, unknown []string, err error) { return Decode(b, DefaultLimits) }

// Decode reads a node and names the members it does not know, in their order. The path comes from
// "path", or else from "namespace" and "id"; where both are given they must agree, and without either
// it stays empty. mainNode defaults to the main node of the path, state to Active. state and
// syncBehavior may be names or numbers; null is an absent member; a time without a zone is UTC.
// The errors are *[ContentError], *[FieldError] and *[PathError].
func Decode(b []byte, limits Limits) (n Node, unknown []string, err error) {
	text, err := canonical(b, limits, 1)
	if err != nil {
		return Node{}, nil, err
	}
	if text[0] != '{' {
		return Node{}, nil, &ContentError{Kind: ContentSyntax, Reason: "a node is an object"}
	}
	d := decoder{node: Node{State: StateActive}}
	for name, raw := range members(text) {
		known, err := d.member(name, raw)
		if err != nil {
			return Node{}, nil, err
		}
		if !known {
			unknown = append(unknown, name)
		}
	}
	if err := d.finish(); err != nil {
		return Node{}, nil, err
	}
	return d.node, unknown, d.node.Check(limits)
}

// decoder collects the members of one node.
type decoder struct {
	node             Node
	path             string
	id, namespace    string
	hasID, hasNS     bool
	mainNode         string
	hasPath, hasMain bool
}

// member takes one member; known is false for a name that nodes do not have.
func (d *decoder) member(name, raw string) (known bool, err error) {
	switch name {
	case "path":
		d.hasPath = raw != "null"
		d.path, err = readText(name, raw)
	case "id":
		d.hasID = raw != "null"
		d.id, err = readText(name, raw)
	case "namespace":
		d.hasNS = raw != "null"
		d.namespace, err = readText(name, raw)
	case "mainNode":
		d.hasMain = raw != "null"
		d.mainNode, err = readText(name, raw)
	case "version":
		d.node.Version, err = readInt(name, raw)
		if err == nil && d.node.Version < 0 {
			err = &FieldError{Field: name, Reason: "it is not below 0"}
		}
	case "createdDate":
		d.node.CreatedAt, err = readTime(name, raw)
	case "createdBy":
		d.node.CreatedBy, err = readText(name, raw)
	case "lastModified":
		d.node.ModifiedAt, err = readTime(name, raw)
	case "lastModifiedBy":
		d.node.ModifiedBy, err = readText(name, raw)
	case "content":
		d.node.Content = RawContent(strings.Clone(raw))
	default:
		return setField(&d.node, name, raw)
	}
	return true, err
}

// setField sets a writable field that is neither the content nor the main node.
func setField(n *Node, name, raw string) (known bool, err error) {
	switch name {
	case "nodeType":
		n.NodeType, err = readText(name, raw)
	case "name":
		n.Name, err = readText(name, raw)
	case "description":
		n.Description, err = readText(name, raw)
	case "category":
		n.Category, err = readText(name, raw)
	case "icon":
		n.Icon, err = readText(name, raw)
	case "preRenderedHtml":
		n.PreRenderedHTML, err = readText(name, raw)
	case "desiredId":
		n.DesiredID, err = readText(name, raw)
	case "order":
		n.Order = nil
		if raw != "null" {
			var order int64
			order, err = readInt(name, raw)
			if err == nil && order != int64(int32(order)) {
				err = &FieldError{Field: name, Reason: "it has more than 32 bits"}
			}
			value := int(order)
			n.Order = &value
		}
	case "state":
		if raw == "null" {
			n.State = StateActive
			break
		}
		var ok bool
		if n.State, ok = ParseState(bare(raw)); !ok {
			err = &FieldError{Field: name, Reason: "it is one of New, Transient, Active, Rejected, Deleted"}
		}
	case "syncBehavior":
		n.SyncBehavior = SyncInclude
		if raw == "null" {
			break
		}
		var ok bool
		if n.SyncBehavior, ok = ParseSyncBehavior(bare(raw)); !ok {
			err = &FieldError{Field: name, Reason: "it is one of Include, ExcludeThisOnly, ExcludeThisAndChildren"}
		}
	case "excludeFromContext":
		n.ExcludeFromContext, err = readTexts(name, raw)
	default:
		return false, nil
	}
	return true, err
}

// finish settles the path and the main node.
func (d *decoder) finish() error {
	text := d.path
	if !d.hasPath && d.hasID {
		text = strings.Trim(d.namespace, "/") + "/" + d.id
	}
	if text != "" {
		path, err := ParsePath(text)
		if err != nil {
			return err
		}
		d.node.Path = path
		if d.hasID && strings.Trim(d.id, "/") != path.ID() {
			return &FieldError{Field: "id", Reason: "it contradicts the path"}
		}
		if d.hasNS && strings.Trim(d.namespace, "/") != string(path.Namespace()) {
			return &FieldError{Field: "namespace", Reason: "it contradicts the path"}
		}
	}
	d.node.MainNode = d.node.Path.Main()
	if d.hasMain {
		main, err := parseMain(d.mainNode)
		if err != nil {
			return err
		}
		d.node.MainNode = main
	}
	return nil
}

// parseMain reads a main node; "" is the root scope.
func parseMain(text string) (Path, error) {
	if strings.Trim(text, "/") == "" {
		return "", nil
	}
	path, err := ParsePath(text)
	if err != nil {
		return "", &FieldError{Field: "mainNode", Reason: err.Error()}
	}
	return path, nil
}

// bare returns a text without its quotes, or a number as it is.
func bare(raw string) string {
	if raw[0] == '"' {
		return unquote(raw)
	}
	return raw
}

func readText(name, raw string) (string, error) {
	switch {
	case raw == "null":
		return "", nil
	case raw[0] != '"':
		return "", &FieldError{Field: name, Reason: "it is a text"}
	}
	return strings.Clone(unquote(raw)), nil
}

func readTexts(name, raw string) ([]string, error) {
	if raw == "null" {
		return nil, nil
	}
	list, err := parseTree(Content{text: raw})
	if err != nil || !list.isArray() {
		return nil, &FieldError{Field: name, Reason: "it is a list of texts"}
	}
	const most = 32
	if len(list.parts) > most {
		return nil, &FieldError{Field: name, Reason: fmt.Sprintf("it has %d texts; %d are allowed", len(list.parts), most)}
	}
	var texts []string
	for _, part := range list.parts {
		if part.raw[0] != '"' || part.raw == `""` {
			return nil, &FieldError{Field: name, Reason: "it is a list of texts that are not empty"}
		}
		texts = append(texts, strings.Clone(unquote(part.raw)))
	}
	return texts, nil
}

func readInt(name, raw string) (int64, error) {
	if raw == "null" {
		return 0, nil
	}
	i, err := strconv.ParseInt(raw, 10, 64)
	if err != nil {
		return 0, &FieldError{Field: name, Reason: "it is a whole number of at most 64 bits"}
	}
	return i, nil
}

func readTime(name, raw string) (time.Time, error) {
	text, err := readText(name, raw)
	if err != nil || text == "" {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		if t, err = time.Parse("2006-01-02T15:04:05", text); err != nil {
			return time.Time{}, &FieldError{Field: name, Reason: "it is a time as in RFC 3339"}
		}
	}
	return Stamp(t), nil
}
