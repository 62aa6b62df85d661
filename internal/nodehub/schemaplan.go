package nodehub

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hubmesh/hubmesh/internal/node"
)

// compiled is a schema that can be checked with. It does not change once it is made.
type compiled struct {
	schema *jsonschema.Schema
	plans  map[*jsonschema.Schema]*plan
}

// plan is what is worked out once of one part of a schema: in which order its keywords are asked, so that
// what tells alternatives apart is asked before what is below them.
type plan struct {
	types      []string     // those that are allowed; nil for all
	leads      bool         // to other parts: they may lead back, and its verdict may be worth keeping
	constant   *oneOfValues // nil for all values
	enum       *oneOfValues // nil for all values
	limits     []limit
	properties []property // those that tell alternatives apart first
	patterns   []patternProperty
	dependent  []dependent
	resource   *resource // that the part is in; nil for one without dynamic anchors
}

type property struct {
	name string
	part *jsonschema.Schema
}

type patternProperty struct {
	name jsonschema.Regexp
	part *jsonschema.Schema
}

// dependent is what an object must fulfil if it has a member.
type dependent struct {
	name     string
	required []string
	part     *jsonschema.Schema
}

// plan works out what a check needs to know of all parts. The text is what was measured of the schema. It
// refuses a schema whose dynamic references may lead where only the library would know.
func (c *compiled) plan(text schemaText) error {
	var all []*jsonschema.Schema
	c.plans = map[*jsonschema.Schema]*plan{c.schema: nil}
	for todo := []*jsonschema.Schema{c.schema}; len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		all = append(all, s)
		parts(s, func(sub *jsonschema.Schema) {
			if _, ok := c.plans[sub]; !ok {
				c.plans[sub] = nil
				todo = append(todo, sub)
			}
		})
	}
	dynamic, anchors, ids := false, 0, 0
	resources := map[string]map[string]*jsonschema.Schema{} // by location: the anchors
	for _, s := range all {
		if s.RecursiveRef != nil && s.RecursiveRef.RecursiveAnchor {
			return errors.New("it uses $recursiveAnchor; use $dynamicAnchor and $dynamicRef of draft 2020-12")
		}
		dynamic = dynamic || s.DynamicRef != nil && s.DynamicRef.Anchor != ""
		if !strings.HasPrefix(s.Location, "https://json-schema.org/") {
			if s.DynamicAnchor != "" {
				anchors++
			}
			if s.ID != "" {
				ids++
			}
		}
		if s.ID != "" || strings.HasSuffix(s.Location, "#") {
			resources[s.Location] = map[string]*jsonschema.Schema{}
		}
	}
	if dynamic && anchors < text.dynamicAnchors {
		return errors.New("it has a $dynamicAnchor in a part that nothing refers to by $ref")
	}
	if dynamic && ids < text.ids {
		return errors.New("it has a $id in a part that nothing refers to by $ref")
	}
	within := func(location string) (at string, anchors map[string]*jsonschema.Schema) {
		for {
			if anchors, ok := resources[location]; ok {
				return location, anchors
			}
			cut := strings.LastIndexAny(location, "/#")
			if location[cut] == '#' {
				return location[:cut+1], resources[location[:cut+1]]
			}
			if location = location[:cut]; !strings.Contains(location, "#") {
				return location, nil
			}
		}
	}
	if dynamic {
		for _, s := range all {
			if s.DynamicAnchor != "" {
				if _, anchors := within(s.Location); anchors != nil {
					anchors[s.DynamicAnchor] = s
				}
			}
		}
	}
	entered := map[string]*resource{}
	for _, s := range all {
		c.plans[s] = newPlan(s)
		if !dynamic {
			continue
		}
		at, anchors := within(s.Location)
		if len(anchors) == 0 {
			continue
		}
		if entered[at] == nil {
			entered[at] = newResource(anchors)
		}
		c.plans[s].resource = entered[at]
	}
	return nil
}

func newPlan(s *jsonschema.Schema) *plan {
	p := &plan{limits: limitsOf(s)}
	if s.Types != nil && !s.Types.IsEmpty() {
		p.types = s.Types.ToStrings()
	}
	parts(s, func(*jsonschema.Schema) { p.leads = true })
	if s.Const != nil {
		p.constant = newOneOfValues([]any{*s.Const})
	}
	if s.Enum != nil {
		p.enum = newOneOfValues(s.Enum.Values)
	}
	for name, part := range s.Properties {
		p.properties = append(p.properties, property{name, part})
	}
	slices.SortFunc(p.properties, func(a, b property) int {
		return cmp.Or(cmp.Compare(weight(a.part), weight(b.part)), strings.Compare(a.name, b.name))
	})
	for re, part := range s.PatternProperties {
		p.patterns = append(p.patterns, patternProperty{re, part})
	}
	slices.SortFunc(p.patterns, func(a, b patternProperty) int { return strings.Compare(a.name.String(), b.name.String()) })
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		switch dep := s.Dependencies[name].(type) {
		case []string:
			p.dependent = append(p.dependent, dependent{name: name, required: dep})
		case *jsonschema.Schema:
			p.dependent = append(p.dependent, dependent{name: name, part: dep})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentRequired)) {
		p.dependent = append(p.dependent, dependent{name: name, required: s.DependentRequired[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentSchemas)) {
		p.dependent = append(p.dependent, dependent{name: name, part: s.DependentSchemas[name]})
	}
	return p
}

// weight orders properties: those that tell alternatives apart come first, those with parts of their own last.
func weight(s *jsonschema.Schema) int {
	if s.Const != nil || s.Enum != nil || s.Bool != nil {
		return 0
	}
	w := 1
	parts(s, func(*jsonschema.Schema) { w = 2 })
	return w
}

// oneOfValues are the values of a const or an enum.
type oneOfValues struct {
	texts  map[string]bool
	others map[string]bool // by [canonical]
	nested bool            // some are arrays or objects
}

func newOneOfValues(values []any) *oneOfValues {
	e := &oneOfValues{texts: map[string]bool{}, others: map[string]bool{}}
	for _, v := range values {
		switch text := v.(type) {
		case string:
			e.texts[text] = true
			continue
		case map[string]any, []any:
			e.nested = true
		}
		e.others[string(canonical(nil, v))] = true
	}
	return e
}

func (e *oneOfValues) has(v any) bool {
	if e == nil {
		return true
	}
	switch v := v.(type) {
	case string:
		return e.texts[v]
	case map[string]any, []any:
		if !e.nested {
			return false
		}
	}
	if len(e.others) == 0 {
		return false
	}
	return e.others[string(canonical(nil, v))]
}

// canonical appends a text that equal values share and others do not: members in the order of their
// names, numbers by value.
func canonical(dst []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		dst = append(dst, '{')
		for _, name := range slices.Sorted(maps.Keys(v)) {
			dst = canonical(canonical(dst, name), v[name])
		}
		return append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for _, item := range v {
			dst = append(canonical(dst, item), ',')
		}
		return append(dst, ']')
	case json.Number:
		return append(dst, node.CanonicalNumber(string(v))...)
	case string:
		quoted, _ := json.Marshal(v)
		return append(dst, quoted...)
	case bool:
		if v {
			return append(dst, 't')
		}
		return append(dst, 'f')
	}
	return append(dst, 'n')
}

// parts calls f with every part that a part of a schema leads to.
func parts(s *jsonschema.Schema, f func(*jsonschema.Schema)) {
	some := func(v any) {
		switch v := v.(type) {
		case *jsonschema.Schema:
			if v != nil {
				f(v)
			}
		case []*jsonschema.Schema:
			for _, sub := range v {
				f(sub)
			}
		}
	}
	for _, v := range []any{s.Ref, s.RecursiveRef, s.Not, s.AllOf, s.AnyOf, s.OneOf, s.If, s.Then, s.Else, s.PropertyNames, s.AdditionalProperties,
		s.UnevaluatedProperties, s.Contains, s.Items, s.AdditionalItems, s.PrefixItems, s.Items2020, s.UnevaluatedItems} {
		some(v)
	}
	for _, sub := range s.Properties {
		f(sub)
	}
	for _, sub := range s.PatternProperties {
		f(sub)
	}
	for _, sub := range s.Dependencies {
		some(sub)
	}
	for _, sub := range s.DependentSchemas {
		f(sub)
	}
	if s.DynamicRef != nil {
		f(s.DynamicRef.Ref)
	}
}
