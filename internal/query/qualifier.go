package query

import (
	"slices"
	"strconv"
	"strings"

	"github.com/hubmesh/hubmesh/internal/node"
)

// maxLimit bounds limit:n.
const maxLimit = 100_000

const wholeQuery = "'%s:' counts for the whole query, so it cannot stand in one side of an OR; put the alternatives in parentheses, or use 'a|b'"

// fieldTerm reads what follows "field:". Reserved fields at the top level qualify the whole query and
// are no condition: they return nil.
func (p *parser) fieldTerm(name string, start, depth int, negated bool) (expr, error) {
	switch name {
	case "path", "namespace":
		if depth == 0 && !negated {
			if err := p.qualify(name, start, depth, negated); err != nil {
				return nil, err
			}
			return p.baseTerm(name)
		}
	case "scope", "sort", "limit", "select", "source", "context":
		if err := p.qualify(name, start, depth, negated); err != nil {
			return nil, err
		}
		return nil, p.setting(name, start)
	case "is":
		at := p.at
		if word := p.word(true); !strings.EqualFold(word, "main") {
			return nil, p.fail(at, "'is:' knows 'main' only")
		}
		return isMain{negated}, nil
	}
	return p.condition(name, negated)
}

// qualify notes a reserved field and refuses it where it would be ambiguous.
func (p *parser) qualify(name string, start, depth int, negated bool) error {
	switch {
	case negated:
		return p.fail(start, "'%s:' cannot be negated", name)
	case depth > 0:
		return p.fail(start, "'%s:' counts for the whole query, so it cannot stand in parentheses", name)
	case p.inOr:
		return p.fail(start, wholeQuery, name)
	case p.qualifiers[name] && name != "sort":
		return p.fail(start, "'%s:' is there twice; alternatives are written 'a|b'", name)
	case p.query.based && (name == "path" || name == "namespace"):
		return p.fail(start, "'path:' and 'namespace:' are given both")
	}
	if p.qualifiers == nil {
		p.qualifiers = map[string]bool{}
	}
	p.qualifiers[name] = true
	if p.firstQualifier == "" {
		p.firstQualifier = name
	}
	return nil
}

// baseTerm reads path: or namespace: as what the scope is about. With a wildcard it is a condition.
func (p *parser) baseTerm(name string) (expr, error) {
	at := p.at
	values, operator, err := p.values()
	if err != nil {
		return nil, err
	}
	if operator != opEqual {
		return nil, p.fail(at, "'%s:' has no order", name)
	}
	p.query.based = true
	if slices.ContainsFunc(values, func(v pattern) bool { return v.glob != nil }) {
		p.query.bases = []node.Path{""}
		p.wildcardBase = true
		return newCondition(name, operator, values, false)
	}
	for _, v := range values {
		var base node.Path
		if strings.Trim(v.text, "/") != "" {
			if base, err = node.ParsePath(v.text); err != nil {
				return nil, p.fail(at, "%v", err)
			}
		}
		p.query.bases = append(p.query.bases, base)
	}
	p.namespace = name == "namespace"
	return nil, nil
}

// setting reads the value of a reserved field that is no path.
func (p *parser) setting(name string, start int) error {
	at := p.at
	word := p.word(false)
	if word == "" && p.at < len(p.text) && p.text[p.at] == '"' {
		text, err := p.quoted()
		if err != nil {
			return err
		}
		word = text
	}
	if word == "" {
		return p.fail(at, "'%s:' needs a value", name)
	}
	q := &p.query
	switch name {
	case "scope":
		q.scope, q.scoped = parseScope(word), true
	case "limit":
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > maxLimit {
			return p.fail(at, "'limit:' is a number from 1 to %d", maxLimit)
		}
		q.limit = n
	case "select":
		for field := range strings.SplitSeq(word, ",") {
			if field = strings.TrimSpace(field); field != "" {
				q.selects = append(q.selects, field)
			}
		}
	case "context":
		q.context = word
	case "source":
		return &UnsupportedError{Offset: start, Feature: "'source:' queries"}
	case "sort":
		for key := range strings.SplitSeq(word, ",") {
			parsed, ok := parseSortKey(key)
			if !ok {
				return p.fail(at, "'sort:' is 'field', 'length(field)', 'lower(field)' or 'upper(field)', with '-asc' or '-desc'")
			}
			q.sort = append(q.sort, parsed)
		}
		const most = 8
		if len(q.sort) > most {
			return p.fail(at, "'sort:' has more than %d fields", most)
		}
	}
	return nil
}

// settleScope applies the defaults of data.md §5.1.
func (p *parser) settleScope() {
	q := &p.query
	switch {
	case p.wildcardBase:
		q.scope = ScopeSubtree
	case p.namespace && !q.scoped:
		q.scope = ScopeChildren
	case p.namespace && q.scope == ScopeSubtree:
		q.scope = ScopeDescendants
	case q.based: // exact unless it says otherwise
	default:
		q.bases = []node.Path{""}
		if !q.scoped && q.where != nil {
			q.scope = ScopeSubtree
		} else if !q.scoped {
			q.scope = ScopeChildren
		}
	}
}
