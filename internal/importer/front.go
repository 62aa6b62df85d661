package importer

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// frontDepth bounds how deep front matter nests, aliases followed.
const frontDepth = 1000

const wayOut = "where the first '---' is a horizontal rule, leave an empty line behind it"

// member matches a text whose first line is a member of a mapping.
var member = regexp.MustCompile(`^[A-Za-z][\w -]*:(\s|$)`)

// splitFront cuts YAML front matter off a document: a first line "---", with or without blanks behind it,
// a mapping, and a line "---". A first line that is followed by an empty one, or after which no mapping
// stands, is a horizontal rule of a document without front matter; members that do not end are an error.
// most bounds the bytes of the front matter with its aliases expanded.
func splitFront(text []byte, most int) (front map[string]any, body []byte, err error) {
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	if !isRule(first) || !bytes.HasPrefix(first, []byte("---")) {
		return nil, text, nil
	}
	if next, _, _ := bytes.Cut(rest, []byte("\n")); len(bytes.TrimSpace(next)) == 0 {
		return nil, text, nil
	}
	end := 0
	for line := range bytes.Lines(rest) {
		if isRule(line) {
			front, ok, err := parseFront(rest[:end], most)
			switch {
			case err != nil:
				return nil, nil, fmt.Errorf("front matter: %w (%s)", err, wayOut)
			case !ok:
				return nil, text, nil
			}
			return front, rest[end+len(line):], nil
		}
		end += len(line)
	}
	if member.Match(rest) {
		return nil, nil, errors.New("front matter: it begins with '---' and does not end (" + wayOut + ")")
	}
	return nil, text, nil
}

// isRule tells whether a line is "---", with nothing but blanks behind it.
func isRule(line []byte) bool { return string(bytes.TrimRight(line, "\r\n \t")) == "---" }

// parseFront reads front matter; ok is false where it is no mapping. Nothing is expanded before it is
// known to stay within most bytes: a few aliases of a long text, or aliases of aliases, are gigabytes.
func parseFront(text []byte, most int) (front map[string]any, ok bool, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, false, err
	}
	if doc.Kind == 0 {
		return nil, true, nil // nothing but comments
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, false, nil
	}
	left := most
	if err := expanded(&doc, &left, 0); err != nil {
		return nil, false, err
	}
	if err := doc.Decode(&front); err != nil {
		return nil, false, err
	}
	return front, true, nil
}

// expanded takes the bytes of a part of YAML from left, aliases followed, and fails where there are too
// many. What contains itself has no end of them.
func expanded(n *yaml.Node, left *int, depth int) error {
	if *left -= 1 + len(n.Value); *left < 0 || depth > frontDepth {
		return errors.New("with its aliases expanded it is larger than a node may be")
	}
	if n.Kind == yaml.AliasNode {
		return expanded(n.Alias, left, depth+1)
	}
	for _, part := range n.Content {
		if err := expanded(part, left, depth+1); err != nil {
			return err
		}
	}
	return nil
}
