package nodehub

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The bounds of a refusal's text.
const (
	maxReasons = 5   // places
	maxWhere   = 300 // bytes of a place: its end
)

// why names the first places where a content does not fit, within a bound of work of its own.
func (k *checker) why(v any) string {
	k.limit = k.done + detailWork
	e := explainer{k: k, met: map[metKey]bool{}}
	err := func() (err error) {
		defer k.stopped(&err) // what was found until then is told
		e.part(k.schema.schema, v, place{}, "")
		return nil
	}()
	if len(e.reasons) == 0 {
		if broken := new(workError); errors.As(err, &broken) && broken.broken {
			return broken.Error()
		}
		return "it is too large to say where"
	}
	return strings.Join(e.reasons, "; ")
}

// explainer walks to where a value does not fit. It asks in the order of the check, so that it meets what was
// refused before a part that leads to itself.
type explainer struct {
	k       *checker
	reasons []string
	met     map[metKey]bool // what was told of: two ways may lead to the same part
}

type metKey struct {
	verdictKey
	where string
}

func (e *explainer) full() bool { return len(e.reasons) >= maxReasons }

// say adds a reason. where is the JSON pointer of the value.
func (e *explainer) say(where, format string, args ...any) {
	if len(where) > maxWhere {
		where = "…" + strings.ToValidUTF8(where[len(where)-maxWhere:], "")
	}
	reason := fmt.Sprintf("at '%s': ", where) + shorten(oneLine(fmt.Sprintf(format, args...)))
	for _, said := range e.reasons {
		if said == reason {
			return
		}
	}
	if !e.full() {
		e.reasons = append(e.reasons, reason)
	}
}

// below is the pointer of a member or an item.
func below(where, name string) string {
	return where + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// part says why a value does not fit a part, if it does not.
func (e *explainer) part(s *jsonschema.Schema, v any, at place, where string) {
	if e.full() || s == nil || e.k.fits(s, v, at) {
		return
	}
	key := metKey{verdictKey{s, identity(v), at.scope}, where}
	if e.met[key] {
		return
	}
	e.met[key] = true
	if s.Bool != nil {
		e.say(where, "no value is allowed here")
		return
	}
	p := e.k.schema.plans[s]
	at.scope = e.k.enter(at.scope, p)
	if !e.k.about(p, v) || !e.k.format(s, v) {
		e.about(s, p, v, where)
		return
	}
	if s.Ref != nil && s.DraftVersion < 2019 {
		e.part(s.Ref, v, at.in(), where)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		e.object(s, p, v, at, where)
	case []any:
		e.array(s, v, at, where)
	case string:
		if !e.k.textLength(s, v) {
			e.say(where, "the text is too short or too long: %s characters are allowed", countText(s.MinLength, s.MaxLength))
		}
		if s.Pattern != nil && !e.k.matches(s.Pattern, v) {
			e.say(where, "%s does not match pattern '%s'", valueText(v), shorten(s.Pattern.String()))
		}
	case json.Number:
		if broken := e.k.brokenLimit(s, p, v); broken != "" {
			e.say(where, "%s", broken)
		}
	}
	e.combined(s, v, at, where)
	e.unevaluated(s, v, at, where)
}

func (e *explainer) about(s *jsonschema.Schema, p *plan, v any, where string) {
	switch {
	case p.types != nil && !e.k.hasType(p.types, v):
		e.say(where, "got %s, want %s", typeOf(v), strings.Join(p.types, " or "))
	case !p.constant.has(v):
		e.say(where, "value must be %s", valueText(*s.Const))
	case !p.enum.has(v):
		var allowed []string
		for i, value := range s.Enum.Values {
			if i == 10 {
				allowed = append(allowed, fmt.Sprintf("… (%d values)", len(s.Enum.Values)))
				break
			}
			allowed = append(allowed, valueText(value))
		}
		e.say(where, "value must be one of %s", strings.Join(allowed, ", "))
	default:
		e.say(where, "%s is not valid %s", valueText(v), s.Format.Name)
	}
}

func (e *explainer) object(s *jsonschema.Schema, p *plan, obj map[string]any, at place, where string) {
	if !fitsCount(len(obj), s.MinProperties, s.MaxProperties) {
		e.say(where, "it has %d properties; %s are allowed", len(obj), countText(s.MinProperties, s.MaxProperties))
	}
	e.missing(obj, s.Required, where, "")
	e.k.spend((len(p.properties) + len(p.dependent)) / lookedFor)
	for _, member := range p.properties {
		if v, ok := obj[member.name]; ok {
			e.part(member.part, v, at.below(), below(where, member.name))
		}
	}
	for _, d := range p.dependent {
		if _, ok := obj[d.name]; ok {
			e.missing(obj, d.required, where, fmt.Sprintf(", which '%s' needs", shorten(d.name)))
			e.part(d.part, obj, at.in(), where)
		}
	}
	for _, name := range e.k.sorted(obj) {
		if e.full() {
			return
		}
		if s.PropertyNames != nil && !e.k.fits(s.PropertyNames, name, at.below()) {
			e.say(where, "invalid property name '%s'", shorten(name))
		}
		for _, re := range p.patterns {
			if e.k.matches(re.name, name) {
				e.part(re.part, obj[name], at.below(), below(where, name))
			}
		}
		known, _ := e.k.others(s, p, name, obj[name], at)
		switch additional := s.AdditionalProperties.(type) {
		case bool:
			if !known && !additional {
				e.say(where, "additional property '%s' is not allowed", shorten(name))
			}
		case *jsonschema.Schema:
			if !known {
				e.part(additional, obj[name], at.below(), below(where, name))
			}
		}
	}
}

func (e *explainer) missing(obj map[string]any, names []string, where, why string) {
	for _, name := range names {
		if _, ok := obj[name]; !ok {
			e.say(where, "missing property '%s'%s", shorten(name), why)
		}
	}
}

func (e *explainer) array(s *jsonschema.Schema, arr []any, at place, where string) {
	if !fitsCount(len(arr), s.MinItems, s.MaxItems) {
		e.say(where, "it has %d items; %s are allowed", len(arr), countText(s.MinItems, s.MaxItems))
	}
	if s.UniqueItems {
		if same := e.k.repeated(arr); same != nil {
			e.say(where, "items at %d and %d are equal", same[0], same[1])
		}
	}
	for i, item := range arr {
		if e.full() {
			return
		}
		part, allowed := itemPart(s, i)
		if allowed && part == nil {
			break
		}
		if !allowed {
			e.say(where, "items from %d on are not allowed", i)
			break
		}
		e.part(part, item, at.below(), below(where, strconv.Itoa(i)))
	}
	if s.Contains != nil {
		least := 1
		if s.MinContains != nil {
			least = *s.MinContains
		}
		if n := e.k.contained(s, arr, at); !fitsCount(n, &least, s.MaxContains) {
			e.say(where, "it has %d of the items that it must contain; %s are allowed", n, countText(&least, s.MaxContains))
		}
	}
}

// unevaluated says which members or items are left that may not be there.
func (e *explainer) unevaluated(s *jsonschema.Schema, v any, at place, where string) {
	if e.full() || s.DraftVersion < 2019 {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if s.UnevaluatedProperties == nil {
			return
		}
		seen := map[string]bool{}
		e.k.seenMembers(s, v, at, lookers{}, seen)
		for _, name := range e.k.sorted(v) {
			if !seen[name] && !e.k.fits(s.UnevaluatedProperties, v[name], at.below()) {
				e.say(where, "property '%s' is not allowed", shorten(name))
			}
		}
	case []any:
		if s.UnevaluatedItems == nil {
			return
		}
		seen := make([]bool, len(v))
		e.k.seenItems(s, v, at, lookers{}, seen)
		for i, item := range v {
			if !seen[i] && !e.k.fits(s.UnevaluatedItems, item, at.below()) {
				e.say(where, "item %d is not allowed", i)
			}
		}
	}
}

func (e *explainer) combined(s *jsonschema.Schema, v any, at place, where string) {
	for _, ref := range [...]*jsonschema.Schema{s.Ref, s.RecursiveRef, e.k.dynamic(s.DynamicRef, at)} {
		e.part(ref, v, at.in(), where)
	}
	if s.Not != nil && e.k.fits(s.Not, v, at.in()) {
		e.say(where, "it fits what it must not fit ('not')")
	}
	for _, part := range s.AllOf {
		e.part(part, v, at.in(), where)
	}
	if len(s.AnyOf) > 0 && len(e.k.which(s.AnyOf, v, at, 1)) == 0 {
		e.alternatives(s.AnyOf, v, at, where)
	}
	if len(s.OneOf) > 0 {
		switch which := e.k.which(s.OneOf, v, at, 2); len(which) {
		case 0:
			e.alternatives(s.OneOf, v, at, where)
		case 2:
			e.say(where, "it fits the alternatives %d and %d of 'oneOf', and must fit one only", which[0], which[1])
		}
	}
	if s.If != nil {
		part := s.Else
		if e.k.fits(s.If, v, at.in()) {
			part = s.Then
		}
		e.part(part, v, at.in(), where)
	}
}

// alternatives says why a value fits none of several parts. It tells of those that were most likely meant:
// by their type, then by what else can be told of the value itself.
func (e *explainer) alternatives(parts []*jsonschema.Schema, v any, at place, where string) {
	best := 0
	likely := make([]int, len(parts))
	for i, part := range parts {
		likely[i] = e.likely(part, v, at.in())
		best = max(best, likely[i])
	}
	for i, part := range parts {
		if likely[i] == best {
			e.part(part, v, at.in(), where)
		}
	}
}

// likely ranks a part that does not fit: 0 for another type, 1 for another value, 2 for other members, 3
// for one that only differs below.
func (e *explainer) likely(s *jsonschema.Schema, v any, at place) int {
	if s.Bool != nil || at.inPlace > maxInPlace {
		return 0
	}
	p := e.k.schema.plans[s]
	at.scope = e.k.enter(at.scope, p)
	switch {
	case p.types != nil && !e.k.hasType(p.types, v):
		return 0
	case !e.k.about(p, v):
		return 1
	}
	rank := 3
	if obj, ok := v.(map[string]any); ok {
		if !e.k.hasAll(obj, s.Required) {
			rank = 2
		}
		for _, member := range p.properties {
			if v, ok := obj[member.name]; ok && weight(member.part) == 0 && !e.k.fits(member.part, v, at.below()) {
				rank = 1
			}
		}
	}
	for _, ref := range [...]*jsonschema.Schema{s.Ref, s.RecursiveRef, e.k.dynamic(s.DynamicRef, at)} {
		if ref != nil {
			rank = min(rank, e.likely(ref, v, at.in()))
		}
	}
	for _, part := range s.AllOf {
		rank = min(rank, e.likely(part, v, at.in()))
	}
	return rank
}

// countText says how many are allowed.
func countText(least, most *int) string {
	switch {
	case least != nil && most != nil:
		return fmt.Sprintf("%d to %d", *least, *most)
	case least != nil:
		return fmt.Sprintf("%d or more", *least)
	case most != nil:
		return fmt.Sprintf("at most %d", *most)
	}
	return "any number"
}

// valueText writes a value in a reason.
func valueText(v any) string {
	switch v := v.(type) {
	case string:
		if len(v) > 100 {
			return "'" + strings.ToValidUTF8(v[:100], "") + "…'"
		}
		return "'" + v + "'"
	case map[string]any, []any:
		return "an " + typeOf(v)
	case json.Number:
		return shorten(string(v))
	}
	return fmt.Sprint(v)
}
