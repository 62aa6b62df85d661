package nodehub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
)

// doubling is a schema whose last part visits a value 2^levels times.
func doubling(levels int, first, keyword string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"$defs":{"a0":%s`, first)
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&b, `,"a%d":{%q:[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, i, keyword, i-1, i-1)
	}
	fmt.Fprintf(&b, `},"$ref":"#/$defs/a%d"}`, levels)
	return b.String()
}

func listOf(n int, item func(i int) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item(i)
	}
	return "[" + strings.Join(items, ",") + "]"
}

func always(s string) func(int) string { return func(int) string { return s } }

// checkWith checks a content against a schema and returns what that cost.
func checkWith(schema, content string) (took time.Duration, allocated uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	c, err := compileSchema(node.Node{Path: "mal/T", Content: node.RawContent(`{"schema":` + schema + `}`)})
	if err == nil {
		err = c.check(context.Background(), node.Node{Path: "mal/n", NodeType: "mal/T", Content: node.RawContent(content)})
	}
	took = time.Since(start)
	runtime.ReadMemStats(&after)
	return took, after.TotalAlloc - before.TotalAlloc, err
}

// bad input: a schema that would take for ever, or all memory, where each way to a part is gone
// A check that can be had in little time has its true verdict; what can not is refused, and says so.
func TestASchemaThatWouldTakeForEverIsAnsweredSoon(t *testing.T) {
	const fits = "fits"
	numbers := listOf(60_000, func(i int) string { return fmt.Sprintf("%de9999", i) })
	signs := listOf(8_000, func(i int) string {
		return listOf(14, func(bit int) string {
			if i>>bit&1 == 1 {
				return "1"
			}
			return "-1"
		})
	})
	deep := strings.Repeat(`{"l":`, 150) + `{}` + strings.Repeat(`}`, 150)
	for name, test := range map[string]struct{ schema, content, want string }{
		"allOf that doubles":            {doubling(26, `{"type":"object"}`, "allOf"), `{}`, fits},
		"allOf that doubles the errors": {doubling(22, `{"type":"string"}`, "allOf"), `{}`, "got object, want string"},
		"anyOf that doubles":            {doubling(45, `{"type":"string"}`, "anyOf"), `{}`, "got object, want string"},
		"oneOf that doubles":            {doubling(45, `{"type":"string"}`, "oneOf"), `{}`, "got object, want string"},
		"two ways down at each level":   {`{"$defs":{"n":{"properties":{"l":{"allOf":[{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"}]}}}},"$ref":"#/$defs/n"}`, deep, fits},
		"dependentSchemas":              {`{"$defs":{"n":{"properties":{"l":{"dependentSchemas":{"l":{"$ref":"#/$defs/n"}},"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}`, deep, fits},
		"contains at each level": {`{"$defs":{"n":{"contains":{"$ref":"#/$defs/n"},"items":{"$ref":"#/$defs/n"}}},"$ref":"#/$defs/n"}`,
			strings.Repeat("[", 150) + strings.Repeat("]", 150), "must contain"},
		"unevaluatedProperties at each level": {`{"$defs":{"n":{"properties":{"l":{"$ref":"#/$defs/n"}},"unevaluatedProperties":{"$ref":"#/$defs/n"},"additionalProperties":{"$ref":"#/$defs/n"},"patternProperties":{"l":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}`, deep, fits},
		"a part that leads to itself":         {`{"anyOf":[{"type":"string"},{"$ref":"#"}]}`, `{}`, "refers to itself"},
		"parts that all lead to each other": {func() string {
			all := listOf(30, func(i int) string { return fmt.Sprintf(`{"$ref":"#/$defs/a%d"}`, i) })
			defs := make([]string, 30)
			for i := range defs {
				defs[i] = fmt.Sprintf(`"a%d":{"allOf":%s}`, i, all)
			}
			return `{"$defs":{` + strings.Join(defs, ",") + `},"$ref":"#/$defs/a0"}`
		}(), `{}`, "refers to itself"},
		"dynamic references that double":                {`{"$dynamicAnchor":"n","properties":{"l":{"allOf":[{"$dynamicRef":"#n"},{"$dynamicRef":"#n"}]}}}`, deep, fits},
		"an anchor that only a dynamic reference finds": {`{"$dynamicAnchor":"n","$defs":{"x":{"$id":"https://example.com/x","$dynamicAnchor":"n"}},"properties":{"l":{"$dynamicRef":"#n"}}}`, `{}`, "$dynamicAnchor"},
		"a recursive anchor":                            {`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"properties":{"l":{"$recursiveRef":"#"}}}`, `{}`, "$recursiveAnchor"},
		"a list of names for each of many":              {`{"items":{"required":` + listOf(10_000, func(i int) string { return fmt.Sprintf(`"n%d"`, i) }) + `}}`, listOf(10_000, always("{}")), "missing property 'n0'"},
		"a long enum for each of many":                  {`{"items":{"enum":` + listOf(10_000, func(i int) string { return fmt.Sprint(i) }) + `}}`, listOf(10_000, always("1e9")), "value must be one of"},
		"unique items that share a hash":                {`{"uniqueItems":true}`, signs, fits},
		"many parts for each of many":                   {`{"items":{"allOf":` + listOf(9_000, func(i int) string { return fmt.Sprintf(`{"minimum":%d}`, -i) }) + `}}`, listOf(3_000, func(i int) string { return fmt.Sprint(i) }), "steps"},
		"many parts at each level":                      {`{"$defs":{"n":{"allOf":` + listOf(800, always(`{"properties":{"l":{"$ref":"#/$defs/n"}}}`)) + `}},"$ref":"#/$defs/n"}`, listOf(1, always(strings.Repeat(`{"l":`, 190)+`{}`+strings.Repeat(`}`, 190))), fits},
		"many alternatives of many":                     {`{"items":{"oneOf":` + listOf(2_000, func(i int) string { return fmt.Sprintf(`{"type":"object","properties":{"k":{"const":"k%d"}}}`, i) }) + `}}`, listOf(2_000, always(`{"k":"k1999"}`)), "steps"},
		"names that are all there":                      {`{"items":{"allOf":` + listOf(90, always(`{"required":`+listOf(200, func(i int) string { return fmt.Sprintf(`"n%d"`, i) })+`}`)) + `}}`, listOf(400, always("{"+strings.Trim(listOf(200, func(i int) string { return fmt.Sprintf(`"n%d":1`, i) }), "[]")+"}")), "steps"},
		"patterns that name all letters": {`{"allOf":` + listOf(200, func(i int) string {
			return fmt.Sprintf(`{"pattern":"%s%d"}`, strings.Repeat(`[\\pL\\pN]`, 400), i)
		}) + `}`, `""`, "/allOf/"},
		"texts that name all letters":    {`{"$schema":"http://json-schema.org/draft-07/schema#","items":{"format":"regex"}}`, listOf(6, func(i int) string { return `"` + strings.Repeat(`[\\pL\\pN]`, 400) + fmt.Sprint(i) + `"` }), "steps"},
		"a pattern that goes back":       {`{"pattern":"^(([a-z])+.)+[A-Z]([a-z])+$"}`, `"` + strings.Repeat("a", 1<<17) + `"`, "does not fit"},
		"large numbers":                  {`{"items":{"multipleOf":1e-9999}}`, numbers, "steps"},
		"a pattern that repeats":         {`{"pattern":"(x{100}){10}(y{100}){10}(x{100}){10}(y{100}){10}(x{100}){10}"}`, `""`, "repeat less"},
		"a long pattern":                 {`{"pattern":"` + strings.Repeat("x", 100_000) + `"}`, `""`, "/pattern"},
		"many patterns":                  {`{"allOf":` + listOf(1_000, func(i int) string { return fmt.Sprintf(`{"pattern":"x{%d}"}`, 1+i%1000) }) + `}`, `""`, "together"},
		"a pattern on a long text":       {`{"pattern":"(x{0,500}){2}y"}`, `"` + strings.Repeat("x", 1<<16) + `"`, "steps"},
		"a text that is a large pattern": {`{"$schema":"http://json-schema.org/draft-07/schema#","format":"regex"}`, `"` + strings.Repeat("x{1000}", 100_000) + `"`, "does not fit"},
		"very many parts":                {`{"allOf":` + listOf(100_000, always("true")) + `}`, `{}`, "values"},
		"long names above many parts":    {`{"properties":{"` + strings.Repeat("n", 200_000) + `":{"allOf":` + listOf(15_000, always("true")) + `}}}`, `{}`, "names"},
	} {
		t.Run(name, func(t *testing.T) {
			if !json.Valid([]byte(test.schema)) || !json.Valid([]byte(test.content)) {
				t.Fatal("the test's own text is no JSON")
			}
			took, allocated, err := checkWith(test.schema, test.content)
			var bad *SchemaError
			if test.want == fits {
				if err != nil {
					t.Errorf("%.500v", err)
				}
			} else if !errors.As(err, &bad) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%.500v", err)
			}
			t.Logf("%s, %d MiB: %.200v", took, allocated>>20, err)
			// Without a bound they take minutes; a minute is what the race detector and a busy machine may need.
			if took > time.Minute || allocated > 256<<20 {
				t.Errorf("%s and %d MiB", took, allocated>>20)
			}
		})
	}
}

// data §1.3
// The bound leaves room for what people write.
func TestWhatASchemaOrdinarilyAsksIsStillChecked(t *testing.T) {
	tree := `{"$id":"https://example.com/tree","$dynamicAnchor":"node","type":"object","properties":{"data":true,"children":{"type":"array","items":{"$dynamicRef":"#node"}}}}`
	strict := `{"$id":"https://example.com/strict","$dynamicAnchor":"node","$ref":"tree","unevaluatedProperties":false,"$defs":{"tree":` + tree + `}}`
	expr := `{"$defs":{"e":{"oneOf":[{"type":"number"},{"type":"object","required":["op","l","r"],"properties":{"op":{"enum":["+","*"]},"l":{"$ref":"#/$defs/e"},"r":{"$ref":"#/$defs/e"}}}]}},"$ref":"#/$defs/e"}`
	orders := `{"items":{"type":"object","required":["id","total"],"properties":{"id":{"type":"string","pattern":"^[\\p{L}0-9_-]{1,100}$"},"total":{"type":"number","minimum":0},"lines":{"type":"array","maxItems":10}},"additionalProperties":false}}`
	for _, test := range []struct {
		schema, content string
		fits            bool
		want            string
	}{
		{strict, `{"children":[{"data":1,"children":[{}]}]}`, true, ""},
		{strict, `{"children":[{"daat":1}]}`, false, "daat"},
		{expr, `{"op":"+","l":1,"r":{"op":"*","l":2,"r":3}}`, true, ""},
		{expr, `{"op":"+","l":1,"r":{"op":"-","l":2,"r":3}}`, false, "op"},
		{`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `{"type":"object","properties":{"a":{"type":"string"}}}`, true, ""},
		{`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `{"properties":{"a":{"type":"sting"}}}`, false, "/properties/a/type"},
		{orders, listOf(12_000, func(i int) string { return fmt.Sprintf(`{"id":"o-%d","total":%d.5,"lines":[]}`, i, i) }), true, ""},
		{orders, listOf(12_000, func(i int) string { return fmt.Sprintf(`{"id":"o-%d","total":%d.5}`, i, i-1) }), false, "at '/0/total': must be >= 0 but is -1.5"},
		{`{"uniqueItems":true}`, listOf(2_000, func(i int) string { return fmt.Sprintf(`{"id":%d}`, i) }), true, ""},
		{`{"uniqueItems":true}`, `[{"a":1},{"a":1.0}]`, false, "items at 0 and 1 are equal"},
	} {
		_, _, err := checkWith(test.schema, test.content)
		var bad *SchemaError
		switch {
		case test.fits && err != nil:
			t.Errorf("%.80s: %v", test.schema, err)
		case !test.fits && (!errors.As(err, &bad) || bad.Broken || !strings.Contains(bad.Reason, test.want)):
			t.Errorf("%.80s: %v", test.schema, err)
		}
	}
}

// invariant: whatever schema and content there are, checking ends within its bound
func FuzzChecking(f *testing.F) {
	f.Add(doubling(60, `{"type":"object"}`, "allOf"), `{}`)
	f.Add(`{"$dynamicAnchor":"n","properties":{"l":{"$dynamicRef":"#n"}}}`, `{"l":{"l":1}}`)
	f.Add(`{"items":{"minimum":1e-9999,"multipleOf":3},"uniqueItems":true}`, `[1,2,1e99]`)
	f.Add(`{"$schema":"http://json-schema.org/draft-04/schema#","dependencies":{"a":["b"],"c":{"not":{}}}}`, `{"a":1,"c":{}}`)
	f.Add(`{"if":{"contains":{"const":1}},"then":{"minContains":2},"else":false}`, `[1,[1]]`)
	f.Add(`{"propertyNames":{"pattern":"^a{3}$"},"unevaluatedProperties":false,"patternProperties":{"a":{"$ref":"#"}}}`, `{"aaa":{}}`)
	f.Fuzz(func(t *testing.T, schema, content string) {
		limits := node.DefaultLimits
		if _, err := node.ParseContent([]byte(schema), limits); err != nil {
			return
		}
		if _, err := node.ParseContent([]byte(content), limits); err != nil {
			return
		}
		took, _, _ := checkWith(schema, content)
		if took > 10*time.Second {
			t.Fatal(took)
		}
	})
}
