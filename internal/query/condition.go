package query

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hubmesh/hubmesh/internal/node"
)

// op compares a field with a value.
type op uint8

const (
	opEqual op = iota
	opGreater
	opLess
	opGreaterEqual
	opLessEqual
)

// inverse of a comparison, for a negated one (data.md §5.1).
var inverse = map[op]op{opGreater: opLessEqual, opLess: opGreaterEqual, opGreaterEqual: opLess, opLessEqual: opGreater}

// condition compares one field with one or several values.
type condition struct {
	field   field
	op      op
	values  []pattern
	negated bool // of opEqual only
}

// condition reads the rest of "field op value".
func (p *parser) condition(name string, negated bool) (expr, error) {
	at := p.at
	values, operator, err := p.values()
	if err != nil {
		return nil, err
	}
	c, err := newCondition(name, operator, values, negated)
	if err != nil {
		return nil, p.fail(at, "%v", err)
	}
	return c, nil
}

func newCondition(name string, operator op, values []pattern, negated bool) (expr, error) {
	c := condition{field: fieldNamed(name), op: operator, values: values, negated: negated}
	if negated && operator != opEqual {
		c.op, c.negated = inverse[operator], false
	}
	for i, v := range values {
		if v.glob != nil || v.text == "" && operator == opEqual {
			continue
		}
		switch c.field.kind {
		case kindExact:
			values[i].text = strings.Trim(v.text, "/")
		case kindNumber:
			if !v.number {
				return nil, fmt.Errorf("'%s' is a number", c.field.name)
			}
		case kindTime:
			if v.from.IsZero() {
				return nil, fmt.Errorf("'%s' is a time: 2026-06-26 or 2026-06-26T10:00:00Z", c.field.name)
			}
		case kindState:
			state, ok := node.ParseState(v.text)
			if !ok {
				return nil, errors.New("'state' is one of New, Transient, Active, Rejected, Deleted")
			}
			values[i] = newPattern(state.String(), true)
		}
	}
	return c, nil
}

// values reads an operator and what stands behind it.
func (p *parser) values() ([]pattern, op, error) {
	operator := opEqual
	for _, candidate := range [...]struct {
		text string
		op   op
	}{{">=", opGreaterEqual}, {"<=", opLessEqual}, {">", opGreater}, {"<", opLess}} {
		if strings.HasPrefix(p.rest(), candidate.text) {
			operator = candidate.op
			p.at += len(candidate.text)
			break
		}
	}
	start := p.at
	var values []pattern
	var err error
	if strings.HasPrefix(p.rest(), "(") {
		values, err = p.listed()
	} else {
		values, err = p.alternatives()
	}
	switch {
	case err != nil:
		return nil, operator, err
	case operator != opEqual && (len(values) > 1 || values[0].text == "" || values[0].glob != nil):
		return nil, operator, p.fail(start, "a comparison needs one value without '*'")
	}
	if p.terms += len(values) - 1; p.terms > maxTerms {
		return nil, operator, p.fail(start, "more than %d terms", maxTerms)
	}
	return values, operator, nil
}

// alternatives reads v|v|v, or nothing, which is the empty value.
func (p *parser) alternatives() ([]pattern, error) {
	var values []pattern
	for {
		at := p.at
		v, err := p.one()
		if err != nil {
			return nil, err
		}
		more := p.at < len(p.text) && p.text[p.at] == '|'
		if (more || len(values) > 0) && p.at == at {
			return nil, p.fail(at, "a value belongs on both sides of '|'")
		}
		values = append(values, v)
		if !more {
			return values, nil
		}
		p.at++
	}
}

// listed reads (v OR v OR v).
func (p *parser) listed() ([]pattern, error) {
	start := p.at
	p.at++
	var values []pattern
	for {
		p.space()
		at := p.at
		v, err := p.one()
		if err != nil {
			return nil, err
		}
		if p.at == at {
			return nil, p.fail(at, "a value belongs here")
		}
		values = append(values, v)
		p.space()
		switch {
		case p.at >= len(p.text):
			return nil, p.fail(start, "a '(' without its ')'")
		case p.text[p.at] == ')':
			p.at++
			return values, nil
		case p.text[p.at] == '|':
			p.at++
		case !p.keyword("OR"):
			return nil, p.fail(p.at, "'OR' or ')' belongs here")
		}
	}
}

// one reads one value; a quoted one is taken literally.
func (p *parser) one() (pattern, error) {
	if strings.HasPrefix(p.rest(), `"`) {
		text, err := p.quoted()
		return newPattern(text, true), err
	}
	return newPattern(p.word(true), false), nil
}

func (c condition) match(n *node.Node, w *work) bool {
	found, matched := false, false
	w.add(0)
	if c.field.kind == kindContent {
		w.add(lookupCost * n.Content.Len())
	}
	c.field.each(n, func(s scalar) bool {
		found = true
		w.add(len(c.values) * len(s.text))
		matched = c.test(s)
		return !matched
	})
	if !found {
		matched = c.test(scalar{})
	}
	return matched != c.negated
}

// test compares one value of the field.
func (c condition) test(s scalar) bool {
	if c.op != opEqual {
		return c.values[0].compare(s, c.op)
	}
	for i := range c.values {
		if c.values[i].equals(s, c.field.kind == kindExact) {
			return true
		}
	}
	return false
}
