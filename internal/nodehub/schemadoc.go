package nodehub

import (
	"errors"
	"fmt"
)

// The bounds of a schema's text. Whoever may write a type decides what the mesh compiles, so what
// compiling costs is bounded before it begins.
const (
	maxSchemaValues   = 20_000   // values in the schema
	maxSchemaPointers = 4 << 20  // bytes of the places of all its values together: each compiled part keeps its own
	maxPatternSize    = 5_000    // instructions of one regular expression
	maxPatternsSize   = 50_000   // of all those of a schema
	maxPatternsText   = 16 << 10 // bytes of all those of a schema: a few may name all letters of all scripts
)

// schemaText is what is known of a schema's text before it is compiled.
type schemaText struct {
	values, pointers int
	dynamicAnchors   int
	ids              int
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
			if _, text := member.(string); text && name == "$dynamicAnchor" {
				t.dynamicAnchors++
			} else if text && name == "$id" {
				t.ids++
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
