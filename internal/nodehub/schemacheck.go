package nodehub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"unsafe"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The bounds of checking one content, in steps. A step is about a visit of one value by one part of a
// schema, some hundred nanoseconds; docs/types.md gives what was measured.
const (
	workBase    = 1_000_000 // steps that every check may take
	workPerByte = 8         // further steps for each byte of the content
	maxWork     = 5_000_000 // steps of the largest check
	detailWork  = 200_000   // steps to find out where a content does not fit
	maxInPlace  = 100       // parts of a schema that lead from one to the next at the same value
	keptFrom    = 16        // steps of a verdict that is worth keeping
	askEvery    = 4096      // steps between two looks whether anybody waits

	lookedFor     = 8    // names that are looked for in an object for one step
	lettersLooked = 1024 // bytes of a text that is looked for in a table for one step
)

// workFor is how many steps the check of a content of so many bytes may take.
func workFor(size int) int { return min(workBase+workPerByte*size, maxWork) }

// workError says that a check would cost too much.
type workError struct {
	reason string
	broken bool // whatever the content: the schema is at fault
}

func (e *workError) Error() string { return e.reason }

// errNobodyWaits ends a check whose caller has left.
var errNobodyWaits = errors.New("nobody waits for the check any more")

// checker asks whether one content fits a schema, counts what that takes, and stops where it takes too
// much or nobody waits any more. Whoever may write a type decides what is asked, so two things keep the
// work to what there is to ask. What tells alternatives apart (type, const, enum, required, simple members)
// is asked before what is below them. And a verdict of a part at a value that took long is kept, so that no
// part looks at a value twice, however many ways lead there: the work is at most the schema's parts times
// the content's values.
type checker struct {
	ctx     context.Context
	schema  *compiled
	bytes   int // of the content
	limit   int
	done    int
	asked   int // the steps done at the last look at ctx
	keep    int // the steps of a verdict that is kept
	kept    map[verdictKey]bool
	scopes  map[scopeKey]*scope
	matcher matcher
	number  struct {
		text  json.Number
		value *big.Rat
	}
}

// newChecker is a check of a content of so many bytes.
func newChecker(ctx context.Context, c *compiled, bytes int) *checker {
	return &checker{ctx: ctx, schema: c, bytes: bytes, limit: workFor(bytes), keep: keptFrom, kept: map[verdictKey]bool{}, scopes: map[scopeKey]*scope{}}
}

// verdictKey is a part of the schema at a value: a text, a number, or where an array or object is.
type verdictKey struct {
	part  *jsonschema.Schema
	value any
	scope *scope
}

// place is where a check is.
type place struct {
	inPlace int // parts that led here at this value
	scope   *scope
}

// in is the same place, one part further.
func (p place) in() place { return place{p.inPlace + 1, p.scope} }

// below is a place at a member or an item.
func (p place) below() place { return place{0, p.scope} }

// run tells whether a value fits, or why that is not known: *workError or the end of ctx.
func (k *checker) run(v any) (fits bool, err error) {
	defer k.stopped(&err)
	return k.fits(k.schema.schema, v, place{}), nil
}

// stopped recovers from what [checker.spend] stops with.
func (k *checker) stopped(err *error) {
	switch r := recover().(type) {
	case nil:
	case *workError:
		*err = r
	case error:
		if !errors.Is(r, errNobodyWaits) {
			panic(r)
		}
		*err = context.Cause(k.ctx)
	default:
		panic(r)
	}
}

// spend counts steps; where they are too many, or nobody waits, it ends the check.
func (k *checker) spend(steps int) {
	k.done += steps
	if k.done > k.limit || steps < 0 {
		panic(&workError{reason: fmt.Sprintf("checking this content of %d bytes takes more than the %d steps that are allowed for its size (at most %d for any); "+
			"make the content smaller, or let the schema ask less of each value: fewer alternatives, shorter patterns", k.bytes, k.limit, maxWork)})
	}
	if k.done-k.asked >= askEvery {
		k.asked = k.done
		if k.ctx.Err() != nil {
			panic(errNobodyWaits)
		}
	}
}

// fits tells whether a value fits a part of the schema.
func (k *checker) fits(s *jsonschema.Schema, v any, at place) bool {
	k.spend(1)
	if s == nil {
		return true
	}
	if s.Bool != nil {
		return *s.Bool
	}
	p := k.schema.plans[s]
	if !p.leads {
		return k.leaf(s, p, v) && k.inside(s, p, v, at)
	}
	if at.inPlace > maxInPlace {
		panic(loops(s))
	}
	at.scope = k.enter(at.scope, p)
	k.spend(2)
	if text, ok := v.(string); ok {
		k.spend(len(text) / lettersLooked)
	}
	key := verdictKey{s, identity(v), at.scope}
	if fits, ok := k.kept[key]; ok {
		return fits
	}
	before := k.done
	fits := k.leaf(s, p, v) && k.inside(s, p, v, at)
	if k.done-before >= k.keep {
		k.kept[key] = fits
	}
	return fits
}

// array is the identity of an array: where it is. Arrays without items are all the same.
type array struct {
	first *any
	size  int
}

// object is the identity of an object: where it is.
type object struct{ at unsafe.Pointer }

// identity is a value that can be compared. The same identity is the same value, in one check.
func identity(v any) any {
	switch v := v.(type) {
	case []any:
		return array{unsafe.SliceData(v), len(v)}
	case map[string]any:
		return object{*(*unsafe.Pointer)(unsafe.Pointer(&v))} // a map is a pointer
	}
	return v
}

// inside asks what is about the members and items of a value, and the parts that a part leads to.
func (k *checker) inside(s *jsonschema.Schema, p *plan, v any, at place) bool {
	if s.Ref != nil && s.DraftVersion < 2019 {
		return k.fits(s.Ref, v, at.in()) // its siblings are ignored
	}
	switch v := v.(type) {
	case map[string]any:
		if !k.object(s, p, v, at) {
			return false
		}
	case []any:
		if !k.array(s, v, at) {
			return false
		}
	}
	for _, ref := range [...]*jsonschema.Schema{s.Ref, s.RecursiveRef, k.dynamic(s.DynamicRef, at)} {
		if ref != nil && !k.fits(ref, v, at.in()) {
			return false
		}
	}
	return k.combined(s, v, at) && k.unevaluated(s, v, at)
}

// combined asks the parts that are about the same value.
func (k *checker) combined(s *jsonschema.Schema, v any, at place) bool {
	if s.Not != nil && k.fits(s.Not, v, at.in()) {
		return false
	}
	for _, part := range s.AllOf {
		if !k.fits(part, v, at.in()) {
			return false
		}
	}
	if len(s.AnyOf) > 0 && len(k.which(s.AnyOf, v, at, 1)) == 0 {
		return false
	}
	if len(s.OneOf) > 0 && len(k.which(s.OneOf, v, at, 2)) != 1 {
		return false
	}
	if s.If != nil {
		part := s.Else
		if k.fits(s.If, v, at.in()) {
			part = s.Then
		}
		if part != nil && !k.fits(part, v, at.in()) {
			return false
		}
	}
	return true
}

// which returns the alternatives that fit, up to so many.
func (k *checker) which(parts []*jsonschema.Schema, v any, at place, most int) []int {
	var out []int
	for i, part := range parts {
		if k.fits(part, v, at.in()) {
			if out = append(out, i); len(out) == most {
				break
			}
		}
	}
	return out
}
