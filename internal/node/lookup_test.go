package node_test

import (
	"slices"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
)

func TestLookupFollowsMembersAndStepsIntoArrays(t *testing.T) {
	t.Parallel()
	const text = `{ "a" : { "b" : 1.50 , "c" : null }, "roles": [ {"role":"Admin"}, {"role":"Viewer"}, 7 ], "tags":["x",["y"]], "e":[], "t" : true }`
	for _, c := range []node.Content{parse(t, text), node.RawContent(text)} {
		for _, want := range []struct {
			path, texts []string
		}{
			{[]string{"a", "b"}, []string{"1.50"}},
			{[]string{"a", "c"}, []string{""}},
			{[]string{"roles", "role"}, []string{"Admin", "Viewer"}},
			{[]string{"tags"}, []string{"x", "y"}},
			{[]string{"e"}, nil},
			{[]string{"t"}, []string{"true"}},
			{[]string{"t", "x"}, nil},
			{[]string{"missing"}, nil},
		} {
			var got []string
			for v := range c.Lookup(want.path) {
				got = append(got, v.Text())
			}
			if !slices.Equal(got, want.texts) {
				t.Errorf("%q: %q; want %q", want.path, got, want.texts)
			}
		}
	}
}

// data §5.1: strings to depth 3
func TestTextsAreFoundDownToADepth(t *testing.T) {
	t.Parallel()
	c := parse(t, `{"a":"one","n":5,"b":{"c":"two","d":["three",{"e":"four"}]}}`)
	for depth, want := range [][]string{nil, {"one"}, {"one", "two"}, {"one", "two", "three"}, {"one", "two", "three", "four"}} {
		var got []string
		for v := range c.Texts(depth) {
			got = append(got, v.Text())
		}
		if !slices.Equal(got, want) {
			t.Errorf("depth %d: %q", depth, got)
		}
	}
	for v := range parse(t, `"alone"`).Texts(0) {
		if v.Text() != "alone" {
			t.Error(v.Text())
		}
	}
}

func FuzzLookup(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"a":"x"}]}`, `[`, `{"a"`, `{"a":}`, `{]`, ` { "a" : 1 }`, `]`, `,`, `{"a":"`, `[}`} {
		f.Add(seed)
	}
	f.Fuzz(func(_ *testing.T, text string) { // whatever a store holds, looking ends and does not panic
		c := node.RawContent(text)
		for v := range c.Lookup([]string{"a"}) {
			_ = v.Text()
		}
		for v := range c.Texts(3) {
			_ = v.Text()
		}
	})
}
