package importer

import (
	"fmt"
	"runtime"
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

// bad input: a YAML alias bomb. Nothing is expanded before its size is known.
func TestFrontMatterThatExpandsBeyondANodeIsRefused(t *testing.T) {
	long := "a: &a " + strings.Repeat("x", 300_000) + "\n"
	bombs := map[string]string{
		"a long text many times": long + "b: [" + strings.Repeat("*a,", 4_000) + "*a]\n",
		"in a merge":             "a: &a {k: " + strings.Repeat("x", 300_000) + "}\nb:\n" + strings.Repeat("- {<<: *a}\n", 4_000),
		"itself":                 "a: &a [*a, *a]\n",
		"as a name":              "a: &a " + strings.Repeat("x", 300_000) + "\nb:\n" + strings.Repeat("- {*a : 1}\n", 4_000),
	}
	laughs := "a0: &a0 x\n"
	for i := 1; i <= 30; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
	}
	bombs["aliases of aliases"] = laughs
	for name, yaml := range bombs {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := parseMarkdown([]byte("---\n"+yaml+"---\n# A\n"), "acme/a", node.DefaultLimits)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "front matter") {
			t.Errorf("%s: %v", name, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 100<<20 {
			t.Errorf("%s: %d MiB", name, used>>20)
		}
	}
	// The control: aliases that stay small are what they stand for.
	n, _, err := parseMarkdown([]byte("---\na: &a [x, y]\nb: *a\nc: {<<: {d: 1}}\n---\n# A\n"), "acme/a", node.DefaultLimits)
	if err != nil || !strings.Contains(n.Content.String(), `"b":["x","y"]`) || !strings.Contains(n.Content.String(), `"c":{"d":1}`) {
		t.Errorf("%s %v", n.Content.String(), err)
	}
}

// data §2.4
func TestADocumentMayBeginWithAHorizontalRule(t *testing.T) {
	for text, want := range map[string]struct {
		name, category string
		kept           bool // the rule is part of the text
	}{
		"---\n\n# A\n":                           {"A", "", true},
		"---\n\n# A\n\n---\n\nmore\n":            {"A", "", true},
		"---\nwords between rules\n---\n\n# A\n": {"A", "", true},
		"---\n# A\n":                             {"A", "", true},
		"---":                                    {"", "", true},
		"---\ncategory: c\n---\n# A\n":           {"A", "c", false},
		"--- \t\ncategory: c\n--- \n# A\n":       {"A", "c", false},
		"---\r\ncategory: c\r\n---\r\n# A\r\n":   {"A", "c", false},
		"---\n# only a comment\n---\n# A\n":      {"A", "", false},
		"---\ncategory: c\n---":                  {"", "c", false},
		" ---\ncategory: c\n---\n# A\n":          {"A", "", true},
		"----\ncategory: c\n---\n# A\n":          {"A", "", true},
	} {
		n, warnings, err := parseMarkdown([]byte(text), "acme/a", node.DefaultLimits)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		kept := strings.Contains(n.Content.String(), "---")
		if n.Name != want.name || n.Category != want.category || kept != want.kept {
			t.Errorf("%q: name %q, category %q, %s, %q", text, n.Name, n.Category, n.Content.String(), warnings)
		}
	}
	// The control: front matter that is no YAML, or does not end, is told, with the way out.
	for _, text := range []string{"---\na: b: c\n---\n# A\n", "---\nname: x\ntext\n", "---\nname: x\n\n# A\n\n\tcode\n"} {
		_, _, err := parseMarkdown([]byte(text), "acme/a", node.DefaultLimits)
		if err == nil || !strings.Contains(err.Error(), "leave an empty line") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// data §2.4
func TestAnOrderOrStateThatIsNoneIsWarnedOf(t *testing.T) {
	for front, want := range map[string]string{
		"order: first":                      "'first' is no whole number",
		"order: 1.5":                        "'1.5' is no whole number",
		"order: \"3\"":                      "'3' is no whole number",
		"Order: [1]":                        "'[1]' is no whole number",
		"order: " + strings.Repeat("9", 30): "is no whole number",
		"state: Actve":                      "'Actve' is no state",
		"state: [Active]":                   "is not a text",
		"order: 3":                          "",
		"state: Active":                     "",
		"order:\nstate:":                    "",
	} {
		n, warnings, err := parseMarkdown([]byte("---\n"+front+"\n---\n# A\n"), "acme/a", node.DefaultLimits)
		if err != nil || n.Name != "A" {
			t.Errorf("%s: %v", front, err)
		}
		if got := strings.Join(warnings, ";"); (want == "") != (got == "") || !strings.Contains(got, want) || len(warnings) > 1 {
			t.Errorf("%s: %q", front, warnings)
		}
	}
}

// parsers
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{"---\nname: x\n---\n# A\n", "---\n\n---\n", "--- \na: &a [*a]\n---\n", "---\na: &a {b: 1}\nc: {<<: *a}\n---", "# A", "---\norder: 1e9\nstate: x\n---\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n, _, err := parseMarkdown(text, "acme/a", node.DefaultLimits)
		if err != nil {
			return
		}
		if _, err := node.ParseContent([]byte(n.Content.String()), node.DefaultLimits); err != nil {
			t.Errorf("%q gives a content that is none: %v", text, err)
		}
	})
}

// issue: limits, JSON depth 200 counts the content's levels
func TestAFileMayNestItsContentAsDeepAsARequest(t *testing.T) {
	objects := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	flow := func(n int) string { return "---\na: " + strings.Repeat("[", n) + strings.Repeat("]", n) + "\n---\nx\n" }
	ways := map[string]func(levels int) error{
		"a node file": func(levels int) error {
			_, _, err := parseJSON([]byte(`{"content":`+objects(levels)+`}`), "acme/a", node.DefaultLimits)
			return err
		},
		"front matter": func(levels int) error {
			_, _, err := parseMarkdown([]byte(flow(levels-1)), "acme/a", node.DefaultLimits) // one is the content around it
			return err
		},
	}
	for name, way := range ways {
		if err := way(200); err != nil {
			t.Errorf("%s of 200 levels: %v", name, err)
		}
		if err := way(201); err == nil || !strings.Contains(err.Error(), "deeper than 200 levels") {
			t.Errorf("%s of 201 levels: %v", name, err)
		}
	}
}
