package query

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hubmesh/hubmesh/internal/node"
)

// sortKey is one field of sort:.
type sortKey struct {
	field    field
	function string // "", length, lower, upper
	desc     bool
}

func parseSortKey(text string) (sortKey, bool) {
	var k sortKey
	name, found := strings.CutSuffix(text, "-desc")
	k.desc = found
	if !found {
		name, _ = strings.CutSuffix(text, "-asc")
	}
	if function, rest, found := strings.Cut(name, "("); found {
		inner, closed := strings.CutSuffix(rest, ")")
		k.function = strings.ToLower(function)
		if name = inner; !closed || !slices.Contains([]string{"length", "lower", "upper"}, k.function) {
			return k, false
		}
	}
	for i := range len(name) {
		if !isFieldByte(name[i]) {
			return k, false
		}
	}
	k.field = fieldNamed(name)
	return k, name != ""
}

func (k sortKey) needsContent() bool { return k.field.kind == kindContent }

// value returns what the node is sorted by.
func (k sortKey) value(n *node.Node) scalar {
	var first scalar
	k.field.each(n, func(s scalar) bool {
		first = s
		return false
	})
	if first.kind == isAbsent {
		return first
	}
	switch k.function {
	case "length":
		return scalar{kind: isNumber, text: strconv.Itoa(utf8.RuneCountInString(first.text))}
	case "lower":
		return scalar{kind: isText, text: strings.ToLower(first.text)}
	case "upper":
		return scalar{kind: isText, text: strings.ToUpper(first.text)}
	}
	return first
}

// compare orders two values of the key: numbers, then texts, then the rest; what is absent
// comes last in either direction.
func (k sortKey) compare(a, b scalar) int {
	if a.kind == isAbsent || b.kind == isAbsent {
		return cmp.Compare(boolInt(a.kind == isAbsent), boolInt(b.kind == isAbsent))
	}
	order := cmp.Compare(a.kind, b.kind)
	if order == 0 {
		switch a.kind {
		case isNumber:
			order = node.CompareNumbers(a.text, b.text)
		case isTime:
			order = a.at.Compare(b.at)
		default:
			if k.field.kind == kindExact {
				order = node.Path(a.text).Compare(node.Path(b.text))
				break
			}
			order = cmp.Or(strings.Compare(node.Fold(a.text), node.Fold(b.text)), strings.Compare(a.text, b.text))
		}
	}
	if k.desc {
		return -order
	}
	return order
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Sort orders nodes as the query says, in place; without sort:, and where all keys are equal, by path.
func (q Query) Sort(nodes []node.Node) {
	if len(q.sort) == 0 {
		slices.SortFunc(nodes, func(a, b node.Node) int { return a.Path.Compare(b.Path) })
		return
	}
	type row struct {
		keys []scalar
		node node.Node
	}
	rows := make([]row, len(nodes))
	for i := range nodes {
		rows[i] = row{make([]scalar, len(q.sort)), nodes[i]}
		for j, key := range q.sort {
			rows[i].keys[j] = key.value(&nodes[i])
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		for j, key := range q.sort {
			if order := key.compare(a.keys[j], b.keys[j]); order != 0 {
				return order
			}
		}
		return a.node.Path.Compare(b.node.Path)
	})
	for i := range rows {
		nodes[i] = rows[i].node
	}
}
