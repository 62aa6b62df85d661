package nodehub

import (
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// object asks the members of an object.
func (k *checker) object(s *jsonschema.Schema, p *plan, obj map[string]any, at place) bool {
	k.spend((len(p.properties) + len(p.dependent)) / lookedFor)
	for _, member := range p.properties {
		if v, ok := obj[member.name]; ok && !k.fits(member.part, v, at.below()) {
			return false
		}
	}
	for _, d := range p.dependent {
		if _, ok := obj[d.name]; !ok {
			continue
		}
		if !k.hasAll(obj, d.required) || d.part != nil && !k.fits(d.part, obj, at.in()) {
			return false
		}
	}
	if len(p.patterns) == 0 && s.AdditionalProperties == nil && s.PropertyNames == nil {
		return true
	}
	for _, name := range k.sorted(obj) {
		if s.PropertyNames != nil && !k.fits(s.PropertyNames, name, at.below()) {
			return false
		}
		known, fits := k.others(s, p, name, obj[name], at)
		if !fits {
			return false
		}
		if !known && s.AdditionalProperties == false {
			return false
		}
	}
	return true
}

// others asks what is said of a member besides under its own name. known tells that its name is one of
// those that the part expects.
func (k *checker) others(s *jsonschema.Schema, p *plan, name string, v any, at place) (known, fits bool) {
	_, known = s.Properties[name]
	for _, re := range p.patterns {
		if k.matches(re.name, name) {
			known = true
			if !k.fits(re.part, v, at.below()) {
				return known, false
			}
		}
	}
	if additional, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && !known {
		return known, k.fits(additional, v, at.below())
	}
	return known, true
}

// itemPart is the part that is for the item at a place of an array; nil for none, and then there is none for
// those behind it. Not allowed are items that may not be there.
func itemPart(s *jsonschema.Schema, i int) (part *jsonschema.Schema, allowed bool) {
	if s.DraftVersion >= 2020 {
		if i < len(s.PrefixItems) {
			return s.PrefixItems[i], true
		}
		return s.Items2020, true
	}
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		return items, true
	case []*jsonschema.Schema:
		if i < len(items) {
			return items[i], true
		}
	}
	if additional, ok := s.AdditionalItems.(*jsonschema.Schema); ok {
		return additional, true
	}
	return nil, s.AdditionalItems != false
}

// array asks the items of an array.
func (k *checker) array(s *jsonschema.Schema, arr []any, at place) bool {
	for i, item := range arr {
		part, allowed := itemPart(s, i)
		if !allowed {
			return false
		}
		if part == nil {
			break
		}
		if !k.fits(part, item, at.below()) {
			return false
		}
	}
	if s.Contains == nil {
		return true
	}
	n := k.contained(s, arr, at)
	if s.MinContains == nil && n == 0 {
		return false
	}
	return fitsCount(n, s.MinContains, s.MaxContains)
}

// contained counts the items that a part's contains asks for.
func (k *checker) contained(s *jsonschema.Schema, arr []any, at place) int {
	n := 0
	for _, item := range arr {
		if k.fits(s.Contains, item, at.below()) {
			n++
		}
	}
	return n
}

// unevaluated asks what is left of a value that no other part has looked at.
func (k *checker) unevaluated(s *jsonschema.Schema, v any, at place) bool {
	switch v := v.(type) {
	case map[string]any:
		if s.UnevaluatedProperties == nil || s.DraftVersion < 2019 {
			return true
		}
		seen := map[string]bool{}
		k.seenMembers(s, v, at, lookers{}, seen)
		for _, name := range k.sorted(v) {
			if !seen[name] && !k.fits(s.UnevaluatedProperties, v[name], at.below()) {
				return false
			}
		}
	case []any:
		if s.UnevaluatedItems == nil || s.DraftVersion < 2019 {
			return true
		}
		seen := make([]bool, len(v))
		k.seenItems(s, v, at, lookers{}, seen)
		for i, item := range v {
			if !seen[i] && !k.fits(s.UnevaluatedItems, item, at.below()) {
				return false
			}
		}
	}
	return true
}

// lookers are the parts whose looks at a value are marked already.
type lookers map[verdictKey]bool

// again notes a part; true where it was noted before.
func (l lookers) again(s *jsonschema.Schema, at place) bool {
	key := verdictKey{part: s, scope: at.scope}
	before := l[key]
	l[key] = true
	return before
}

// looking calls f with each part that has looked at the same value: those it leads to and that fit.
func (k *checker) looking(s *jsonschema.Schema, v any, at place, f func(*jsonschema.Schema)) {
	see := func(part *jsonschema.Schema) {
		if part != nil && part.Bool == nil && k.fits(part, v, at.in()) {
			f(part)
		}
	}
	see(s.Ref)
	if s.Ref != nil && s.DraftVersion < 2019 {
		return
	}
	see(s.RecursiveRef)
	see(k.dynamic(s.DynamicRef, at))
	for _, list := range [...][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for _, part := range list {
			see(part)
		}
	}
	if s.If != nil {
		if k.fits(s.If, v, at.in()) {
			see(s.If)
			see(s.Then)
		} else {
			see(s.Else)
		}
	}
	if obj, ok := v.(map[string]any); ok {
		for _, d := range k.schema.plans[s].dependent {
			if _, ok := obj[d.name]; ok {
				see(d.part)
			}
		}
	}
}

// seenMembers marks the members of an object that a part that fits has looked at. The first part is the one
// whose own unevaluatedProperties is asked.
func (k *checker) seenMembers(s *jsonschema.Schema, obj map[string]any, at place, by lookers, seen map[string]bool) {
	k.spend(1 + len(obj))
	p := k.schema.plans[s]
	at.scope = k.enter(at.scope, p)
	first := len(by) == 0
	if by.again(s, at) {
		return
	}
	if s.AdditionalProperties != nil || !first && s.UnevaluatedProperties != nil {
		for name := range obj {
			seen[name] = true
		}
		return
	}
	for _, name := range k.sorted(obj) {
		if known, _ := k.others(s, p, name, obj[name], at); known {
			seen[name] = true
		}
	}
	k.looking(s, obj, at, func(part *jsonschema.Schema) { k.seenMembers(part, obj, at.in(), by, seen) })
}

// seenItems marks the items of an array that a part that fits has looked at.
func (k *checker) seenItems(s *jsonschema.Schema, arr []any, at place, by lookers, seen []bool) {
	k.spend(1 + len(arr))
	at.scope = k.enter(at.scope, k.schema.plans[s])
	all := len(by) > 0 && s.UnevaluatedItems != nil
	if by.again(s, at) {
		return
	}
	for i := range arr {
		if part, _ := itemPart(s, i); all || part != nil || s.DraftVersion < 2020 && s.AdditionalItems != nil {
			seen[i] = true
		} else if s.Contains != nil && s.DraftVersion >= 2020 && k.fits(s.Contains, arr[i], at.below()) {
			seen[i] = true
		}
	}
	k.looking(s, arr, at, func(part *jsonschema.Schema) { k.seenItems(part, arr, at.in(), by, seen) })
}
