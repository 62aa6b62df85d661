package nodehub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// probeWork bounds the steps of one probe of a new schema.
const probeWork = 10_000

// ends refuses a schema that no content could be checked with, as a part of it asks itself about the same value whatever
// that is: who breaks a type is told, and not those who write its nodes later.
func (c *compiled) ends() error {
	heights := map[*jsonschema.Schema]int{}
	for s := range c.plans {
		if at := c.loop(s, 0, heights); at != nil {
			return loops(at)
		}
	}
	// What is asked only where something else fits is found by asking.
	var broken *workError
	for _, v := range []any{nil, true, "", json.Number("0"), []any{}, map[string]any{}} {
		k := newChecker(context.Background(), c, 0)
		k.limit = probeWork
		if _, err := k.run(v); !errors.As(err, &broken) || !broken.broken {
			return nil
		}
	}
	return broken
}

// loop follows what a value has to fit in any case, and returns a part from which that leads to itself, or through too
// many others; nil for none. heights are of the parts that are done; 0 is of one that is being looked at.
func (c *compiled) loop(s *jsonschema.Schema, depth int, heights map[*jsonschema.Schema]int) *jsonschema.Schema {
	if h, seen := heights[s]; seen {
		if h == 0 {
			return s
		}
		return nil
	}
	if depth > maxInPlace {
		return s
	}
	heights[s] = 0
	height := 1
	for _, next := range demanded(s) {
		if p := c.plans[next]; next.Bool != nil || p == nil || !p.leads {
			continue
		}
		if at := c.loop(next, depth+1, heights); at != nil {
			return at
		}
		height = max(height, heights[next]+1)
	}
	if height > maxInPlace+1 {
		return s
	}
	heights[s] = height
	return nil
}

// demanded are the parts that a value of a part has to fit, whatever it is.
func demanded(s *jsonschema.Schema) []*jsonschema.Schema {
	list := append([]*jsonschema.Schema(nil), s.AllOf...)
	if s.Ref != nil {
		list = append(list, s.Ref)
	}
	if s.RecursiveRef != nil && s.RecursiveRef.Ref != nil {
		list = append(list, s.RecursiveRef.Ref)
	}
	if s.DynamicRef != nil && s.DynamicRef.Anchor == "" && s.DynamicRef.Ref != nil {
		list = append(list, s.DynamicRef.Ref)
	}
	return list
}

// loops is the error of a part that leads to itself.
func loops(s *jsonschema.Schema) *workError {
	return &workError{broken: true, reason: fmt.Sprintf("'%s' refers to itself, or through more than %d others, at the same value", shorten(s.Location), maxInPlace)}
}
