package nodehub

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// anchored is a resource with so many dynamic anchors, all of which something refers to.
func anchored(id string, anchors int, more string) string {
	return `{"$id":"https://x.example/` + id + `","$defs":{` + strings.Trim(listOf(anchors, func(i int) string {
		return fmt.Sprintf(`"d%d":{"$dynamicAnchor":"x%d"}`, i, i)
	}), "[]") + more + `},"properties":{"all":{"allOf":` + listOf(anchors, func(i int) string { return fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i) }) + `}}`
}

// bad input: a resource with very many dynamic anchors
// Finding out what it adds to those outside it counts as work, and is done once for all values.
func TestTheAnchorsOfAResourceAreCountedOnceForASchemaAndNotForEachValue(t *testing.T) {
	steps := func(anchors, items int) int {
		inner := anchored("inner", anchors, "") + `,"items":{"allOf":[{"$dynamicRef":"#x0"},{"$dynamicRef":"#x1"}]}}`
		schema := anchored("outer", anchors, `,"inner":`+inner) + `,"$ref":"inner"}`
		n, err := stepsOf(t, schema, listOf(items, func(i int) string { return fmt.Sprint(i) }))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const few, many = 10, 1_500
	one, thousand := steps(many, 1)-steps(few, 1), steps(many, 1_000)-steps(few, 1_000)
	// All names of the inner resource are looked for in the outer one.
	if one != thousand || one < many-few || one > 4*many {
		t.Errorf("%d further anchors take %d further steps for one value and %d for a thousand", many-few, one, thousand)
	}
}

// bad input: a resource with very many dynamic anchors
// A check of many values with it is refused for its work, or not at all: it does not take the time of others.
func TestDynamicReferencesAmongManyAnchorsAreRefusedForTheirWork(t *testing.T) {
	schema := anchored("top", 1_000, "") + `,"items":{"allOf":` + listOf(20, func(i int) string { return fmt.Sprintf(`{"$dynamicRef":"#x%d"}`, i) }) + `}}`
	steps, err := stepsOf(t, schema, listOf(50_000, func(i int) string { return fmt.Sprint(i) }))
	if much := new(workError); !errors.As(err, &much) || steps > maxWork+100 {
		t.Errorf("%d steps: %v", steps, err)
	}
	if steps, err := stepsOf(t, schema, listOf(1_000, func(i int) string { return fmt.Sprint(i) })); err != nil {
		t.Errorf("of a thousand, %d steps: %v", steps, err)
	}
}

// invariant: work is at most in proportion to steps
// What a part looks for in each object and text is work, too, where nothing of it is there.
func TestNamesThatAreNotThereAndLongTextsCountAsWork(t *testing.T) {
	names := func(keyword, value string) func(n int) string {
		return func(n int) string {
			list := listOf(n, func(i int) string { return fmt.Sprintf(`"n%d":%s`, i, value) })
			return `{"items":{"` + keyword + `":{` + list[1:len(list)-1] + `}}}`
		}
	}
	for keyword, schema := range map[string]func(int) string{
		"properties": names("properties", "true"), "dependentRequired": names("dependentRequired", `["a"]`), "dependentSchemas": names("dependentSchemas", "true"),
	} {
		content := listOf(100, always("{}"))
		few, err := stepsOf(t, schema(8), content)
		many, errMany := stepsOf(t, schema(4_008), content)
		if err != nil || errMany != nil || many-few != 100*4_000/lookedFor {
			t.Errorf("4,000 further %s take %d steps and not %d: %v, %v", keyword, many, few, err, errMany)
		}
	}
	short, err := stepsOf(t, `{"allOf":`+listOf(100, always(`{"not":{"type":"null"}}`))+`}`, `"x"`)
	long, errLong := stepsOf(t, `{"allOf":`+listOf(100, always(`{"not":{"type":"null"}}`))+`}`, `"`+strings.Repeat("x", 100*lettersLooked)+`"`)
	if err != nil || errLong != nil || long-short < 100*100 {
		t.Errorf("a long text takes %d steps and a short one %d: %v, %v", long, short, err, errLong)
	}
}

// data §1.3
// A reference in propertyNames is resolved as the standard says, by all resources that led there; the
// library resolves it as if the names were checked on their own.
func TestADynamicReferenceInPropertyNamesKnowsTheOuterResources(t *testing.T) {
	schema := func(length int) string {
		return fmt.Sprintf(`{"$id":"https://x.example/outer","$defs":{"n":{"$dynamicAnchor":"n","maxLength":%d},"inner":{"$id":"inner","propertyNames":{"$dynamicRef":"#n"},"$defs":{"n":{"$dynamicAnchor":"n"}},`+
			`"properties":{"all":{"$ref":"#/$defs/n"}}}},"properties":{"all":{"$ref":"#/$defs/n"}},"$ref":"inner"}`, length)
	}
	if _, err := stepsOf(t, schema(3), `{"abc":1}`); err != nil {
		t.Error(err)
	}
	if _, err := stepsOf(t, schema(2), `{"abc":1}`); err == nil || err.Error() != "at '': invalid property name 'abc'" {
		t.Errorf("%v", err)
	}
}
