package nodehub

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// resource is a part of a schema with an $id, or the whole, that has dynamic anchors.
type resource struct {
	anchors map[string]*jsonschema.Schema
	names   []string // of the anchors, in order, so that the same check takes the same steps everywhere
}

func newResource(anchors map[string]*jsonschema.Schema) *resource {
	return &resource{anchors, slices.Sorted(maps.Keys(anchors))}
}

// scope is the way of a check through resources, as far as it matters to dynamic references. nil is one
// through none that has dynamic anchors.
type scope struct {
	outer *scope
	last  *resource // it has an anchor of a name that none has in outer
}

type scopeKey struct {
	outer *scope
	last  *resource
}

// enter returns the scope in a part. What a resource adds to a scope is found out once.
func (k *checker) enter(s *scope, p *plan) *scope {
	if p.resource == nil || s != nil && s.last == p.resource {
		return s
	}
	key := scopeKey{s, p.resource}
	if known, ok := k.scopes[key]; ok {
		return known
	}
	inner := s
	for _, name := range p.resource.names {
		if k.outermost(s, name) == nil {
			inner = &scope{s, p.resource}
			break
		}
	}
	k.scopes[key] = inner
	return inner
}

// outermost is the part with an anchor in the first resource on the way that has it; nil for none.
func (k *checker) outermost(s *scope, anchor string) (part *jsonschema.Schema) {
	for ; s != nil; s = s.outer {
		k.spend(1)
		if p := s.last.anchors[anchor]; p != nil {
			part = p
		}
	}
	return part
}

// dynamic is the part that a dynamic reference leads to.
func (k *checker) dynamic(ref *jsonschema.DynamicRef, at place) *jsonschema.Schema {
	if ref == nil {
		return nil
	}
	if ref.Anchor != "" && ref.Ref.DynamicAnchor == ref.Anchor {
		if part := k.outermost(at.scope, ref.Anchor); part != nil {
			return part
		}
	}
	return ref.Ref
}
