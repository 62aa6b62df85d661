package nodehub

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"sync/atomic"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The bounds of a schema's text. Whoever may write a type decides what the mesh compiles, so what
// compiling costs is bounded before it begins.
const (
	maxSchemaValues   = 20_000  // values in the schema
	maxSchemaPointers = 4 << 20 // bytes of the places of all its values together: each compiled part keeps its own
	maxPatternSize    = 5_000   // instructions of one regular expression
	maxPatternsSize   = 50_000  // of all those of a schema
)

// schemaText is what is known of a schema's text before it is compiled.
type schemaText struct {
	values, pointers int
	dynamicAnchors   int
}

// measure walks a schema's text and refuses one that is too large to be compiled.
func (t *schemaText) measure(v any, pointer int) error {
	t.values++
	t.pointers += pointer
	if t.values > maxSchemaValues {
		return fmt.Errorf("it has more than %d values", maxSchemaValues)
	}
	if t.pointers > maxSchemaPointers {
		return errors.New("its names are too long for how deep and wide it is")
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if name == "$dynamicAnchor" {
				t.dynamicAnchors++
			}
			// A name is escaped in a place, with up to three bytes for one.
			if err := t.measure(member, pointer+1+3*len(name)); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := t.measure(item, pointer+6); err != nil {
				return err
			}
		}
	}
	return nil
}

// pattern is a regular expression that knows how large its program is.
type pattern struct {
	*regexp.Regexp
	size int
}

// patterns compiles the regular expressions of one schema, within the bounds. It is safe for concurrent
// use: checking a format compiles, too.
type patterns struct {
	total  atomic.Int64
	sealed atomic.Bool // the schema is compiled; what is compiled now is not kept
}

func (p *patterns) compile(text string) (jsonschema.Regexp, error) {
	if len(text) > maxPatternSize {
		return nil, fmt.Errorf("a pattern of %d bytes; at most %d are allowed", len(text), maxPatternSize)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := programSize(tree)
	if size > maxPatternSize {
		return nil, fmt.Errorf("the pattern %q has %d steps; at most %d are allowed: repeat less", text, size, maxPatternSize)
	}
	if !p.sealed.Load() && p.total.Add(int64(size)) > maxPatternsSize {
		return nil, fmt.Errorf("its patterns have more than %d steps together", maxPatternsSize)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return pattern{re, size}, nil
}

// programSize estimates the instructions of a regular expression from above.
func programSize(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)
	if re.Op == syntax.OpCharClass {
		size = 1 + len(re.Rune)/1024 // one step, however many letters it knows
	}
	for _, sub := range re.Sub {
		size += 1 + programSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		// The parser bounds the product of nested repetitions, so this does not overflow.
		size *= max(re.Min, re.Max, 1)
	}
	return size
}
