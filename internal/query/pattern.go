package query

import (
	"strings"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
)

// pattern is a value of a query, prepared for comparison.
type pattern struct {
	text   string
	folded string
	glob   []string // the pieces between the wildcards; nil without one
	folds  []string // the same in folded letters
	number bool     // text is a number

	// For a text that is a time, the moments from (included) to (excluded) that it stands for: one
	// day for a date, one microsecond for a time.
	from, to time.Time
}

func newPattern(text string, literal bool) pattern {
	p := pattern{text: text, folded: node.Fold(text)}
	if !literal && strings.Contains(text, "*") {
		p.glob, p.folds = strings.Split(text, "*"), strings.Split(p.folded, "*")
		return p
	}
	if c, err := node.ParseContent([]byte(text), node.DefaultLimits); err == nil {
		for v := range c.Lookup(nil) {
			p.number = v.Kind() == node.ValueNumber
		}
	}
	p.from, p.to = parseTime(text)
	return p
}

// parseTime reads a date or a time; a time without a zone is UTC.
func parseTime(text string) (from, to time.Time) {
	const shortest, longest = len("2006-01-02"), len("2006-01-02T15:04:05.999999999+07:00")
	if len(text) < shortest || len(text) > longest || text[4] != '-' {
		return time.Time{}, time.Time{}
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, t.AddDate(0, 0, 1)
	}
	for _, form := range [...]string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.Parse(form, text); err == nil {
			t = node.Stamp(t)
			return t, t.Add(time.Microsecond)
		}
	}
	return time.Time{}, time.Time{}
}

// equals tells whether the value is the one of the pattern. An absent value is the empty text.
func (p *pattern) equals(s scalar, exact bool) bool {
	switch {
	case s.kind == isAbsent:
		return p.glob == nil && p.text == ""
	case p.glob != nil && exact:
		return matchGlob(p.glob, s.text)
	case p.glob != nil:
		return matchGlob(p.folds, node.Fold(s.text))
	case exact:
		return s.text == p.text
	case s.kind == isNumber && p.number:
		return node.CompareNumbers(s.text, p.text) == 0
	case s.kind == isTime:
		return !p.from.IsZero() && !s.at.Before(p.from) && s.at.Before(p.to)
	case s.kind == isOther:
		return false
	}
	return strings.EqualFold(s.text, p.text)
}

// compare orders the value against the pattern. Numbers and times compare as such, texts by their
// letters in any case; an absent value and values of different kinds have no order.
func (p *pattern) compare(s scalar, operator op) bool {
	switch {
	case s.kind == isNumber && p.number, s.kind == isText && p.number && newPattern(s.text, true).number:
		return holds(operator, node.CompareNumbers(s.text, p.text))
	case s.kind == isText && !p.from.IsZero():
		if at, _ := parseTime(s.text); !at.IsZero() {
			return p.compareTime(at, operator)
		}
	case s.kind == isTime && !p.from.IsZero():
		return p.compareTime(s.at, operator)
	}
	return s.kind == isText && holds(operator, strings.Compare(node.Fold(s.text), p.folded))
}

func (p *pattern) compareTime(at time.Time, operator op) bool {
	switch operator {
	case opGreater:
		return !at.Before(p.to)
	case opGreaterEqual:
		return !at.Before(p.from)
	case opLess:
		return at.Before(p.from)
	}
	return at.Before(p.to)
}

func holds(operator op, order int) bool {
	switch operator {
	case opGreater:
		return order > 0
	case opGreaterEqual:
		return order >= 0
	case opLess:
		return order < 0
	}
	return order <= 0
}

// matchGlob tells whether text has the pieces in their order, the first and the last at its ends.
func matchGlob(pieces []string, text string) bool {
	first, last := pieces[0], pieces[len(pieces)-1]
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, piece := range pieces[1 : len(pieces)-1] {
		i := strings.Index(text, piece)
		if i < 0 {
			return false
		}
		text = text[i+len(piece):]
	}
	return true
}
