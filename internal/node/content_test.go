package node_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
)

func parse(t testing.TB, text string) node.Content {
	t.Helper()
	c, err := node.ParseContent([]byte(text), node.DefaultLimits)
	if err != nil {
		t.Fatalf("ParseContent(%.80q): %v", text, err)
	}
	return c
}

func TestContentIsKeptCompactWithItsOrderAndItsNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" { \"b\" : 1 ,\n\t\"a\" : [ 1 , 2 ] } ": `{"b":1,"a":[1,2]}`,
		`{}`:                                     `{}`,
		`[]`:                                     `[]`,
		`[{},[],""]`:                             `[{},[],""]`,
		`12345678901234567890.000100e+3`:         `12345678901234567890.000100e+3`,
		`-0`:                                     `-0`,
		`"p\u00e2t\u00e9 \ud83d\ude00 \/ \u003c"`: `"pâté 😀 / <"`,
		`"\u0001\u001f\n\t\"\\"`:                  `"\u0001\u001f\n\t\"\\"`,
		`null`:                                    ``,
		`true`:                                    `true`,
		`{"":{"":""}}`:                            `{"":{"":""}}`,
	} {
		if got := parse(t, text); got.Text() != want {
			t.Errorf("%s is kept as %s", text, got.Text())
		}
	}
}

// issue: JSON of 100 MiB or 100,000 levels, invalid UTF-8
func TestBadContentIsRefusedWithItsReasonAndPlace(t *testing.T) {
	t.Parallel()
	many := func(key func(i int) string, n int) string {
		var b strings.Builder
		b.WriteString("{")
		for i := range n {
			fmt.Fprintf(&b, "%q:0,", key(i))
		}
		return b.String() + `"k0":1}`
	}
	for _, c := range []struct {
		text   string
		kind   node.ContentKind
		offset int64
	}{
		{``, node.ContentSyntax, 0},
		{`  `, node.ContentSyntax, 2},
		{`{"a":1} x`, node.ContentSyntax, 8},
		{`{"a":1}{}`, node.ContentSyntax, 7},
		{`[1,]`, node.ContentSyntax, 3},
		{`{"a":1,}`, node.ContentSyntax, 7},
		{`[1 2]`, node.ContentSyntax, 3},
		{`[,1]`, node.ContentSyntax, 1},
		{`{"a" 1}`, node.ContentSyntax, 5},
		{`{a:1}`, node.ContentSyntax, 1},
		{`[1}`, node.ContentSyntax, 2},
		{`[1`, node.ContentSyntax, 2},
		{`"abc`, node.ContentSyntax, 4},
		{`"abc\`, node.ContentSyntax, 4},
		{`"\x"`, node.ContentSyntax, 1},
		{`"\u12g4"`, node.ContentSyntax, 1},
		{`01`, node.ContentSyntax, 1},
		{`1.`, node.ContentSyntax, 2},
		{`.5`, node.ContentSyntax, 0},
		{`+1`, node.ContentSyntax, 0},
		{`1e`, node.ContentSyntax, 2},
		{`-`, node.ContentSyntax, 1},
		{`NaN`, node.ContentSyntax, 0},
		{`nul`, node.ContentSyntax, 0},
		{"\ufeff{}", node.ContentSyntax, 0},
		{"\"a\xffb\"", node.ContentText, 2},
		{"\xff", node.ContentText, 0},
		{"\"a\nb\"", node.ContentText, 2},
		{`"\u0000"`, node.ContentText, 1},
		{`"\ud800"`, node.ContentText, 1},
		{`"\ud800\u0041"`, node.ContentText, 1},
		{`"\udc00\ud800"`, node.ContentText, 1},
		{`{"a":1,"b":2,"a":3}`, node.ContentDuplicate, 13},
		{`{"\u0061":1,"a":3}`, node.ContentDuplicate, 12},
		{`[{"x":{"a":1},"y":{"a":1},"x":0}]`, node.ContentDuplicate, 26},
		{many(func(i int) string { return fmt.Sprint("k", i) }, 20_000), node.ContentDuplicate, 208890 + 1},
		{`1e10000`, node.ContentNumber, 0},
		{`[1e-99999999999999999999]`, node.ContentNumber, 1},
		{strings.Repeat("9", 5000), node.ContentNumber, 0},
		{strings.Repeat("[", 201), node.ContentDepth, 200},
		{strings.Repeat(`{"a":`, 100_000), node.ContentDepth, 1000},
		{`"` + strings.Repeat("x", 1<<20) + `"`, node.ContentSize, 0},
		{strings.Repeat(" ", 100<<20), node.ContentSize, 0},
		{strings.Repeat(" ", 4<<20-2) + "{}", 0, 0},
		{strings.Repeat("[", 200) + strings.Repeat("]", 200), 0, 0},
		{"[" + strings.Repeat("1,", 1<<19) + "1]", node.ContentSize, 0},
	} {
		_, err := node.ParseContent([]byte(c.text), node.DefaultLimits)
		var refused *node.ContentError
		switch {
		case c.kind == 0:
			if err != nil {
				t.Errorf("%.40q: %v", c.text, err)
			}
		case !errors.As(err, &refused) || refused.Kind != c.kind || refused.Offset != c.offset:
			t.Errorf("%.40q: %v; want kind %d at %d", c.text, err, c.kind, c.offset)
		}
	}
}

// data §1.1: content compares as JSON structure with member order irrelevant
func TestContentsAreEqualAsJSONValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[1,2]}`, `{"b":[1,2],"a":1}`, true},
		{`{"a":{"x":1,"y":2}}`, `{"a":{"y":2,"x":1}}`, true},
		{`[1,2]`, `[2,1]`, false},
		{`[1,2]`, `[1,2,3]`, false},
		{`{"a":1}`, `{"a":1,"b":null}`, false},
		{`{"a":1,"b":2}`, `{"a":1,"c":2}`, false},
		{`1.50`, `1.50`, true}, {`1`, `-1`, false},
		{`9007199254740993`, `9007199254740992`, false},
		{`1.0000000000000000000000001`, `1`, false},
		{`"1"`, `1`, false}, {`true`, `"true"`, false}, {`null`, `null`, true}, {`null`, `false`, false}, {`{}`, `[]`, false},
	} {
		if got := node.Equal(parse(t, c.a), parse(t, c.b)); got != c.want {
			t.Errorf("%s equals %s: %v", c.a, c.b, got)
		}
		if got := node.Equal(parse(t, c.b), parse(t, c.a)); got != c.want {
			t.Errorf("%s equals %s: %v", c.b, c.a, got)
		}
	}
	if !node.Equal(node.RawContent("{ \"a\" : [ 1, \"\\u0061\" ] }"), parse(t, `{"a":[1,"a"]}`)) {
		t.Error("white space and escapes of a store's text matter")
	}
}

// data §1.3.1: serialised equality
func TestANumberThatIsSpelledAnewIsAChange(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{`1.0`, `1`}, {`-0`, `0`}, {`1e2`, `100`}, {`1e2`, `1E2`}, {`1e400`, `1.0e400`}} {
		from, to := parse(t, `{"a":[`+c[0]+`],"b":`+c[0]+`}`), parse(t, `{"b":`+c[1]+`,"a":[`+c[1]+`]}`)
		if node.Equal(from, to) {
			t.Errorf("%s equals %s", c[0], c[1])
		}
		patch, ok := node.Diff(from, to)
		if !ok {
			t.Fatalf("no patch says %s to %s", c[0], c[1])
		}
		if got, err := node.MergePatch(from, patch); err != nil || !node.Equal(got, to) {
			t.Errorf("%s patched to %s is %s (%v)", from, to, got, err)
		}
		if !node.EqualNumbers(c[0], c[1]) {
			t.Errorf("the values of %s and %s differ", c[0], c[1])
		}
	}
}

func TestNumbersAreOrderedExactly(t *testing.T) {
	t.Parallel()
	ordered := []string{"-1e9", "-10", "-9.5", "-1", "-0.1", "-1e-9", "0", "1e-9", "0.09", "0.1", "1", "1.5", "9", "10", "9007199254740992", "9007199254740993", "1e300"}
	for i, a := range ordered {
		for j, b := range ordered {
			if got, want := node.CompareNumbers(a, b), i-j; got != 0 != (want != 0) || got*want < 0 {
				t.Errorf("CompareNumbers(%s, %s) = %d", a, b, got)
			}
		}
	}
}

func FuzzParseContent(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,"\u00e2\n",null,true]}`, `{"a":1,"a":2}`, `[[[`, `"\ud83d\ude00"`, "\"\xff\"", `-0`, `{"":{}}`, ` [ ] `} {
		f.Add([]byte(seed))
	}
	limits := node.Limits{NodeBytes: 4096, Depth: 20}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := node.ParseContent(b, limits)
		if err != nil {
			var refused *node.ContentError
			if !errors.As(err, &refused) {
				t.Fatalf("not a ContentError: %v", err)
			}
			if refused.Kind == node.ContentSyntax && json.Valid(b) {
				t.Fatalf("valid JSON is refused: %q: %v", b, err)
			}
			return
		}
		if !json.Valid(b) {
			t.Fatalf("invalid JSON is accepted: %q", b)
		}
		if got, want := decoded(t, []byte(c.String())), decoded(t, b); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q is kept as %q", b, c.Text())
		}
		again, err := node.ParseContent([]byte(c.String()), limits)
		if err != nil || again != c {
			t.Fatalf("%q is not canonical: %q, %v", c, again, err)
		}
		if !node.Equal(c, node.RawContent(string(b))) {
			t.Fatalf("%q does not equal its own text %q", c, b)
		}
	})
}

func decoded(t testing.TB, b []byte) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func BenchmarkParseContent1500(b *testing.B) {
	text := []byte(`{"$type":"Markdown","markdown":"` + strings.Repeat(`Line with \"quotes\" and pâté.\n`, 40) + `","tags":["a","b","c"],"n":12.5,"nested":{"x":1,"y":[1,2,3]}}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := node.ParseContent(text, node.DefaultLimits); err != nil {
			b.Fatal(err)
		}
	}
}
