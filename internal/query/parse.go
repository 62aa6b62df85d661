package query

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hubmesh/hubmesh/internal/node"
)

// Bounds of a query's text, so that hostile input costs little.
const (
	maxBytes  = 8 << 10
	maxNested = 50  // parentheses in parentheses
	maxTerms  = 200 // terms and alternatives
)

// Parse reads a query (data.md §5.1; docs/query.md for users). The errors are *[SyntaxError] and
// *[UnsupportedError].
func Parse(text string) (Query, error) {
	if len(text) > maxBytes {
		return Query{}, &SyntaxError{Offset: maxBytes, Reason: fmt.Sprintf("it has %d bytes; %d are allowed", len(text), maxBytes)}
	}
	for i, r := range text {
		if _, size := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && size == 1 {
			return Query{}, &SyntaxError{Offset: i, Reason: "it is not valid UTF-8"}
		}
		if r < 0x20 && !unicode.IsSpace(r) || r == 0x7f {
			return Query{}, &SyntaxError{Offset: i, Reason: "it holds a control character"}
		}
	}
	p := parser{text: text, query: Query{source: text, parsed: true}}
	p.space()
	if p.rest() == "" {
		return Query{}, p.fail(p.at, "it is empty")
	}
	if strings.HasPrefix(p.rest(), "[") {
		return Query{}, &UnsupportedError{Offset: p.at, Feature: "lists of queries"}
	}
	where, err := p.or(0)
	if err != nil {
		return Query{}, err
	}
	if p.at < len(text) {
		return Query{}, p.fail(p.at, "a ')' without its '('")
	}
	p.query.where = where
	return p.finish()
}

// parser walks over the text once.
type parser struct {
	text  string
	at    int
	terms int
	query Query

	qualifiers     map[string]bool // reserved fields that were given
	firstQualifier string
	inOr           bool // an OR has been read at the top level
	namespace      bool // the bases come from namespace:
	wildcardBase   bool // path: or namespace: became a condition
}

func (p *parser) fail(at int, format string, args ...any) error {
	return &SyntaxError{Offset: at, Reason: fmt.Sprintf(format, args...)}
}

func (p *parser) rest() string { return p.text[p.at:] }

func (p *parser) space() {
	for p.at < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.rest())
		if !unicode.IsSpace(r) {
			return
		}
		p.at += size
	}
}

// keyword steps over word if it stands here as a word of its own.
func (p *parser) keyword(word string) bool {
	after, found := strings.CutPrefix(p.rest(), word)
	if !found {
		return false
	}
	if r, _ := utf8.DecodeRuneInString(after); after != "" && !unicode.IsSpace(r) && r != '(' && r != ')' {
		return false
	}
	p.at += len(word)
	p.space()
	return true
}

// or reads alternatives; nil is "no condition".
func (p *parser) or(depth int) (expr, error) {
	if depth > maxNested {
		return nil, p.fail(p.at, "more than %d parentheses inside each other", maxNested)
	}
	var branches anyOf
	for {
		start := p.at
		branch, n, err := p.and(depth)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			if p.at < len(p.text) && p.text[p.at] == ')' && depth == 0 {
				return nil, p.fail(p.at, "a ')' without its '('")
			}
			return nil, p.fail(start, "a term belongs here")
		}
		branches = append(branches, branch)
		at := p.at
		if !p.keyword("OR") {
			break
		}
		if depth == 0 {
			if p.inOr = true; p.firstQualifier != "" {
				return nil, p.fail(at, wholeQuery, p.firstQualifier)
			}
		}
	}
	if len(branches) == 1 {
		return branches[0], nil
	}
	return branches, nil
}

// and reads terms until an OR, a closing parenthesis or the end, and counts them.
func (p *parser) and(depth int) (expr, int, error) {
	var terms allOf
	n := 0
	for ; ; n++ {
		p.space()
		for p.keyword("AND") {
		}
		start := p.at
		if p.at >= len(p.text) || p.text[p.at] == ')' {
			break
		}
		if p.keyword("OR") {
			p.at = start
			break
		}
		if p.terms++; p.terms > maxTerms {
			return nil, 0, p.fail(p.at, "more than %d terms", maxTerms)
		}
		term, err := p.term(depth)
		if err != nil {
			return nil, 0, err
		}
		if term != nil {
			terms = append(terms, term)
		}
	}
	switch len(terms) {
	case 0:
		return nil, n, nil
	case 1:
		return terms[0], n, nil
	}
	return terms, n, nil
}

// term reads one term; nil for a qualifier, which is no condition.
func (p *parser) term(depth int) (expr, error) {
	start := p.at
	negated := false
	if p.text[p.at] == '-' && p.at+1 < len(p.text) {
		if r, _ := utf8.DecodeRuneInString(p.text[p.at+1:]); !unicode.IsSpace(r) && r != ')' {
			negated = true
			p.at++
		}
	}
	var term expr
	switch c := p.text[p.at]; {
	case c == '(':
		p.at++
		inner, err := p.or(depth + 1)
		if err != nil {
			return nil, err
		}
		if p.at >= len(p.text) {
			return nil, p.fail(start, "a '(' without its ')'")
		}
		p.at++
		term = inner
	case c == '"':
		text, err := p.quoted()
		if err != nil {
			return nil, err
		}
		term = newText(text)
	default:
		if field := p.field(); field != "" {
			return p.fieldTerm(field, start, depth, negated)
		}
		word := p.word(false)
		if word == "" {
			return nil, p.fail(p.at, "unexpected %q", p.text[p.at])
		}
		term = newText(word)
	}
	if term == nil { // a text of white space only, which every node has
		return nil, nil
	}
	if negated {
		return not{term}, nil
	}
	if _, isText := term.(text); isText && depth == 0 {
		p.query.tops = true
	}
	return term, nil
}

// field steps over a field's name and the colon, if that is what stands here.
func (p *parser) field() string {
	end := p.at
	for end < len(p.text) && isFieldByte(p.text[end]) {
		end++
	}
	if end == p.at || end >= len(p.text) || p.text[end] != ':' {
		return ""
	}
	name := p.text[p.at:end]
	p.at = end + 1
	return name
}

func isFieldByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_./$-", c) >= 0
}

// word reads up to white space, a quotation mark or a parenthesis that it did not open itself; in a
// value up to a '|' as well.
func (p *parser) word(value bool) string {
	start, open := p.at, 0
	for p.at < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.rest())
		switch {
		case unicode.IsSpace(r), r == '"', r == '|' && value:
			return p.text[start:p.at]
		case r == '(':
			open++
		case r == ')':
			if open == 0 {
				return p.text[start:p.at]
			}
			open--
		}
		p.at += size
	}
	return p.text[start:p.at]
}

// quoted reads a quoted text; \" and \\ stand for the characters themselves.
func (p *parser) quoted() (string, error) {
	start := p.at
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return b.String(), nil
		case c == '\\' && p.at+1 < len(p.text) && (p.text[p.at+1] == '"' || p.text[p.at+1] == '\\'):
			p.at++
			b.WriteByte(p.text[p.at])
		default:
			b.WriteByte(c)
		}
	}
	return "", p.fail(start, "a '\"' without its closing one")
}

// finish settles what the qualifiers together mean.
func (p *parser) finish() (Query, error) {
	q := &p.query
	p.settleScope()
	slices.Sort(q.bases)
	q.bases = slices.Compact(q.bases)
	if q.satellites = slices.ContainsFunc(q.bases, isSatellitePath); !q.satellites && q.where != nil {
		q.satellites = asksForSatellites(q.where)
	}
	if q.where != nil {
		q.tops = q.tops || asksForType(q.where, node.TypeSpace)
	}
	return *q, nil
}
