package nodehub

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hubmesh/hubmesh/internal/node"
)

// stepsOf checks a content and returns the steps that took.
func stepsOf(t *testing.T, schema, content string) (steps int, err error) {
	t.Helper()
	c, err := compileSchema(node.Node{Path: "shop/T", Content: node.RawContent(`{"schema":` + schema + `}`)})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	k := newChecker(t.Context(), c, len(content))
	fits, err := k.run(doc)
	if err == nil && !fits {
		err = errors.New(k.why(doc))
	}
	return k.done, err
}

// blocks is the schema of a block editor: so many kinds of blocks, each of which holds blocks.
func blocks(kinds int, keyword, discriminator string) string {
	return `{"$defs":{"block":{"` + keyword + `":` + listOf(kinds, func(i int) string {
		return fmt.Sprintf(`{"type":"object","required":["kind"],"properties":{"kind":`+discriminator+`,"children":{"type":"array","items":{"$ref":"#/$defs/block"}},"a%d":{"type":"string"}},"additionalProperties":false}`, i, i)
	}) + `}},"$ref":"#/$defs/block"}`
}

// nestedBlocks is a tree of blocks: each holds so many, so deep.
func nestedBlocks(depth, wide int, deepest string) string {
	if depth == 0 {
		return deepest
	}
	return fmt.Sprintf(`{"kind":"k%d","children":%s}`, depth%20, listOf(wide, always(nestedBlocks(depth-1, wide, deepest))))
}

// data §1.3
// What people write is far from the bound: alternatives that call themselves, long lists of
// alternatives, long enums, patterns.
func TestOrdinaryRecursiveSchemasAreCheckedInFewSteps(t *testing.T) {
	undiscriminated := `{"$defs":{"n":{"oneOf":[{"type":"object","required":["l"],"properties":{"l":{"$ref":"#/$defs/n"}}},{"type":"object","required":["l","r"],"properties":{"l":{"$ref":"#/$defs/n"}}},{"type":"object","maxProperties":0}]}},"$ref":"#/$defs/n"}`
	inherited := `{"$defs":{"base":{"properties":{"kind":{"type":"string"},"children":{"items":{"$ref":"#/$defs/block"}}}},"block":{"oneOf":` + listOf(20, func(i int) string {
		return fmt.Sprintf(`{"allOf":[{"$ref":"#/$defs/base"},{"required":["kind"],"properties":{"kind":{"const":"k%d"}}}],"unevaluatedProperties":false}`, i)
	}) + `}},"$ref":"#/$defs/block"}`
	email := `{"items":{"type":"string","pattern":"^[a-z0-9._%+-]{1,64}@([a-z0-9-]{1,63}\\.){1,8}[a-z]{2,24}$"}}`
	enum := `{"items":{"enum":` + listOf(250, func(i int) string { return fmt.Sprintf(`"value number %d"`, i) }) + `}}`
	for name, test := range map[string]struct {
		schema, content string
		most            int // steps
	}{
		"a chain of 20 blocks, oneOf 20 kinds":      {blocks(20, "oneOf", `{"const":"k%d"}`), nestedBlocks(20, 1, `{"kind":"k3"}`), 10_000},
		"a chain of 20 blocks, anyOf 20 kinds":      {blocks(20, "anyOf", `{"enum":["k%d"]}`), nestedBlocks(20, 1, `{"kind":"k3"}`), 10_000},
		"a chain of 90 blocks":                      {blocks(20, "oneOf", `{"const":"k%d"}`), nestedBlocks(90, 1, `{"kind":"k3"}`), 40_000},
		"a tree of 4,095 blocks":                    {blocks(20, "oneOf", `{"const":"k%d"}`), nestedBlocks(11, 2, `{"kind":"k3"}`), 800_000},
		"alternatives that differ far below":        {undiscriminated, strings.Repeat(`{"l":`, 100) + `{}` + strings.Repeat(`}`, 100), 10_000},
		"alternatives that inherit":                 {inherited, nestedBlocks(20, 1, `{"kind":"k3"}`), 60_000},
		"5,000 items of 20 alternatives":            {strings.Replace(blocks(20, "oneOf", `{"const":"k%d"}`), `},"$ref":"#/$defs/block"}`, `},"items":{"$ref":"#/$defs/block"}}`, 1), listOf(5_000, func(i int) string { return fmt.Sprintf(`{"kind":"k%d"}`, i%20) }), 1_000_000},
		"5,000 items of an enum of 250":             {enum, listOf(5_000, func(i int) string { return fmt.Sprintf(`"value number %d"`, i%250) }), 20_000},
		"20,000 addresses that a pattern describes": {email, listOf(20_000, func(i int) string { return fmt.Sprintf(`"someone.number-%d@mail.example.com"`, i) }), 1_200_000},
	} {
		t.Run(name, func(t *testing.T) {
			steps, err := stepsOf(t, test.schema, test.content)
			t.Log(steps, "steps for", len(test.content), "bytes")
			if err != nil || steps > test.most {
				t.Errorf("%d steps: %v", steps, err)
			}
		})
	}
}

// data §1.3
// Where a value fits none of several alternatives, the one that was meant is told of.
func TestARefusalNamesThePlaceInTheAlternativeThatWasMeant(t *testing.T) {
	_, err := stepsOf(t, blocks(20, "oneOf", `{"const":"k%d"}`), nestedBlocks(20, 1, `{"kind":"k3","a3":7}`))
	if want := "at '" + strings.Repeat("/children/0", 20) + "/a3': got number, want string"; err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	_, err = stepsOf(t, `{"oneOf":[{"type":"integer"},{"type":"number","minimum":3}]}`, `7`)
	if err == nil || err.Error() != "at '': it fits the alternatives 0 and 1 of 'oneOf', and must fit one only" {
		t.Errorf("%v", err)
	}
}

// bad input: numbers that no float holds
func TestNumbersBeyondAFloatAreComparedExactly(t *testing.T) {
	for _, test := range []struct{ schema, content, want string }{
		{`{"maximum":100}`, `1e400`, "at '': must be <= 100 but is 1e400"},
		{`{"maximum":1e400}`, `1e400`, ""},
		{`{"maximum":1e400}`, `1.0000000000000000000000001e400`, "at '': must be <= 1e+400 but is 1.0000000000000000000000001e400"},
		{`{"exclusiveMinimum":0}`, `1e-400`, ""},
		{`{"exclusiveMinimum":0}`, `-1e-9999`, "at '': must be > 0 but is -1e-9999"},
		{`{"minimum":9007199254740993}`, `9007199254740992`, "at '': must be >= 9007199254740993 but is 9007199254740992"},
		{`{"maximum":0.1}`, `0.10000000000000000001`, "at '': must be <= 0.1 but is 0.10000000000000000001"},
		{`{"multipleOf":0.01}`, `1e400`, ""},
		{`{"multipleOf":0.01}`, `19.999`, "at '': must be a multiple of 0.01 but is 19.999"},
		{`{"type":"integer"}`, `1.0e400`, ""},
		{`{"type":"integer"}`, `12e-1`, "at '': got number, want integer"},
		{`{"type":"integer"}`, `1200e-2`, ""},
		{`{"const":1}`, `1.00`, ""},
	} {
		if _, err := stepsOf(t, test.schema, test.content); test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want) {
			t.Errorf("%s of %s: %v", test.content, test.schema, err)
		}
	}
	// An exponent that no content may have would be a number of a thousand million digits.
	_, err := stepsOf(t, `{"maximum":1}`, `1e999999999`)
	if much := new(workError); !errors.As(err, &much) {
		t.Errorf("%v", err)
	}
}

// bad input: a check that nobody waits for any more
func TestACheckEndsWhenNobodyWaitsForIt(t *testing.T) {
	c, err := compileSchema(node.Node{Path: "shop/T", Content: node.RawContent(`{"schema":{"items":{"type":["integer","null"]}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	content := node.RawContent(listOf(50_000, always("1")))
	if err := c.check(ctx, node.Node{NodeType: "shop/T", Content: content}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := c.check(t.Context(), node.Node{NodeType: "shop/T", Content: content}); err != nil {
		t.Errorf("with somebody who waits: %v", err)
	}
}

// bad input: a content whose check takes more than its size allows
func TestARefusalOfTooMuchWorkSaysWhichLimitAndWhatToDo(t *testing.T) {
	schema := `{"items":{"allOf":` + listOf(900, always(`{"type":"number","minimum":0}`)) + `}}`
	_, _, err := checkWith(schema, listOf(8_000, func(i int) string { return fmt.Sprintf("%05d", 10_000+i) }))
	var bad *SchemaError
	if !errors.As(err, &bad) || !bad.TooMuch || bad.Broken || bad.ProblemCode() != "invalid_content" {
		t.Fatalf("%v", err)
	}
	for _, said := range []string{"too large for the schema of type 'mal/T'", "48001 bytes", fmt.Sprint(workFor(48_001), " steps"), "smaller"} {
		if !strings.Contains(err.Error(), said) {
			t.Errorf("%q is not said: %v", said, err)
		}
	}
	// A smaller content of the same kind is checked, and one whose items are the same: nothing is asked twice.
	if _, _, err := checkWith(schema, listOf(100, func(i int) string { return fmt.Sprint(i) })); err != nil {
		t.Errorf("%v", err)
	}
	if _, _, err := checkWith(schema, listOf(8_000, always("10000"))); err != nil {
		t.Errorf("%v", err)
	}
}
