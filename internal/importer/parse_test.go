package importer

import (
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
)

// bad input: invalid UTF-8. Nothing of a document is replaced without a word.
func TestADocumentThatIsNotUTF8IsRefusedWithThePlace(t *testing.T) {
	for text, want := range map[string]string{
		"# Caf\xe9\n":                    "byte 5 is not UTF-8",
		"---\nname: a\xff\n---\nx\n":     "byte 11 is not UTF-8",
		"\xef\xbb\xbfa\xc3":              "byte 4 is not UTF-8",
		"a\xed\xa0\x80 (half a pair)\n":  "byte 1 is not UTF-8",
		"\xff\xfe#\x00 \x00A\x00\n\x00 ": "byte 0 is not UTF-8",
	} {
		_, _, err := parseMarkdown([]byte(text), "acme/a", node.DefaultLimits)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	// The control: a document that says U+FFFD itself is one.
	n, _, err := parseMarkdown([]byte("# Café \ufffd\n"), "acme/a", node.DefaultLimits)
	if err != nil || n.Name != "Café \ufffd" {
		t.Errorf("%q %v", n.Name, err)
	}
}
