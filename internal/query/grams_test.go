package query_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
)

const manyGrams = 1 << 20

// quoted is a query for a term; false where none can be written.
func quoted(term string) (query.Query, bool) {
	q, err := query.Parse(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(term) + `"`)
	return q, err == nil
}

// missed are the grams of a term that a node lacks.
func missed(n *node.Node, term string) (lacking []int32) {
	has, _ := query.Grams(n, manyGrams)
	for _, g := range query.TermGrams(term) {
		if !slices.Contains(has, g) {
			lacking = append(lacking, g)
		}
	}
	return lacking
}

// data §5.1: text in any letter case, wherever the matcher looks
func FuzzANodeThatATermOccursInHasAllItsGrams(f *testing.F) {
	for _, seed := range [][2]string{{"The Launch of it", "lAUNCH"}, {"\u212Aelvin", "KELVIN"}, {"straſſe", "STRASSE"}, {"İzmir", "izmir"}, {"ΣΊΣΥΦΟΣ", "ίσυφος"}, {"日本語の本", "本語の"},
		{`say "no"`, `y "N`}, {"a\x00bcd", "bcd"}, {"c++ or C--", "C++"}, {"tab\there", "here"}, {`back\slash`, `k\s`}, {"Ǆungla", "ǆun"}, {"\u0130\u0131\u017f", "\u0130\u0131\u017f"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, term string) {
		if !utf8.ValidString(text) || !utf8.ValidString(term) {
			t.Skip()
		}
		q, ok := quoted(term)
		if !ok {
			t.Skip()
		}
		content, err := json.Marshal(map[string]any{"a": []any{"other", text}})
		if err != nil {
			t.Fatal(err)
		}
		escaped := []byte(`"`)
		for _, r := range text {
			if r < 0x10000 {
				escaped = fmt.Appendf(escaped, `\u%04x`, r)
			}
		}
		for _, n := range []node.Node{
			{Path: "acme/x", MainNode: "acme/x", Name: text}, {Path: "acme/x", MainNode: "acme/x", Description: text}, {Path: "acme/x", MainNode: "acme/x", NodeType: text},
			{Path: "acme/x", MainNode: "acme/x", Content: node.RawContent(string(content))},
			{Path: "acme/x", MainNode: "acme/x", Content: node.RawContent(string(append(escaped, '"')))},
			{Path: node.Path(text), MainNode: node.Path(text)},
		} {
			for _, texts := range q.Bounds().Texts {
				if lacking := missed(&n, texts[0]); q.Match(n) && len(lacking) > 0 {
					t.Errorf("%q occurs in %+v, which lacks %v", term, n, lacking)
				}
			}
		}
	})
}

// data §5.1
func TestANodeLacksGramsOfATermThatDoesNotOccur(t *testing.T) { // the control
	n := node.Node{Path: "acme/x", Name: "the launch", Content: node.RawContent(`{"a":{"b":{"c":{"d":"too deep"}}}}`)}
	for term, want := range map[string]int{"launch": 0, "lunch": 1, "deep": 2, "unc": 0, "la": 0, "": 0, "e l": 0, "nchac": 2} {
		if got := missed(&n, term); len(got) != want {
			t.Errorf("%q: it lacks %d, want %d", term, len(got), want)
		}
	}
	if grams, ok := query.Grams(&n, 3); ok || len(grams) > manyGrams {
		t.Error("more grams than are asked for are all of them")
	}
	if len(query.TermGrams("+-+")) != 0 {
		t.Error("what stands between words has grams")
	}
}

// data §5.1
func TestTheBoundsOfAQueryHoldTheTermsThatOccurInEveryMatch(t *testing.T) {
	for text, want := range map[string][][]string{
		"One two": {{"one"}, {"two"}}, "a OR b": {{"a", "b"}}, "(a OR b) c": {{"a", "b"}, {"c"}}, "-a": nil, "(a OR name:b)": nil, "(a OR (b c))": nil, "((a b) OR nodeType:c) d": {{"d"}},
		"nodeType:Task": nil, "x scope:nextLevel": nil, `"Über uns" limit:3`: {{"über uns"}},
	} {
		q, err := query.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, q.Bounds().Texts); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
