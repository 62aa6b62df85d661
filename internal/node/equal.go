package node

import (
	"slices"
	"strconv"
	"strings"
)

// Equal tells whether two contents are the same JSON structure: the order of members, white space and
// escapes do not matter (data.md §1.1). Numbers are kept as they are written, so the spelling of one does
// matter: 1, 1.0 and 1e0 differ, and so do 0 and -0. [EqualNumbers] compares by value.
func Equal(a, b Content) bool {
	if a.text == b.text {
		return true
	}
	va, err := parseTree(a)
	if err != nil {
		return false
	}
	vb, err := parseTree(b)
	return err == nil && equalValues(&va, &vb)
}

func equalValues(a, b *value) bool {
	if a.raw == b.raw {
		return true
	}
	switch {
	case a.isObject():
		if !b.isObject() || len(a.keys) != len(b.keys) {
			return false
		}
		find := b.index()
		for i, key := range a.keys {
			other := find(key)
			if other == nil || !equalValues(&a.parts[i], other) {
				return false
			}
		}
		return true
	case a.isArray():
		return b.isArray() && slices.EqualFunc(a.parts, b.parts, func(x, y value) bool { return equalValues(&x, &y) })
	case a.raw[0] == '"':
		return b.raw[0] == '"' && unquote(a.raw) == unquote(b.raw)
	}
	return false // numbers, true, false and null: the same text was equal above
}

// EqualNumbers tells whether two JSON numbers have the same value, exactly.
func EqualNumbers(a, b string) bool { return CompareNumbers(a, b) == 0 }

// CompareNumbers orders two JSON numbers by value, exactly: neither is made a float.
func CompareNumbers(a, b string) int {
	x, y := parseDecimal(a), parseDecimal(b)
	if x.sign != y.sign {
		return x.sign - y.sign
	}
	if x.point != y.point {
		if x.point > y.point {
			return x.sign
		}
		return -x.sign
	}
	return x.sign * strings.Compare(x.digits, y.digits)
}

// decimal is sign × 0.digits × 10^point, where digits neither begin nor end with 0.
type decimal struct {
	sign   int
	digits string
	point  int
}

func parseDecimal(number string) decimal {
	d := decimal{sign: 1}
	if rest, minus := strings.CutPrefix(number, "-"); minus {
		d.sign, number = -1, rest
	}
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		d.point, _ = strconv.Atoi(number[i+1:]) // ParseContent has bounded it
		number = number[:i]
	}
	whole, fraction, _ := strings.Cut(number, ".")
	d.point += len(whole)
	digits := whole + fraction
	trimmed := strings.TrimLeft(digits, "0")
	d.point -= len(digits) - len(trimmed)
	if d.digits = strings.TrimRight(trimmed, "0"); d.digits == "" {
		return decimal{}
	}
	return d
}

// CanonicalNumber writes a JSON number so that numbers of the same value have the same text, whose length
// is about that of the number.
func CanonicalNumber(number string) string {
	d := parseDecimal(number)
	switch d.sign {
	case 0:
		return "0"
	case -1:
		return "-." + d.digits + "e" + strconv.Itoa(d.point)
	}
	return "." + d.digits + "e" + strconv.Itoa(d.point)
}
