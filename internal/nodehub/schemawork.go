package nodehub

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The bounds of checking one content. A unit is about a visit of one value by one part of a schema,
// some hundred nanoseconds.
const (
	maxWork    = 1_000_000 // units of one check
	detailWork = 50_000    // units up to which a refusal names the places
	maxInPlace = 100       // parts of a schema that lead from one to the next at the same value
)

// workError says that a check would cost too much.
type workError struct{ reason string }

func (e *workError) Error() string { return e.reason }

// work counts from above what checking a content costs, before it is checked: the validator can not be
// stopped, and a schema of a few lines can make it visit one value 2^60 times. It visits what the
// validator might, whatever the outcome of each part, and stops at maxWork: counting is bounded by the
// same number. The same schema and content cost the same everywhere.
type work struct {
	schema *compiled
	done   int
	walked int // units that were counted, those included that another way to go has made void
}

// workOf is the cost of checking v, or *workError.
func workOf(c *compiled, v any) (units int, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*workError)
			if !ok {
				panic(r)
			}
			err = e
		}
	}()
	w := work{schema: c}
	w.visit(c.schema, v, 0, 0, false)
	return w.done, nil
}

// add spends units; where too many are spent it ends the count.
func (w *work) add(units int) {
	w.done += units
	if w.walked += units; w.done > maxWork || w.walked > 4*maxWork {
		panic(&workError{fmt.Sprintf("checking this content takes more than %d steps; let the schema refer to its parts less often, or make the content smaller", maxWork)})
	}
}

// visit counts one part of the schema at one value. depth is the value's; inPlace are the parts that led
// here at this value; tracked tells that one of them asks what was evaluated.
func (w *work) visit(s *jsonschema.Schema, v any, depth, inPlace int, tracked bool) {
	w.add(1 + depth/8 + inPlace/16)
	if s == nil || s.Bool != nil {
		return
	}
	if inPlace > maxInPlace {
		panic(&workError{fmt.Sprintf("'%s' refers to itself, or through more than %d others, at the same value", shorten(s.Location), maxInPlace)})
	}
	if s.Const != nil {
		w.compare(v, *s.Const)
	}
	if s.Enum != nil {
		for _, item := range s.Enum.Values {
			w.compare(v, item)
		}
	}
	tracked = tracked || s.UnevaluatedProperties != nil || s.UnevaluatedItems != nil
	here := func(sub *jsonschema.Schema) {
		if sub != nil {
			w.visit(sub, v, depth, inPlace+1, tracked)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		if tracked {
			w.add(len(v))
		}
		w.object(s, v, depth, here)
	case []any:
		if tracked {
			w.add(len(v))
		}
		w.array(s, v, depth)
	case string:
		w.text(s, v)
	case json.Number:
		w.number(s, v)
	}
	here(s.Ref)
	here(s.Not)
	here(s.If)
	here(s.Then)
	here(s.Else)
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for _, sub := range list {
			here(sub)
		}
	}
	here(s.RecursiveRef)
	if s.DynamicRef != nil {
		w.add(depth + inPlace)
		w.dynamic(s.DynamicRef, here)
	}
}

// dynamic counts the dearest of the parts that a dynamic reference may lead to: it leads to one.
func (w *work) dynamic(ref *jsonschema.DynamicRef, here func(*jsonschema.Schema)) {
	before, most := w.done, 0
	targets := w.schema.dynamic[ref.Anchor]
	if ref.Anchor == "" || ref.Ref.DynamicAnchor != ref.Anchor || len(targets) == 0 {
		targets = []*jsonschema.Schema{ref.Ref}
	}
	for _, target := range targets {
		w.done = before
		here(target)
		most = max(most, w.done-before)
	}
	w.done = before + most
}

func (w *work) object(s *jsonschema.Schema, obj map[string]any, depth int, here func(*jsonschema.Schema)) {
	w.add(len(obj) + len(s.Required))
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
	for name, value := range obj {
		if sub := s.Properties[name]; sub != nil {
			w.visit(sub, value, depth+1, 0, false)
		}
		for re, sub := range s.PatternProperties {
			w.match(re, name)
			w.visit(sub, value, depth+1, 0, false)
		}
		if additional != nil {
			w.visit(additional, value, depth+1, 0, false)
		}
		if s.UnevaluatedProperties != nil {
			w.visit(s.UnevaluatedProperties, value, depth+1, 0, false)
		}
		if s.PropertyNames != nil {
			w.visit(s.PropertyNames, name, depth, 0, false)
		}
	}
	for _, dep := range s.Dependencies {
		switch dep := dep.(type) {
		case []string:
			w.add(1 + len(dep))
		case *jsonschema.Schema:
			here(dep)
		}
	}
	for _, names := range s.DependentRequired {
		w.add(1 + len(names))
	}
	for _, sub := range s.DependentSchemas {
		here(sub)
	}
}

func (w *work) array(s *jsonschema.Schema, arr []any, depth int) {
	w.add(len(arr))
	if s.UniqueItems {
		w.unique(arr)
	}
	one, _ := s.Items.(*jsonschema.Schema)
	list, _ := s.Items.([]*jsonschema.Schema)
	additional, _ := s.AdditionalItems.(*jsonschema.Schema)
	for i, item := range arr {
		at := func(sub *jsonschema.Schema) {
			if sub != nil {
				w.visit(sub, item, depth+1, 0, false)
			}
		}
		at(one)
		if i < len(list) {
			at(list[i])
		} else {
			at(additional)
		}
		if i < len(s.PrefixItems) {
			at(s.PrefixItems[i])
		} else {
			at(s.Items2020)
		}
		at(s.Contains)
		at(s.UnevaluatedItems)
	}
}

// unique counts a comparison of each item with each other where they are few, or are arrays and objects,
// which can be made to share a hash.
func (w *work) unique(arr []any) {
	nested := 0
	for _, item := range arr {
		w.size(item)
		switch item.(type) {
		case map[string]any, []any:
			nested++
		}
	}
	if len(arr) <= 20 {
		for i := range arr {
			for j := range i {
				w.compare(arr[i], arr[j])
			}
		}
		return
	}
	w.add(min(nested, maxWork) * min(nested, maxWork) / 16)
}

func (w *work) text(s *jsonschema.Schema, text string) {
	if s.MinLength != nil || s.MaxLength != nil || s.Format != nil {
		w.add(1 + len(text)/64)
	}
	if s.Format != nil && s.Format.Name == "regex" {
		w.add(min(len(text), maxPatternSize))
	}
	if s.Pattern != nil {
		w.match(s.Pattern, text)
	}
}

// match counts a regular expression: its steps are at most its size times the text's, each a fraction of a unit.
func (w *work) match(re jsonschema.Regexp, text string) {
	size := maxPatternSize
	if p, ok := re.(pattern); ok {
		size = p.size
	}
	w.add(1 + (len(text)+1)*size/64)
}

func (w *work) number(s *jsonschema.Schema, n json.Number) {
	if s.Types != nil {
		w.add(digits(n))
	}
	for _, limit := range []*big.Rat{s.Minimum, s.Maximum, s.ExclusiveMinimum, s.ExclusiveMaximum, s.MultipleOf} {
		if limit != nil {
			w.add(1 + digits(n) + (limit.Num().BitLen()+limit.Denom().BitLen())/32)
		}
	}
}

// digits is what a number costs to be read: a long one, or one with a large exponent, has many digits.
func digits(n json.Number) int {
	size := len(n)
	if i := strings.IndexAny(string(n), "eE"); i >= 0 {
		if e, err := strconv.Atoi(string(n[i+1:])); err == nil {
			size += max(e, -e)
		}
	}
	return size / 8
}

// compare counts a comparison of two values, up to where it must find them different.
func (w *work) compare(a, b any) {
	w.add(1)
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok && len(a) == len(b) {
			for name, value := range a {
				if other, ok := b[name]; ok {
					w.compare(value, other)
				}
			}
		}
	case []any:
		if b, ok := b.([]any); ok && len(a) == len(b) {
			for i := range a {
				w.compare(a[i], b[i])
			}
		}
	case string:
		if b, ok := b.(string); ok && len(a) == len(b) {
			w.add(len(a) / 256)
		}
	case json.Number:
		if b, ok := b.(json.Number); ok {
			w.add(1 + digits(a) + digits(b))
		}
	}
}

// size counts a walk over a value.
func (w *work) size(v any) {
	w.add(1)
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			w.add(1 + len(name)/64)
			w.size(member)
		}
	case []any:
		for _, item := range v {
			w.size(item)
		}
	case string:
		w.add(len(v) / 64)
	case json.Number:
		w.add(digits(v))
	}
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
		s.UnevaluatedProperties, s.Contains, s.Items, s.AdditionalItems, s.PrefixItems, s.Items2020, s.UnevaluatedItems, s.ContentSchema} {
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
