package nodehub

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hubmesh/hubmesh/internal/node"
)

// sameVerdicts compares, for each part of a schema and each content, the verdict of a check with that of the
// library. It returns how many pairs there were and whether the root refused any.
func sameVerdicts(t *testing.T, document map[string]any, contents []any) (pairs int, refused bool) {
	t.Helper()
	schema := jsonText(document)
	contents = slices.Concat(contents, valuesIn(document))
	c, err := compileSchema(node.Node{Path: "x/T", Content: node.RawContent(`{"schema":` + schema + `}`)})
	if err != nil {
		if strings.Contains(err.Error(), "refers to itself") {
			return 0, false
		}
		t.Fatalf("%s: %v", schema, err)
	}
	var all []*jsonschema.Schema
	for s := range c.plans {
		if s.Bool == nil && (s == c.schema || !strings.Contains(s.Location, "json-schema.org")) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *jsonschema.Schema) int { return strings.Compare(a.Location, b.Location) })
	for i, content := range contents {
		k := newChecker(context.Background(), c, 0) // one for all parts: what it keeps is right for each
		if i%2 == 0 {
			k.keep = 0
		}
		for _, part := range all {
			k.limit = k.done + 2_000 // what the library does in reasonable time
			fits, err := verdictOf(k, part, content)
			if err != nil {
				continue // it leads to itself, or takes more
			}
			pairs++
			want := part.Validate(content)
			if fits != (want == nil) {
				t.Errorf("%s of %s at %s fits: %v; the library says %v", jsonText(content), schema, part.Location, fits, want)
				return pairs, refused
			}
			if part == c.schema && !fits {
				refused = true
				if why := k.why(content); why == "it is too large to say where" {
					t.Errorf("%s of %s: no reason is given for %v", jsonText(content), schema, want)
				}
			}
		}
	}
	return pairs, refused
}

func verdictOf(k *checker, part *jsonschema.Schema, v any) (fits bool, err error) {
	defer k.stopped(&err)
	return k.fits(part, v, place{}), nil
}

// someContents are fixed contents and some at random.
func someContents(g *schemaGen, fixed []string, random int) []any {
	var out []any
	for _, text := range fixed {
		out = append(out, asRead(text))
	}
	for range random {
		out = append(out, asRead(jsonText(g.instance(3))))
	}
	return out
}

// data §1.3
// Each keyword of each draft is asked alone, below others that have parts, and with others. A keyword that
// refuses nothing when it is alone would show that the test does not reach it.
func TestASchemaOfAnyKeywordsHasTheVerdictOfTheLibrary(t *testing.T) {
	for _, d := range drafts {
		t.Run(fmt.Sprint("draft ", d.version), func(t *testing.T) {
			schemas, pairs := 0, 0
			g := newSchemaGen(rand.New(rand.NewPCG(uint64(d.version), 1)), d)
			every := someContents(g, slices.Concat(sameContents, []string{`{"a":1,"b":"x","c":null,"ab":[]}`, `[1,"a",null]`}), 20)
			try := func(dynamicRefs bool, contents int, root func() any) bool {
				schemas++
				g.Shuffle(len(every), func(i, j int) { every[i], every[j] = every[j], every[i] })
				n, refused := sameVerdicts(t, g.document(dynamicRefs, root), every[:min(contents, len(every))])
				pairs += n
				return refused
			}
			for _, k := range g.all {
				refuses := false
				for i := 0; i < 4 || i < 30 && !refuses && !k.silent; i++ {
					refuses = try(k.name == "$dynamicRef", 24, func() any { return g.alone(k, 1) }) || refuses
				}
				if refuses == k.silent {
					t.Errorf("%s alone refuses something: %v", k.name, refuses)
				}
				if k.silent {
					continue
				}
				for _, outer := range g.all {
					if outer.hasParts() && g.IntN(3) == 0 {
						try(k.name == "$dynamicRef", 12, func() any { return g.under(outer, g.alone(k, 0)) })
					}
				}
			}
			for i := range 100 {
				try(d.version == 2020 && i%3 == 0, 20, func() any { return g.schema(2) })
			}
			for i := 0; i < 200 && d.version >= 2019; i++ {
				try(d.version == 2020 && i%3 == 0, 10, g.unevaluated)
			}
			t.Log(schemas, "schemas,", pairs, "pairs")
			if pairs < 10_000 {
				t.Errorf("only %d pairs were compared", pairs)
			}
		})
	}
}

// invariant: a check has the verdict of the library, whatever the schema and the content
func FuzzASchemaOfAnyKeywordsHasTheVerdictOfTheLibrary(f *testing.F) {
	for i := range drafts {
		f.Add(uint8(i), uint64(1))
	}
	f.Fuzz(func(t *testing.T, of uint8, seed uint64) {
		d := drafts[int(of)%len(drafts)]
		g := newSchemaGen(rand.New(rand.NewPCG(uint64(of), seed)), d)
		document := g.document(d.version == 2020 && seed%2 == 0, func() any {
			if d.version >= 2019 && seed%3 == 0 {
				return g.unevaluated()
			}
			return g.schema(2)
		})
		sameVerdicts(t, document, someContents(g, nil, 12))
	})
}
