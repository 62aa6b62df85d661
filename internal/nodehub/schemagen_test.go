package nodehub

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// draft is a draft of JSON Schema that types may be written in.
type draft struct {
	version int
	name    string // of $schema
}

var drafts = []draft{
	{4, "http://json-schema.org/draft-04/schema#"}, {6, "http://json-schema.org/draft-06/schema#"}, {7, "http://json-schema.org/draft-07/schema#"},
	{2019, "https://json-schema.org/draft/2019-09/schema"}, {2020, "https://json-schema.org/draft/2020-12/schema"},
}

// keyword is a keyword of JSON Schema.
type keyword struct {
	name        string
	first, last int                               // the drafts that have it
	value       func(g *schemaGen, depth int) any // one at random
	with        []string                          // what it needs beside it to mean something
	silent      bool                              // it refuses nothing
}

// keywords are those of all drafts, except $id, $anchor and what else only names a part: [schemaGen.document] has them.
var keywords = []keyword{
	{"type", 4, 2020, func(g *schemaGen, _ int) any {
		return g.one(func() any { return g.pick(typeNames...) }, func() any { return g.some(2, typeNames...) })
	}, nil, false},
	{"enum", 4, 2020, func(g *schemaGen, _ int) any {
		return distinct(g.list(1, 4, func() any { return g.instance(1) }))
	}, nil, false},
	{"const", 6, 2020, func(g *schemaGen, _ int) any { return g.instance(1) }, nil, false},
	{"multipleOf", 4, 2020, func(g *schemaGen, _ int) any { return g.pick(2, 3, 0.5, json.Number("1.5e0")) }, nil, false},
	{"maximum", 4, 2020, (*schemaGen).number, nil, false},
	{"exclusiveMaximum", 4, 4, (*schemaGen).boolean, []string{"maximum"}, false},
	{"exclusiveMaximum", 6, 2020, (*schemaGen).number, nil, false},
	{"minimum", 4, 2020, (*schemaGen).number, nil, false},
	{"exclusiveMinimum", 4, 4, (*schemaGen).boolean, []string{"minimum"}, false},
	{"exclusiveMinimum", 6, 2020, (*schemaGen).number, nil, false},
	{"maxLength", 4, 2020, (*schemaGen).count, nil, false},
	{"minLength", 4, 2020, (*schemaGen).count, nil, false},
	{"pattern", 4, 2020, func(g *schemaGen, _ int) any { return g.pick("^a", "b$", "^[a-c]{1,2}$", "x") }, nil, false},
	{"format", 4, 7, func(g *schemaGen, _ int) any { return g.pick("date-time", "email", "ipv4", "uri") }, nil, false},
	{"format", 2019, 2020, func(g *schemaGen, _ int) any { return g.pick("date-time", "email", "ipv4", "uri") }, nil, true},
	{"items", 4, 2019, func(g *schemaGen, depth int) any {
		return g.one(func() any { return g.schema(depth) }, func() any { return g.schemas(depth) })
	}, nil, false},
	{"items", 2020, 2020, (*schemaGen).sub, nil, false},
	{"additionalItems", 4, 2019, (*schemaGen).subOrBool, []string{"items"}, false},
	{"prefixItems", 2020, 2020, func(g *schemaGen, depth int) any { return g.schemas(depth) }, nil, false},
	{"maxItems", 4, 2020, (*schemaGen).count, nil, false},
	{"minItems", 4, 2020, (*schemaGen).count, nil, false},
	{"uniqueItems", 4, 2020, (*schemaGen).boolean, nil, false},
	{"contains", 6, 2020, (*schemaGen).sub, nil, false},
	{"minContains", 2019, 2020, (*schemaGen).count, []string{"contains"}, false},
	{"maxContains", 2019, 2020, (*schemaGen).count, []string{"contains"}, false},
	{"maxProperties", 4, 2020, (*schemaGen).count, nil, false},
	{"minProperties", 4, 2020, (*schemaGen).count, nil, false},
	{"required", 4, 2020, (*schemaGen).names, nil, false},
	{"properties", 4, 2020, func(g *schemaGen, depth int) any { return g.members(depth, memberNames) }, nil, false},
	{"patternProperties", 4, 2020, func(g *schemaGen, depth int) any { return g.members(depth, []string{"^a", "b$", "", "^c$"}) }, nil, false},
	{"additionalProperties", 4, 2020, (*schemaGen).subOrBool, nil, false},
	{"dependencies", 4, 2020, func(g *schemaGen, depth int) any {
		return g.object(memberNames, func() any {
			return g.one(func() any { return g.names(0) }, func() any { return g.schema(depth) })
		})
	}, nil, false},
	{"dependentRequired", 2019, 2020, func(g *schemaGen, _ int) any {
		return g.object(memberNames, func() any { return g.names(0) })
	}, nil, false},
	{"dependentSchemas", 2019, 2020, func(g *schemaGen, depth int) any { return g.members(depth, memberNames) }, nil, false},
	{"propertyNames", 6, 2020, (*schemaGen).sub, nil, false},
	{"unevaluatedItems", 2019, 2020, (*schemaGen).sub, nil, false},
	{"unevaluatedProperties", 2019, 2020, (*schemaGen).sub, nil, false},
	{"not", 4, 2020, (*schemaGen).sub, nil, false},
	{"allOf", 4, 2020, func(g *schemaGen, depth int) any { return g.schemas(depth) }, nil, false},
	{"anyOf", 4, 2020, func(g *schemaGen, depth int) any { return g.schemas(depth) }, nil, false},
	{"oneOf", 4, 2020, func(g *schemaGen, depth int) any { return g.schemas(depth) }, nil, false},
	{"if", 7, 2020, (*schemaGen).sub, nil, true},
	{"then", 7, 2020, (*schemaGen).sub, []string{"if"}, false},
	{"else", 7, 2020, (*schemaGen).sub, []string{"if"}, false},
	{"$ref", 4, 2020, (*schemaGen).ref, nil, false},
	{"$recursiveRef", 2019, 2019, func(*schemaGen, int) any { return "#" }, nil, true},
	{"$dynamicRef", 2020, 2020, (*schemaGen).dynamicRef, nil, false},
	{"contentEncoding", 7, 2020, func(*schemaGen, int) any { return "base64" }, nil, true},
	{"contentMediaType", 7, 2020, func(*schemaGen, int) any { return "application/json" }, nil, true},
	{"contentSchema", 2019, 2020, (*schemaGen).sub, []string{"contentMediaType"}, true},
	{"title", 4, 2020, func(*schemaGen, int) any { return "a" }, nil, true},
	{"description", 4, 2020, func(*schemaGen, int) any { return "a" }, nil, true},
	{"default", 4, 2020, func(g *schemaGen, _ int) any { return g.instance(1) }, nil, true},
	{"examples", 6, 2020, func(g *schemaGen, _ int) any { return g.list(0, 2, func() any { return g.instance(1) }) }, nil, true},
	{"$comment", 7, 2020, func(*schemaGen, int) any { return "a" }, nil, true},
	{"readOnly", 7, 2020, (*schemaGen).boolean, nil, true},
	{"writeOnly", 7, 2020, (*schemaGen).boolean, nil, true},
	{"deprecated", 2019, 2020, (*schemaGen).boolean, nil, true},
}

// hasParts tells whether a keyword's value is or has other parts.
func (k keyword) hasParts() bool {
	switch k.name {
	case "items", "additionalItems", "prefixItems", "contains", "properties", "patternProperties", "additionalProperties", "dependencies", "dependentSchemas",
		"propertyNames", "unevaluatedItems", "unevaluatedProperties", "not", "allOf", "anyOf", "oneOf", "if", "then", "else":
		return true
	}
	return false
}

// about is the kind of values that a keyword is about; "" for all.
func (k keyword) about() string {
	for _, kind := range [][]string{
		{"object", "maxProperties", "minProperties", "required", "properties", "patternProperties", "additionalProperties", "dependencies", "dependentRequired",
			"dependentSchemas", "propertyNames", "unevaluatedProperties"},
		{"array", "items", "additionalItems", "prefixItems", "maxItems", "minItems", "uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems"},
		{"string", "maxLength", "minLength", "pattern", "format", "contentEncoding", "contentMediaType", "contentSchema"},
		{"number", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"},
	} {
		if slices.Contains(kind[1:], k.name) {
			return kind[0]
		}
	}
	return ""
}

var (
	typeNames   = []any{"null", "boolean", "number", "integer", "string", "array", "object"}
	memberNames = []string{"a", "b", "c", "ab"}
	texts       = []any{"", "a", "b", "ab", "abc", "xyz", "é", "me@example.com", "2020-01-01T00:00:00Z", "127.0.0.1", "http://a.example/"}
	numbers     = []any{0, 1, json.Number("1.0"), 2, 2.5, -1, 3, json.Number("1e2")}
)

// schemaGen makes small schemas of one draft, and small instances. The same source makes the same.
type schemaGen struct {
	*rand.Rand
	draft         draft
	all           []keyword // of the draft
	keywords      []keyword // those that this document may have
	dynamicRefs   bool      // it has dynamic anchors
	anchors       []any     // all dynamic anchors that there are
	refs, dynamic []any     // what is referred to
	mild          bool      // parts let most values be
	about         string    // the kind of value that the part is about
}

func newSchemaGen(r *rand.Rand, d draft) *schemaGen {
	g := &schemaGen{Rand: r, draft: d}
	for _, k := range keywords {
		if k.first <= d.version && d.version <= k.last {
			g.all = append(g.all, k)
		}
	}
	return g
}

func (g *schemaGen) pick(values ...any) any { return values[g.IntN(len(values))] }

// one is what one of several makes.
func (g *schemaGen) one(makers ...func() any) any { return makers[g.IntN(len(makers))]() }

// some are at least so many different values.
func (g *schemaGen) some(least int, values ...any) []any {
	out := slices.Clone(values)
	g.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:least+g.IntN(2)]
}

func (g *schemaGen) list(least, most int, item func() any) []any {
	out := make([]any, least+g.IntN(most-least+1))
	for i := range out {
		out[i] = item()
	}
	return out
}

func (g *schemaGen) object(names []string, member func() any) map[string]any {
	out := map[string]any{}
	for range 1 + g.IntN(3) {
		out[names[g.IntN(len(names))]] = member()
	}
	return out
}

func (g *schemaGen) number(int) any  { return g.pick(0, 1, 2, 2.5, -1) }
func (g *schemaGen) count(int) any   { return g.pick(0, 1, 2, 3) }
func (g *schemaGen) boolean(int) any { return g.IntN(4) > 0 }
func (g *schemaGen) names(int) any   { return g.some(1, "a", "b", "c", "ab") }

// instance is a value, of so many levels at most.
func (g *schemaGen) instance(levels int) any {
	if levels > 0 {
		switch g.IntN(4) {
		case 0:
			out := map[string]any{}
			for range g.IntN(5) {
				out[memberNames[g.IntN(len(memberNames))]] = g.instance(levels - 1)
			}
			return out
		case 1:
			return g.list(0, 4, func() any { return g.instance(levels - 1) })
		}
	}
	return g.one(func() any { return g.pick(nil, true, false) }, func() any { return g.pick(numbers...) }, func() any { return g.pick(texts...) })
}

// distinct drops values that are equal.
func distinct(values []any) []any {
	met := map[string]bool{}
	return slices.DeleteFunc(values, func(v any) bool {
		text := string(canonical(nil, asRead(jsonText(v))))
		again := met[text]
		met[text] = true
		return again
	})
}

// asRead is a text as a check reads it.
func asRead(text string) any {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		panic(err)
	}
	return v
}

// valuesIn are the values that a schema names: contents that are likely to fit.
func valuesIn(v any) []any {
	var out []any
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			switch list, isList := v[name].([]any); {
			case name == "const":
				out = append(out, asRead(jsonText(v[name])))
			case name == "enum" && isList:
				out = append(out, asRead(jsonText(list)).([]any)...)
			default:
				out = append(out, valuesIn(v[name])...)
			}
		}
	case []any:
		for _, item := range v {
			out = append(out, valuesIn(item)...)
		}
	}
	return out
}

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// ref refers to a part of the resource or to the inner one. Seldom to one that may lead to itself.
func (g *schemaGen) ref(int) any {
	if g.IntN(8) == 0 {
		return "#"
	}
	return g.pick(g.refs...)
}

func (g *schemaGen) dynamicRef(int) any {
	if g.IntN(8) == 0 {
		return g.pick(g.anchors...)
	}
	return g.pick(g.dynamic...)
}

func (g *schemaGen) sub(depth int) any { return g.schema(depth) }

func (g *schemaGen) subOrBool(depth int) any {
	if g.mild {
		return g.pick(true, false, map[string]any{"type": "number"})
	}
	return g.one(func() any { return g.IntN(3) == 0 }, func() any { return g.schema(depth) })
}

func (g *schemaGen) schemas(depth int) any {
	return g.list(1, 3, func() any { return g.schema(depth) })
}

func (g *schemaGen) members(depth int, names []string) any {
	return g.object(names, func() any { return g.schema(depth) })
}

// schema is a part with some keywords, whose own parts have at most so many levels. Most keywords are about the
// same kind of value, also in the parts that are about the same value: so they meet each other.
func (g *schemaGen) schema(depth int) any {
	if g.mild {
		return g.evaluating(depth)
	}
	if g.IntN(6) == 0 || depth < 0 && g.IntN(2) == 0 {
		if g.draft.version == 4 {
			return map[string]any{"title": "any"}
		}
		return g.IntN(4) > 0
	}
	out := map[string]any{}
	for range 1 + g.IntN(3) {
		g.add(out, g.fitting(depth), depth)
	}
	return out
}

// unevaluated is a part that asks what its other keywords, and those of the parts about the same value, have left.
func (g *schemaGen) unevaluated() any {
	name := "unevaluatedProperties"
	if g.about = "object"; g.IntN(2) == 0 {
		g.about, name = "array", "unevaluatedItems"
	}
	g.mild = true
	out := g.evaluating(2).(map[string]any)
	g.mild = false
	out[name] = g.pick(false, false, map[string]any{"type": "number"})
	return out
}

// evaluating is a part that looks at members or items and mostly lets them be.
func (g *schemaGen) evaluating(depth int) any {
	if g.about == "" {
		return g.pick(true, true, true, map[string]any{"type": "number"}, map[string]any{"const": 1}, false)
	}
	out := map[string]any{}
	for range 1 + g.IntN(2) {
		if g.IntN(5) == 0 {
			g.add(out, g.keyword(fmt.Sprint(g.pick("required", "minItems", "maxProperties"))), depth)
			continue
		}
		for {
			k := g.keywords[g.IntN(len(g.keywords))]
			inPlace := k.about() == "" && (k.hasParts() || strings.HasSuffix(k.name, "Ref")) && k.name != "not"
			if inPlace && depth >= 0 || k.about() == g.about && k.hasParts() && (depth >= 0 || !strings.HasPrefix(k.name, "depend")) {
				g.add(out, k, depth)
				break
			}
		}
	}
	return out
}

// fitting is a keyword for a part, one without parts of its own where there is no level for them.
func (g *schemaGen) fitting(depth int) keyword {
	for {
		k := g.keywords[g.IntN(len(g.keywords))]
		if depth < 0 && (k.hasParts() || strings.HasSuffix(k.name, "Ref") || k.with != nil || k.silent) {
			continue
		}
		if about := k.about(); about == "" || about == g.about || g.IntN(6) == 0 {
			return k
		}
	}
}

// alone is a part with one keyword, and what it needs beside it.
func (g *schemaGen) alone(k keyword, depth int) map[string]any {
	out := map[string]any{}
	g.add(out, k, depth)
	return out
}

// under is a part that has another below it, by a keyword.
func (g *schemaGen) under(k keyword, part any) any {
	switch k.name {
	case "allOf", "anyOf", "oneOf", "prefixItems":
		list := g.list(0, 2, func() any { return g.schema(0) })
		return map[string]any{k.name: slices.Insert(list, g.IntN(len(list)+1), part)}
	case "properties", "dependencies", "dependentSchemas":
		return map[string]any{k.name: map[string]any{memberNames[g.IntN(2)]: part}}
	case "patternProperties":
		return map[string]any{k.name: map[string]any{"^a": part}}
	}
	out := g.alone(k, 0)
	out[k.name] = part
	return out
}

func (g *schemaGen) keyword(name string) keyword {
	return g.keywords[slices.IndexFunc(g.keywords, func(k keyword) bool { return k.name == name })]
}

func (g *schemaGen) add(out map[string]any, k keyword, depth int) {
	for _, name := range k.with {
		if _, there := out[name]; !there {
			g.add(out, g.keyword(name), depth)
		}
	}
	before := g.about
	if about := k.about(); about != "" && k.hasParts() && !strings.HasPrefix(k.name, "dependent") && k.name != "dependencies" {
		// Its parts are about other values.
		if g.about = g.anything(); g.mild {
			g.about = ""
		}
	}
	out[k.name] = k.value(g, depth-1)
	g.about = before
}

// anything is a kind of value.
func (g *schemaGen) anything() string {
	return fmt.Sprint(g.pick("object", "object", "array", "array", "string", "number"))
}

// document is a schema whose root is what is made. Where it may have dynamic references it has an inner
// resource with the anchors n and m, and the outer one has both or one.
func (g *schemaGen) document(dynamicRefs bool, root func() any) map[string]any {
	g.dynamicRefs, g.about = dynamicRefs, g.anything()
	g.keywords = slices.DeleteFunc(slices.Clone(g.all), func(k keyword) bool {
		// The library forgets at propertyNames through which resources it came.
		return k.name == "$dynamicRef" && !g.dynamicRefs || k.name == "propertyNames" && g.dynamicRefs
	})
	if !g.dynamicRefs {
		out := g.resource("definitions", "", root)
		out["$schema"] = g.draft.name
		return out
	}
	inner := g.resource("$defs", "", func() any { return g.schema(1) })
	out := g.resource("$defs", fmt.Sprint(g.pick("n", "m", "")), root)
	inner["$id"] = "inner"
	defs := out["$defs"].(map[string]any)
	defs["inner"] = inner
	// What no $ref leads to is refused where there are dynamic references.
	refs := []any{}
	for _, to := range []string{"#/$defs/a", "#/$defs/b", "inner", "inner#/$defs/a", "inner#/$defs/b"} {
		refs = append(refs, map[string]any{"$ref": to})
	}
	defs["all"] = map[string]any{"properties": map[string]any{"all": map[string]any{"allOf": refs}}}
	out["$schema"], out["$id"] = g.draft.name, "https://x.example/outer"
	return map[string]any{"$schema": g.draft.name, "$id": "https://x.example/top", "$defs": map[string]any{"outer": out},
		"properties": map[string]any{"all": map[string]any{"$ref": "outer#/$defs/all"}}, "$ref": "outer"}
}

// resource is a schema with two further parts that it may refer to: a may refer to b, and b to none, so that
// few lead to themselves. It may lack one of the anchors.
func (g *schemaGen) resource(under, lacks string, root func() any) map[string]any {
	a, b := "#/"+under+"/a", "#/"+under+"/b"
	part := func(anchor string, refs, dynamic []any) any {
		g.refs, g.dynamic = refs, dynamic
		out, ok := g.schema(1).(map[string]any)
		if !ok {
			out = map[string]any{"not": map[string]any{"type": "null"}}
		}
		if g.dynamicRefs && anchor != lacks {
			out["$dynamicAnchor"] = anchor
		}
		return out
	}
	n, m := "#n", "#m"
	switch lacks {
	case "n":
		n = "inner#n"
	case "m":
		m = "inner#m"
	}
	g.anchors = []any{n, m}
	parts := map[string]any{"b": part("m", []any{"http://json-schema.org/draft-04/schema"}, []any{b}), "a": part("n", []any{b}, []any{m})}
	g.refs, g.dynamic = []any{a, b}, g.anchors
	if g.dynamicRefs {
		g.refs = append(g.refs, "https://x.example/inner", n)
	}
	out, ok := root().(map[string]any)
	if !ok {
		out = map[string]any{"allOf": []any{true}}
	}
	out[under] = parts
	return out
}
