package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/hubmesh/hubmesh/internal/node"
)

// legacy are members of node files that say nothing here; they are passed over without a word.
var legacy = map[string]bool{"$type": true, "addressSegments": true, "isPersistent": true, "isSatelliteType": true, "isVirtual": true,
	"routingType": true, "instantiationType": true}

// parseJSON reads a node file. The path is decided by the file's place.
func parseJSON(text []byte, at node.Path, limits node.Limits) (n node.Node, warnings []string, err error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	n, unknown, err := node.Decode(text, limits)
	if err != nil {
		return node.Node{}, nil, err
	}
	for _, name := range unknown {
		if name == "displayOrder" && n.Order == nil {
			var o struct{ DisplayOrder *int }
			if json.Unmarshal(text, &o) == nil {
				n.Order = o.DisplayOrder
				continue
			}
		}
		if !legacy[name] {
			warnings = append(warnings, fmt.Sprintf("member '%s' is not known and was left out", name))
		}
	}
	n.Path, n.MainNode = at, ""
	n.Version = 0
	return n, warnings, nil
}

// parseMarkdown reads a document with optional YAML front matter. Name, Title, Description, Abstract,
// Category, Icon, Order, NodeType and State are fields of the node; the rest of the front matter stays in
// the content beside the text.
func parseMarkdown(text []byte, at node.Path, limits node.Limits) (n node.Node, warnings []string, err error) {
	if offset, bad := notUTF8(text); bad {
		return node.Node{}, nil, fmt.Errorf("byte %d is not UTF-8; save the file as UTF-8", offset)
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	front, body, err := splitFront(text, limits.NodeBytes)
	if err != nil {
		return node.Node{}, nil, err
	}
	n = node.Node{Path: at, NodeType: node.TypeMarkdown}
	content := map[string]any{"$type": "Markdown", "markdown": strings.ReplaceAll(string(body), "\r\n", "\n")}
	for key, value := range front {
		text, isText := value.(string)
		switch strings.ToLower(key) {
		case "nodetype":
			n.NodeType = text
		case "name":
			n.Name = text
		case "title":
			if n.Name == "" {
				n.Name = text
			}
			content["title"] = value
		case "description":
			n.Description = text
		case "abstract":
			if n.Description == "" {
				n.Description = text
			}
			content["abstract"] = value
		case "category":
			n.Category = text
		case "icon":
			n.Icon = text
		case "order":
			if i, ok := value.(int); ok {
				n.Order = &i
			} else if value != nil {
				warnings = append(warnings, fmt.Sprintf("front matter '%s': %s is no whole number; it was left out", key, quoted(value)))
			}
		case "state":
			if s, ok := node.ParseState(text); ok {
				n.State = s
			} else if isText {
				warnings = append(warnings, fmt.Sprintf("front matter '%s': %s is no state of a node; it was left out", key, quoted(value)))
			}
		default:
			content[lowerFirst(key)] = value
			continue
		}
		if !isText && value != nil && !strings.EqualFold(key, "order") {
			warnings = append(warnings, fmt.Sprintf("front matter '%s' is not a text", key))
		}
	}
	if n.Name == "" {
		n.Name = heading(body)
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return node.Node{}, nil, fmt.Errorf("front matter: %w", err)
	}
	if n.Content, err = node.ParseContent(raw, limits); err != nil {
		return node.Node{}, nil, documentError(err)
	}
	return n, warnings, nil
}

// documentError tells the fault of a content that a document gave without speaking of JSON, of which there is none
// in the file.
func documentError(err error) error {
	var content *node.ContentError
	switch {
	case !errors.As(err, &content):
		return err
	case content.Kind == node.ContentSize:
		return fmt.Errorf("the document is too large for a node: as its content %s", content.Reason)
	}
	return fmt.Errorf("front matter: %s", content.Reason)
}

// quoted is a value for a warning, cut where it is long.
func quoted(value any) string {
	const most = 100
	text := fmt.Sprint(value)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return "'" + text + "'"
}

// notUTF8 is where a text stops being UTF-8, from 0; bad is false where it never does.
func notUTF8(text []byte) (offset int, bad bool) {
	for offset < len(text) {
		r, size := utf8.DecodeRune(text[offset:])
		if r == utf8.RuneError && size == 1 {
			return offset, true
		}
		offset += size
	}
	return 0, false
}

// heading is the text of the first top heading of a document.
func heading(body []byte) string {
	for line := range bytes.Lines(body) {
		if rest, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("# ")); ok {
			return strings.TrimSpace(string(rest))
		}
	}
	return ""
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// withDocument puts the text of a folder's index.md into the node that a JSON file gave, where that has
// no text of its own.
func withDocument(n, doc node.Node, limits node.Limits) (node.Node, error) {
	var text struct {
		Markdown string `json:"markdown"`
	}
	if err := doc.Content.Decode(&text); err != nil || text.Markdown == "" {
		return n, err
	}
	if n.Content.IsZero() {
		n.Content = doc.Content
	} else if c := strings.TrimSpace(n.Content.Text()); strings.HasPrefix(c, "{") {
		patch, err := json.Marshal(map[string]string{"markdown": text.Markdown})
		if err != nil {
			return n, err
		}
		merged, err := node.MergePatch(n.Content, node.RawContent(string(patch)))
		if err != nil {
			return n, err
		}
		n.Content = merged
	}
	if n.Name == "" {
		n.Name = doc.Name
	}
	if n.Description == "" {
		n.Description = doc.Description
	}
	if n.NodeType == "" {
		n.NodeType = doc.NodeType
	}
	return n, n.Check(limits)
}

// placeOf is the path of the node that a file gives, below into. index tells that the file is the
// document of its folder.
func placeOf(into node.Path, file string) (at node.Path, index bool, err error) {
	stem := strings.TrimSuffix(file, path.Ext(file))
	if path.Base(stem) == "index" && path.Ext(file) == ".md" {
		index = true
		if stem = path.Dir(stem); stem == "." {
			stem = ""
		}
	}
	full := stem
	if into != "" {
		full = strings.Trim(string(into)+"/"+stem, "/")
	}
	at, err = node.ParsePath(full)
	return at, index, err
}
