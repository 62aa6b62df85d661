package nodehub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// maxSchemas bounds the compiled schemas that are kept.
const maxSchemas = 1024

// SchemaError says that a content does not fit the JSON Schema of its type, or that the schema itself
// is unusable.
type SchemaError struct {
	NodeType string
	Reason   string
	Broken   bool // the schema is at fault, not the content
}

func (e *SchemaError) Error() string {
	if e.Reason == "" { // the writer may not read the type
		return fmt.Sprintf("the content does not fit type '%s', which you may not read", e.NodeType)
	}
	if e.Broken {
		return fmt.Sprintf("the schema of type '%s' cannot be used: %s", e.NodeType, e.Reason)
	}
	return fmt.Sprintf("the content does not fit type '%s': %s", e.NodeType, e.Reason)
}

// TypeError says that a node's type is not known.
type TypeError struct{ NodeType string }

func (e *TypeError) Error() string {
	return fmt.Sprintf("type '%s' is not known: create a node of type NodeType at that path first, or leave nodeType empty", e.NodeType)
}

// types knows the node types: built in, registered by the program, or nodes of type NodeType. Compiled
// schemas are kept by path and version of the type node and dropped when it changes.
type types struct {
	rows interface {
		Read(ctx context.Context, path node.Path) (node.Node, error)
	}
	slots      *slots
	mu         sync.RWMutex
	registered map[string]bool
	known      map[string]*typeInfo
	epoch      uint64
}

type typeInfo struct {
	schema *compiled // nil: any content
	err    error
}

// compiled is a schema that can be checked with.
type compiled struct {
	schema  *jsonschema.Schema
	refuses *jsonschema.Schema              // fits what schema does not: it tells no places, and costs little memory
	dynamic map[string][]*jsonschema.Schema // parts by the name of their $dynamicAnchor
}

func newTypes(rows interface {
	Read(ctx context.Context, path node.Path) (node.Node, error)
}, log *slog.Logger) *types {
	t := &types{rows: rows, slots: newSlots(log), registered: map[string]bool{}, known: map[string]*typeInfo{}}
	for _, name := range []string{node.TypeSpace, node.TypeUser, node.TypeNodeType, node.TypeMarkdown, node.TypeAccessAssignment, node.TypeActivity, TypeCollection} {
		t.registered[name] = true
	}
	return t
}

func (t *types) register(name string) {
	t.mu.Lock()
	t.registered[name] = true
	t.mu.Unlock()
}

func (t *types) isRegistered(name string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.registered[name]
}

// resolve returns what is known of a type, or *TypeError.
func (t *types) resolve(ctx context.Context, name string) (*typeInfo, error) {
	if name == "" {
		return &typeInfo{}, nil
	}
	t.mu.RLock()
	known, registered, epoch := t.known[name], t.registered[name], t.epoch
	t.mu.RUnlock()
	if known != nil {
		return known, known.err
	}
	info := &typeInfo{}
	path, err := node.ParsePath(name)
	if err != nil {
		if registered {
			return info, nil
		}
		return nil, &TypeError{NodeType: name}
	}
	n, err := t.rows.Read(ctx, path)
	var missing *store.NotFoundError
	switch {
	case errors.As(err, &missing):
		if !registered {
			return nil, &TypeError{NodeType: name} // a miss is not kept
		}
		// That a registered type has no node is kept until there is one: every write asks for its type.
		t.keep(name, info, epoch)
		return info, nil
	case err != nil:
		return nil, err
	case n.NodeType != node.TypeNodeType && !registered:
		return nil, &TypeError{NodeType: name}
	}
	err = t.slots.run(ctx, name, func() (err error) {
		info.schema, err = compileSchema(n)
		return err
	})
	var bad *SchemaError
	if err != nil && !errors.As(err, &bad) {
		return nil, err // nothing is known of the schema
	}
	if err != nil {
		info = &typeInfo{err: err}
	}
	t.keep(name, info, epoch)
	return info, info.err
}

// keep keeps what was read of a type, unless a type has changed since the epoch in which it was read.
func (t *types) keep(name string, info *typeInfo, epoch uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.epoch != epoch {
		return
	}
	if len(t.known) >= maxSchemas {
		clear(t.known)
	}
	t.known[name] = info
}

// clear drops everything: any type may have changed.
func (t *types) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.epoch++
	clear(t.known)
}

// changed drops what a change may have altered.
func (t *types) changed(c store.Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.known[string(c.Path)]; ok || t.registered[string(c.Path)] || c.Node.NodeType == node.TypeNodeType {
		t.epoch++
		delete(t.known, string(c.Path))
	}
}

// compileSchema compiles the "schema" member of a type node's content; none is no restriction.
func compileSchema(n node.Node) (*compiled, error) {
	broken := func(err error) error {
		return &SchemaError{NodeType: string(n.Path), Reason: shorten(oneLine(err.Error())), Broken: true}
	}
	var content struct {
		Schema jsonRaw `json:"schema"`
	}
	if err := n.Content.Decode(&content); err != nil || len(content.Schema) == 0 {
		return nil, nil
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(content.Schema)))
	if err != nil {
		return nil, broken(err)
	}
	var text schemaText
	if err := text.measure(doc, 0); err != nil {
		return nil, broken(err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	var res patterns
	c.UseRegexpEngine(res.compile)
	const at, not = "node:schema", "node:not"
	if err := c.AddResource(not, map[string]any{"not": map[string]any{"$ref": at}}); err != nil {
		return nil, broken(err)
	}
	if err := c.AddResource(at, doc); err != nil {
		return nil, broken(err)
	}
	out := &compiled{dynamic: map[string][]*jsonschema.Schema{}}
	if out.schema, err = c.Compile(at); err != nil {
		return nil, broken(err)
	}
	if out.refuses, err = c.Compile(not); err != nil {
		return nil, broken(err)
	}
	res.sealed.Store(true)
	if err := out.gather(text.dynamicAnchors); err != nil {
		return nil, broken(err)
	}
	return out, nil
}

// gather finds where dynamic references may lead, so that work can be counted. It refuses those whose
// targets can not be told: anchors are how many the schema's own text has.
func (c *compiled) gather(anchors int) error {
	seen := map[*jsonschema.Schema]bool{c.schema: true}
	own, dynamic := 0, false
	for todo := []*jsonschema.Schema{c.schema}; len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if s.RecursiveRef != nil && s.RecursiveRef.RecursiveAnchor {
			return errors.New("it uses $recursiveAnchor; use $dynamicAnchor and $dynamicRef of draft 2020-12")
		}
		dynamic = dynamic || s.DynamicRef != nil && s.DynamicRef.Anchor != ""
		if s.DynamicAnchor != "" {
			c.dynamic[s.DynamicAnchor] = append(c.dynamic[s.DynamicAnchor], s)
			if !strings.HasPrefix(s.Location, "https://json-schema.org/") {
				own++
			}
		}
		parts(s, func(sub *jsonschema.Schema) {
			if !seen[sub] {
				seen[sub] = true
				todo = append(todo, sub)
			}
		})
	}
	if dynamic && own < anchors {
		return errors.New("it has a $dynamicAnchor in a part that nothing refers to by $ref")
	}
	return nil
}

// jsonRaw is raw JSON text.
type jsonRaw []byte

func (r *jsonRaw) UnmarshalJSON(b []byte) error {
	if string(b) != "null" {
		*r = append((*r)[:0], b...)
	}
	return nil
}

// noLoader refuses references to anything outside the schema: a write must not make the server read
// files or open connections.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema may not refer to '%s', outside itself", url)
}

// check validates a content against its type.
func (t *types) check(ctx context.Context, n node.Node) error {
	info, err := t.resolve(ctx, n.NodeType)
	if err != nil {
		return err
	}
	if info.schema == nil {
		return nil
	}
	return t.slots.run(ctx, n.NodeType, func() error { return info.schema.check(n) })
}

// check validates a content, within the bound of work.
func (c *compiled) check(n node.Node) error {
	bad := &SchemaError{NodeType: n.NodeType}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(n.Content.String()))
	if err != nil {
		bad.Reason = oneLine(err.Error())
		return bad
	}
	units, err := workOf(c, doc)
	if err != nil {
		bad.Broken, bad.Reason = true, oneLine(err.Error())
		return bad
	}
	if c.refuses.Validate(doc) != nil {
		return nil
	}
	bad.Reason = "it is too large to say where"
	if units <= detailWork {
		if err := c.schema.Validate(doc); err != nil {
			bad.Reason = describe(err)
		}
	}
	return bad
}

// describe names the first places where a content does not fit.
func describe(err error) string {
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return oneLine(err.Error())
	}
	var out []string
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(out) == 5 {
			return
		}
		if len(e.Causes) == 0 {
			text := oneLine(e.Error())
			if i := strings.LastIndex(text, "at '"); i >= 0 {
				text = text[i:]
			}
			out = append(out, shorten(text))
		}
		for _, c := range e.Causes {
			walk(c)
		}
	}
	walk(v)
	return strings.Join(out, "; ")
}

// shorten cuts a text that quotes what may be long.
func shorten(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
