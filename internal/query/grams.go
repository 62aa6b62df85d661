package query

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/hubmesh/hubmesh/internal/node"
)

// GramsForm names how grams are made of texts. Grams of two forms do not compare: letters fold otherwise where
// the tables of Unicode are other ones.
const GramsForm = "1 " + unicode.Version

// gramRunes is how many characters a gram has. A term that is shorter has none.
const gramRunes = 3

// Grams returns the grams of all that a term is looked for in, ascending and each once: every three characters
// that follow each other in a text, folded. A term occurs only in nodes that have all of its grams, see [TermGrams]; a
// node that has them need not have the term. Where there are more than most of them, ok is false.
func Grams(n *node.Node, most int) (grams []int32, ok bool) {
	var g gramSet
	g.add(n.Name)
	g.add(string(n.Path))
	g.add(n.Description)
	g.add(n.NodeType)
	for value := range n.Content.Texts(textDepth) {
		if g.add(value.Text()); len(g.all) > 4*most { // a text repeats itself
			if g.settle(); len(g.all) > most {
				return nil, false
			}
		}
	}
	g.settle()
	return g.all, len(g.all) <= most
}

// mostTermGrams bounds the grams of one term: more of them do not leave out much more.
const mostTermGrams = 64

// TermGrams returns the grams that every node has in which the term occurs; none where the term is too short to have
// any.
func TermGrams(term string) []int32 {
	var g gramSet
	g.add(term)
	g.settle()
	return g.all[:min(len(g.all), mostTermGrams)]
}

// gramSet collects grams.
type gramSet struct{ all []int32 }

// add adds those of a text. The matcher looks at each text alone, and so no gram crosses from one to the next.
func (g *gramSet) add(text string) {
	var a, b rune
	seen := 0
	for _, r := range text {
		r = gramRune(r)
		if seen++; seen >= gramRunes && (a != ' ' || b != ' ' || r != ' ') {
			g.all = append(g.all, gram(a, b, r))
		}
		a, b = b, r
	}
}

func (g *gramSet) settle() {
	slices.Sort(g.all)
	g.all = slices.Compact(g.all)
}

// gramRune is the folded form of a character, as the matcher compares it, and one for all that stands between words
// in ASCII: there are fewer grams then.
func gramRune(r rune) rune {
	switch {
	case r >= utf8.RuneSelf:
		return node.FoldRune(r)
	case r >= 'A' && r <= 'Z':
		return r + 'a' - 'A'
	case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
		return r
	}
	return ' '
}

// gram makes a number of three characters: a different one for each three in ASCII, and a hash for others.
func gram(a, b, c rune) int32 {
	if a|b|c < utf8.RuneSelf {
		return a<<14 | b<<7 | c
	}
	const offset, prime = 2166136261, 16777619 // FNV-1a
	h := uint32(offset)
	for _, r := range [gramRunes]rune{a, b, c} {
		h = (h ^ uint32(r)) * prime
	}
	return int32(h | 1<<31)
}
