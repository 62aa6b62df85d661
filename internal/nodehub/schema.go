package nodehub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hubmesh/hubmesh/internal/message"
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
	TooMuch  bool // whether the content fits takes too much to find out
}

func (e *SchemaError) Error() string {
	if e.Reason == "" { // the writer may not read the type
		return fmt.Sprintf("the content does not fit type '%s', which you may not read", e.NodeType)
	}
	if e.Broken {
		return fmt.Sprintf("the schema of type '%s' cannot be used: %s", e.NodeType, e.Reason)
	}
	if e.TooMuch {
		return fmt.Sprintf("the content is too large for the schema of type '%s': %s", e.NodeType, e.Reason)
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
	err = t.slots.run(ctx, name, func(context.Context) (err error) {
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
	const at = "node:schema"
	if err := c.AddResource(at, doc); err != nil {
		return nil, broken(err)
	}
	out := &compiled{}
	if out.schema, err = c.Compile(at); err != nil {
		return nil, broken(err)
	}
	if err := out.plan(text); err != nil {
		return nil, broken(err)
	}
	if err := out.ends(); err != nil {
		return nil, broken(err)
	}
	return out, nil
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
	return t.slots.run(ctx, n.NodeType, func(ctx context.Context) error { return info.schema.check(ctx, n) })
}

// check validates a content, within the bound of work and for as long as ctx.
func (c *compiled) check(ctx context.Context, n node.Node) error {
	bad := &SchemaError{NodeType: n.NodeType}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(n.Content.String()))
	if err != nil {
		bad.Reason = oneLine(err.Error())
		return bad
	}
	k := newChecker(ctx, c, n.Content.Len())
	fits, err := k.run(doc)
	var much *workError
	switch {
	case errors.As(err, &much):
		bad.Broken, bad.TooMuch, bad.Reason = much.broken, !much.broken, oneLine(much.Error())
		return bad
	case err != nil:
		return err // nothing is known of the content
	case fits:
		return nil
	}
	bad.Reason = k.why(doc)
	return bad
}

// shorten cuts a text that quotes what may be long.
func shorten(s string) string {
	const most = 400
	return message.Shorten(s, most)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
