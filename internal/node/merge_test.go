package node_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
)

// RFC 7396, appendix A
func TestTheExamplesOfRFC7396Hold(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		got, err := node.MergePatch(parse(t, c[0]), parse(t, c[1]))
		if err != nil || got.String() != c[2] {
			t.Errorf("%s patched with %s is %s, %v; want %s", c[0], c[1], got, err, c[2])
		}
	}
}

func TestAMergePatchKeepsNumbersExactly(t *testing.T) {
	t.Parallel()
	got, err := node.MergePatch(parse(t, `{"big":12345678901234567890.10,"x":1}`), parse(t, `{"x":98765432109876543210}`))
	if want := `{"big":12345678901234567890.10,"x":98765432109876543210}`; err != nil || got.Text() != want {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestADiffIsTheSmallestPatchOfMembers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to, patch string
		ok              bool
	}{
		{`{"a":1,"b":{"c":2,"d":3}}`, `{"b":{"d":4,"c":2},"a":1}`, `{"b":{"d":4}}`, true},
		{`{"a":1,"b":2}`, `{"b":2}`, `{"a":null}`, true},
		{`{"a":1}`, `{"a":{"x":1}}`, `{"a":{"x":1}}`, true},
		{`{"a":[1,null]}`, `{"a":[2,null]}`, `{"a":[2,null]}`, true},
		{`{"a":null,"b":1}`, `{"a":null,"b":2}`, `{"b":2}`, true},
		{`{"a":1}`, `{"a":1.0}`, `{"a":1.0}`, true},
		{`{"a":1}`, `null`, `null`, true},
		{`null`, `{"a":1}`, `{"a":1}`, true},
		{`[1]`, `[1,2]`, `[1,2]`, true},
		{`{}`, `{"a":{}}`, `{"a":{}}`, true},
		{`{"a":1}`, `{"a":null}`, ``, false},
		{`{}`, `{"a":null}`, ``, false},
		{`{}`, `{"a":{"b":{"c":null}}}`, ``, false},
		{`1`, `{"a":null}`, ``, false},
	} {
		patch, ok := node.Diff(parse(t, c.from), parse(t, c.to))
		if ok != c.ok || ok && patch.String() != c.patch {
			t.Errorf("from %s to %s: %s, %v; want %s, %v", c.from, c.to, patch, ok, c.patch, c.ok)
		}
	}
}

func TestLargeObjectsAreMergedAndComparedInLinearTime(t *testing.T) {
	t.Parallel()
	var a, b strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&a, `,"k%d":%d`, i, i)
		fmt.Fprintf(&b, `,"k%d":%d`, 39_999-i, 39_999-i)
	}
	from, to := parse(t, "{"+a.String()[1:]+"}"), parse(t, "{"+b.String()[1:]+`,"z":1}`)
	patch, ok := node.Diff(from, to)
	if !ok || patch.Text() != `{"z":1}` {
		t.Fatalf("the diff is %.80s, %v", patch, ok)
	}
	if got, err := node.MergePatch(from, patch); err != nil || !node.Equal(got, to) {
		t.Fatalf("the patch does not lead to the target: %v", err)
	}
}

func TestTextThatIsNotJSONIsAnErrorAndNotAPanic(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{", "[", `{"a"`, `{"a":`, `{"a":}`, `"`, `"\`, "{,", "[,", "]", `{"a":1`, "1 2", " ", "{]", "[1}", `{"a":1]`} {
		bad := node.RawContent(text)
		if _, err := node.MergePatch(bad, parse(t, `{"a":1}`)); err == nil {
			t.Errorf("%q is merged", text)
		}
		if _, ok := node.Diff(parse(t, `{"a":1}`), bad); ok {
			t.Errorf("%q is diffed", text)
		}
		if node.Equal(bad, parse(t, `{}`)) {
			t.Errorf("%q equals {}", text)
		}
	}
}

func FuzzMergePatch(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":1,"b":{"c":[1,null]}}`, `{"b":{"c":[2],"d":{}},"e":12345678901234567890}`},
		{`{"a":{"b":null}}`, `{"a":null}`}, {`[1]`, `{"a":{"b":{}}}`}, {`{"x":{"y":1}}`, `{"x":2}`}, {`null`, `{}`}, {`{"":"\u0001"}`, `{"":"\""}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, x, y []byte) {
		a, err := node.ParseContent(x, node.DefaultLimits)
		if err != nil {
			return
		}
		b, err := node.ParseContent(y, node.DefaultLimits)
		if err != nil {
			return
		}
		merged, err := node.MergePatch(a, b)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := decoded(t, []byte(merged.String())), merge(decoded(t, x), decoded(t, y)); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s patched with %s is %s; want %v", a, b, merged, want)
		}
		patch, ok := node.Diff(a, b)
		if !ok {
			if !strings.Contains(b.Text(), "null") {
				t.Fatalf("a merge patch could say %s to %s", a, b)
			}
			return
		}
		back, err := node.MergePatch(a, patch)
		if err != nil || !node.Equal(back, b) {
			t.Fatalf("from %s, the patch %s leads to %s and not to %s (%v)", a, patch, back, b, err)
		}
		if node.Equal(a, b) && a.Text() != "" && a.Text()[0] == '{' && patch.Text() != "{}" {
			t.Fatalf("equal objects differ by %s", patch)
		}
	})
}

// merge is RFC 7396, section 2, over decoded values.
func merge(target, patch any) any {
	p, isObject := patch.(map[string]any)
	if !isObject {
		return patch
	}
	out := map[string]any{}
	if t, isObject := target.(map[string]any); isObject {
		for k, v := range t {
			out[k] = v
		}
	}
	for k, v := range p {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = merge(out[k], v)
		}
	}
	return out
}

func BenchmarkNodeDiff(b *testing.B) {
	n := sample(b)
	m := n
	m.Name, m.Version = "renamed", 8
	for b.Loop() {
		if _, ok := node.NodeDiff(n, m); !ok {
			b.Fatal("no patch")
		}
	}
}

var _ json.Marshaler = node.Node{}
