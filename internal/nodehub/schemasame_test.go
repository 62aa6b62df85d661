package nodehub

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hubmesh/hubmesh/internal/node"
)

// sameVerdict compares the verdict of a check with that of the library, which is another evaluation of the
// same compiled schema.
func sameVerdict(t *testing.T, schema, content string) {
	t.Helper()
	c, err := compileSchema(node.Node{Path: "x/T", Content: node.RawContent(`{"schema":` + schema + `}`)})
	if err != nil || c == nil {
		return
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(content))
	if err != nil {
		return
	}
	k := newChecker(context.Background(), c, len(content))
	k.limit = 3_000 // what the library does in reasonable time
	fits, err := k.run(doc)
	if err != nil {
		return
	}
	want := c.schema.Validate(doc)
	if fits != (want == nil) {
		t.Errorf("%s of %s fits: %v; the library says %v", content, schema, fits, want)
	}
	if fits {
		return
	}
	if why := k.why(doc); why == "it is too large to say where" {
		t.Errorf("%s of %s: no reason is given for %v", content, schema, want)
	}
}

var sameSchemas = []string{
	`true`, `false`, `{}`, `{"type":"integer"}`, `{"type":["string","null"]}`, `{"const":{"a":[1,2.0]}}`, `{"enum":[1,"a",null,true,{"a":1},[1]]}`,
	`{"minimum":1,"maximum":3}`, `{"exclusiveMinimum":1,"exclusiveMaximum":3}`, `{"multipleOf":0.5}`, `{"minLength":1,"maxLength":2}`, `{"pattern":"^a+b?$"}`, `{"pattern":"(?i)\\bB\\b"}`,
	`{"minItems":1,"maxItems":2}`, `{"uniqueItems":true}`, `{"prefixItems":[{"type":"number"},true],"items":{"type":"string"}}`, `{"prefixItems":[true],"items":false}`,
	`{"contains":{"const":1}}`, `{"contains":{"const":1},"minContains":2,"maxContains":3}`, `{"contains":{"const":1},"minContains":0}`,
	`{"minProperties":1,"maxProperties":2}`, `{"required":["a","b"]}`, `{"properties":{"a":{"type":"number"}},"additionalProperties":false}`,
	`{"properties":{"a":true},"patternProperties":{"^b":{"type":"string"}},"additionalProperties":{"type":"null"}}`, `{"propertyNames":{"maxLength":1}}`,
	`{"dependentRequired":{"a":["b"]},"dependentSchemas":{"b":{"required":["c"]}}}`, `{"not":{"type":"string"}}`, `{"allOf":[{"minimum":1},{"maximum":2}]}`,
	`{"anyOf":[{"type":"string"},{"minimum":2}]}`, `{"oneOf":[{"type":"number"},{"minimum":2},{"type":"string"}]}`, `{"if":{"type":"number"},"then":{"minimum":2},"else":{"type":"string"}}`,
	`{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"$defs":{"n":{"properties":{"a":{"$ref":"#/$defs/n"}},"additionalProperties":false}},"$ref":"#/$defs/n"}`,
	`{"properties":{"a":true},"unevaluatedProperties":false}`, `{"allOf":[{"properties":{"a":true}}],"properties":{"b":true},"unevaluatedProperties":{"type":"string"}}`,
	`{"anyOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":true},"required":["b"]}],"unevaluatedProperties":false}`,
	`{"oneOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":true},"required":["b"]}],"unevaluatedProperties":false}`,
	`{"if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"properties":{"b":true}},"else":{"patternProperties":{"c":true}},"unevaluatedProperties":false}`,
	`{"allOf":[{"properties":{"a":true},"additionalProperties":true}],"unevaluatedProperties":false}`, `{"allOf":[{"unevaluatedProperties":true}],"unevaluatedProperties":false}`,
	`{"dependentSchemas":{"a":{"properties":{"b":true}}},"properties":{"a":true},"unevaluatedProperties":false}`, `{"not":{"properties":{"a":true},"required":["zz"]},"unevaluatedProperties":false}`,
	`{"prefixItems":[true],"unevaluatedItems":false}`, `{"allOf":[{"prefixItems":[true,true]}],"contains":{"const":1},"unevaluatedItems":{"type":"string"}}`, `{"anyOf":[{"items":{"type":"number"}},{"prefixItems":[true]}],"unevaluatedItems":false}`,
	`{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"a":true}}},"unevaluatedProperties":false}`, `{"$anchor":"top","properties":{"a":{"$ref":"#top"}},"type":"object"}`,
	`{"$id":"https://example.com/strict","$dynamicAnchor":"node","$ref":"tree","unevaluatedProperties":false,"$defs":{"tree":{"$id":"https://example.com/tree","$dynamicAnchor":"node","type":"object","properties":{"b":true,"a":{"$dynamicRef":"#node"}}}}}`,
	`{"$id":"https://example.com/s","$ref":"list","properties":{"a":{"$ref":"#/$defs/item"}},"$defs":{"item":{"$dynamicAnchor":"item","type":"number"},"list":{"$id":"list","items":{"$dynamicRef":"#item"},"$defs":{"item":{"$dynamicAnchor":"item"}}}}}`,
	`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `{"$ref":"http://json-schema.org/draft-07/schema"}`,
	`{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true,"items":[{"type":"number"}],"additionalItems":false,"dependencies":{"a":["b"],"c":{"required":["d"]}}}`,
	`{"$schema":"http://json-schema.org/draft-06/schema#","contains":{"const":1},"propertyNames":{"pattern":"^[ab]$"},"items":[true],"additionalItems":{"type":"string"}}`,
	`{"$schema":"http://json-schema.org/draft-07/schema#","format":"date","if":{"minimum":2},"then":false}`, `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":"string"}},"$ref":"#/definitions/a","minLength":9}`,
	`{"$schema":"http://json-schema.org/draft-07/schema#","additionalItems":{"type":"string"},"properties":{"a":{"format":"email"}}}`,
	`{"$schema":"https://json-schema.org/draft/2019-09/schema","items":[true],"additionalItems":{"type":"number"},"unevaluatedItems":false}`, `{"$schema":"https://json-schema.org/draft/2019-09/schema","items":[true],"contains":{"const":1},"unevaluatedItems":false}`,
	`{"$schema":"https://json-schema.org/draft/2019-09/schema","properties":{"a":{"$recursiveRef":"#"}},"additionalProperties":{"type":"number"}}`,
	`{"$schema":"https://json-schema.org/draft/2019-09/schema","properties":{"a":{"$recursiveRef":"#","unevaluatedProperties":false},"b":true}}`,
	`{"$defs":{"a":{"$dynamicAnchor":"n","properties":{"a":true}}},"properties":{"c":{"$ref":"#/$defs/a"}},"$dynamicRef":"#n","unevaluatedProperties":false}`,
	`{"type":"object","additionalProperties":false}`, `{"required":["a"],"dependentRequired":{"b":["c"]}}`, `{"not":{"type":"object","additionalProperties":false}}`,
	`{"oneOf":[{"type":"object","additionalProperties":false},{"type":"object","required":["b"]}]}`, `{"const":1,"enum":[2,3]}`, `{"const":1,"enum":[1.0,3]}`,
	`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"]}}`, `{"$schema":"http://json-schema.org/draft-04/schema#","additionalProperties":false}`,
	`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":true},"$ref":"#/definitions/a","const":2,"enum":[1],"contains":false}`,
}

var sameContents = []string{
	`null`, `true`, `0`, `1`, `1.0`, `2`, `2.5`, `3`, `-1e3`, `1e400`, `""`, `"a"`, `"ab"`, `"aab b"`, `"2020-01-01"`, `"x@y.z"`, `"ééé"`,
	`[]`, `[1]`, `[1,1.0]`, `[1,"a"]`, `["a",1,1]`, `[1,1,1,1]`, `[{"a":1},{"a":1e0}]`, `[[1],[2]]`, `{}`, `{"a":1}`, `{"a":1.0,"b":2}`, `{"b":"x"}`, `{"b":1,"c":2}`, `{"a":1,"b":2,"c":3}`, `{"c":"x","d":1}`, `{"cc":null}`,
	`{"a":{}}`, `{"a":{"a":{"b":1}}}`, `{"a":{"a":{"c":1}}}`, `{"a":[1,2]}`, `{"type":"object"}`, `{"type":7}`, `{"properties":{"a":{"minimum":"x"}}}`, `{"a":"me@example.com"}`,
}

// data §1.3
func TestACheckHasTheVerdictOfTheLibrary(t *testing.T) {
	for _, schema := range sameSchemas {
		if !json.Valid([]byte(schema)) {
			t.Fatalf("the test's own text is no JSON: %s", schema)
		}
		if _, err := compileSchema(node.Node{Path: "x/T", Content: node.RawContent(`{"schema":` + schema + `}`)}); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
		for _, content := range sameContents {
			sameVerdict(t, schema, content)
			sameVerdict(t, `{"properties":{"a":`+schema+`}}`, `{"a":`+content+`}`)
		}
	}
}

// invariant: a check has the verdict of the library, whatever the schema and the content
func FuzzACheckHasTheVerdictOfTheLibrary(f *testing.F) {
	for i, schema := range sameSchemas {
		f.Add(schema, sameContents[i%len(sameContents)])
	}
	f.Fuzz(func(t *testing.T, schema, content string) {
		if len(schema) > 400 || len(content) > 400 {
			return // the library may take for ever
		}
		if strings.Contains(schema, "$dynamicRef") && strings.Contains(schema, "propertyNames") {
			return // the library forgets there through which resources it came
		}
		for _, text := range []string{schema, content} {
			if _, err := node.ParseContent([]byte(text), node.DefaultLimits); err != nil {
				return
			}
		}
		sameVerdict(t, schema, content)
	})
}

// invariant: the automaton that counts finds what the standard library's finds
func FuzzAPatternMatchesWhatTheStandardLibraryMatches(f *testing.F) {
	for _, seed := range [][2]string{
		{`^[a-z0-9._%+-]{1,64}@([a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}$`, "someone@mail.example.com"}, {`\bfoo\b`, "a foo b"}, {`(?m)^x$`, "a\nx\nb"}, {`(?i)É`, "é"}, {`(a|b)*c|d`, "ababc"},
		{``, ""}, {`$^`, ""}, {`\B`, "ab"}, {`.`, "\n"}, {`(?s).`, "\n"}, {`[^a]`, "日本"}, {`x*?y`, "xxxy"}, {`\pL+`, "été"}, {`a\z`, "ba"}, {`\Aab`, "cab"}, {`(?U)a+`, "b"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		var engine patterns
		re, err := engine.compile(expr)
		if err != nil {
			return
		}
		var m matcher
		moves := 0
		got := m.match(re.(pattern).program, text, func(n int) { moves += n })
		if want := regexp.MustCompile(expr).MatchString(text); got != want {
			t.Errorf("%q matches %q: %v", text, expr, got)
		}
		if most := 4 * (len(text) + 1) * len(re.(pattern).program.Inst); moves > most {
			t.Errorf("%d moves of %q on %d bytes; at most %d are possible", moves, expr, len(text), most)
		}
	})
}
