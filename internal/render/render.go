package render

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	ghtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/hubmesh/hubmesh/internal/node"
)

// Nodes reads nodes for whoever ctx carries.
type Nodes interface {
	Get(ctx context.Context, path node.Path) (node.Node, error)
}

// Renderer renders documents. It is safe for concurrent use.
type Renderer struct {
	nodes    Nodes
	markdown goldmark.Markdown
	policy   *bluemonday.Policy
	slots    chan struct{} // one for each document that may be rendered at a time
	waiting  atomic.Int64
}

// New returns a renderer.
func New(nodes Nodes) *Renderer {
	r := &Renderer{nodes: nodes, policy: policy(), slots: make(chan struct{}, max(2, runtime.GOMAXPROCS(0))), markdown: goldmark.New(
		goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList), // for what they render
		goldmark.WithRendererOptions(ghtml.WithUnsafe()),                                     // sanitised below
	)}
	r.markdown.SetParser(newParser())
	return r
}

// Render returns the HTML of the node at a path, "" for a node without a document, and its version.
func (r *Renderer) Render(ctx context.Context, at node.Path) (string, int64, error) {
	n, err := r.nodes.Get(ctx, at)
	if err != nil {
		return "", 0, err
	}
	text := Document(n)
	if text == "" {
		out, err := r.bounded(ctx, at, n.PreRenderedHTML, func(context.Context) ([]byte, error) { return []byte(n.PreRenderedHTML), nil })
		return out, n.Version, err
	}
	out, err := r.RenderText(ctx, at, text)
	return out, n.Version, err
}

// RenderText renders Markdown as if it were the document of the node at a path. It answers
// *[TooLargeError] for a document that is too long or too intricate, *[BusyError] when too many are being
// rendered, and the cause of ctx when that ends, which ends the work.
func (r *Renderer) RenderText(ctx context.Context, at node.Path, markdown string) (string, error) {
	return r.bounded(ctx, at, markdown, func(ctx context.Context) ([]byte, error) {
		pc := parser.NewContext()
		pc.Set(baseKey, at)
		m := &meter{ctx: ctx}
		pc.Set(meterKey, m)
		source := []byte(markdown)
		doc := r.markdown.Parser().Parse(text.NewReader(source), parser.WithContext(pc))
		m.alive()
		var out capped
		err := r.markdown.Renderer().Render(&out, source, doc)
		m.alive()
		return out.text, err
	})
}

// bounded makes HTML from a text within the bounds of the renderer, and sanitises it.
func (r *Renderer) bounded(ctx context.Context, at node.Path, from string, convert func(context.Context) ([]byte, error)) (html string, err error) {
	if len(from) > MaxDocument {
		return "", &TooLargeError{fmt.Sprintf("it has %d bytes; %d are allowed", len(from), MaxDocument)}
	}
	done, err := r.turn(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, renderBound, &TooLargeError{fmt.Sprintf("it took more than %v; divide it", renderBound)})
	defer cancel()
	err = guard(func() error {
		out, err := convert(ctx)
		if err == nil {
			html = r.policy.Sanitize(string(out))
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("rendering '%s': %w", at, err)
	}
	return html, nil
}

// Document is the Markdown of a node: the member "markdown" of its content, or "text" or "body" of a
// content of type Markdown.
func Document(n node.Node) string {
	var c struct {
		Type     string `json:"$type"`
		Markdown string `json:"markdown"`
		Text     string `json:"text"`
		Body     string `json:"body"`
		Content  any    `json:"content"`
	}
	if n.Content.Decode(&c) != nil {
		return ""
	}
	if c.Markdown != "" {
		return c.Markdown
	}
	if c.Type != "Markdown" && c.Type != "MarkdownContent" && c.Type != "Article" && n.NodeType != node.TypeMarkdown {
		return ""
	}
	for _, s := range []string{c.Text, c.Body} {
		if s != "" {
			return s
		}
	}
	s, _ := c.Content.(string)
	return s
}

var baseKey = parser.NewContextKey()

// rewriter makes links and images of a document absolute.
type rewriter struct{}

func (rewriter) Transform(doc *ast.Document, _ text.Reader, pc parser.Context) {
	at, _ := pc.Get(baseKey).(node.Path)
	m := meterOf(pc)
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		m.add(1)
		switch n := n.(type) {
		case *ast.Link:
			// A definition that many links name is written out for each of them.
			m.add(stepWork * (len(n.Destination) + len(n.Title)))
			n.Destination = []byte(link(at, string(n.Destination)))
		case *ast.Image:
			m.add(stepWork * (len(n.Destination) + len(n.Title)))
			n.Destination = []byte(image(at, string(n.Destination)))
		}
		return ast.WalkContinue, nil
	})
}

// link is where a link of a document leads. Relative ones are relative to the node, as to a folder; with
// the ending ".md" they name a file beside the document's own, as in the folder that it came from.
func link(at node.Path, dest string) string {
	dest = strings.TrimPrefix(dest, "@")
	if absolute(dest) || strings.HasPrefix(dest, "#") || strings.HasPrefix(dest, "/") || dest == "" {
		return dest
	}
	to, frag, hasFrag := strings.Cut(dest, "#")
	base := at
	if stem, ok := strings.CutSuffix(to, ".md"); ok {
		to = stem
		if at.Depth() > 1 {
			base = at.Parent()
		}
	}
	out := "/" + strings.TrimPrefix(path.Join("/", string(base), to), "/")
	if hasFrag {
		out += "#" + frag
	}
	return out
}

// image is where an image of a document comes from: relative ones from the content of its node.
func image(at node.Path, src string) string {
	if absolute(src) || strings.HasPrefix(src, "/") || src == "" {
		return src
	}
	return "/api/content/" + escapePath(strings.TrimPrefix(path.Join("/", string(at), src), "/"))
}

// absolute tells whether a destination has a scheme or a host of its own.
func absolute(dest string) bool {
	if strings.HasPrefix(dest, "//") {
		return true
	}
	colon := strings.IndexByte(dest, ':')
	return colon > 0 && !strings.ContainsAny(dest[:colon], "/?#")
}

func escapePath(p string) string {
	var b strings.Builder
	for i, seg := range strings.Split(p, "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		b.Write(util.URLEscape([]byte(seg), true))
	}
	return b.String()
}

// mention is the inline form "@path", a link to a node, and "@@path", an embed: a file of the content is
// shown, a node is linked. It needs a path of two segments at least, so that "@name" stays text.
type mention struct{}

func (mention) Trigger() []byte { return []byte{'@'} }

func (mention) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if before := block.PrecendingCharacter(); before != '\n' && before != ' ' && before != '(' && before != '\t' && before != '|' {
		return nil
	}
	line, _ := block.PeekLine()
	line = line[:min(len(line), node.MaxPathBytes+8)] // no longer path is one, and none is looked for
	marks := 1
	if len(line) > 1 && line[1] == '@' {
		marks = 2
	}
	// The call form @@("path") says the same.
	if quoted, ok := bytes.CutPrefix(line[marks:], []byte(`("`)); ok {
		if target, _, ok := bytes.Cut(quoted, []byte(`")`)); ok && len(target) > 0 {
			to, inside := place(pc, string(target))
			if !inside {
				return nil
			}
			block.Advance(marks + len(target) + 4)
			return nodeLink(to)
		}
	}
	end := marks
	for end < len(line) && !bytes.ContainsRune([]byte(" \t\r\n)\"'`|<>*"), rune(line[end])) {
		end++
	}
	target := strings.TrimRight(string(line[marks:end]), ".,;:!?")
	target = strings.TrimPrefix(target, "/")
	if !strings.Contains(target, "/") || strings.Contains(target, "@") {
		return nil
	}
	to, inside := place(pc, target)
	if !inside {
		return nil
	}
	block.Advance(marks + len(strings.TrimRight(string(line[marks:end]), ".,;:!?")))
	if marks == 2 && isPicture(target) {
		l := ast.NewLink()
		if local, ok := strings.CutPrefix(target, "content/"); ok {
			l.Destination = []byte("content/" + local)
		} else {
			l.Destination = []byte("/api/content/" + escapePath(to))
		}
		img := ast.NewImage(l)
		img.AppendChild(img, ast.NewString([]byte(html.EscapeString(path.Base(target)))))
		return img
	}
	return nodeLink(to)
}

// place is the path that a mention names. One that begins with "./" or "../" is relative to the node, as
// to a folder; inside is false for one that leads out of the tree.
func place(pc parser.Context, target string) (to string, inside bool) {
	target = strings.Trim(target, "/")
	segments := strings.Split(target, "/")
	if !slices.Contains(segments, "..") && !slices.Contains(segments, ".") {
		return target, true
	}
	if segments[0] == ".." || segments[0] == "." {
		at, _ := pc.Get(baseKey).(node.Path)
		target = string(at) + "/" + target
	}
	to = path.Clean(strings.TrimPrefix(target, "/")) // without a slash before it, ".." is not lost at the top
	return to, to != "." && to != ".." && !strings.HasPrefix(to, "../")
}

// nodeLink is a link to a node that shows its path.
func nodeLink(target string) ast.Node {
	l := ast.NewLink()
	l.Destination = []byte("/" + escapePath(target))
	l.AppendChild(l, ast.NewString([]byte(html.EscapeString(target))))
	return l
}

func isPicture(p string) bool {
	switch strings.ToLower(path.Ext(p)) {
	case ".svg", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif":
		return true
	}
	return false
}
