package nodehub

import (
	"cmp"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// leaf asks what is about the value alone.
func (k *checker) leaf(s *jsonschema.Schema, p *plan, v any) bool {
	if s.Ref != nil && s.DraftVersion < 2019 {
		return k.about(p, v) && k.format(s, v) // as the drafts are read: these come before $ref
	}
	if !k.about(p, v) || !k.format(s, v) {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		return fitsCount(len(v), s.MinProperties, s.MaxProperties) && k.hasAll(v, s.Required)
	case []any:
		return fitsCount(len(v), s.MinItems, s.MaxItems) && (!s.UniqueItems || k.repeated(v) == nil)
	case string:
		return k.textLength(s, v) && (s.Pattern == nil || k.matches(s.Pattern, v))
	case json.Number:
		return k.brokenLimit(s, p, v) == ""
	}
	return true
}

// about asks the type and the exact values.
func (k *checker) about(p *plan, v any) bool {
	if p.types != nil && !k.hasType(p.types, v) {
		return false
	}
	if p.constant == nil && p.enum == nil {
		return true
	}
	if text, ok := v.(string); ok {
		k.spend(len(text) / lettersLooked)
	} else {
		k.walk(v)
	}
	return p.constant.has(v) && p.enum.has(v)
}

func (k *checker) hasType(types []string, v any) bool {
	own := typeOf(v)
	for _, name := range types {
		if name == own {
			return true
		}
		if n, ok := v.(json.Number); ok && name == "integer" {
			k.spend(len(n) / 64)
			if isInteger(string(n)) {
				return true
			}
		}
	}
	return false
}

// typeOf is the type of a value, in the words of JSON Schema.
func typeOf(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case json.Number:
		return "number"
	case bool:
		return "boolean"
	}
	return "null"
}

// isInteger tells whether a number has no fraction, whatever its size: no digit of its value stands
// behind the point.
func isInteger(number string) bool {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	shift := 0
	if exponent != "" {
		shift, _ = strconv.Atoi(exponent) // [node.ParseContent] has bounded it
	}
	fraction = strings.TrimRight(fraction, "0")
	if shift >= 0 || fraction != "" {
		return len(fraction) <= shift
	}
	digits := strings.TrimLeft(whole, "0")
	return digits == "" || len(digits)-len(strings.TrimRight(digits, "0")) >= -shift
}

func (k *checker) format(s *jsonschema.Schema, v any) bool {
	if s.Format == nil {
		return true
	}
	if text, ok := v.(string); ok {
		k.spend(4 + len(text)/16)
		if s.Format.Name == "regex" { // the library would compile it
			k.spend(parsePrice * min(len(text), maxPatternSize))
			_, _, err := parsePattern(text)
			return err == nil
		}
	}
	return s.Format.Validate(v) == nil
}

func fitsCount(n int, least, most *int) bool {
	return (least == nil || n >= *least) && (most == nil || n <= *most)
}

func (k *checker) hasAll(obj map[string]any, names []string) bool {
	for _, name := range names {
		k.spend(1)
		if _, ok := obj[name]; !ok {
			return false
		}
	}
	return true
}

// repeated returns the places of two items that are equal, or nil.
func (k *checker) repeated(arr []any) []int {
	first := make(map[string]int, len(arr))
	for i, item := range arr {
		k.spend(3)
		k.walk(item)
		text := string(canonical(nil, item))
		if j, ok := first[text]; ok {
			return []int{j, i}
		}
		first[text] = i
	}
	return nil
}

func (k *checker) textLength(s *jsonschema.Schema, text string) bool {
	if s.MinLength == nil && s.MaxLength == nil {
		return true
	}
	k.spend(len(text) / 256)
	return fitsCount(utf8.RuneCountInString(text), s.MinLength, s.MaxLength)
}

// The price of a regular expression.
const (
	shortMatch   = 16  // steps that the library's machine is trusted with: an estimate from above
	lettersAStep = 8   // moves of the automaton that are one step
	parsePrice   = 128 // steps to read a byte of one: it may name all letters of all scripts
)

// matches asks a regular expression. What may cost much is done by a machine that counts.
func (k *checker) matches(re jsonschema.Regexp, text string) bool {
	p, ok := re.(pattern)
	if !ok {
		k.spend(1 + len(text)*maxPatternSize/64)
		return re.MatchString(text)
	}
	if dearest := 1 + (len(text)+1)*p.size/64; dearest <= shortMatch {
		k.spend(dearest)
		return p.MatchString(text)
	}
	rest := 0
	return k.matcher.match(p.program, text, func(moves int) {
		rest += moves
		k.spend(rest / lettersAStep)
		rest %= lettersAStep
	})
}

// limit is a limit of a number.
type limit struct {
	at    *big.Rat
	words string
	holds func(order int) bool // order is that of the number and the limit
	short bool                 // the limit is an integer that fits into 64 bits
	whole int64                // it, where it is short
}

// limitsOf are the limits of a part.
func limitsOf(s *jsonschema.Schema) []limit {
	var out []limit
	for _, l := range [...]limit{
		{at: s.Minimum, words: ">=", holds: func(order int) bool { return order >= 0 }},
		{at: s.Maximum, words: "<=", holds: func(order int) bool { return order <= 0 }},
		{at: s.ExclusiveMinimum, words: ">", holds: func(order int) bool { return order > 0 }},
		{at: s.ExclusiveMaximum, words: "<", holds: func(order int) bool { return order < 0 }},
	} {
		if l.at != nil {
			if l.short = l.at.IsInt() && l.at.Num().IsInt64(); l.short {
				l.whole = l.at.Num().Int64()
			}
			out = append(out, l)
		}
	}
	return out
}

// brokenLimit is the limit that a number breaks, or "". Numbers are compared exactly, whatever their size.
func (k *checker) brokenLimit(s *jsonschema.Schema, p *plan, n json.Number) string {
	whole, err := strconv.ParseInt(string(n), 10, 64)
	for _, l := range p.limits {
		k.spend(1)
		var order int
		if l.short && err == nil {
			order = cmp.Compare(whole, l.whole)
		} else {
			value := k.rational(n)
			k.spend((l.at.Num().BitLen() + l.at.Denom().BitLen()) / 32)
			order = value.Cmp(l.at)
		}
		if !l.holds(order) {
			return "must be " + l.words + " " + numberText(l.at) + " but is " + shorten(string(n))
		}
	}
	if s.MultipleOf != nil {
		value := k.rational(n)
		// The quotient has the digits of both, and is made by dividing.
		size := 1 + (value.Num().BitLen()+value.Denom().BitLen()+s.MultipleOf.Num().BitLen()+s.MultipleOf.Denom().BitLen())/32
		k.spend(8 + size + size*size/256)
		if !new(big.Rat).Quo(value, s.MultipleOf).IsInt() {
			return "must be a multiple of " + numberText(s.MultipleOf) + " but is " + shorten(string(n))
		}
	}
	return ""
}

// rational is a number as it is compared; the last one is kept.
func (k *checker) rational(n json.Number) *big.Rat {
	if k.number.text == n && k.number.value != nil {
		return k.number.value
	}
	k.spend(10 + 2*digits(n)) // before it is read: a short text may be a long number
	value, ok := new(big.Rat).SetString(string(n))
	if !ok {
		value = new(big.Rat) // the parser of the content has let it through
	}
	k.number.text, k.number.value = n, value
	return value
}

// numberText writes a limit of a schema: as it is where it is short, else with some digits and an exponent.
func numberText(r *big.Rat) string {
	if r.Num().BitLen()+r.Denom().BitLen() < 128 {
		if r.IsInt() {
			return r.Num().String()
		}
		if f, exact := r.Float64(); exact || r.Denom().BitLen() < 64 {
			return strconv.FormatFloat(f, 'g', -1, 64)
		}
	}
	return new(big.Float).SetPrec(64).SetRat(r).Text('g', 17)
}

// digits is what a number costs to be read: a long one, or one with a large exponent, has many digits.
func digits(n json.Number) int {
	size := len(n)
	if i := strings.IndexAny(string(n), "eE"); i >= 0 {
		e, err := strconv.Atoi(string(n[i+1:]))
		if err != nil {
			return 8 * maxWork
		}
		size += max(e, -e)
	}
	return size / 8
}

// walk counts a walk over a value.
func (k *checker) walk(v any) {
	k.spend(1)
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			k.spend(1 + len(name)/64)
			k.walk(member)
		}
	case []any:
		for _, item := range v {
			k.walk(item)
		}
	case string:
		k.spend(len(v) / 64)
	case json.Number:
		k.spend(len(v) / 64)
	}
}

// sorted are the names of an object in order, so that the same check takes the same steps everywhere.
func (k *checker) sorted(obj map[string]any) []string {
	k.spend(len(obj))
	return slices.Sorted(maps.Keys(obj))
}
